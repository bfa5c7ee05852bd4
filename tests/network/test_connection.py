from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as connect_by_library

from syft_core.messages import Batch, Fetch, Search
from syft_core.network.server import Server
from syft_core.network.session import CLIENT, PROTOCOL, SESSION
from syft_core.serde import frames
from syft_core.workers.party.virtual import VirtualWorker
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


def test_fragmented_messages_are_put_together(server: Any) -> None:
    message = pack(1, *frames(Batch(1, (Search(("#count",)),), True)))

    with by_library(server) as connection:
        connection.send([message[:3], message[3:30], b"", message[30:]])

        assert unpack(connection.recv(60)).failure is None


def test_a_client_that_does_not_read_is_disconnected(hook: Any, far: VirtualWorker, connect: Any) -> None:
    slow = Server(far, "127.0.0.1", 0, authenticate, io_timeout=0.3)
    slow.start()
    far.load_data([torch.zeros(1_000_000).tag("#big")])
    id = far.object_store.search(("#big",))[0]

    with by_library(slow) as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.protocol.max_size = None
        for number in range(1, 20):
            message = pack(number, *frames(Batch(number, (Fetch(id, keep=True),), True)))
            request = struct.pack(">BBH", 0x82, 0xFE, len(message)) + bytes(4) + message
            try:
                connection.socket.sendall(request)
            except OSError:  # The server may close the connection while the client still sends.
                break
        wait_until(lambda: slow.sessions[0].session.sent and slow.sessions[0].connection is None)

    location = connect(port=slow.port)
    assert (torch.ones(1).send(location) + 1).get().tolist() == [2.0]
    location.close()
    slow.stop(1)


def test_an_oversized_message_is_refused_before_it_is_received(hook: Any, connect: Any, server: Any) -> None:
    with by_library(server) as connection:
        limit = server.worker.limits.max_bytes
        head = struct.pack("<BxxxIQQ", 0, 1, 1, 0) + struct.pack("<Q", limit + 1)
        connection.socket.sendall(struct.pack(">BBQ", 0x82, 0xFF, len(head) + limit + 1) + bytes(4) + head)

        with pytest.raises(ConnectionClosed):
            connection.recv(60)


@pytest.mark.parametrize("opcode", [0x0, 0x1, 0x3, 0x7, 0xB])
def test_a_frame_of_another_kind_is_refused_before_it_is_received(server: Any, opcode: int) -> None:
    with by_library(server) as connection:
        length = 1 << 40 if opcode < 8 else 100
        connection.socket.sendall(struct.pack(">BBQ", 0x80 | opcode, 0xFF, length) + bytes(4))

        with pytest.raises(ConnectionClosed):  # It does not wait for the rest.
            connection.recv(60)
