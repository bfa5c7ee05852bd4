from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Scaled, Watcher

from syft_core.hook.ops import Op, describe_op
from syft_core.hook.signatures import MAX_NOTES, Memo, note, recall, signature_of


@pytest.fixture
def op(hook: ToyHook) -> Op:
    return hook.attributes.method("__add__")


def vector(*values: Any) -> toy.Vector:
    return toy.Vector(values)


def test_values_are_not_part_of_a_signature(op: Op) -> None:
    assert signature_of(op, (vector(1.0), vector(2.0)), {}) == signature_of(op, (vector(5.0), vector(6.0)), {})


@pytest.mark.parametrize(
    "other",
    [
        (vector(1.0, 2.0), 3),
        (vector(1), 3),
        (vector(1.0), 4),
        (vector(1.0), True),
        (vector(1.0), 3.0),
        (vector(1.0), [3]),
        (vector(1.0),),
        (Watcher().on(vector(1.0), wrap=False), 3),
    ],
)
def test_shape_type_number_and_layers_are_part_of_a_signature(op: Op, other: tuple[Any, ...]) -> None:
    assert signature_of(op, other, {}) != signature_of(op, (vector(1.0), 3), {})


def test_the_operation_and_the_names_of_arguments_are_part_of_a_signature(hook: ToyHook, op: Op) -> None:
    other = hook.attributes.method("__mul__")
    x = vector(1.0)

    assert signature_of(op, (x,), {}) != signature_of(other, (x,), {})
    assert signature_of(op, (x,), {"a": 1}) != signature_of(op, (x,), {"b": 1})
    assert signature_of(op, (x,), {"a": 1}) == signature_of(op, (x,), {"a": 1})


def test_true_and_one_have_different_signatures(op: Op) -> None:
    assert signature_of(op, (1,), {}) != signature_of(op, (True,), {})


@pytest.fixture
def elementwise(op: Op) -> Op:
    """An operation whose results have the same form for all floats."""
    facts = replace(op.facts, shape_depends_on_floats=False)
    return describe_op("toy.scale", toy.cat, "function", describe=lambda _op: facts)


@pytest.mark.parametrize(("one", "other"), [(0.25, 0.75), (-0.1, -0.9), (2.0, 1e30)])
def test_floats_of_one_range_have_one_signature_if_no_form_depends_on_them(
    elementwise: Op, one: float, other: float
) -> None:
    assert signature_of(elementwise, (one,), {}) == signature_of(elementwise, (other,), {})


@pytest.mark.parametrize("other", [0.0, -0.5, 1.5, math.inf, -math.inf, math.nan])
def test_floats_of_different_ranges_have_different_signatures(elementwise: Op, other: float) -> None:
    assert signature_of(elementwise, (0.5,), {}) != signature_of(elementwise, (other,), {})


def test_floats_are_told_apart_unless_an_operation_says_that_no_form_depends_on_them(op: Op) -> None:
    assert signature_of(op, (0.25,), {}) != signature_of(op, (0.75,), {})


def test_two_tensors_that_no_form_describes_have_no_signature_in_common(
    hook: ToyHook, op: Op, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(hook.attributes), "form_of", lambda _self, _tensor: None)
    x = vector(1.0)

    assert recall(signature_of(op, (x,), {})) is not recall(signature_of(op, (x,), {}))
    assert recall(signature_of(op, ([x],), {})) is not recall(signature_of(op, ([x],), {}))


@pytest.mark.parametrize(
    ("one", "other"),
    [([1, 2], (1, 2)), (slice(1), slice(2)), ({"a": 1}, {"b": 1}), ([], ()), ([[1], 2], [1, [2]])],
)
def test_containers_are_described_with_their_items(op: Op, one: Any, other: Any) -> None:
    assert signature_of(op, (one,), {}) != signature_of(op, (other,), {})
    assert signature_of(op, (one,), {}) == signature_of(op, (one,), {})


def test_a_signature_lists_the_layers_of_a_chain(op: Op) -> None:
    chains = [Watcher().on(vector(1.0)), Scaled().on(vector(1.0)), Watcher().on(Scaled().on(vector(1.0), wrap=False))]

    assert len({signature_of(op, (chain,), {}) for chain in chains}) == 3


def test_equal_signatures_have_one_memo_and_others_another(op: Op) -> None:
    one = recall(signature_of(op, (1, "a"), {}))

    assert recall(signature_of(op, (1, "a"), {})) is one
    assert recall(signature_of(op, (2, "a"), {})) is not one


def test_a_signature_that_is_not_hashable_has_a_new_memo_each_time() -> None:
    assert recall(([],)) is not recall(([],))


def test_a_memo_has_a_bounded_size() -> None:
    memo: Memo = {}

    for number in range(3 * MAX_NOTES):
        assert note(memo, number, "fact") == "fact"

    assert len(memo) <= MAX_NOTES
    assert 3 * MAX_NOTES - 1 in memo
