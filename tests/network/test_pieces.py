"""Large messages travel in pieces: within limits, exactly once, and without keeping others waiting."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from syft_core.exceptions import ConnectionLostError, MessageSizeError
from syft_core.messages import Batch, Fetch, Search, Store
from syft_core.network.admission import MESSAGE_OVERHEAD
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.connection import Purpose
from syft_core.network.pieces import MAX_BUFFERS, PIECE, Assembly, split
from syft_core.network.server import Server
from syft_core.serde import frames
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.allowances import Allowance
from syft_worker.quotas import QuotaGuard
from tests.waiting import wait_for_end, wait_until

from .envelopes import pack, unpack
from .processes import authenticate
from .test_strangers import by_library

torch = pytest.importorskip("torch")
LARGE = 5_000_000
"""How many numbers a tensor has that needs five pieces."""


# --- splitting and joining


@pytest.mark.parametrize(
    "lengths", [(0,), (10, 20), (PIECE,), (PIECE + 1,), (5, 2 * PIECE, 0, 7), (PIECE, PIECE), (3 * PIECE, 1)]
)
def test_pieces_fit_together(lengths: tuple[int, ...]) -> None:
    sent = [bytes([place]) * length for place, length in enumerate(lengths)]
    assembly, pieces = Assembly(), list(split(sent))

    joined = [assembly.join([bytearray(part) for part in piece], more) for piece, more in pieces]

    assert joined[:-1] == [None] * (len(pieces) - 1)
    assert joined[-1] == sent
    assert assembly.size == 0
    assert all(sum(map(len, piece)) <= PIECE for piece, _ in pieces)


def test_pieces_that_do_not_fit_together_are_refused() -> None:
    for first, second in (([], []), ([bytearray(1)], []), ([bytearray(1)], [bytearray()] * MAX_BUFFERS)):
        assembly = Assembly()
        pieces = [list(first), list(second)]
        with pytest.raises(ConnectionLostError, match="its pieces do not fit together"):
            list(map(assembly.join, pieces, (True, True)))


# --- clients


@pytest.fixture
def location(connect: Any) -> Any:
    return connect()


def test_large_objects_travel_in_both_directions(location: Any) -> None:
    x = torch.arange(LARGE, dtype=torch.float32)

    pointer = x.send(location)

    assert torch.equal((pointer + 1).get(), x + 1)
    assert torch.equal(pointer.get(), x)
    assert location._session.arriving.size == 0


def test_a_message_larger_than_one_frame_may_be_arrives(location: Any) -> None:
    x = torch.ones(20_000_000)  # 80 MB

    assert x.send(location).sum().get().item() == 20_000_000


def test_a_large_object_arrives_however_often_the_connection_is_cut(connect: Any, proxy: Any, far: Any) -> None:
    location = connect(port=proxy.port)
    total = torch.zeros(1).send(location)
    proxy.budgets.extend([PIECE * 2 + 1000] * 8)
    proxy.cut()
    x = torch.arange(LARGE)

    total += 1
    pointer = x.send(location)
    total += 1

    assert torch.equal(pointer.get(), x)
    assert total.get().item() == 2
    assert proxy.connections > 8


def test_the_worker_keeps_no_more_of_a_message_than_arrives(location: Any, server: Server) -> None:
    kept = []
    keep = type(location._session).keep

    def note(session: Any, *args: Any, **options: Any) -> Any:
        envelope = keep(session, *args, **options)
        kept.append(session.unacknowledged_bytes if session is not location._session else len(session._kept))
        return envelope

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(location._session), "keep", note)
        torch.ones(20_000_000).send(location)
        location.flush()

    assert max(kept[:-2]) <= 6  # Pieces; the sender does not keep a copy of all of it.
    wait_until(lambda: server.sessions[0].bytes_held < 4096)  # The last replies, until the client acknowledges them.


def test_a_reply_in_pieces_is_forgotten_as_soon_as_it_has_arrived(location: Any, server: Server) -> None:
    torch.ones(LARGE).send(location).get()

    wait_until(lambda: server.sessions[0].session.unacknowledged_bytes == 0)


def test_what_is_too_large_is_refused_at_the_client_and_the_connection_lives(
    connect: Any, far: Any, server: Server
) -> None:
    far.guard = QuotaGuard(far, {"ana": Allowance(bytes=1_000_000)})
    location = connect()
    x = torch.ones(2).send(location)
    limit = 1_000_000 + MESSAGE_OVERHEAD

    with pytest.raises(
        MessageSizeError, match=rf"cannot send a message of 20,000,\d+ bytes to worker 'far': the limit is {limit:,}; "
    ):
        torch.ones(LARGE).send(location)

    assert (x + 1).get().tolist() == [2.0, 2.0]
    assert server.admission.sessions_opened == 1


def test_the_limit_of_the_owner_is_the_one_that_counts(connect: Any, far: Any) -> None:
    far.limits = type(far.limits)(max_bytes=1000)
    location = connect()

    with pytest.raises(MessageSizeError, match="the limit is 1,000; send it in parts, or ask its owner for more"):
        torch.ones(1000).send(location)
    assert torch.ones(10).send(location).sum().get().item() == 10


def test_a_message_that_became_too_large_on_its_way_is_answered_with_an_error(connect: Any, far: Any) -> None:
    location = connect()
    x = torch.ones(2).send(location)
    location.flush()
    far.guard = QuotaGuard(far, {"ana": Allowance(bytes=1_000_000)})  # The client has not heard of it.

    torch.ones(LARGE).send(location)
    with pytest.raises(MessageSizeError, match="cannot send a message of more than 17,777,216 bytes"):
        location.flush()

    assert (x + 1).get().tolist() == [2.0, 2.0]


def test_a_large_message_and_a_large_reply_pass_each_other(location: Any) -> None:
    x = torch.ones(LARGE).send(location)
    location.flush()
    answer = location.submit(Fetch(x.id_at_location))

    pointer = torch.zeros(4 * LARGE).send(location)

    assert answer().sum().item() == LARGE
    assert pointer.sum().get().item() == 0


def test_an_interrupted_send_of_a_large_object_does_not_break_the_session(
    location: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = torch.zeros(1).send(location)
    location.flush()
    own, send, times = location._connection, type(location._connection).send, []

    def interrupt(connection: Any, envelope: Any, buffers: Any) -> None:  # The worker's end has this class, too.
        times.append(connection)
        if connection is own and times.count(own) == 3:
            raise KeyboardInterrupt
        send(connection, envelope, buffers)

    monkeypatch.setattr(type(location._connection), "send", interrupt)
    total += 1
    with pytest.raises(KeyboardInterrupt):
        torch.ones(LARGE).send(location)
    total += 1

    assert total.get().item() == 2


def test_a_frame_that_was_sent_in_part_is_not_continued_with_another(
    location: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = location._connection
    send_all = connection._send_all

    def interrupt(parts: Any, length: int) -> None:
        if length < 1_000_000:
            return send_all(parts, length)
        monkeypatch.undo()
        connection._socket.send(b"".join(map(bytes, parts))[:1000])
        raise KeyboardInterrupt

    x = torch.arange(500_000)
    monkeypatch.setattr(connection, "_send_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        x.send(location).sum()

    assert x.send(location).sum().get().item() == x.sum().item()


def test_a_worker_sends_large_requests_to_its_client(location: Any, far: Any) -> None:
    x = torch.ones(LARGE, requires_grad=True)
    pointer = x.send(location, requires_grad=True)

    (pointer * 2).sum().backward()
    location.flush()

    wait_until(lambda: x.grad is not None and bool((x.grad == 2).all()))


@pytest.fixture
def quick(hook: Any, far: VirtualWorker) -> Iterator[Server]:
    server = Server(far, "127.0.0.1", 0, authenticate, heartbeat=0.1, io_timeout=30)
    server.start()
    yield server
    server.stop(1)


def test_others_do_not_wait_for_a_large_message(hook: Any, quick: Server) -> None:
    other = WebsocketClientWorker(hook, "127.0.0.1", quick.port, token="secret of ana")
    x = torch.ones(2).send(other)
    message = list(split(frames(Batch(1, (Store(7, torch.ones(4 * LARGE)),), True))))
    with by_library(quick) as slow:
        for number, (piece, more) in enumerate(message[:-1], 1):
            slow.send(pack(number, *piece, more=more))
            assert (x + number).get().tolist() == [1.0 + number] * 2

        wait_until(lambda: any(client.session.arriving.size > 4 * LARGE for client in quick.sessions))
        slow.socket.shutdown(socket.SHUT_RDWR)
    other.close()


def test_a_client_that_waits_for_a_busy_worker_sends_on_when_it_reads_again(hook: Any, quick: Server, far: Any) -> None:
    location = WebsocketClientWorker(hook, "127.0.0.1", quick.port, token="secret of ana", timeout=1)
    location.flush()
    is_held, is_sent = threading.Event(), threading.Event()

    def hold() -> None:
        with far.lock:  # The worker is busy for longer than the timeout.
            is_held.set()
            is_sent.wait(2.5)

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait(30)
    location.tell(Search(()))
    before = location._connection

    pointer = torch.ones(4 * LARGE).send(location)

    assert pointer.sum().get().item() == 4 * LARGE
    assert location._connection is before
    wait_for_end(thread)
    location.close()


# --- strangers


def send_pieces(connection: Any, count: int, size: int, more: bool = True) -> bool:
    """Send pieces that never end; return whether the worker has closed the connection."""
    try:
        for number in range(1, count + 1):
            connection.send(pack(number, bytes(size), more=more))
    except ConnectionClosed:
        return True
    return False


def test_pieces_that_never_end_take_no_more_memory_than_the_user_may_have(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=1_000_000)})
    most = []
    with by_library(server) as connection:
        for number in range(1, 60):
            connection.send(pack(number, bytes(1_000_000), more=True))
            connection.recv(60)
            most.append(server.sessions[0].bytes_held)
        connection.send(pack(60, b"", more=False))
        error = receive_reply(connection).failure.error

    assert max(most) <= 1_000_000 + MESSAGE_OVERHEAD
    assert isinstance(error, MessageSizeError)


def receive_reply(connection: Any) -> Any:
    """Return the next reply; confirmations have no buffers."""
    while True:
        message = connection.recv(60)
        if message[0] == Purpose.BATCH:
            return unpack(message)


def test_pieces_of_many_sessions_take_no_more_memory_than_the_user_may_have(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=1_000_000)})
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(by_library(server, **{"Syft-Client": f"c{number}"})) for number in range(6)]
        for number in range(1, 12):
            for connection in connections:
                connection.send(pack(number, bytes(1_000_000), more=True))
                connection.recv(60)
        held = sum(client.bytes_held for client in server.sessions)

        assert held <= 1_000_000 + MESSAGE_OVERHEAD
        for connection in connections:
            connection.send(pack(12, b"", more=False))
        errors = [receive_reply(connection).failure.error for connection in connections]
    assert any("it has more bytes than the limit" in str(error) for error in errors)


def test_an_announced_length_is_not_memory(server: Any, far: Any) -> None:
    with by_library(server) as connection:
        head = struct.pack("<BBxxIQQQ", 0, 1, 1, 1, 0, 1 << 40)
        connection.socket.sendall(struct.pack(">BBQ", 0x82, 0xFF, len(head) + (1 << 40)) + bytes(4) + head)

        with pytest.raises(ConnectionClosed):
            connection.recv(60)
    assert server.sessions[0].bytes_held == 0


def test_pieces_without_buffers_are_refused(server: Any) -> None:
    with by_library(server) as connection:
        connection.send(pack(1, more=True))

        with pytest.raises(ConnectionClosed):
            connection.recv(60)


def test_pieces_before_authentication_are_not_read(server: Any) -> None:
    with contextlib.suppress(Exception), by_library(server, "wrong") as connection:
        send_pieces(connection, 100, 1 << 20)
    assert not server.sessions


def test_pieces_of_a_session_that_has_ended_are_dropped(server: Any, far: Any) -> None:
    with by_library(server) as connection:
        send_pieces(connection, 3, 1 << 20)
        wait_until(lambda: server.sessions[0].session.arriving.size == 3 << 20)
    wait_until(lambda: all(client.connection is None for client in server.sessions))
    key, client = next(iter(server.admission.list_keys()))
    server.admission.end_session(key, client)

    assert sum(client.bytes_held for client in server.sessions) == 0


def test_pieces_that_come_slowly_do_not_keep_the_worker_from_others(server: Any, connect: Any) -> None:
    other = connect()
    with contextlib.ExitStack() as stack:
        names = [f"slow{number}" for number in range(5)]
        strangers = [stack.enter_context(by_library(server, **{"Syft-Client": name})) for name in names]
        for stranger in strangers:
            stranger.send(pack(1, bytes(1000), more=True))
            stranger.socket.sendall(struct.pack(">BB", 0x82, 0xFE))  # The next one begins, and never ends.
        assert torch.ones(2).send(other).sum().get().item() == 2
        for stranger in strangers:
            stranger.socket.shutdown(socket.SHUT_RDWR)
