from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.attributes import ToyAttributes
from syft_toy.hook import ToyHook
from toy_layers import Watcher, values

from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.dispatch import dispatch
from syft_core.hook.operators import INPLACE_OPERATORS


@pytest.fixture(scope="module")
def attributes() -> ToyAttributes:
    return ToyAttributes(toy)


def test_an_allowed_function_may_run_on_a_chain(hook: ToyHook) -> None:
    def double(x: Any) -> Any:
        return x * 2

    op = hook.attributes.allow(double, "toy.double_for_attributes")

    assert "toy.double_for_attributes" in hook.attributes.allowed_commands
    assert hook.attributes.ops.of(double) is op
    assert values(dispatch(op, (Watcher().on(toy.Vector([4.0])),), {})) == [8.0]


def test_an_allowed_function_is_named_after_its_module_by_default() -> None:
    attributes = ToyAttributes(toy)

    op = attributes.allow(toy.save, local=True)

    assert op.name == "toy.save"
    assert op.local
    assert attributes.ops.look_up("toy.save") is op


def test_allowing_a_function_changes_one_table_only(attributes: ToyAttributes) -> None:
    ToyAttributes(toy).allow(toy.save)

    assert "toy.save" not in attributes.ops


@pytest.mark.parametrize("name", [*sorted(INPLACE_OPERATORS), "add_", "__setitem__"])
def test_methods_that_change_a_tensor_are_in_place(attributes: ToyAttributes, name: str) -> None:
    assert attributes.is_inplace_method(name)


@pytest.mark.parametrize(
    "name", ["__invert__", "__index__", "__int__", "__init__", "__iter__", "__init_subclass__", "add", "__add__", "_"]
)
def test_similar_names_are_not_in_place(attributes: ToyAttributes, name: str) -> None:
    assert not attributes.is_inplace_method(name)


def test_in_place_names_match_in_place_operations(attributes: ToyAttributes) -> None:
    assert {op.attr for op in attributes.ops if op.inplace} == {
        name for name in attributes.inplace_methods if hasattr(toy.Vector, name)
    }


def test_the_native_name_of_a_command_has_a_prefix() -> None:
    assert FrameworkAttributes.get_native_framework_name("toy.add") == "toy.native_add"
    assert FrameworkAttributes.get_native_framework_name("toy.nn.relu") == "toy.nn.native_relu"
    assert FrameworkAttributes.get_native_framework_name("add") == "native_add"


def test_native_commands_are_the_functions(attributes: ToyAttributes) -> None:
    assert attributes.native_commands["toy.nn.relu"] == "toy.nn.native_relu"
    assert "toy.Vector.sum" not in attributes.native_commands


def test_the_guard_accepts_listed_commands_and_refuses_others(attributes: ToyAttributes) -> None:
    assert attributes._command_guard("toy.add") == "toy.add"
    assert attributes._command_guard("toy.add", get_native=True) == "toy.native_add"
    assert attributes._is_command_valid_guard("toy.add")
    assert not attributes._is_command_valid_guard("toy.save")
    with pytest.raises(RuntimeError, match=r"cannot run 'toy\.save' on a pointer or another layer"):
        attributes._command_guard("toy.save")
