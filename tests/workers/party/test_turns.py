"""Turns: no thread keeps a worker from the others for longer than one command."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

import syft_core as sy
from syft_core.peer import Peer
from syft_core.workers.party.turns import FairLock
from tests.waiting import wait_until

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
        wait_until(lambda: lock.queue)
    with lock:
        order.append("first")
    other.join(60)

    assert order == ["other", "first"]


def test_the_owner_takes_the_lock_again_while_others_wait() -> None:
    lock = FairLock()
    other = threading.Thread(target=lambda: lock.__enter__() and lock.release())
    with lock:
        other.start()
        wait_until(lambda: lock.queue)
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
            wait_until(lambda n=number: _count_waiting(lock) > n)
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


def _count_waiting(lock: FairLock) -> int:
    return sum(map(len, lock.queue.values()))


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
            wait_until(lambda: bob.lock.queue)

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


def test_a_user_with_many_threads_has_as_many_turns_as_one_with_one() -> None:
    lock, order, stops = FairLock(), [], threading.Event()
    ana, bo = Peer("laptop", "ana"), Peer("phone", "bo")

    def work(peer: Peer) -> None:
        while not stops.is_set():
            with lock.of(peer):
                order.append(peer.user)
                if order.count("bo") >= 10:
                    stops.set()
                wait_until(lambda: stops.is_set() or len(lock.queue) == 2 or peer is bo)

    threads = [threading.Thread(target=work, args=(ana,)) for _ in range(8)]
    threads.append(threading.Thread(target=work, args=(bo,)))
    with lock:
        for thread in threads:
            thread.start()
        wait_until(lambda: _count_waiting(lock) == 9)
    for thread in threads:
        thread.join(60)

    assert order[:20] == ["ana", "bo"] * 10
    assert not lock.queue


def test_connections_of_one_user_share_turns_and_clients_without_a_user_do_not() -> None:
    lock, order = FairLock(), []
    peers = [Peer("a", "ana"), Peer("b", "ana"), Peer("c", "ana"), Peer("d"), Peer("e", behalf=(Peer("f", "bo"),))]

    def take(peer: Peer) -> None:
        with lock.of(peer):
            order.append(peer.id)

    threads = [threading.Thread(target=take, args=(peer,)) for peer in peers]
    with lock:
        for number, thread in enumerate(threads, 1):
            thread.start()
            wait_until(lambda number=number: _count_waiting(lock) == number)
    for thread in threads:
        thread.join(60)

    assert order == ["a", "d", "e", "b", "c"]


def test_the_owner_has_turns_and_gives_up_after_some_time() -> None:
    lock, ends, taken = FairLock(), threading.Event(), []
    peer = Peer("laptop", "ana")

    def hold() -> None:
        with lock.of(peer):
            ends.wait(60)

    holders = [threading.Thread(target=hold) for _ in range(3)]
    for holder in holders:
        holder.start()
    wait_until(lambda: _count_waiting(lock) == 2)

    assert not lock.wait(seconds=0.01)
    owner = threading.Thread(target=lambda: taken.append(lock.wait(seconds=60) and lock.release() is None))
    owner.start()
    wait_until(lambda: _count_waiting(lock) == 3)
    ends.set()
    for thread in (owner, *holders):
        thread.join(60)

    assert taken == [True]
    assert not lock.queue
