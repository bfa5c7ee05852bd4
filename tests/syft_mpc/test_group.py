"""``sy.crypto.prepare``: random numbers that are dealt before they are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402  # torch may be missing
from syft_mpc import count, prepare  # noqa: E402


@pytest.fixture
def workers() -> Iterator[list[Any]]:
    hook = sy.TorchHook(torch)
    yield [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "carol", "dave")]
    hook.unhook()


def share(values: list[float], *parties: Any) -> Any:
    *owners, provider = parties
    return torch.tensor(values).fix_precision().share(*owners, crypto_provider=provider)


def decode(value: Any) -> list[float]:
    return list(value.get().float_precision().tolist())


def test_calls_that_were_prepared_deal_nothing(workers: list[Any]) -> None:
    bob, alice, carol, _ = workers
    x = share([1.5, -2.0, 3.0], bob, alice, carol)

    assert decode(prepare(lambda: (x * x).relu(), times=2)) == [2.25, 4.0, 9.0]
    with count() as counted:
        results = [decode((x * x).relu()) for _ in range(2)]
    assert results == [[2.25, 4.0, 9.0]] * 2
    assert (counted.dealt, counted.rounds) == (0, 12)
    with count() as counted:
        assert decode((x * x).relu()) == [2.25, 4.0, 9.0]
    assert counted.dealt > 0


def test_weights_that_are_kept_masked_are_prepared_too(workers: list[Any]) -> None:
    bob, alice, carol, _ = workers
    x, w = (torch.rand(3, 4).fix_precision().share(bob, alice, crypto_provider=carol) for _ in range(2))
    product = prepare(lambda: x @ w.t() @ (w * 2), times=2)

    with count() as counted:
        results = [x @ w.t() @ (w * 2) for _ in range(2)]
    assert counted.dealt == 0
    for result in results:
        assert torch.allclose(decode_all(result), decode_all(product.copy()), atol=0.02)


def decode_all(value: Any) -> Any:
    return value.get().float_precision()


def test_preparing_reports_progress(workers: list[Any]) -> None:
    bob, alice, carol, _ = workers
    x = share([1.5, -2.0], bob, alice, carol)
    seen: list[tuple[int, ...]] = []

    prepare(lambda: x * x > x, times=3, progress=lambda *steps: seen.append(steps))

    assert seen == [(1, 2), (2, 2)]


def test_one_function_may_use_several_groups(workers: list[Any]) -> None:
    bob, alice, carol, dave = workers

    def compute() -> list[float]:
        x, y = share([2.0], bob, alice, carol), share([3.0], dave, alice, carol)
        return decode(x * x) + decode(y * y)

    assert prepare(compute) == [4.0, 9.0]
    with count() as counted:
        assert compute() == [4.0, 9.0]
    assert counted.dealt == 0


def test_an_error_of_the_function_prepares_nothing(workers: list[Any]) -> None:
    bob, alice, carol, _ = workers
    x = share([1.5], bob, alice, carol)

    with pytest.raises(ZeroDivisionError):
        prepare(lambda: (x * x, 1 / 0))
    with count() as counted:
        assert decode(x * x) == [2.25]
    assert counted.dealt > 0


def test_at_least_one_call_is_prepared() -> None:
    with pytest.raises(ValueError, match="cannot prepare 0 calls: expected at least 1"):
        prepare(lambda: None, times=0)
