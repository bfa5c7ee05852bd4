from __future__ import annotations

from typing import Any, ClassVar

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Negating, Scaled, Watcher, under, values

from syft_core.exceptions import MixedLayersError, NotRegisteredError, OperationNotAllowedError
from syft_core.hook import caches, hook_args
from syft_core.hook import dispatch as dispatching
from syft_core.hook.attributes import describe_op
from syft_core.hook.dispatch import TRANSPARENT, dispatch, forward, framework_of
from syft_core.hook.overload import overloaded
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor

pytestmark = pytest.mark.usefixtures("hook")


class Catchall(AbstractTensor):
    """Handles everything itself, and forwards additions."""

    seen: ClassVar[list[Any]] = []

    @classmethod
    def respond(cls, op: Any, plan: Any, args: Any, kwargs: Any) -> Any:
        cls.seen.append((op, args, kwargs))
        if op.operation in ("add", "cat"):
            return forward(op, plan, args, kwargs)
        return f"{op.name} is not answered"

    @overloaded.method
    def mul(self, _self: Any, other: Any) -> Any:
        return _self * other


class Listener(AbstractTensor):
    """Listens to every call."""

    rank = TRANSPARENT
    heard: ClassVar[list[Any]] = []

    @classmethod
    def on_function_call(cls, command: Any) -> None:
        cls.heard.append(("function", command))

    @classmethod
    def on_method_call(cls, command: Any) -> None:
        cls.heard.append(("method", command))


class Remembering(AbstractTensor):
    records_lineage = True


hook_args.default_register_tensor(Catchall, Listener, Remembering)


@pytest.fixture(autouse=True)
def forget_what_was_seen() -> None:
    Catchall.seen.clear()
    Listener.heard.clear()


# --- down the chain and up again


def test_a_call_without_layers_runs_natively(hook: ToyHook) -> None:
    x = toy.Vector([1.0, 2.0])

    result = dispatch(hook.attributes.ops.look_up("toy.add"), (x, 1), {})

    assert type(result) is toy.Vector
    assert result.tolist() == [2.0, 3.0]


def test_a_result_is_wrapped_in_the_same_layers() -> None:
    x = Watcher().on(Scaled(scale=2).on(toy.Vector([1.0, 2.0])))

    result = toy.tanh(x * 0)

    assert str(result) == "(Wrapper)>Watcher>Scaled>Vector([0.0, 0.0])"
    assert result.child.child.scale == 2


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda x: toy.split(x, 1), "[(Wrapper)>Watcher>Vector([1.0]), (Wrapper)>Watcher>Vector([2.0])]"),
        (lambda x: toy.unbind(x), "((Wrapper)>Watcher>Vector([1.0]), (Wrapper)>Watcher>Vector([2.0]))"),
        (
            lambda x: toy.minmax(x),
            "MinMax(low=(Wrapper)>Watcher>Vector([1.0]), high=(Wrapper)>Watcher>Vector([2.0]))",
        ),
        (lambda x: x.max(0), "Max(values=(Wrapper)>Watcher>Vector([2.0]), indices=(Wrapper)>Watcher>Vector([1]))"),
        (
            lambda x: toy.summary(x),
            "{'sum': (Wrapper)>Watcher>Vector([3.0]), 'length': 2, "
            "'ends': ((Wrapper)>Watcher>Vector([1.0]), (Wrapper)>Watcher>Vector([2.0]))}",
        ),
        (lambda x: x[x > 1], "(Wrapper)>Watcher>Vector([2.0])"),
        (lambda x: x.tolist(), "[1.0, 2.0]"),
        (lambda x: len(x), "2"),
        (lambda x: x.shape, "(2,)"),
        (lambda x: x.sum().item(), "3.0"),
    ],
)
def test_every_kind_of_result_keeps_its_structure(call: Any, shown: str) -> None:
    assert str(call(Watcher().on(toy.Vector([1.0, 2.0])))) == shown


def test_a_revealed_value_is_not_wrapped(hook: ToyHook) -> None:
    op = describe_op("toy.reveal_for_dispatch", lambda x: x.copy(), "function", reveals=True)
    hook.attributes.ops.add(op)

    revealed = dispatch(op, (Watcher().on(toy.Vector([1.0])),), {})

    assert type(revealed) is toy.Vector


def test_layers_without_a_wrapper_are_dispatched_too() -> None:
    layer = under(Watcher(), 1.0, 2.0)

    assert str(toy.cat([layer, layer])) == "Watcher>Vector([1.0, 2.0, 1.0, 2.0])"
    assert str(layer + 1) == "Watcher>Vector([2.0, 3.0])"


# --- several layers in one call


def test_different_attributes_are_refused_with_advice() -> None:
    with pytest.raises(MixedLayersError) as caught:
        Scaled(scale=2).on(toy.Vector([1.0])) + Scaled(scale=3).on(toy.Vector([1.0]))

    assert str(caught.value) == (
        "cannot run 'toy.Vector.__add__': it mixes two Scaleds that differ in scale; "
        "create both operands with the same scale"
    )


