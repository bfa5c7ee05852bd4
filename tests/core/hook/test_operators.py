from __future__ import annotations

import pytest

from syft_core.hook.operators import INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS, operation_name


def test_each_operator_has_an_in_place_and_a_reflected_form() -> None:
    assert set(INPLACE_OPERATORS) == {name.replace("__", "__i", 1) for name in OPERATORS}
    assert set(REFLECTED_OPERATORS) == {name.replace("__", "__r", 1) for name in OPERATORS}


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("toy.Vector.__add__", "add"),
        ("toy.Vector.__radd__", "add"),
        ("toy.Vector.__iadd__", "add_"),
        ("toy.Vector.__eq__", "eq"),
        ("toy.Vector.__invert__", "bitwise_not"),
        ("toy.Vector.__index__", "index"),
        ("toy.Vector.grad.__get__", "grad"),
        ("toy.Vector.grad.__set__", "set grad"),
        ("toy.nn.relu", "relu"),
        ("relu", "relu"),
    ],
)
def test_an_operation_has_the_short_name_that_users_know(op: str, name: str) -> None:
    assert operation_name(op) == name


def test_the_names_that_begin_like_operators_in_place_are_none() -> None:
    assert not {"__index__", "__int__", "__invert__"} & set(INPLACE_OPERATORS)
