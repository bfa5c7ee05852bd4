"""Regression tests for defects of the ancestor, by their numbers in the list of defects."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Scaled, Watcher, under, values

from syft_core.exceptions import PlanMismatchError, SyftError
from syft_core.hook import hook_args
from syft_core.hook.hook import current_hook
from syft_core.tensors.logging import LoggingTensor
from syft_core.workers.party.base import BaseWorker

pytestmark = pytest.mark.usefixtures("hook")


@pytest.fixture
def x() -> Any:
    return LoggingTensor().on(toy.Vector([1.0, 5.0, 9.0]))


def test_d01_a_longer_call_after_a_shorter_one_keeps_its_arguments(x: Any) -> None:
    short = x.clip(2.0)
    long = x.clip(2.0, 6.0)
    short_again = x.clip(2.0)

    assert (values(short), values(long), values(short_again)) == ([2.0, 5.0, 9.0], [2.0, 5.0, 6.0], [2.0, 5.0, 9.0])


def test_d01_a_plan_for_fewer_arguments_refuses_more() -> None:
    layer = under(Watcher(), 1.0)
    plan, _ = hook_args.build_unwrap_args_from_function((layer, 0))

    with pytest.raises(PlanMismatchError, match=r"cannot apply a plan for 2 argument\(s\) to 3"):
        plan((layer, 0, True))


@pytest.mark.parametrize(
    ("rules", "args"),
    [
        (([0], 1), ([0], "found")),
        ((0, [0, [0, 0], 0], [[1]]), (0, [0, [0, 0], 0], [["found"]])),
        (([[[[1]]]],), ([[[["found"]]]],)),
        (([[[[[1]]]]],), ([[[[["found"]]]]],)),
        (([[[[[[1]]]]]],), ([[[[[["found"]]]]]],)),
    ],
)
def test_d02_the_first_tensor_is_found_past_dead_ends_and_at_any_depth(rules: Any, args: Any) -> None:
    assert hook_args.build_get_tensor_type(rules)(args) is str


def test_d03_every_slot_is_checked_whatever_its_type() -> None:
    layer = under(Watcher(), 1.0)
    unwrap, _ = hook_args.build_unwrap_args_from_function((layer, "mode"))
    wrap = hook_args.build_wrap_response_from_function((layer.child, "mode"), Watcher, {})

    with pytest.raises(PlanMismatchError, match="cannot apply a plan for a str to a Watcher"):
        unwrap((layer, layer))
    with pytest.raises(PlanMismatchError, match="cannot apply a plan for a str to a Vector"):
        wrap((layer.child, layer.child))


def test_d03_the_arity_of_a_response_is_checked() -> None:
    vector = toy.Vector([1.0])
    wrap = hook_args.build_wrap_response_from_function((vector, vector), Watcher, {})

    with pytest.raises(PlanMismatchError, match=r"cannot apply a plan for 2 argument\(s\) to 3"):
        wrap((vector, vector, vector))
    with pytest.raises(PlanMismatchError, match=r"cannot apply a plan for 2 argument\(s\) to 1"):
        wrap((vector,))


def test_d04_layers_and_plain_tensors_mix_in_either_order(x: Any) -> None:
    plain = toy.Vector([1.0, 1.0, 1.0])

    for result in (x.add(plain), x + plain, plain + x, toy.add(x, plain), toy.add(plain, x)):
        assert str(result) == "(Wrapper)>LoggingTensor>Vector([2.0, 6.0, 10.0])"


def test_d04_a_method_may_get_a_tensor_where_it_got_none_before(x: Any) -> None:
    alone = x.max()
    with_other = x.max(LoggingTensor().on(toy.Vector([4.0, 4.0, 4.0])))

    assert (values(alone), values(with_other)) == ([9.0], [4.0, 5.0, 9.0])


def test_d04_every_argument_of_a_lifted_call_survives(hook: ToyHook) -> None:
    def weighted(x: Any, y: Any, weight: float, *, shift: float) -> Any:
        return x + y * weight + shift

    op = hook.attributes.allow(weighted, "toy.weighted_for_d04")
    call = hook.get_hooked_func(op.name)

    assert values(call(toy.Vector([1.0]), LoggingTensor().on(toy.Vector([2.0])), 10.0, shift=100.0)) == [121.0]


def test_d04_internal_signals_are_ordinary_errors() -> None:
    with pytest.raises(SyftError) as caught:
        hook_args.unwrap_args_from_function("toy.add", (toy.Vector([1.0]),), {})

    assert isinstance(caught.value, Exception)


def test_d05_inverting_gives_a_new_inverted_tensor() -> None:
    mask = LoggingTensor().on(toy.Vector([True, False]))

    inverted = ~mask

    assert inverted is not mask
    assert (values(inverted), values(mask)) == ([False, True], [True, False])


def test_d05_conversions_are_not_in_place() -> None:
    x = LoggingTensor().on(toy.Vector([2]))

    assert int(x) == 2
    assert ["a", "b", "c"][x] == "c"


def test_d13_tensors_in_keywords_are_unwrapped(x: Any) -> None:
    y = LoggingTensor().on(toy.Vector([1.0, 1.0, 1.0]))

    for result in (toy.add(x=x, y=y), toy.add(x, y=y), x.add(other=y), toy.add(y=y, x=x)):
        assert str(result) == "(Wrapper)>LoggingTensor>Vector([2.0, 6.0, 10.0])"


def test_d13_tensors_nested_in_keywords_are_unwrapped(x: Any) -> None:
    assert len(toy.cat(vectors=[x, x])) == 6


def test_d15_a_response_of_another_structure_is_wrapped_whole(x: Any) -> None:
    alone = x.max()
    values_and_indices = x.max(0)
    alone_again = x.max()

    assert type(values_and_indices) is toy.Max
    assert str(values_and_indices.values) == "(Wrapper)>LoggingTensor>Vector([9.0])"
    assert str(values_and_indices.indices) == "(Wrapper)>LoggingTensor>Vector([2])"
    assert str(alone) == str(alone_again) == "(Wrapper)>LoggingTensor>Vector([9.0])"


@pytest.mark.parametrize(
    "nest", [lambda v: [[v]], lambda v: ((v,),), lambda v: [(v,)], lambda v: ([v],), lambda v: (v,)]
)
def test_d67_a_result_nested_in_containers_of_one_is_registered(nest: Any) -> None:
    bob, vector = BaseWorker(id="bob"), toy.Vector([1.0])
    response = nest(vector)

    assert hook_args.register_response("toy.nested", response, [7], bob) == response
    assert bob.get_obj(7) is vector


def test_d69_a_hook_can_be_taken_off_and_put_on_again(hook: ToyHook) -> None:
    hook.unhook()
    off = current_hook()

    with ToyHook(toy) as again:
        on = current_hook()

    assert (off, on) == (None, again)
    assert not hasattr(toy, "native_cat")


def test_d69_the_options_of_one_response_are_not_those_of_the_next() -> None:
    vector = toy.Vector([1.0])

    hook_args.hook_response("toy.f", vector, wrap_type=Scaled, wrap_args={"scale": 9})

    assert hook_args.hook_response("toy.f", vector, wrap_type=Scaled).scale == 1


def test_d69_a_further_hook_is_complete(hook: ToyHook) -> None:
    with pytest.warns(UserWarning, match="hooked already"):
        second = ToyHook(toy)

    with second:
        assert set(vars(hook)) <= set(vars(second))


def test_d88_a_logging_tensor_is_silent_by_default(x: Any, capfd: pytest.CaptureFixture[str]) -> None:
    toy.add(x, x).sum()
    x.child.manual_add(x.child)

    assert capfd.readouterr() == ("", "")


def test_d88_a_logging_tensor_can_be_heard_and_silenced(x: Any, caplog: pytest.LogCaptureFixture) -> None:
    name = "syft_core.tensors.logging"
    with caplog.at_level(logging.INFO, logger=name):
        x.sum()
    with caplog.at_level(logging.CRITICAL, logger=name):
        x.sum()

    assert [record.getMessage() for record in caplog.records] == ["Log method sum"]
