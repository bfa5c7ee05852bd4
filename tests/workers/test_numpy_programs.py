"""Programs on remote arrays give the same results as locally, or are refused with advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import ValueRefusedError  # noqa: E402


@pytest.fixture(params=[False, True], ids=["in-process", "by-wire"])
def send(request: Any) -> Iterator[Any]:
    with sy.NumpyHook(np) as hook:
        carol = sy.VirtualWorker(hook, id="carol", serialize=request.param)
        yield lambda values: hook.array(values).send(carol)


@pytest.mark.parametrize("length", [12, 30_000])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: np.bincount(x.astype(int)),
        lambda x: np.histogram(x, bins=4)[0],
        lambda x: np.repeat(x, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3).sum(-1),
        lambda x: np.linalg.lstsq(x.reshape(-1, 3), x[::3].copy(), rcond=None)[0],
    ],
)
def test_an_operation_on_a_whole_array_runs_on_one_that_was_sent(compute: Any, length: int, send: Any) -> None:
    values = np.arange(length) % 7.0

    assert np.array_equal(compute(send(values)).get(), compute(values))


def test_an_operation_runs_on_a_part_of_an_array(send: Any) -> None:
    values = np.arange(12.0)

    assert np.array_equal(np.repeat(send(values)[2:5], 2).get(), np.repeat(values[2:5], 2))


@pytest.mark.parametrize("show", [lambda p: f"{p:.3f}", lambda p: round(p, 3)])
def test_showing_a_remote_number_is_refused_with_advice(show: Any, send: Any) -> None:
    total = send(np.array([1.0, 2.0])).sum()

    with pytest.raises(ValueRefusedError, match=r"`p.get\(\)`"):
        show(total)
    with sy.revealing("a report"):
        assert float(show(total)) == 3.0


def test_a_function_that_calls_another_is_refused_with_the_reason(send: Any) -> None:
    with pytest.raises(ValueRefusedError, match="a worker does not run functions of others"):
        np.apply_along_axis(lambda row: row.sum(), 1, send(np.ones((2, 2))))


def test_a_dtype_is_not_taken_for_a_function(send: Any) -> None:
    with pytest.raises(ValueRefusedError, match="works on memory of the process"):
        send(np.array([1.0])).view(np.int64)
