from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import toy
from toy_layers import Pointer

from syft_core.hook import hook_args
from syft_core.workers.party.base import BaseWorker


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.fixture
def vector() -> toy.Vector:
    return toy.Vector([1.0, 2.0])


def test_base_types_are_the_seven_builtin_ones() -> None:
    assert hook_args.base_types == {int, float, str, bool, bytes, bytearray, complex}


def test_a_registered_base_class_covers_its_subclasses(vector: toy.Vector) -> None:
    class SpecialVector(toy.Vector):
        pass

    assert hook_args.build_rule([SpecialVector([1.0])]) == [1]


@pytest.mark.parametrize(
    ("args", "rule"),
    [
        (([toy.Vector([1.0]), Pointer("bob")], 42), ([1, 1], 0)),
        ([toy.Vector([1.0]), toy.Vector([2.0]), [2, 4, "s"]], [1, 1, [0, 0, 0]]),
        ((), ()),
        ([], []),
        ((1, 1.0, "a", True, b"a", bytearray(b"a"), 1j), (0,) * 7),
        ((None, ..., slice(1, 2)), (0, 0, 0)),
        ((slice(toy.Vector([1]), None),), (1,)),
        (({"a": 1},), (1,)),
        ((object(),), (0,)),
        (Pair(toy.Vector([1.0]), [0]), (1, [0])),
        (((((toy.Vector([1.0]),),),),), ((((1,),),),)),
    ],
)
def test_a_rule_has_the_shape_of_its_arguments(args: Any, rule: Any) -> None:
    built = hook_args.build_rule(args)

    assert built == rule
    assert type(built) is type(rule)


@pytest.fixture
def bob() -> BaseWorker:
    return BaseWorker(id="bob")
