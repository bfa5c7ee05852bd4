"""Programs with asyncio, and with several workers: who waits for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import AuthenticationError, GetNotPermittedError
from tests.waiting import wait_for_end

from .served import Served, serve

torch = pytest.importorskip("torch")


class Meeting:
    """Lets operations on two workers meet: each ends only if the other one has begun."""

    def __init__(self, verb: str = "write") -> None:
        self.verb = verb
        self.events: list[str] = []
        self._both = threading.Barrier(2)

    def policy(self, id: str) -> Any:
        def decide(verb: str, stored: Any, peer: Any, value: Any) -> None:
            if verb == self.verb:
                self.events.append(f"{id} begins")
                self._both.wait(30)
                self.events.append(f"{id} ends")

        return decide

    def took_place(self) -> bool:
        return sorted(self.events[:2]) == ["alice begins", "bob begins"] and len(self.events) == 4


@pytest.fixture
def meeting() -> Meeting:
    return Meeting()


@pytest.fixture
def pair(hook: Any, meeting: Meeting) -> Iterator[tuple[Served, Served]]:
    """Two workers on which in-place operations are slow: each takes until the other worker has begun one."""
    with ExitStack() as stack:
        served = [stack.enter_context(serve(hook, id, policy=meeting.policy(id))) for id in ("bob", "alice")]
        yield served[0], served[1]


async def connect(hook: Any, served: Served, **options: Any) -> sy.aio.AsyncWorker:
    return await sy.aio.connect(hook, "127.0.0.1", served.server.port, **{"token": "ana-secret", **options})


# --- two workers compute at the same time


def test_operations_on_two_workers_run_at_the_same_time(meeting: Meeting, pair: tuple[Served, Served]) -> None:
    bob, alice = (served.connect() for served in pair)
    x, y = torch.ones(2).send(bob), torch.ones(2).send(alice)

    x += 1
    y += 1

    assert torch.equal(x.get() + y.get(), torch.full((2,), 4.0))
    assert meeting.took_place()


def test_threads_use_two_workers_at_the_same_time(meeting: Meeting, pair: tuple[Served, Served]) -> None:
    results = []

    def use(location: Any) -> None:
        x = torch.ones(2).send(location)
        x += 1
        results.append(x.get())

    threads = [threading.Thread(target=use, args=(served.connect(),)) for served in pair]
    for thread in threads:
        thread.start()
    wait_for_end(*threads)

    assert torch.equal(sum(results), torch.full((2,), 4.0))
    assert meeting.took_place()


def test_gathered_calls_to_two_workers_run_at_the_same_time(
    hook: Any, meeting: Meeting, pair: tuple[Served, Served]
) -> None:
    async def compute(served: Served) -> Any:
        async with await connect(hook, served) as worker:
            x = torch.ones(2).send(worker.location)
            x += 1
            await worker.flush()
            return await worker.get(x)

    async def main() -> Any:
        return await asyncio.gather(*map(compute, pair))

    assert torch.equal(sum(asyncio.run(main())), torch.full((2,), 4.0))
    assert meeting.took_place()


def test_what_is_fetched_together_from_two_workers_takes_one_round_trip(hook: Any) -> None:
    meeting = Meeting("read")  # A worker answers a fetch only if the other one has received one, too.
    with ExitStack() as stack:
        served = [stack.enter_context(serve(hook, id, policy=meeting.policy(id))) for id in ("bob", "alice")]
        bob, alice = (each.connect() for each in served)

        fetched = sy.get_all(*[torch.full((1,), float(n)).send(bob if n < 2 else alice) for n in range(4)])

        assert [value.item() for value in fetched] == [0.0, 1.0, 2.0, 3.0]
    assert meeting.events[:2] in (["bob begins", "alice begins"], ["alice begins", "bob begins"])
    assert len(meeting.events) == 8


# --- one worker


@pytest.fixture
def served(hook: Any) -> Iterator[Served]:
    with serve(hook) as served:
        yield served


def test_the_calls_that_wait_can_be_awaited(hook: Any, served: Served) -> None:
    served.worker.load_data([torch.tensor([1.0, 2.0]).tag("#x"), torch.ones(1).private_tensor([]).tag("#secret")])

    async def main() -> None:
        async with await connect(hook, served) as worker:
            assert worker.location.id == "hospital"
            (x,) = await worker.search("#x")
            assert torch.equal(await worker.get(x * 2, reason="test"), torch.tensor([2.0, 4.0]))
            (secret,) = await worker.search("#secret")
            with pytest.raises(GetNotPermittedError):
                await worker.get(secret)
            model = torch.nn.Linear(2, 1).send(worker.location)
            assert (await worker.get(model)).weight.shape == (1, 2)
            assert await worker.run(lambda: (x + 1).sum().get().item()) == 5.0

    asyncio.run(main())
    assert served.worker.ledger[0].reason == "test"


def test_a_refused_connection_raises_the_same_error(hook: Any, served: Served) -> None:
    with pytest.raises(AuthenticationError):
        asyncio.run(connect(hook, served, token="guess"))


def test_a_cancelled_call_leaves_the_worker_usable(hook: Any, served: Served) -> None:
    begun, go_on = threading.Event(), threading.Event()
    made: list[str] = []

    def slow(name: str) -> None:
        made.append(name)
        begun.set()
        go_on.wait(30)

    async def main() -> None:
        async with await connect(hook, served) as worker:
            x, y = torch.ones(2).send(worker.location), torch.ones(2).send(worker.location)
            running = asyncio.create_task(worker.run(slow, "running"))
            queued = asyncio.create_task(worker.run(slow, "queued"))
            fetched = asyncio.create_task(worker.get(y))
            await asyncio.to_thread(begun.wait, 30)
            for task in (running, queued, fetched):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            go_on.set()
            assert torch.equal(await worker.get(x + y), torch.full((2,), 2.0))

    asyncio.run(main())
    assert made == ["running"]


def test_a_call_that_is_cancelled_while_the_worker_computes_is_completed(hook: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def policy(verb: str, stored: Any, peer: Any, value: Any) -> None:
        if verb == "write":
            begun.set()
            go_on.wait(30)

    async def main(served: Served) -> None:
        async with await connect(hook, served) as worker:
            x = torch.ones(2).send(worker.location)
            x += 1
            task = asyncio.create_task(worker.flush())
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            await worker.flush()
            assert torch.equal(await worker.get(x), torch.full((2,), 2.0))

    with serve(hook, policy=policy) as served:
        asyncio.run(main(served))


def test_an_object_whose_get_was_cancelled_is_not_lost(hook: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def policy(verb: str, stored: Any, peer: Any, value: Any) -> None:
        if verb == "read":
            begun.set()
            go_on.wait(30)

    async def main(served: Served) -> None:
        async with await connect(hook, served) as worker:
            x = torch.ones(2).send(worker.location)
            task = asyncio.create_task(worker.get(x))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            assert torch.equal(await worker.get(x), torch.ones(2))

    with serve(hook, policy=policy) as served:
        asyncio.run(main(served))
