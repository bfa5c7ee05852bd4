from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.federated.memory import measure_peak  # noqa: E402

SIZE = 4 * 1000
"""The bytes of a tensor of 1000 floats."""


@pytest.fixture
def x() -> Any:
    return torch.ones(1000)


def test_what_is_alive_at_the_same_time_counts(x: Any) -> None:
    assert measure_peak(lambda a: a + 1, (x,)) == SIZE
    assert measure_peak(lambda a: [a + 1, a + 2, a + 3], (x,)) == 3 * SIZE


def test_what_is_freed_in_between_does_not_count(x: Any) -> None:
    def one_after_the_other(a: Any) -> None:
        for _ in range(5):
            b = a + 1
            del b

    assert measure_peak(one_after_the_other, (x,)) == SIZE


def test_views_and_changes_in_place_need_no_memory(x: Any) -> None:
    assert measure_peak(lambda a: (a + 1).view(10, 100).mul_(2), (x,)) == SIZE
    assert measure_peak(lambda a: a.mul_(2).view(10, 100), (x,)) == 0


def test_arguments_do_not_count_and_are_not_changed(x: Any) -> None:
    assert measure_peak(lambda a, options: a * options["by"], (x, {"by": 2})) == SIZE

    measure_peak(lambda a: a.zero_(), (x,))

    assert x.sum() == 1000


def test_nothing_is_allocated_for_what_would_not_fit(x: Any) -> None:
    assert measure_peak(lambda a: a.new_ones(10**9, 1000), (x,)) == 10**9 * SIZE


def test_a_computation_that_needs_values_is_measured_as_far_as_it_goes(x: Any) -> None:
    assert measure_peak(lambda a: a.item(), (x,)) == 0
    assert measure_peak(lambda a: (a + 1)[0].item(), (x,)) == SIZE
