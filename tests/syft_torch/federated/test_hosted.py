"""What runs in an actor of Ray, without Ray; `tests/ray/test_training.py` trains in actors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.federated.hosted import _All, _Sum, find_actor  # noqa: E402


def update(difference: list[float], samples: int) -> Any:
    return SimpleNamespace(difference=torch.tensor(difference), samples=samples)


def test_a_sum_is_the_mean_of_updates_by_samples() -> None:
    collected = _Sum(torch.zeros(2))

    collected.add(0, update([1.0, 2.0], 1))
    collected.add(7, update([4.0, 5.0], 3))

    mean = collected.finish()["mean"]
    assert mean.tolist() == [3.25, 4.25]
    assert mean.dtype is torch.float32


def test_a_sum_of_no_updates_is_zero() -> None:
    assert _Sum(torch.ones(2)).finish()["mean"].tolist() == [0.0, 0.0]


def test_a_sum_of_many_small_updates_is_exact() -> None:
    collected = _Sum(torch.zeros(1))

    for _ in range(1000):
        collected.add(0, update([0.1], 1))

    assert collected.finish()["mean"].item() == pytest.approx(0.1, abs=1e-7)


def test_all_updates_are_in_the_row_of_their_place() -> None:
    collected = _All(torch.zeros(2), 3)

    collected.add(2, update([1.0, 2.0], 5))
    collected.add(0, update([3.0, 4.0], 1))

    assert collected.finish()["differences"].tolist() == [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]


def test_a_worker_of_this_process_has_no_actor(hook: Any, bob: Any) -> None:
    client = SimpleNamespace(location=hook.local_worker.location_of(bob))

    assert find_actor(client) is None