def test_different_attributes_are_refused_also_in_lists() -> None:
    with pytest.raises(MixedLayersError, match="differ in scale"):
        toy.cat([Scaled(scale=2).on(toy.Vector([1.0])), Scaled(scale=3).on(toy.Vector([1.0]))])


@pytest.mark.parametrize(
    "change", [lambda x, y: x.add_(y), lambda x, y: x.__iadd__(y), lambda x, y: toy.add(x, 1, out=y)]
)
def test_different_attributes_are_refused_also_in_place(change: Any) -> None:
    x, y = Scaled(scale=2).on(toy.Vector([1.0])), Scaled(scale=3).on(toy.Vector([5.0]))

    with pytest.raises(MixedLayersError, match="differ in scale"):
        change(x, y)

    assert (values(x), values(y)) == ([1.0], [5.0]), "what is refused has not happened"


def test_a_plain_operand_is_lifted_on_either_side() -> None:
    plain, layer = toy.Vector([3.0]), Negating().on(toy.Vector([-2.0]))

    assert values(layer + plain) == [-5.0]
    assert values(plain + layer) == [-5.0]
    assert values(toy.cat([plain, layer])) == [-3.0, -2.0]


# --- rules


def test_a_rule_handles_every_spelling_of_its_operation() -> None:
    x, y = PlusIsMinusTensor().on(toy.Vector([5.0])), PlusIsMinusTensor().on(toy.Vector([3.0]))

    assert [values(r) for r in (x + y, x.add(y), toy.add(x, y), x + 3, x.add(y, alpha=2))] == [
        [2.0],
        [2.0],
        [2.0],
        [2.0],
        [-1.0],
    ]


@pytest.mark.parametrize("change", [lambda x: x.add_(3.0), lambda x: x.__iadd__(3.0)])
def test_a_rule_handles_the_in_place_operation_and_keeps_the_object(change: Any) -> None:
    x = PlusIsMinusTensor().on(toy.Vector([5.0]))
    layer = x.child

    result = change(x)

    assert result is x
    assert x.child is layer
    assert values(x) == [2.0]


def test_a_plain_tensor_is_not_changed_in_place_into_a_chain(hook: ToyHook) -> None:
    plain = toy.Vector([1.0])

    with pytest.raises(OperationNotAllowedError) as caught:
        hook.get_hooked_method("add_")(plain, under(PlusIsMinusTensor(), 1.0))

    assert str(caught.value) == (
        "cannot run 'toy.Vector.add_' on a PlusIsMinusTensor: a plain tensor cannot be changed in place into a chain; "
        "write `x = x + y` instead"
    )
    assert plain.tolist() == [1.0]


def test_a_rule_handles_the_reflected_operator_with_its_operands_in_order() -> None:
    x = PlusIsMinusTensor().on(toy.Vector([5.0]))

    assert values(1.0 + x) == [-4.0]
    assert values(1.0 - x) == [6.0]
    assert values(toy.Vector([1.0]) + x) == [-4.0]


def test_operations_without_a_rule_are_forwarded() -> None:
    x = PlusIsMinusTensor().on(toy.Vector([5.0]))

    assert str(x * 2) == "(Wrapper)>PlusIsMinusTensor>Vector([10.0])"
    assert values(2.0 / x) == [0.4]


# --- results that are arguments


def test_a_result_that_is_the_tensor_itself_is_the_callers_object() -> None:
    x = Watcher().on(Scaled().on(toy.Vector([1.0])))

    assert x.same() is x
    assert x.child.same() is x.child


@pytest.mark.parametrize("change", [lambda x: x.add_(1.0), lambda x: x.__iadd__(1.0), lambda x: x.__imul__(2.0)])
def test_an_in_place_operation_returns_the_callers_object(change: Any) -> None:
    data = toy.Vector([1.0])
    x = Watcher().on(Scaled().on(data))
    chain = (x, x.child, x.child.child, data)

    result = change(x)

    assert result is x
    assert (x, x.child, x.child.child, x.child.child.child) == chain
    assert data.tolist() == [2.0]


def test_an_output_argument_is_returned_as_the_callers_object() -> None:
    x, target = Watcher().on(toy.Vector([1.0])), Watcher().on(toy.Vector([0.0]))

    result = toy.add(x, 2.0, out=target)

    assert result is target
    assert values(target) == [3.0]


def test_an_output_in_a_tuple_of_one_is_returned_as_the_callers_object(hook: ToyHook) -> None:
    def fill(x: Any, *, out: tuple[Any]) -> Any:
        out[0][:] = x
        return out[0]

    op = hook.attributes.allow(fill, "toy.fill_for_dispatch")
    target = Watcher().on(toy.Vector([0.0]))

    assert dispatch(op, (Watcher().on(toy.Vector([7.0])),), {"out": (target,)}) is target
    assert values(target) == [7.0]


