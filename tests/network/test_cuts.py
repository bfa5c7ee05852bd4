"""Connections that are cut after any byte: the client comes back, and every command is executed exactly once."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError, SessionLostError
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.server import Server
from syft_core.network.session import Session
from syft_core.workers.party.virtual import VirtualWorker
from tests.waiting import wait_until

from .processes import authenticate

torch = pytest.importorskip("torch")
MOST = 1 << 20
"""More bytes than a test sends."""
STEP = int(os.environ.get("SYFT_CUT_STEP", "7"))
"""How many bytes lie between two cuts; `tox -e nightly` cuts after every byte."""


class Cutter:
    """A proxy that cuts the next connection after some bytes of one direction, and notes how many passed."""

    def __init__(self, port: int) -> None:
        self.port_of_worker = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(300)
        self.port = self._listener.getsockname()[1]
        self.limits: list[tuple[int, int]] = []
        """How many bytes of the next connections pass, to the worker and from it."""
        self.passed = [0, 0]
        """How many bytes of the last connection have passed."""
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.port_of_worker), 60)
                except OSError:
                    near.close()
                    continue
                self.connections += 1
                self.passed = [0, 0]
                limits = self.limits.pop(0) if self.limits else (1 << 60, 1 << 60)
                for place, pair in enumerate(((near, far), (far, near))):
                    args = (*pair, limits[place], self.passed, place)
                    threading.Thread(target=self._pass_on, args=args, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket, left: int, passed: list[int], place: int) -> None:
        with contextlib.suppress(OSError):
            while left > 0 and (data := source.recv(min(left, 1 << 16))):
                left -= len(data)
                passed[place] += len(data)
                target.sendall(data)
        for sock in (source, target):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


class Restarted:
    """A worker that is served again on the same port, without its sessions."""

    def __init__(self, far: VirtualWorker) -> None:
        self.far = far
        self.server = Server(far, "127.0.0.1", 0, authenticate)
        self.server.start()

    def restart(self) -> None:
        """Forget all clients, as a worker does whose process ends."""
        server = self.server
        for client in server.sessions:
            if client.connection is not None:
                client.connection.interrupt()
        wait_until(lambda: all(client.connection is None for client in server.sessions))
        for key, client in server.admission.list_keys():
            server.admission.end_session(key, client)


@pytest.fixture
def worker(far: VirtualWorker) -> Iterator[Restarted]:
    worker = Restarted(far)
    yield worker
    worker.server.stop(1)


@pytest.fixture
def cutter(worker: Restarted) -> Iterator[Cutter]:
    cutter = Cutter(worker.server.port)
    yield cutter
    cutter.close()


@pytest.fixture
def location(hook: Any, cutter: Cutter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr("syft_core.network.client._PAUSES", (0.0, 0.01))
    location = WebsocketClientWorker(hook, "127.0.0.1", cutter.port, token="secret of ana", timeout=30)
    yield location
    location.close()


def measure_handshake(location: Any, cutter: Cutter) -> tuple[int, int]:
    """Return how many bytes a handshake has in each direction, when nothing else is sent."""
    location.flush()
    location.close()
    location.connect()
    sizes = tuple(cutter.passed)
    assert 0 < min(sizes) <= max(sizes) < MOST
    return sizes


@pytest.mark.parametrize("direction", [0, 1], ids=["to the worker", "from the worker"])
def test_a_session_continues_whatever_byte_of_a_handshake_is_the_last(
    location: Any, cutter: Cutter, direction: int
) -> None:
    total = torch.zeros(1).send(location)
    size = measure_handshake(location, cutter)[direction]

    for place in range(0, size + 12, STEP):
        cutter.limits.append((place, MOST) if direction == 0 else (MOST, place))
        location.disconnect()
        total += 1

    assert total.get().item() == len(range(0, size + 12, STEP))
    assert cutter.connections > size / STEP


@pytest.mark.parametrize("direction", [0, 1], ids=["to the worker", "from the worker"])
def test_a_lost_session_is_reported_once_whatever_byte_of_the_answer_is_the_last(
    location: Any, cutter: Cutter, worker: Restarted, direction: int
) -> None:
    size = measure_handshake(location, cutter)[direction]

    for place in range(0, size + 12, 4 * STEP):
        x = torch.ones(1).send(location)
        location.flush()
        worker.restart()
        cutter.limits.append((place, MOST) if direction == 0 else (MOST, place))

        with pytest.raises(SessionLostError, match="cannot continue the session on worker 'far'"):
            x.get()
        assert (torch.ones(1).send(location) + place).get().item() == 1 + place


def test_a_command_is_not_executed_again_after_a_restart_whose_answer_was_lost(
    location: Any, cutter: Cutter, worker: Restarted
) -> None:
    total = torch.zeros(1).send(location).tag("#total").publish()
    location.flush()
    sizes = measure_handshake(location, cutter)

    location.disconnect()
    cutter.limits.append((1 << 20, sizes[1] + 1))  # The reply to the next command is cut.
    cutter.limits += [(1 << 20, sizes[1] // 2)] * 3  # And the answers to the next handshakes.
    worker_of = location._session
    total += 1
    wait_until(lambda: worker.far.get_obj(total.id_at_location).item() == 1)
    worker.restart()
    with pytest.raises(SessionLostError):
        location.flush()

    assert location._session is not worker_of
    (again,) = location.search("#total")
    assert again.get().item() == 1


def test_a_worker_that_restarts_again_and_again_is_usable_each_time(
    location: Any, cutter: Cutter, worker: Restarted
) -> None:
    for times in range(5):
        x = torch.ones(1).send(location)
        location.flush()
        worker.restart()
        cutter.limits += [(MOST, 150)] * times
        with pytest.raises(SessionLostError):
            x.get()


def shake_hands(location: Any, port: int) -> Any:
    """Repeat the handshake of a client, as something on its way may do; return its connection."""
    address, location._address = location._address, type(location._address)("127.0.0.1", port, False, 30)
    try:
        return location._shake_hands(30)
    finally:
        location._address = address


def test_a_handshake_that_arrives_twice_does_not_take_the_session(location: Any, worker: Restarted) -> None:
    first, secret = Session(), location._secret
    x = torch.ones(1).send(location)
    location.flush()
    session, location._session = location._session, first

    with pytest.raises(ConnectionLostError, match="the session of the client has begun on another connection"):
        shake_hands(location, worker.server.port)

    location._session = session
    assert location._secret == secret
    assert (x + 1).get().item() == 2
    assert len(worker.server.sessions) == 1


def test_a_handshake_that_arrives_after_a_restart_does_not_begin_the_session_again(
    location: Any, worker: Restarted
) -> None:
    total = torch.zeros(1).send(location).tag("#tally").publish()
    location.flush()
    worker.restart()
    session, begun = location._session, location._begun
    location._session, location._begun = Session(), None
    sock, _, _ = shake_hands(location, worker.server.port)  # The first one of the session, delayed.
    location._session, location._begun = session, begun

    total += 1
    with pytest.raises(SessionLostError):
        location.flush()

    sock.close()
    (again,) = location.search("#tally")
    assert again.get().item() == 0


def test_two_connections_of_a_session_execute_every_command_once(location: Any, worker: Restarted) -> None:
    total = torch.zeros(1).send(location)
    location.flush()
    for _ in range(20):
        total += 1
        sock, _, _ = shake_hands(location, worker.server.port)
        total += 1
        sock.close()

    assert total.get().item() == 40


def run_in_thread(function: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_a_client_that_is_started_again_has_a_session_of_its_own(hook: Any, location: Any, worker: Restarted) -> None:
    x = torch.ones(1).send(location).tag("#mine").publish()
    location.flush()
    client = VirtualWorker(hook, id="again", auto_add=False)
    again = WebsocketClientWorker(hook, "127.0.0.1", worker.server.port, token="secret of ana", client=client)

    (found,) = again.search("#mine")

    assert client.request_obj(found.id_at_location, again).item() == 1
    assert len(worker.server.sessions) == 2
    again.close()
    del x


def test_every_reply_arrives_once_whatever_byte_is_the_last(location: Any, cutter: Cutter) -> None:
    total = torch.zeros(1).send(location)
    handshake = measure_handshake(location, cutter)

    for place in range(1, 160, STEP):
        cutter.limits.append((1 << 20, handshake[1] + place))
        location.disconnect()
        total += 1
        assert total.copy().get().item() == (place - 1) // STEP + 1


def test_a_proxy_that_cuts_the_first_handshake_is_asked_again(hook: Any, cutter: Cutter) -> None:
    cutter.limits += [(MOST, 100), (100, MOST)]

    far = WebsocketClientWorker(hook, "127.0.0.1", cutter.port, token="secret of ana")

    assert (torch.ones(1).send(far) + 1).get().item() == 2
    far.close()


def test_a_proxy_that_cuts_every_handshake_is_reported_at_once(hook: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)

        def cut() -> None:
            with contextlib.suppress(OSError):
                while True:
                    listener.accept()[0].close()

        run_in_thread(cut)
        with pytest.raises(ConnectionLostError, match="the connection is cut before the worker answers"):
            WebsocketClientWorker(hook, "127.0.0.1", listener.getsockname()[1], token="secret of ana")
