from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syft_sums.encoding import BLOCK, decode, encode, limit_of


def test_numbers_are_weighted_and_the_weight_comes_last() -> None:
    encoded, fits = encode([np.array([0.5, -0.25], np.float32), np.array([2.0])], 10.0, 10.0, 3)

    assert fits
    assert decode(encoded).tolist() == [5.0, -2.5, 20.0, 10.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**31])
@pytest.mark.parametrize("place", [0, BLOCK + 7])
def test_one_number_out_of_range_makes_all_but_the_weight_zeros(bad: float, place: int) -> None:
    values = np.ones(BLOCK + 10)
    values[place] = bad

    encoded, fits = encode([values], 1.0, 7.0, 3)

    assert not fits
    assert decode(encoded[-1:]).tolist() == [7.0]
    assert not encoded[:-1].any()


@pytest.mark.parametrize("size", [1, 3, 10, 64])
def test_a_sum_of_the_largest_numbers_does_not_overflow(size: int) -> None:
    largest = np.nextafter(limit_of(size), 0)
    total = np.zeros(2, np.uint64)
    for _ in range(size):
        encoded, fits = encode([np.array([largest])], 1.0, 1.0, size)
        assert fits
        total += encoded

    assert decode(total)[0] == pytest.approx(size * largest)


def test_the_error_of_a_sum_is_that_of_rounding_alone() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    encoded, _ = encode([values], 1.0, 1.0, 7)
    assert abs(decode(encoded)[:-1] - values).max() <= 2.0**-33


def test_an_array_may_have_any_real_dtype() -> None:
    for dtype in (np.float16, np.float32, np.float64, np.int64):
        encoded, _ = encode([np.array([3], dtype)], 1.0, 1.0, 3)
        assert decode(encoded)[0] == 3.0


def test_nothing_is_kept_of_a_vector_that_does_not_fit(recwarn: Any) -> None:
    encoded, _ = encode([np.array([1e300, 1.0])], 1e300, 1.0, 3)
    assert not encoded[:-1].any()
    assert not recwarn.list
