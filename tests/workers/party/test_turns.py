"""Turns: no thread keeps a worker from the others for longer than one command."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

import syft_core as sy
from syft_core.workers.party.turns import FairLock

torch = pytest.importorskip("torch")


def test_a_thread_that_waits_gets_the_lock_before_the_one_that_releases_it() -> None:
    lock, order, waits = FairLock(), [], threading.Event()

    def wait() -> None:
        waits.set()
        with lock:
            order.append("other")

    other = threading.Thread(target=wait)
    with lock:
        other.start()
        waits.wait(60)
        while not lock.queue:
            pass
    with lock:
        order.append("first")
    other.join(60)

    assert order == ["other", "first"]


def test_the_owner_takes_the_lock_again_while_others_wait() -> None:
    lock = FairLock()
    other = threading.Thread(target=lambda: lock.__enter__() and lock.release())
    with lock:
        other.start()
        while not lock.queue:
            pass
        with lock:
            assert lock.acquire(blocking=False)
            lock.release()
        assert not _try_elsewhere(lock)
    other.join(60)

    assert _try_elsewhere(lock)


def test_threads_get_the_lock_in_the_order_in_which_they_came() -> None:
    lock, order = FairLock(), []

    def take(number: int) -> None:
        with lock:
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    with lock:
        for number, thread in enumerate(threads):
            thread.start()
            while len(lock.queue) <= number:
                pass
    for thread in threads:
        thread.join(60)

    assert order == list(range(8))


def test_a_thread_that_stops_waiting_leaves_the_lock_to_the_next() -> None:
    lock, order = FairLock(), []
    other = threading.Thread(target=lambda: lock.__enter__() and (order.append("other"), lock.release()))
    interrupt = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    holds, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            ends.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    holds.wait(60)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupt.start()
        with pytest.raises(KeyboardInterrupt), lock:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    other.start()
    ends.set()
    other.join(60)
    holder.join(60)

    assert order == ["other"]
    assert not lock.queue


def _try_elsewhere(lock: FairLock) -> bool:
    """Return whether another thread gets the lock at once."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(60)
    return taken[0]


def test_others_take_their_turn_between_the_steps_of_a_plan(
    hook: Any, bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_core.plans.running.TURN_SECONDS", -1)
    asked, seen = [], []

    def take_a_turn() -> None:
        with bob.lock:
            seen.append(len(asked))

    other = threading.Thread(target=take_a_turn)

    def allow(verb: str, *_: Any) -> None:
        asked.append(verb)
        if len(asked) == 10:
            other.start()
            while not bob.lock.queue:
                pass

    def add_often(x: Any) -> Any:
        for _ in range(50):
            x = x + 1
        return x

    x = torch.zeros(2).send(bob)
    there = sy.Plan("add", add_often).build(torch.zeros(2)).send(bob)
    bob.policy = allow  # The plan runs step by step, and asks the policy for each of them.
    result = there(x)
    other.join(60)

    assert seen[0] < len(asked)
    assert result.get().tolist() == [50.0, 50.0]
