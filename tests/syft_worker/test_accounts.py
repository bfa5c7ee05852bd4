"""What a user has is never less than what is counted, and what is reserved ends with the command."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from syft_core.messages import Release, Store
from syft_core.peer import Peer
from syft_core.workers.party.reservations import Amounts, Reservation
from syft_worker.accounts import Account, Bucket
from syft_worker.allowances import Allowance
from syft_worker.quotas import QuotaGuard

from .test_quotas import ask

torch = pytest.importorskip("torch")
EVE = Peer("phone@eve", "eve")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    now = [1000.0]
    monkeypatch.setattr("syft_worker.accounts.monotonic", lambda: now[0])
    return now


def test_a_rate_allows_a_burst_and_recovers(clock: list[float]) -> None:
    bucket = Bucket(rate=10, burst=5, since=clock[0])

    bucket.use(5)
    assert bucket.wait() == 0
    bucket.use(10)
    assert bucket.wait() == 1
    clock[0] += 1
    assert bucket.wait() == 0


def test_what_is_reserved_counts_with_what_a_user_has() -> None:
    account = Account("ana", Allowance(objects=3, bytes=100))
    account.objects = account.bytes = account.leases = 0

    with Reservation(account.held, Amounts(2, 60)), Reservation(account.held, Amounts(1, 30, 7)):
        assert account.reserved == Amounts(3, 90, 7)
        assert account.find_excess(size=10) is None
        assert account.find_excess(size=11) == ("bytes", 101, 100)
        assert account.find_excess(objects=1) == ("objects", 4, 3)

    assert account.reserved == Amounts()


def test_other_allowances_leave_what_is_reserved() -> None:
    account = Account("ana", Allowance(bytes=100))

    with Reservation(account.held, Amounts(0, 60)):
        account.configure(Allowance(bytes=50))

        assert (account.reserved.bytes, account.most_bytes) == (60, 50)


def test_what_was_stored_before_the_guard_came_counts(far: Any) -> None:
    ask(far, Store(1, torch.ones(1000)), sender=EVE)
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=5000)})

    with pytest.raises(Exception, match="would then have 8,000 bytes"):
        ask(far, Store(2, torch.ones(1000)), sender=EVE)
    ask(far, Release((1,)), sender=EVE)
    ask(far, Store(2, torch.ones(1000)), sender=EVE)


def test_a_graph_counts_with_what_it_has_saved_after_the_objects_are_dropped(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10**6)})
    ask(far, Store(1, torch.ones(1000, requires_grad=True)), sender=EVE)
    root = far.object_store.entry(1)
    root.value = root.value.exp().exp().sum()
    gc.collect()

    (account,) = far.guard.accounts

    assert account.bytes == 8000 + root.value.untyped_storage().nbytes()
