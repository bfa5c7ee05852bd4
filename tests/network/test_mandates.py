"""A worker that acts for a client with its ticket can do so only as long as the client itself could."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from syft_core.exceptions import AuthenticationError, ConnectionLostError, TicketError
from syft_core.messages import GetTicket, Introduce
from syft_core.network.address import Address
from syft_core.network.client import WebsocketClientWorker, WebsocketLocation
from syft_core.network.links import PeerLocation
from syft_core.network.server import Server
from syft_core.workers.addresses.tickets import MAX_TICKETS
from syft_core.workers.party.virtual import VirtualWorker
from tests.waiting import wait_until

from .processes import authenticate

torch = pytest.importorskip("torch")


class Link(NamedTuple):
    """The connection of the worker bob to a server, with a ticket of ana."""

    server: Server
    revoked: set[str]
    ana: WebsocketClientWorker
    bob: WebsocketLocation
    id: int


@pytest.fixture
def link(hook: Any, far: VirtualWorker, request: pytest.FixtureRequest) -> Iterator[Link]:
    revoked: set[str] = set()
    heartbeat, session_timeout = request.param
    server = Server(
        *(far, "127.0.0.1", 0, authenticate),
        **{"heartbeat": heartbeat, "session_timeout": session_timeout},
        is_valid=lambda identity: identity.user not in revoked,
    )
    server.start()
    ana = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana")
    x = torch.ones(2).send(ana)
    ticket = ana.ask(GetTicket("bob", (x.child.id_at_location,)))
    address = Address("127.0.0.1", server.port, secure=False)
    bob = WebsocketLocation(VirtualWorker(hook, id="bob", auto_add=False), "far", address, "bob", f"Ticket {ticket}")
    yield Link(server, revoked, ana, bob, x.child.id_at_location)
    ana.close()
    bob.close()
    server.stop(1)


@pytest.mark.parametrize("link", [(3600, 3600)], indirect=True)
def test_a_ticket_of_a_revoked_user_opens_no_further_connection(link: Link) -> None:
    assert link.bob.describe([link.id])[0].shape == (2,)
    link.bob.close()
    link.bob.connect()
    assert link.bob.describe([link.id])[0].shape == (2,)

    link.revoked.add("ana")
    link.bob.close()

    with pytest.raises(AuthenticationError):
        link.bob.connect()


@pytest.mark.parametrize("link", [(0.05, 3600)], indirect=True)
def test_a_connection_with_a_ticket_ends_when_its_user_is_revoked(link: Link) -> None:
    link.revoked.add("ana")

    with pytest.raises(AuthenticationError):
        deque(iter(lambda: link.bob.describe([link.id]), None), maxlen=0)  # Until it is disconnected.


@pytest.mark.parametrize("link", [(0.05, 1)], indirect=True)
def test_a_connection_with_a_ticket_ends_with_the_session_of_its_user(link: Link) -> None:
    assert link.bob.describe([link.id])[0].shape == (2,)

    link.ana.close()
    wait_until(lambda: not link.server.sessions)

    with pytest.raises(AuthenticationError):
        link.bob.describe([link.id])


class Pair:
    """Two workers on the network, one of which reaches the other with tickets, and ana's locations of both."""

    def __init__(self, hook: Any, far: VirtualWorker, stack: ExitStack) -> None:
        self._stack, near = stack, VirtualWorker(hook, id="near", auto_add=False)
        self.servers = {"near": self.serve(near), "far": self.serve(far)}
        self.peer = PeerLocation(near, "far", Address("127.0.0.1", self.servers["far"].port, secure=False))
        stack.callback(self.peer.close)
        near.add_worker(self.peer)
        self.near, self.far = [self._connect(hook, *item) for item in self.servers.items()]

    def serve(self, worker: VirtualWorker, port: int = 0) -> Server:
        server = Server(worker, "127.0.0.1", port, authenticate, heartbeat=0.05, session_timeout=1)
        server.start()
        self._stack.callback(server.stop, 1)
        return server

    def _connect(self, hook: Any, id: str, server: Server) -> WebsocketClientWorker:
        location = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana")
        self._stack.callback(hook.local_worker._known_workers.pop, id, None)
        self._stack.callback(location.close)
        return location


@pytest.fixture
def pair(hook: Any, far: VirtualWorker) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(hook, far, stack)


def test_objects_move_again_after_the_receiving_worker_was_restarted(pair: Pair, far: VirtualWorker) -> None:
    x, y = torch.ones(2).send(pair.near), torch.zeros(2).send(pair.near)
    x.move(pair.far)

    pair.servers["far"].stop(1)
    pair.serve(far, pair.servers["far"].port)
    with pytest.raises(ConnectionLostError, match="cannot continue the session on worker 'far'"):
        pair.far.flush()  # of the client itself
    with pytest.raises(ConnectionLostError, match="cannot continue the session on worker 'far'"):
        y.move(pair.far)  # of the worker that sends the object

    assert y.move(pair.far).get().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("is_published", [False, True])
def test_an_object_whose_move_was_interrupted_is_not_lost(
    pair: Pair, far: VirtualWorker, is_published: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_args: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    x = torch.ones(2).send(pair.near)
    torch.ones(1).send(pair.near).move(pair.far)
    if is_published:
        x.publish()
    ask = pair.near.ask
    monkeypatch.setattr(pair.near, "ask", lambda message: interrupt(ask(message)))  # It was executed.
    with pytest.raises(KeyboardInterrupt):
        x.move(pair.far)

    moved = x.move(pair.far)

    assert moved.get().tolist() == [1.0, 1.0]
    assert far.object_store.get(moved.id_at_location) is None


def test_the_connections_of_a_worker_for_a_client_end_with_the_session_of_the_client(pair: Pair) -> None:
    moved = torch.ones(2).send(pair.near).move(pair.far)
    assert [client.peer.id for client in pair.servers["far"].sessions if client.mandate] == ["near"]

    pair.near.close()
    near, far = pair.servers["near"], pair.servers["far"]
    wait_until(lambda: not near.sessions and not any(client.mandate for client in far.sessions))

    with pytest.raises(ConnectionLostError, match="the session expired"):
        pair.near.connect()
    assert torch.zeros(2).send(pair.near).move(pair.far).get().tolist() == [0.0, 0.0]
    assert moved.get().tolist() == [1.0, 1.0]


def test_tickets_that_nobody_uses_are_bounded(pair: Pair) -> None:
    for _ in range(1000):
        pair.near.tell(Introduce("far", "x" * 128))
    pair.near.flush()

    assert [len(client.tickets) for client in pair.peer._clients.values()] == [MAX_TICKETS]
    with pytest.raises(TicketError):
        pair.near.ask(Introduce("far", "x" * 129))
