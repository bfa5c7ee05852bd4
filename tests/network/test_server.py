"""One worker serves many clients at once, and notices when one waits or is waited for in vain."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network.client import WebsocketClientWorker
from syft_core.workers.party.virtual import VirtualWorker
from tests.waiting import wait_for_end, wait_until

from .processes import start_worker
from .served import serve

torch = pytest.importorskip("torch")

BACKEND = "torch syft_torch.hook TorchHook"


def test_many_clients_at_once_lose_no_reply_and_leave_no_object(hook: Any) -> None:
    with start_worker(BACKEND, "far") as (process, port, _), ExitStack() as stack:
        clients = [VirtualWorker(hook, id=f"client {n}") for n in range(20)]
        locations = [
            WebsocketClientWorker(hook, "127.0.0.1", port, token=f"secret of user {n}", client=client)
            for n, client in enumerate(clients)
        ]
        for location in locations:
            stack.callback(location.close)
        memory = []
        for _ in range(3):
            assert _run_at_once(locations) == [50.0] * 20
            assert _count_objects(clients[0], locations[0]) == 2  # its own
            memory.append(_resident(process.pid))
        assert memory[2] < memory[1] * 1.05


def test_a_client_waits_for_a_long_operation_longer_than_its_timeout(connect: Any, far: Any) -> None:
    location = connect()
    x = torch.ones(2).send(location)
    location.flush()
    location.timeout, far.message_pending_time = 3, 4  # The server shows a sign of life every 0.2 seconds.

    assert x.get().tolist() == [1.0, 1.0]


@pytest.mark.slow
def test_a_worker_that_stands_still_counts_as_lost_until_it_goes_on(hook: Any) -> None:
    with start_worker(BACKEND, "still") as (process, port, _):
        location = WebsocketClientWorker(hook, "127.0.0.1", port, token="secret of ana")
        x = torch.ones(2).send(location)
        location.flush()
        location.timeout = 1
        _stop(process.pid)
        try:
            with pytest.raises(ConnectionLostError, match=r"cannot reach the worker at .*: no connection for 1 sec"):
                (x + 1).get()
        finally:
            os.kill(process.pid, signal.SIGCONT)

        location.timeout = 60
        assert (x + 2).get().tolist() == [3.0, 3.0]
        location.close()


def test_a_worker_that_stops_finishes_and_answers_what_it_is_executing(hook: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(verb: str, stored: Any, peer: Any, value: Any) -> None:
        if verb == "read":
            begun.set()
            go_on.wait(60)

    with serve(hook, policy=wait) as served:
        location = served.connect()
        x, y = torch.ones(2).send(location), torch.ones(2).send(location)
        stopping = threading.Thread(target=served.server.stop, args=(60,))
        finishing = threading.Thread(target=lambda: begun.wait(60) and (stopping.start(), go_on.set()))
        finishing.start()

        assert x.get().tolist() == [1.0, 1.0]

        wait_for_end(finishing, stopping)
        location.timeout = 0.1
        with pytest.raises(ConnectionLostError):
            y.get()


def _stop(pid: int) -> None:
    """Stop a process, and wait until all of its threads stand still: one may run on before another takes the signal."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(_state(task) == "T" for task in Path(f"/proc/{pid}/task").iterdir()))


def _state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def _run_at_once(locations: list[WebsocketClientWorker]) -> list[float]:
    results = [0.0] * len(locations)

    def count_up(place: int) -> None:
        total = torch.zeros(3).send(locations[place])
        for number in range(1, 51):
            total += 1
            if number % 10 == 0:
                assert (total * 1).get().tolist() == [number] * 3
        results[place] = total.get()[0].item()

    threads = [threading.Thread(target=count_up, args=(place,)) for place in range(len(locations))]
    for thread in threads:
        thread.start()
    wait_for_end(*threads)
    return results


def _count_objects(client: Any, location: WebsocketClientWorker) -> int:
    (count,) = client.request_search("#count", location)
    return count()  # type: ignore[no-any-return]  # a number


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
