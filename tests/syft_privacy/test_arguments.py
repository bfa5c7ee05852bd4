from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_privacy import arguments  # noqa: E402
from syft_privacy.arguments import (  # noqa: E402
    LARGEST,
    to_counts,
    to_delta,
    to_labels,
    to_mask,
    to_order,
    to_orders,
    to_positions,
    to_positive,
    to_probability,
    to_whole,
)


def test_counts_are_whole_numbers_for_each_class() -> None:
    assert to_counts([3, 0, 5]).tolist() == [3.0, 0.0, 5.0]
    assert to_counts([[1, 2], [3, 4]]).shape == (2, 2)
    assert to_counts([LARGEST, 0]).tolist() == [LARGEST, 0.0]


@pytest.mark.parametrize(
    "votes", [[1, -1], [1.5, 2], [np.nan, 1], [np.inf, 1], [2 * LARGEST, 1], [1], 3, np.ones((1, 2, 2))]
)
def test_other_counts_are_refused_without_their_values(votes: Any) -> None:
    with pytest.raises(ValueError, match="cannot analyse 'ballots'") as caught:
        to_counts(votes, "ballots")
    assert "1.5" not in str(caught.value)


@pytest.mark.parametrize("values", ["text", None, [[1], [1, 2]], [True, False], [1j], object()])
def test_what_is_not_a_number_is_refused_by_name(values: Any) -> None:
    for read in (to_counts, lambda given, name: to_labels(given, name), to_orders):
        with pytest.raises(TypeError, match="cannot use 'given': expected numbers"):
            read(values, "given")


def test_tensors_are_read_too() -> None:
    torch = pytest.importorskip("torch")

    assert to_counts(torch.tensor([1, 2])).tolist() == [1.0, 2.0]
    assert to_orders(torch.tensor([2.0, 3.0], dtype=torch.bfloat16, requires_grad=True)).tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match="cannot use 'votes'"):
        to_counts(torch.empty(2, device="meta"))


def test_labels_are_those_of_classes() -> None:
    assert to_labels([0.0, 2], "labels", classes=3).dtype == np.int64
    for labels in ([3], [-1], [0.5]):
        with pytest.raises(ValueError, match="give whole numbers from 0 to 2"):
            to_labels(labels, "labels", classes=3)
    assert to_labels([-1, 7], "labels", least=-1).tolist() == [-1, 7]


def test_positions_are_those_of_queries() -> None:
    assert to_positions([1, 0, 1], "indices", 2).tolist() == [1, 0, 1]
    for indices in ([2], [-1], [0.5], 1, [[0]]):
        with pytest.raises(ValueError, match="whole numbers from 0 to 1; give class labels as `labels=`"):
            to_positions(indices, "indices", 2)


def test_all_queries_are_answered_unless_a_mask_says_otherwise() -> None:
    assert to_mask(None, "answered", 2).tolist() == [True, True]
    assert to_mask([True, False], "answered", 2).tolist() == [True, False]
    for answered in ([1, 0], [True], True):
        with pytest.raises(ValueError, match="one True or False for each of the 2 queries"):
            to_mask(answered, "answered", 2)


@pytest.mark.parametrize("orders", [1, [2, 1], [], [np.inf], [np.nan], [[2]]])
def test_orders_are_above_one(orders: Any) -> None:
    assert to_orders([1.5, 2]).tolist() == [1.5, 2.0]
    with pytest.raises(ValueError, match="a number above 1, or a list of them"):
        to_orders(orders)


@pytest.mark.parametrize(
    ("read", "right", "wrong"),
    [
        (lambda value: to_order(value), 2, [1, [2, 3], np.nan]),
        (lambda value: to_positive(value, "sigma"), 1e-50, [0, -1, 1e-101, 1e101, np.nan, np.inf, [1.0]]),
        (to_delta, 1e-5, [0, 1, -0.1, np.nan, [0.1]]),
        (lambda value: to_probability(value, "p"), 0, [-0.1, 1.1, np.nan, [0.5]]),
        (lambda value: to_whole(value, "rounds", 1), 3, [0, 1.5, np.inf, [1]]),
    ],
    ids=["order", "positive", "delta", "probability", "whole"],
)
def test_a_single_number_is_within_its_range(read: Any, right: float, wrong: list[Any]) -> None:
    assert read(right) == right
    for value in wrong:
        with pytest.raises(ValueError, match="cannot use '"):
            read(value)


def test_whole_numbers_are_those_that_floats_represent_exactly() -> None:
    assert arguments._are_whole(np.array([0.0, -3.0, LARGEST]))
    assert not arguments._are_whole(np.array([0.5]))
