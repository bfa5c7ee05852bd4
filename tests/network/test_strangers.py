"""Strangers on a socket get nothing and break nothing: the worker goes on, and the others notice nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as connect_by_library

import syft_core as sy
from syft_core.exceptions import AuthenticationError, TicketError
from syft_core.messages import Batch, Describe, Fetch, Forward, GetTicket, Reply, Search, Store, Tag
from syft_core.network.admission import MAX_WAITING, MESSAGE_OVERHEAD
from syft_core.network.connection import Purpose
from syft_core.network.server import Server
from syft_core.network.session import BEGUN, CLIENT, PROTOCOL, SESSION
from syft_core.peer import Peer
from syft_core.serde import frames
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker.allowances import Allowance
from syft_worker.quotas import QuotaGuard
from tests.messages import list_commands
from tests.waiting import wait_until

from .envelopes import pack, unpack
from .processes import authenticate

torch = pytest.importorskip("torch")
HEADERS = {CLIENT: "stranger", SESSION: "0" * 32}


@contextmanager
def by_library(server: Server, token: str | None = "secret of eve", **headers: str) -> Iterator[Any]:
    """Connect with the library ``websockets``: real masks, and frames of any kind."""
    sent = {**HEADERS, **headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    address = f"ws://127.0.0.1:{server.port}"
    with connect_by_library(address, additional_headers=sent, subprotocols=[PROTOCOL], compression=None) as connection:
        yield connection


@pytest.fixture
def others(connect: Any) -> Iterator[None]:
    """A client that works before and after whatever a stranger does."""
    location = connect()
    x = torch.ones(2).send(location)
    location.flush()
    yield
    assert (x + 1).get().tolist() == [2.0, 2.0]


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("token", [None, "", "secret", "secret of", "wrong of ana", "x" * 4000])
def test_who_is_not_authenticated_is_refused(server: Any, token: str | None) -> None:
    with pytest.raises(InvalidStatus) as caught, by_library(server, token):
        pass

    assert caught.value.response.status_code == 401


def test_a_wrong_token_is_explained(hook: Any, server: Any, connect: Any) -> None:
    with pytest.raises(AuthenticationError, match="the token or certificate is missing, wrong, expired or revoked"):
        connect("")


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("command", list_commands(), ids=lambda command: command.__name__)
def test_no_message_reaches_the_worker_without_authentication(server: Any, far: Any, command: Any) -> None:
    before = far.stats.messages
    with socket.create_connection(("127.0.0.1", server.port), 60) as sock:
        sock.sendall(
            f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{CLIENT}: me\r\n".encode()
        )
        sock.sendall(f"{SESSION}: {'0' * 32}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n".encode())
        sock.sendall(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        message = pack(1, *frames(Batch(1, (_example(command),), True)))
        sock.sendall(struct.pack(">BBQ", 0x82, 0xFF, len(message)) + bytes(4) + message)
        answer = sock.recv(4096)

    assert answer.startswith(b"HTTP/1.1 401")
    assert far.stats.messages == before


def _example(command: Any) -> Any:
    values = {"int": 1, "str": "x", "bool": True, "dict[str, Any]": {}, "Any": 1}
    kinds = [str(field.type) for field in dataclasses.fields(command)]
    return command(*[values.get(kind.split(" | ")[0], () if "tuple" in kind else None) for kind in kinds])


@pytest.mark.parametrize(
    "peer", [Peer("boss@boss", "boss"), Peer("far"), Peer("me"), Peer("stranger@ana", "ana")], ids=str
)
def test_a_claim_to_act_for_somebody_needs_a_ticket(server: Any, far: Any, tmp_path: Path, peer: Peer) -> None:
    far.ledger = Ledger("far", tmp_path / "ledger")
    far.register_obj(torch.ones(2), "data")
    commands = [Fetch("data"), Search(()), Store(5, torch.ones(2), holder=peer.id), Describe(("data",))]

    with by_library(server) as connection:
        for number, command in enumerate(commands, 1):
            connection.send(pack(number, *frames(Batch(number, (command,), True, (peer, Peer("me"))))))
            error = unpack(connection.recv(60)).failure.error
            assert type(error) is TicketError
            assert "on behalf of" in str(error)
        connection.send(pack(5, *frames(Batch(5, (Fetch("data"),), True))))
        assert unpack(connection.recv(60)).failure is None

    far.ledger.close()
    assert {entry.user for entry in read_ledger(tmp_path / "ledger") if entry.user} == {"eve"}
    assert 5 not in far.object_store


def test_another_websocket_library_can_be_a_client(server: Any) -> None:
    with by_library(server) as connection:
        connection.send(pack(1, *frames(Batch(1, (Search(("#count",)),), True))))
        reply = unpack(connection.recv(60))

        assert type(reply) is Reply
        assert [item[1] for item in reply.value] == [("#count",)]


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"garbage",
        os.urandom(1000),
        pack(1),
        pack(1, b"garbage"),
        pack(1, b"SYFT" + bytes(100)),
        pack(7, b"a number is missing"),
        pack(1, *frames(Batch(1, (), True))) + b"more",
        struct.pack("<BxxxIQQ", 9, 0, 1, 0),
        struct.pack("<BxxxIQQ", 0, 0xFFFFFFFF, 1, 0),
        struct.pack("<BxxxIQQ", 0, 1, 1, 0) + struct.pack("<Q", 1 << 60),
        struct.pack("<BxxxIQQ", 0, 1, 1, 1 << 60) + struct.pack("<Q", 0),
    ],
)
def test_malformed_messages_end_the_connection_or_are_answered(server: Any, message: bytes) -> None:
    with by_library(server) as connection:
        connection.send(message)
        try:
            reply = unpack(connection.recv(60))
        except ConnectionClosed:
            return

        assert reply.failure is not None


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 10_000,
        b"A" * 100_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500),
    ],
)
def test_connections_that_do_not_speak_the_protocol_are_closed(server: Any, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 60) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while sock.recv(4096):
                pass


@pytest.mark.usefixtures("others")
def test_a_client_that_vanishes_in_the_middle_of_a_message_is_forgotten(server: Any, connect: Any) -> None:
    message = pack(1, *frames(Batch(1, (Search(("#count",)),), True)))
    with by_library(server) as connection:
        connection.socket.sendall(struct.pack(">BBH", 0x82, 0xFE, len(message)) + bytes(4) + message[:20])
        connection.socket.shutdown(socket.SHUT_RDWR)


def test_the_user_comes_from_the_connection(connect: Any, far: Any) -> None:
    location = connect("ana")
    torch.ones(2).send(location).tag("#mine").publish()
    location.flush()

    (id,) = far.object_store.search(("#mine",))
    assert far.object_store.entry(id).publisher.user == "ana"


def test_a_client_cannot_take_the_name_of_another(server: Any, connect: Any, far: Any) -> None:
    ana = connect("ana")
    x = torch.ones(2).send(ana)
    ana.flush()

    name = ana.client_id.partition("@")[0]
    with by_library(server, "secret of eve", **{CLIENT: name, SESSION: ana._secret}):
        names = {client.peer for client in server.sessions}
    assert Peer(f"{name}@eve", "eve") in names
    for wrong in (ana.client_id, "far"):  # With the user "b", "x@a" would be the client "x" of a user "a@b".
        with pytest.raises(InvalidStatus, match="HTTP 400"), by_library(server, "secret of eve", **{CLIENT: wrong}):
            pass
    assert x.get().tolist() == [1.0, 1.0]


def test_a_client_of_one_user_cannot_reach_the_client_of_another(hook: Any, connect: Any, far: Any) -> None:
    ana = connect("ana")
    ana.flush()
    eve = connect("eve", client=VirtualWorker(hook, id="eve"))
    x = eve._local.send(torch.ones(2), eve)
    hook.local_worker.remove_worker_from_registry("eve")

    with pytest.raises(Exception, match="cannot find worker"):
        x.move(ana.client_id)


def test_a_stranger_that_never_finishes_the_handshake_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, server: Any
) -> None:
    monkeypatch.setattr("syft_core.network.server.HANDSHAKE_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", server.port), 60) as sock:
        sock.settimeout(0.1)
        while True:
            try:
                sock.sendall(b"G")
                if not sock.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break


def test_strangers_who_say_nothing_do_not_keep_clients_out(
    hook: Any, far: VirtualWorker, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_core.network.server.HANDSHAKE_SECONDS", 3600)
    small = Server(far, "127.0.0.1", 0, authenticate, max_connections=6)
    small.start()
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", small.port), 60))

        location = connect(port=small.port)
        assert (torch.ones(2).send(location) + 1).get().tolist() == [2.0, 2.0]

        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", small.port), 60))
        assert (torch.ones(2).send(location) + 2).get().tolist() == [3.0, 3.0]
        location.close()
    small.stop(1)


def test_a_message_cannot_be_larger_than_the_quota_of_its_user(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=1000)})
    length = 1000 + MESSAGE_OVERHEAD + 1

    with by_library(server) as connection:
        head = struct.pack("<BxxxIQQ", 0, 1, 1, 0) + struct.pack("<Q", length)
        connection.socket.sendall(struct.pack(">BBQ", 0x82, 0xFF, len(head) + length) + bytes(4) + head)

        with pytest.raises(ConnectionClosed):
            connection.recv(60)


def test_a_client_that_sends_on_without_answering_the_worker_is_disconnected(server: Any, far: Any) -> None:
    with by_library(server) as connection:
        store, forward = Store(7, torch.ones(2)), Forward(7, None, "stranger@eve", 8)
        connection.send(pack(1, *frames(Batch(1, (store, forward), True))))
        request = connection.recv(60)
        assert request[0] == Purpose.REQUEST

        with contextlib.suppress(ConnectionClosed):
            for number in range(2, 10_000):
                connection.send(pack(number, *frames(Batch(number, (), True))))
        with pytest.raises(ConnectionClosed):
            connection.recv(60)
    assert len(server.sessions[0].waiting) <= MAX_WAITING + 1


def _send_until_closed(connection: Any, commands: Callable[[int], tuple[Any, ...]]) -> bool:
    """Read every reply, and acknowledge none; return whether the worker has closed the connection."""
    try:
        for number in range(1, 1000):
            connection.send(pack(number, *frames(Batch(number, commands(number), True))))
            connection.recv(60)
    except ConnectionClosed:
        return True
    return False


def test_a_client_that_does_not_acknowledge_replies_is_disconnected(server: Any) -> None:
    with by_library(server) as connection:
        is_closed = _send_until_closed(connection, lambda _number: ())

    assert is_closed
    assert server.sessions[0].session.unacknowledged <= MAX_WAITING + 1


def test_replies_that_are_not_acknowledged_take_no_more_memory_than_objects(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=600_000)})
    store, fetch = Store(7, torch.ones(100_000)), Fetch(7, None, True)
    with by_library(server) as connection:
        is_closed = _send_until_closed(connection, lambda number: (store if number == 1 else fetch,))

    assert is_closed
    assert server.sessions[0].bytes_held <= 600_000 + MESSAGE_OVERHEAD + 500_000


def test_messages_that_wait_for_the_client_take_no_more_memory_than_objects(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=600_000)})
    with by_library(server) as connection:
        store, forward = Store(7, torch.ones(2)), Forward(7, None, "stranger@eve", 8)
        connection.send(pack(1, *frames(Batch(1, (store, forward), True))))
        assert connection.recv(60)[0] == Purpose.REQUEST

        with contextlib.suppress(ConnectionClosed):
            for number in range(2, MAX_WAITING):
                connection.send(pack(number, *frames(Batch(number, (Store(9, torch.ones(100_000)),), True))))
        with pytest.raises(ConnectionClosed):
            connection.recv(60)


@pytest.mark.slow
def test_messages_that_never_arrive_take_no_more_memory_than_objects(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=20_000_000)})
    length = 15_000_000
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(by_library(server, **{CLIENT: name})) for name in "abcd"]
        head = struct.pack("<BxxxIQQ", 0, 1, 1, 0) + struct.pack("<Q", length)
        for number, client in enumerate(clients):
            client.socket.sendall(struct.pack(">BBQ", 0x82, 0xFF, len(head) + length) + bytes(4) + head)
            expected = length * min(number + 1, 2)
            wait_until(lambda n=expected: sum(client.bytes_held for client in server.sessions) >= n)

        for refused in clients[2:]:
            with pytest.raises(ConnectionClosed):
                refused.recv(60)
        assert sum(client.bytes_held for client in server.sessions) <= 20_000_000 + MESSAGE_OVERHEAD


def test_idle_sessions_of_a_user_keep_no_more_replies_than_objects(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=20_000_000)})
    with by_library(server) as connection:
        connection.send(pack(1, *frames(Batch(1, (Store(7, torch.ones(4_000_000)), Tag(7, ("#large",))), True))))
        connection.recv(60)
        for name in "abcdef":
            with by_library(server, **{CLIENT: name}) as other:
                other.protocol.max_message_size = None
                other.send(pack(1, *frames(Batch(1, (Fetch(7, None, True),), True))))
                other.recv(60)
            idle = f"{name}@eve"
            wait_until(lambda n=idle: not any(each.connection for each in server.sessions if each.peer.id == n))

    assert sum(client.bytes_held for client in server.sessions) <= 20_000_000 + MESSAGE_OVERHEAD + 17_000_000


def test_replies_that_wait_for_a_user_without_quota_are_bounded(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_core.network.admission.MAX_HELD", 20_000_000)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(by_library(server, **{CLIENT: name, SESSION: name * 32})) for name in "abcdef"]
        clients[0].send(pack(1, *frames(Batch(1, (Store(7, torch.ones(1_000_000)), Tag(7, ("#large",))), True))))
        clients[0].recv(60)
        for client in clients:  # Each keeps less than the limit, but together they would keep more.
            client.protocol.max_message_size = None
            with contextlib.suppress(ConnectionClosed):
                for number in range(2 if client is clients[0] else 1, 5):
                    client.send(pack(number, *frames(Batch(number, (Fetch(7, None, True),), True))))
                    client.recv(60)

        assert sum(client.bytes_held for client in server.sessions) <= 20_000_000 + len(clients) * 5_000_000


def test_a_client_that_gets_ahead_of_its_replies_receives_all_of_them(
    connect: Any, far: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_core.network.admission.MAX_HELD", 10_000_000)
    location = connect(timeout=10)
    pointers = [torch.full((1_000_000,), float(value)).send(location) for value in range(12)]

    fetched = sy.get_all(*pointers)

    assert [value[-1].item() for value in fetched] == list(range(12))
    assert len(far.ledger) == 12


def test_a_client_cannot_take_the_id_of_the_worker(hook: Any) -> None:
    worker = VirtualWorker(hook, id="phone@eve", auto_add=False)  # A client has the id NAME@USER.
    server = Server(worker, "127.0.0.1", 0, authenticate)
    server.start()

    with pytest.raises(InvalidStatus, match="HTTP 400"), by_library(server, **{CLIENT: "phone"}):
        pass
    server.stop()


@pytest.mark.usefixtures("others")
def test_one_secret_for_many_names_does_not_evade_the_number_of_connections(server: Any, far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(connections=2)})
    with contextlib.ExitStack() as stack:
        for name in "ab":
            stack.enter_context(by_library(server, **{CLIENT: name}))

        with pytest.raises(InvalidStatus, match="HTTP 429"):
            stack.enter_context(by_library(server, **{CLIENT: "c"}))


def test_tickets_do_not_evade_the_number_of_connections(server: Any, far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_core.network.admission.MAX_LINKS", 3)
    far.guard = QuotaGuard(far, {"eve": Allowance(connections=1)})
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(by_library(server))

        def open_with_ticket(number: int) -> None:
            connection.send(pack(number, *frames(Batch(number, (GetTicket("alice", ()),), True))))
            ticket = unpack(connection.recv(60)).value
            headers = {"Authorization": f"Ticket {ticket}", CLIENT: "alice", SESSION: f"{number:032}"}
            stack.enter_context(by_library(server, None, **headers))

        for number in range(1, 4):
            open_with_ticket(number)
        with pytest.raises(InvalidStatus, match="HTTP 429"):
            open_with_ticket(4)


def test_idle_sessions_with_tickets_end_those_of_the_same_user_only(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_core.network.admission.MAX_IDLE_SESSIONS", 2)
    for user in ("ana", "eve", "eve", "eve", "eve"):
        secret = os.urandom(16).hex()
        with by_library(server, f"secret of {user}", **{SESSION: secret}) as connection:
            connection.send(pack(1, *frames(Batch(1, (GetTicket("alice", ()),), True))))
            ticket = unpack(connection.recv(60)).value
            headers = {"Authorization": f"Ticket {ticket}", CLIENT: "alice", SESSION: secret}
            with by_library(server, None, **headers):
                pass
        wait_until(lambda: not any(client.connection for client in server.sessions))

    assert [client.payer for client in server.sessions if client.mandate is not None].count("ana") == 1


def test_only_the_newest_connection_waits_for_a_session(server: Any, far: Any) -> None:
    request = (
        f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{CLIENT}: stranger\r\n"
        f"{SESSION}: {'0' * 32}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\nAuthorization: Bearer secret of eve\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(by_library(server))
        request = request.replace("\r\n\r\n", f"\r\n{BEGUN}: {server.sessions[0].begun}\r\n\r\n")
        with far.lock:  # An operation takes long.
            first.send(pack(1, *frames(Batch(1, (Search(()),), True))))
            wait_until(lambda: server.sessions[0].busy_since is not None)
            waiting = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 60)) for _ in range(20)]
            for sock in waiting:
                sock.sendall(request.encode())
            remaining, end = set(waiting), time.monotonic() + 60
            while len(remaining) > 1 and time.monotonic() < end:  # All but one end although the operation goes on.
                for sock in select.select(remaining, [], [], 1)[0]:
                    if not sock.recv(1 << 12):
                        remaining.discard(sock)
        assert len(remaining) == 1


def test_a_header_that_is_repeated_is_refused(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 60) as sock:
        sock.sendall(f"GET / HTTP/1.1\r\n{CLIENT}: a\r\n{CLIENT}: b\r\n\r\n".encode())

        assert not sock.recv(1)
    assert "Traceback" not in caplog.text