# --- respond, listeners, lineage


def test_respond_handles_operations_without_a_rule() -> None:
    x = Catchall().on(toy.Vector([2.0]))

    assert x.child.sum() == "toy.Vector.sum is not answered"
    assert toy.tanh(x.child) == "toy.tanh is not answered"
    assert [op.name for op, _args, _kwargs in Catchall.seen] == ["toy.Vector.sum", "toy.tanh"]


def test_a_forwarded_call_runs_on_the_children_and_is_wrapped() -> None:
    x = Catchall().on(toy.Vector([2.0]))

    assert str(x + 1) == "(Wrapper)>Catchall>Vector([3.0])"
    assert str(toy.cat([x, x])) == "(Wrapper)>Catchall>Vector([2.0, 2.0])"


def test_respond_gets_the_layers_and_the_keywords() -> None:
    layer = under(Catchall(), 2.0)

    toy.add(layer, 1, out=layer)

    ((_op, args, kwargs),) = Catchall.seen
    assert args == (layer, 1)
    assert kwargs == {"out": layer}


def test_a_rule_takes_precedence_over_respond() -> None:
    assert values(under(Catchall(), 2.0) * 3) == [6.0]
    assert Catchall.seen == []


def test_a_listener_is_called_before_functions_and_methods() -> None:
    layer = under(Listener(), 2.0)

    toy.add(layer, 1)
    layer.clip(0, high=1)
    _ = layer.shape

    assert Listener.heard == [
        ("function", ("toy.add", None, (layer, 1), {})),
        ("method", ("toy.Vector.clip", None, (layer, 0), {"high": 1})),
    ]


def test_a_listener_may_refuse_by_raising() -> None:
    class Strict(Listener):
        @classmethod
        def on_method_call(cls, command: Any) -> None:
            raise PermissionError(command[0])

    hook_args.default_register_tensor(Strict)

    with pytest.raises(PermissionError, match=r"toy\.Vector\.sum"):
        Strict().on(toy.Vector([2.0])).sum()


def test_a_layer_may_record_the_lineage_of_results() -> None:
    a, b = under(Remembering(), 1.0), under(Remembering(), 2.0)

    joined = toy.cat([a, b])
    low, high = toy.minmax(joined)

    assert (joined.parents, joined.command) == ((a, b), "toy.cat")
    assert low.parents == high.parents == (joined,)
    assert low.command == "toy.minmax"


def test_plain_parts_of_a_result_have_no_lineage() -> None:
    a = under(Remembering(), 1.0, 2.0)

    result = toy.summary(a)

    assert result["length"] == 2
    assert [tensor.parents for tensor in (result["sum"], *result["ends"])] == [(a,)] * 3


def test_lineage_is_not_recorded_by_default() -> None:
    assert "parents" not in vars(under(Watcher(), 1.0) + 1)


# --- frameworks


def test_the_framework_of_a_chain_is_that_of_its_end(hook: ToyHook) -> None:
    x = Watcher().on(Scaled().on(toy.Vector([1.0])))

    assert framework_of(x) is framework_of(x.child.child.child) is hook.attributes


def test_the_end_of_a_chain_may_name_its_framework(hook: ToyHook) -> None:
    class Remote:
        framework = hook.attributes

    assert framework_of(Watcher(child=Remote())) is hook.attributes


def test_a_chain_with_an_unknown_end_is_refused_with_advice() -> None:
    with pytest.raises(NotRegisteredError) as caught:
        framework_of(object())

    assert str(caught.value) == (
        "cannot find builtins.object in 'frameworks': it is not registered; "
        "load the backend of its framework, e.g. `sy.NumpyHook(numpy)`"
    )


def test_the_caches_of_handlers_stay_bounded(monkeypatch: pytest.MonkeyPatch, hook: ToyHook) -> None:
    monkeypatch.setattr(caches, "LIMIT", 3)
    monkeypatch.setattr(dispatching, "_answers", {})
    monkeypatch.setattr(dispatching, "_routes", {})
    x = Watcher().on(toy.Vector([1.0]))

    for name in ("sum", "mean", "exp", "tanh", "copy", "any"):
        hook.get_hooked_method(name)(x)
        assert len(dispatching._answers) <= 3
        assert len(dispatching._routes) <= 3


def test_a_type_may_be_registered_as_a_layer_later(hook: ToyHook) -> None:
    class Late(AbstractTensor):
        pass

    op = hook.attributes.allow(lambda x: type(x).__name__, "toy.name_of_type_for_dispatch")
    late = Late(child=toy.Vector([1.0]))

    before = dispatch(op, (late,), {})
    hook_args.default_register_tensor(Late)

    assert (before, dispatch(op, (late,), {})) == ("Late", "Vector")
