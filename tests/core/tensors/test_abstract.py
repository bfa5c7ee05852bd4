from __future__ import annotations

import copy
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper
from toy_layers import Scaled, Watcher, under, values

from syft_core.exceptions import NotRegisteredError, OperationNotAllowedError
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.party.base import BaseWorker

pytestmark = pytest.mark.usefixtures("hook")


class Unregistered(AbstractTensor):
    pass


# --- on, wrap, child


def test_a_layer_on_a_plain_tensor_gets_a_wrapper() -> None:
    data, layer = toy.Vector([1.0]), Watcher()

    x = layer.on(data)

    assert type(x) is Wrapper
    assert x.is_wrapper
    assert x.child is layer
    assert layer.child is data
    assert not layer.is_wrapper


def test_a_layer_on_a_wrapper_is_inserted_under_it() -> None:
    x = Scaled().on(toy.Vector([1.0]))
    inner, x_id = x.child, x.id

    result = Watcher().on(x)

    assert result is x
    assert x.id == x_id
    assert type(x.child) is Watcher
    assert x.child.child is inner


def test_a_layer_may_be_put_on_without_a_wrapper() -> None:
    data, layer = toy.Vector([1.0]), Watcher()

    assert layer.on(data, wrap=False) is layer
    assert layer.child is data


def test_a_layer_on_a_layer_gets_one_wrapper_with_its_id() -> None:
    inner = under(Scaled(id=5), 1.0)

    x = Watcher().on(inner)

    assert str(x) == "(Wrapper)>Watcher>Scaled>Vector([1.0])"
    assert x.id == 5


def test_an_unregistered_type_is_refused_with_the_line_to_add() -> None:
    with pytest.raises(NotRegisteredError) as caught:
        Unregistered().on(toy.Vector([1.0]))

    assert str(caught.value) == (
        "cannot find Unregistered in 'type_rule': it is not registered; "
        "call `syft_core.hook.hook_args.default_register_tensor(Unregistered)` after defining it"
    )


def test_a_subclass_of_a_registered_type_must_be_registered_itself() -> None:
    class Heir(Watcher):
        pass

    with pytest.raises(NotRegisteredError, match=r"default_register_tensor\(Heir\)"):
        Heir().on(toy.Vector([1.0]))


def test_wrap_returns_the_frameworks_wrapper() -> None:
    layer = under(Watcher(), 1.0)

    wrapper = layer.wrap()

    assert type(wrapper) is Wrapper
    assert wrapper.child is layer


def test_a_worker_stores_wrappers_unless_it_is_a_client(hook: ToyHook) -> None:
    bob = BaseWorker(id="bob")

    mine = Watcher().on(toy.Vector([1.0]))
    wrapped = under(Watcher(owner=bob), 1.0).wrap()
    unregistered = under(Watcher(owner=bob), 1.0).wrap(register=False)

    assert hook.local_worker.is_client_worker
    assert repr(hook.local_worker) == "<VirtualWorker id:me #objects:0>"
    assert mine.owner is hook.local_worker
    assert bob.get_obj(wrapped.id) is wrapped
    assert repr(bob) == "<BaseWorker id:bob #objects:1>"
    assert unregistered.child.owner is bob


# --- identity


def test_the_constructor_takes_id_owner_tags_description_and_child() -> None:
    bob, data = BaseWorker(id="bob"), toy.Vector([1.0])

    layer = Watcher(id="mine", owner=bob, tags=["#b", "#a"], description="words", child=data)

    assert (layer.id, layer.owner, layer.tags, layer.description) == ("mine", bob, {"#a", "#b"}, "words")
    assert layer.child is data


# --- copies


def test_a_copy_has_the_same_layers_on_its_own_data() -> None:
    layer = under(Watcher(id=1, tags=["#t"]), 1.0)
    layer = Watcher(id=2).on(Scaled(id=3, scale=4).on(layer.child, wrap=False), wrap=False)

    twin = layer.copy()
    twin.child.child[0] = 9.0

    assert str(twin) == "Watcher>Scaled>Vector([9.0])"
    assert values(layer) == [1.0]
    assert twin.child.scale == 4
    assert {twin.id, twin.child.id}.isdisjoint({2, 3})
    assert twin.tags == set()


def test_a_clone_keeps_id_owner_tags_and_description() -> None:
    bob = BaseWorker(id="bob")
    layer = under(Scaled(scale=4, id=1, owner=bob, tags=["#t"], description="words"), 1.0)

    twin = layer.clone()

    assert (twin.id, twin.owner, twin.tags, twin.description, twin.scale) == (1, bob, {"#t"}, "words", 4)
    assert twin is not layer
    assert twin.child is not layer.child


def test_a_clone_does_not_share_its_tags() -> None:
    layer = under(Watcher(tags=["#t"]), 1.0)

    layer.clone().tag("#more")

    assert layer.tags == {"#t"}


def test_a_layer_without_a_child_can_be_copied() -> None:
    assert str(Scaled(scale=3).copy()) == "Scaled"


def test_copying_a_wrapper_copies_the_chain() -> None:
    x = Watcher().on(toy.Vector([1.0]))

    twin = x.copy()

    assert str(twin) == "(Wrapper)>Watcher>Vector([1.0])"
    assert twin.child.child is not x.child.child


