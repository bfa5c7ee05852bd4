from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network.client_session import ClientSession
from syft_core.network.connection import Envelope, Purpose
from syft_core.peer import Peer
from syft_core.workers.addresses.tickets import Mandate, Ticket
from tests.waiting import wait_for_end


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    first, second = socket.socketpair()
    with first, second:
        yield first, second


def test_the_user_who_gave_a_ticket_pays_for_the_session_that_it_opened() -> None:
    ticket = Ticket(Peer("ann@eve", "eve"), "bob", frozenset(), 0.0)

    assert ClientSession(Peer("ann@eve", "eve")).payer == "eve"
    assert ClientSession(Peer("bob"), Mandate(ticket)).payer == "eve"


def test_what_waits_counts_as_in_flight_and_is_held() -> None:
    client = ClientSession(Peer("ann@eve", "eve"))
    client.waiting.append((Envelope(Purpose.BATCH, 1, 0), [bytearray(10), bytearray(5)]))
    client.busy_since = 1.0

    assert client.in_flight == 2
    assert client.bytes_held == 15


def test_only_the_newest_connection_waits_for_a_session(sockets: Any) -> None:
    older, newer = sockets
    client = ClientSession(Peer("ann@eve", "eve"), newest=newer)

    with pytest.raises(ConnectionLostError):
        client.await_turn(older)
    client.await_turn(newer)


def test_a_connection_gets_a_session_once_the_previous_one_has_ended(sockets: Any) -> None:
    client = ClientSession(Peer("ann@eve", "eve"), newest=sockets[1])
    client.lock.acquire(timeout=60)
    got: list[bool] = []

    def wait() -> None:
        client.await_turn(sockets[1])
        got.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    client.lock.release()
    wait_for_end(waiting)

    assert got == [True]
