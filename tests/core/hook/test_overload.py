from __future__ import annotations

from typing import Any

import pytest
import toy
from toy_layers import Watcher, under, values

from syft_core.exceptions import PureFrameworkTensorFoundError
from syft_core.hook import hook_args
from syft_core.hook.overload import Module, Overloaded, OverloadedFunction, OverloadedMethod, overloaded
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor

pytestmark = pytest.mark.usefixtures("hook")


class Tripled(AbstractTensor):
    """Overrides an operation with each decorator."""

    def __init__(self, times: int = 3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.times = times

    def get_class_attributes(self) -> dict[str, Any]:
        return {"times": self.times}

    @overloaded.method
    def mul(self, _self: Any, other: Any) -> Any:
        """Multiply by other and by the times."""
        return _self * other * self.times

    @overloaded.method
    def __neg__(self, _self: Any) -> Any:  # noqa: PLE0302  # the decorator adds the child
        return _self * -self.times

    @overloaded.method
    def max(self, _self: Any, *args: Any) -> Any:
        return (_self.max(*args), "a note")

    @staticmethod
    @overloaded.module
    def toy(module: Module) -> None:
        @overloaded.function
        def cat(vectors: Any) -> Any:
            return toy.cat([vectors[0]] * 3)

        module.cat = cat

        def sub(x: Any, y: Any) -> Any:
            return ("sub got", type(x).__name__, type(y).__name__)

        module.sub = sub
        module.note = "no function, no rule"

        @overloaded.module
        def nn(module: Module) -> None:
            @overloaded.function
            def relu(x: Any) -> Any:
                return x * 0 + 7

            module.relu = relu

        module.nn = nn


class Child(Tripled):
    @overloaded.method
    def __neg__(self, _self: Any) -> Any:  # noqa: PLE0302  # the decorator adds the child
        return _self * 100


hook_args.default_register_tensor(Tripled, Child)


def test_a_method_gets_the_layer_and_the_children_and_its_result_is_wrapped() -> None:
    x = Tripled(times=5).on(toy.Vector([1.0, 2.0]))

    result = x * toy.Vector([10.0])

    assert str(result) == "(Wrapper)>Tripled>Vector([50.0, 100.0])"
    assert result.child.times == 5


def test_a_method_named_like_an_operator_handles_the_operation() -> None:
    assert values(-Tripled().on(toy.Vector([1.0]))) == [-3.0]


def test_a_method_may_return_any_structure() -> None:
    result, note = under(Tripled(), 1.0, 5.0).max()

    assert (str(result), note) == ("Tripled>Vector([5.0])", "a note")


def test_a_function_gets_children_and_its_result_is_wrapped() -> None:
    x, y = Tripled().on(toy.Vector([1.0])), Tripled().on(toy.Vector([2.0]))

    assert str(toy.cat([x, y])) == "(Wrapper)>Tripled>Vector([1.0, 1.0, 1.0])"


def test_modules_nest() -> None:
    assert str(toy.nn.relu(Tripled().on(toy.Vector([-1.0])))) == "(Wrapper)>Tripled>Vector([7.0])"


def test_an_undecorated_function_receives_the_layers() -> None:
    x = Tripled().on(toy.Vector([1.0]))

    assert toy.sub(x, x) == ("sub got", "Tripled", "Tripled")


def test_a_module_rule_is_for_the_function_of_that_name_only() -> None:
    assert str(under(Tripled(), 5.0) - 1) == "Tripled>Vector([4.0])"


def test_an_overloaded_method_can_be_called_on_the_layer_itself() -> None:
    layer = under(Tripled(), 1.0)

    result = layer.mul(2)

    assert type(result) is Tripled
    assert values(result) == [6.0]
    assert values(Tripled.mul(layer, 2)) == [6.0]
    assert values(layer.mul(other=2)) == [6.0]


@pytest.mark.parametrize("outer", [lambda x: x, lambda x: Watcher().on(x)])
def test_a_direct_call_with_a_wrapped_operand_applies_the_rule_once(outer: Any) -> None:
    five = PlusIsMinusTensor().on(toy.Vector([5.0]))
    three = outer(PlusIsMinusTensor().on(toy.Vector([3.0])))

    assert values(five.child.add(three)) == values(five.child + three) == [2.0]


def test_an_overloaded_function_can_be_called_on_layers() -> None:
    layer = under(Tripled(), 1.0)

    assert values(Tripled.toy.cat([layer, layer])) == [1.0, 1.0, 1.0]
    assert values(Tripled.toy.nn.relu(layer)) == [7.0]


def test_a_direct_call_without_layers_is_refused() -> None:
    with pytest.raises(PureFrameworkTensorFoundError, match="cannot unwrap the arguments of 'cat'"):
        Tripled.toy.cat([toy.Vector([1.0])])


def test_a_subclass_inherits_rules_and_may_replace_them() -> None:
    x = Child().on(toy.Vector([1.0]))

    assert str(x * 2) == "(Wrapper)>Child>Vector([6.0])"
    assert str(toy.nn.relu(x)) == "(Wrapper)>Child>Vector([7.0])"
    assert values(-x) == [100.0]
    assert values(-Tripled().on(toy.Vector([1.0]))) == [-3.0], "the parent keeps its own"


def test_the_rules_of_a_type_are_listed_by_operation_and_by_full_name() -> None:
    assert sorted(Tripled.rules) == ["max", "mul", "neg", "toy.cat", "toy.nn.relu", "toy.sub"]


def test_a_decorated_function_keeps_its_name_and_its_documentation() -> None:
    assert Tripled.mul.__name__ == "mul"
    assert Tripled.mul.__doc__ == "Multiply by other and by the times."


def test_the_decorators_have_their_long_names_too() -> None:
    def double(self: Any, _self: Any) -> Any:
        return _self * 2

    assert isinstance(overloaded, Overloaded)
    assert isinstance(overloaded.overload_method(double), OverloadedMethod)
    assert isinstance(overloaded.overload_function(double), OverloadedFunction)
    assert isinstance(overloaded.overload_module(lambda module: setattr(module, "a", 1)), Module)


def test_a_module_is_a_plain_namespace() -> None:
    @overloaded.module
    def bag(module: Module) -> None:
        module.a = 1

    assert vars(bag) == {"a": 1}
