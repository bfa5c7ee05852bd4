"""The core knows no operation of any framework by name: what it needs to know stands in the op tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from syft_core.hook import attributes
from syft_core.hook.forms import Form

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from syft_numpy.attributes import NumpyAttributes  # noqa: E402
from syft_torch.attributes import TorchAttributes  # noqa: E402

CORE = Path(attributes.__file__).parents[1]
NAMES_OPERATIONS = {
    "tensors": "a layer names what it answers",
    "crypto": "the same: what it computes on numbers",
    "testing": "it calls operations",
    "demo": "the same",
}
OPERATORS = {
    name
    for table in (attributes.OPERATORS, attributes.COMPARATORS, attributes.UNARY_OPERATORS, attributes.SYNONYMS)
    for name in (*table, *table.values())
}
FORM = {*Form.__slots__, "ndim", "layout", "qscheme", "retains_grad"}
"""What can be said of a tensor without its values; some of it is an operation of a framework as well."""
OTHER_WORDS = {
    "bool": "a type in an annotation",
    "copy": "the label of an arrow in a picture",
    "cpu": "the device on which messages are read",
    "data": "the label of a box in a picture, an option of a worker",
    "fold": "a function of the core",
    "int": "a type in an annotation",
    "short": "a kind of traceback",
    "replace": "how Python writes characters that a terminal lacks",
    "title": "an element of a page",
    "to": "a column of the ledger",
    "trace": "a function of the core",
    "values": "what an answer discloses",
}


def operation_names() -> set[str]:
    tables = TorchAttributes(torch).ops, NumpyAttributes(np).ops
    names = {name for table in tables for op in table for name in (op.name, op.attr, op.operation)}
    return {name for name in names if len(name) > 1 and not (name.startswith("__") and name.endswith("__"))}


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings of a module that are not documentation."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node


def test_no_operation_stands_as_a_string_in_the_core() -> None:
    names = operation_names() - OPERATORS - FORM - OTHER_WORDS.keys()
    found = [
        f"{path.relative_to(CORE)}:{node.lineno}: {node.value}"
        for path in sorted(CORE.rglob("*.py"))
        if path.relative_to(CORE).parts[0] not in NAMES_OPERATIONS
        for node in strings(ast.parse(path.read_text()))
        if node.value in names
    ]

    assert found == []
