from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.attributes import ToyAttributes
from syft_toy.hook import ToyHook
from toy_layers import Watcher

from syft_core.exceptions import OperationNotAllowedError, PluginError
from syft_core.hook.attributes import OpTable, describe_op


@pytest.fixture(scope="module")
def attributes() -> ToyAttributes:
    return ToyAttributes(toy)


# --- one operation


@pytest.mark.parametrize(
    ("name", "spelling", "inplace", "operation", "attr"),
    [
        ("toy.add", "function", False, "add", "add"),
        ("toy.nn.relu", "function", False, "relu", "relu"),
        ("toy.Vector.__add__", "method", False, "add", "__add__"),
        ("toy.Vector.__radd__", "method", False, "add", "__radd__"),
        ("toy.Vector.__iadd__", "method", True, "add", "__iadd__"),
        ("toy.Vector.add_", "method", True, "add", "add_"),
        ("toy.Vector.__truediv__", "method", False, "div", "__truediv__"),
        ("toy.Vector.__lt__", "method", False, "lt", "__lt__"),
        ("toy.Vector.__neg__", "method", False, "neg", "__neg__"),
        ("toy.Vector.__invert__", "method", False, "bitwise_not", "__invert__"),
        ("toy.Vector.shape.__get__", "getter", False, "shape", "shape"),
        ("toy.subtract", "function", False, "sub", "subtract"),
    ],
)
def test_all_spellings_are_one_operation(name: str, spelling: Any, inplace: bool, operation: str, attr: str) -> None:
    op = describe_op(name, abs, spelling, inplace=inplace)

    assert (op.operation, op.attr, op.inplace) == (operation, attr, inplace)


def test_an_operation_knows_whether_its_operands_are_swapped() -> None:
    assert describe_op("toy.Vector.__rsub__", abs, "method").reflected
    assert not describe_op("toy.Vector.__sub__", abs, "method").reflected


def test_an_operation_runs_its_function_by_default() -> None:
    assert describe_op("toy.f", abs, "function").run is abs
    assert describe_op("toy.f", abs, "function", run=len).run is len


def test_facts_about_an_operation_are_kept() -> None:
    op = describe_op("toy.Vector.item", abs, "method", reveals=True, local=True)

    assert op.reveals
    assert op.local


# --- the table


def test_operations_are_found_by_function_and_by_name(attributes: ToyAttributes) -> None:
    assert attributes.ops.of(toy.add) is attributes.ops.look_up("toy.add")
    assert attributes.ops.of(toy.nn.relu).name == "toy.nn.relu"
    assert attributes.ops.look_up("toy.Vector.sum").func is toy.Vector.sum
    assert attributes.ops.of(toy.Vector.shape.fget).name == "toy.Vector.shape.__get__"


def test_the_table_is_a_collection(attributes: ToyAttributes) -> None:
    assert len(attributes.ops) == len(list(attributes.ops)) > 50
    assert "toy.add" in attributes.ops
    assert "toy.save" not in attributes.ops


def test_an_unlisted_function_is_refused_with_similar_names(attributes: ToyAttributes) -> None:
    def relu(x: Any) -> Any:
        return x

    with pytest.raises(OperationNotAllowedError) as caught:
        attributes.ops.of(relu)

    assert str(caught.value) == (
        f"cannot run '{__name__}.{relu.__qualname__}' on a pointer or another layer: it is "
        "not in the toy op table; use toy.nn.relu, or allow it for public data with `hook.attributes.allow(function)`"
    )


def test_an_unlisted_name_is_refused(attributes: ToyAttributes) -> None:
    with pytest.raises(OperationNotAllowedError) as caught:
        attributes.ops.look_up("os.system")

    assert str(caught.value) == (
        "cannot run 'os.system' on a pointer or another layer: it is not in the toy op table; "
        "allow it for public data with `hook.attributes.allow(function)`"
    )


def test_a_misspelt_name_is_refused_with_the_correct_one(attributes: ToyAttributes) -> None:
    with pytest.raises(OperationNotAllowedError, match=r"use toy\.Vector\.sigmoid, or allow it"):
        attributes.ops.look_up("toy.Vector.sigmoidd")


def test_an_excluded_function_is_refused_on_a_chain(hook: ToyHook, tmp_path: Any) -> None:
    with pytest.raises(OperationNotAllowedError, match=r"cannot run 'toy\.save' on a pointer or another layer"):
        toy.save(Watcher().on(toy.Vector([1.0])), str(tmp_path / "leak"))

    assert list(tmp_path.iterdir()) == []


def test_a_refusal_is_also_a_runtime_error() -> None:
    assert issubclass(OperationNotAllowedError, RuntimeError)


def test_two_functions_under_one_name_are_refused() -> None:
    table = OpTable("toy", [describe_op("toy.f", abs, "function")])

    with pytest.raises(PluginError, match=r"its op table has two functions called 'toy\.f'"):
        table.add(describe_op("toy.f", len, "function"))


def test_a_function_may_have_two_names() -> None:
    first, second = describe_op("toy.f", abs, "function"), describe_op("toy.alias", abs, "function")

    table = OpTable("toy", [first, second])

    assert table.look_up("toy.alias") is second
    assert table.of(abs) is first
