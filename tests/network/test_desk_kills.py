"""A worker that is killed between any two steps of request, review, approval and fetch loses and doubles nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network.client import WebsocketClientWorker
from syft_core.plugins.manager import load_backend
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import read_ledger
from syft_worker.desk.client import Desk
from tests.waiting import wait_for_result

np = pytest.importorskip("numpy")
T = TypeVar("T")
FORM = "ndarray[]"


@pytest.fixture
def hook() -> Iterator[Any]:
    with load_backend("numpy")(np) as hook:
        yield hook


class Killed:
    """The program of ``killed.py``, and clients of its worker that connect again when it has died."""

    def __init__(self, hook: Any, folder: Path, keeps: str) -> None:
        self.hook, self.folder, self.deaths = hook, folder, 0
        command = [sys.executable, "-m", "tests.network.killed", str(folder), keeps]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._read())
        self.clients: dict[str, WebsocketClientWorker] = {}

    def _read(self) -> str:
        assert self.process.stdout is not None
        return wait_for_result(self.process.stdout.readline).strip()

    def start(self, point: int) -> Path:
        assert self.process.stdin is not None
        self.close()
        self.process.stdin.write(f"{point} at-{point}\n")
        self.process.stdin.flush()
        assert self._read() == "ready"
        self.deaths = 0
        return self.folder / f"at-{point}"

    def client(self, token: str) -> WebsocketClientWorker:
        if token not in self.clients:
            client = VirtualWorker(self.hook, id=token, auto_add=False)
            self.clients[token] = WebsocketClientWorker(
                self.hook, "127.0.0.1", self.port, token=token, client=client, timeout=60
            )
        return self.clients[token]

    def attempt(self, call: Callable[[], T]) -> T | None:
        """Make a call; return None if the worker died in it, and connect again."""
        try:
            return call()
        except ConnectionLostError:
            self.deaths += 1
            self.close()
            assert self._read() == "ready"
            return None

    def close(self) -> None:
        for client in self.clients.values():
            client.timeout = 0
            client.close()
        self.clients.clear()


@contextmanager
def killed(hook: Any, folder: Path, keeps: str) -> Iterator[Killed]:
    program = Killed(hook, folder, keeps)
    try:
        yield program
    finally:
        program.close()
        program.process.communicate(timeout=60)


@pytest.mark.parametrize("keeps", ["both", "store"])
def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(hook: Any, tmp_path: Path, keeps: str) -> None:
    with killed(hook, tmp_path, keeps) as program:
        for point in range(200):
            folder = program.start(point)

            _run_study(program)

            if keeps == "both":
                _require_consistent(folder / "ledger")
            if not program.deaths:
                assert point > 10  # It has died at each of the steps.
                return
    raise AssertionError("the steps do not end")


def _run_study(program: Killed) -> None:
    """Ask for a mean, approve it and fetch it, and repeat what failed as a user and an owner would."""
    made = program.attempt(lambda: program.client("asker").search("#ages")[0].mean().request("table 1"))
    if made is None and not program.client("asker").requests():  # It was not acknowledged, and need not be there.
        made = program.client("asker").search("#ages")[0].mean().request("table 1")
    (request,) = program.client("asker").requests()
    assert made is None or request.id == made.id
    (shown,) = Desk(program.client("owner")).requests()
    assert (shown["state"], shown["reason"], shown["user"], shown["form"]) == ("open", "table 1", "ana", FORM)

    approved = program.attempt(lambda: Desk(program.client("owner")).approve(request.id, digest=shown["digest"]))
    (again,) = Desk(program.client("owner")).requests()
    assert again["digest"] == shown["digest"]
    if again["state"] == "open":
        assert approved is None
        Desk(program.client("owner")).approve(request.id, digest=shown["digest"])

    value = program.attempt(lambda: program.client("asker").requests()[0].get())
    if value is None:
        value = program.client("asker").requests()[0].get()
    assert value.tolist() == 15.0

    program.attempt(lambda: program.client("asker").requests())  # It acknowledges what arrived.
    assert program.client("other").requests() == []


def _require_consistent(path: Path) -> None:
    """Check that the ledger has one request, that was approved and released once."""
    entries = list(read_ledger(path))
    events = Counter(entry.event for entry in entries if entry.request is not None)
    assert (events["requested"], events["approved"], events["released"]) == (1, 1, 1), events
    assert events["resent"] <= 1
    assert len({entry.request for entry in entries if entry.request is not None}) == 1
    assert {entry.approver for entry in entries if entry.event in ("approved", "released", "resent")} == {"noor"}