def test_a_deep_copy_of_a_layer_is_an_independent_chain() -> None:
    layer = under(Scaled(scale=4), 1.0)

    twin = copy.deepcopy(layer)
    twin.child[0] = 9.0

    assert (values(layer), twin.scale) == ([1.0], 4)


# --- repr


def test_a_layer_without_a_child_shows_its_name() -> None:
    assert str(Watcher()) == "Watcher"


# --- forwarding


def test_methods_attributes_and_length_are_those_of_the_data() -> None:
    x = Watcher().on(toy.Vector([1.0, 5.0]))

    assert (x.shape, x.dtype, len(x), x.child.shape) == ((2,), float, 2, (2,))
    assert values(x.clip(0, high=2.0)) == [1.0, 2.0]
    assert {"clip", "shape", "tag", "child"} <= set(dir(x)) & set(dir(x.child))


def test_a_chain_can_be_indexed_iterated_and_assigned_to() -> None:
    x = Watcher().on(toy.Vector([1.0, 5.0, 7.0]))

    x[x > 4] = 0.0
    x[0] = Watcher().on(toy.Vector([2.0]))

    assert values(x) == [2.0, 0.0, 0.0]
    assert [str(item) for item in x[:2]] == ["(Wrapper)>Watcher>Vector([2.0])", "(Wrapper)>Watcher>Vector([0.0])"]
    assert values(x[::2]) == [2.0, 0.0]
    assert values(x[...]) == [2.0, 0.0, 0.0]


def test_conversions_are_those_of_the_data() -> None:
    x = Watcher().on(toy.Vector([3]))

    assert (int(x), float(x), bool(x), 3 in x, list(range(5))[x]) == (3, 3.0, True, True, 3)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x: x + 2, 6.0),
        (lambda x: x - 2, 2.0),
        (lambda x: x * 2, 8.0),
        (lambda x: x / 2, 2.0),
        (lambda x: x**2, 16.0),
        (lambda x: 2 + x, 6.0),
        (lambda x: 2 - x, -2.0),
        (lambda x: 2 * x, 8.0),
        (lambda x: 2 / x, 0.5),
        (lambda x: 2**x, 16.0),
        (lambda x: -x, -4.0),
        (lambda x: abs(-x), 4.0),
        (lambda x: x @ x, 16.0),
        (lambda x: x == 4, True),
        (lambda x: x != 4, False),
        (lambda x: x < 4, False),
        (lambda x: x <= 4, True),
        (lambda x: x > 4, False),
        (lambda x: x >= 4, True),
        (lambda x: (x > 1) & (x < 2), False),
        (lambda x: (x > 1) | (x < 2), True),
    ],
)
def test_every_operator_is_dispatched_to_the_chain(compute: Any, expected: Any) -> None:
    result = compute(Watcher().on(toy.Vector([4.0])))

    assert result.is_wrapper
    assert values(result) == [expected]


def test_a_comparison_with_none_behaves_as_in_python() -> None:
    x = Watcher().on(toy.Vector([1.0]))

    assert (x == None) is False  # noqa: E711  # the comparison is what is tested
    assert (x != None) is True  # noqa: E711


def test_chains_are_hashable() -> None:
    x = Watcher().on(toy.Vector([1.0]))

    assert {x: "x", x.child: "layer"}[x] == "x"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = under(Watcher(), 1.0).nonsense

    assert str(caught.value) == "cannot read 'nonsense': neither Watcher nor its framework has it"
    assert not hasattr(Watcher().on(toy.Vector([1.0])), "nonsense")


def test_the_error_for_a_layer_without_a_child_shows_how_to_add_one() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = Watcher().shape

    assert str(caught.value) == "cannot read 'shape' of a Watcher: it has no child; put it on a tensor with `.on(x)`"
    assert "clip" not in dir(Watcher())


@pytest.mark.parametrize("compute", [lambda x: x << 1, lambda x: +x, lambda x: complex(x), lambda x: 1 % x])
def test_an_operator_that_the_framework_does_not_have_is_refused_by_name(compute: Any) -> None:
    with pytest.raises(
        OperationNotAllowedError, match="cannot run '.*__(lshift|pos|complex|rmod)__' on a pointer or another layer"
    ):
        compute(Watcher().on(toy.Vector([1.0])))


def test_an_operator_on_a_layer_without_a_child_is_refused() -> None:
    with pytest.raises(NotRegisteredError, match="cannot find .* in 'frameworks'"):
        Watcher() + 1


def test_a_method_is_not_called_by_reading_it() -> None:
    data = toy.Vector([1.0])

    method = Watcher().on(data).add_

    assert data.tolist() == [1.0]
    method(1.0)
    assert data.tolist() == [2.0]


# --- class attributes


def test_a_layer_without_options_has_no_class_attributes() -> None:
    assert Watcher().get_class_attributes() == {}


def test_results_have_the_class_attributes_of_the_layer() -> None:
    x = Scaled(scale=6).on(toy.Vector([1.0, 2.0]))

    assert [r.child.scale for r in (x + 1, x.sum(), toy.cat([x, x]), *toy.minmax(x), *toy.split(x, 1))] == [6] * 7


def test_by_default_a_layer_does_not_change_plain_operands() -> None:
    plain = toy.Vector([1.0])

    assert Watcher.lift(plain) is plain
