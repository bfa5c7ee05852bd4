"""PeerLocation: another worker on the network, as seen by a worker that acts for its clients."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, cast

from syft_core.exceptions import AuthenticationError, SessionLostError, TicketError
from syft_core.hook.forms import Form
from syft_core.location import Location
from syft_core.messages import Message, Note, Redeem
from syft_core.network.address import Address
from syft_core.network.client import WebsocketLocation
from syft_core.network.connection import Purpose
from syft_core.peer import Id, Peer, behalf
from syft_core.values import Outcome
from syft_core.workers.addresses.tickets import MAX_SECRET, MAX_TICKETS
from syft_core.workers.party.base import BaseWorker

RECONNECT = 10.0
"""Seconds after which a worker that cannot be reached counts as gone."""
NOTE_POLL = 0.1
"""The polling interval, in seconds, for acknowledgements and refusals."""
MAX_KEPT = 256
"""The maximum number of notes kept until the other worker has acknowledged them."""


class TicketLink(WebsocketLocation):
    """A connection to another worker, opened with a ticket of a client; notes need no reply."""

    def tell(self, message: Message) -> None:
        """Send a message without waiting for the reply; the next call that waits raises its error."""
        if not message.facts.is_note:
            super().tell(message)
            return
        sent = cast("Note", message).to_frames()
        with self._lock:
            self.bytes_moved += self.measure(sent)
            self.transmit(Purpose.NOTE, sent)
            now, many = monotonic(), self._session.unacknowledged > MAX_KEPT
            if many or now > self._looked + NOTE_POLL:
                self._looked = now
                while self._receive(wait=False):
                    pass
        if self._session.unacknowledged > MAX_KEPT:
            self.flush()

    def flush(self) -> None:
        """Wait until the other worker has executed everything and received all notes, which have no replies."""
        self.confirm()


@dataclass
class _Client:
    """A client's means to reach another worker: a link, or tickets to open one."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    tickets: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_TICKETS))
    link: TicketLink | None = None


class PeerLocation(Location):
    """The location of another worker: requests on behalf of a client use a connection opened with its ticket.

    The address comes from the configuration of the worker's owner, never from a client.
    """

    def __init__(self, worker: BaseWorker, id: Id, address: Address) -> None:
        super().__init__(worker, id)
        self._worker = worker
        self._address = replace(address, timeout=min(address.timeout, RECONNECT), wait=RECONNECT)
        self._clients: dict[Peer, _Client] = {}

    def accept_ticket(self, ticket: str, peer: Peer) -> None:
        """Keep a ticket until a request on behalf of ``peer`` needs it."""
        if not (len(ticket) <= MAX_SECRET and ticket.isascii() and ticket.isprintable()):
            raise TicketError.invalid(self._worker.id)
        self._clients.setdefault(peer.original, _Client()).tickets.append(ticket)

    def forget_peer(self, peer: Peer) -> None:
        """Drop the tickets and the connection of a peer that has left."""
        client = self._clients.pop(peer, None)
        if client is not None and client.link is not None:
            client.link.disconnect()

    def ask(self, message: Message) -> Outcome:
        """Send a message on behalf of the client for which the worker acts, and return the answer."""
        return self._use_link(lambda link: link.ask(message))

    def tell(self, message: Message) -> None:
        """Send a message on behalf of the client for which the worker acts."""

        def tell(link: TicketLink) -> None:
            link.tell(message)
            link.push()

        self._use_link(tell)

    def flush(self) -> None:
        """Wait until everything sent on behalf of the client has been executed."""
        self._use_link(lambda link: link.flush())

    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Ask the worker for the forms of objects."""
        forms: list[Form | None] = self._use_link(lambda link: link.describe(ids, attr))
        return forms

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the release of a dropped pointer's lease, over any connection."""
        for client in list(self._clients.values()):
            if client.link is not None:
                client.link.drop(id, lender)
                break

    def close(self) -> None:
        """Close all connections."""
        while self._clients:
            _, client = self._clients.popitem()
            if client.link is not None:
                client.link.close()

    def _use_link(self, use: Callable[[TicketLink], Any]) -> Any:
        peer = (behalf.get() or (self._worker.peer,))[0]
        client = self._clients.get(peer) or _Client()
        tickets, link = deque[str](), client.link
        if link is None or client.tickets:
            with client.lock:
                while client.tickets:
                    tickets.append(client.tickets.popleft())
                link = client.link
                if link is None:
                    if not tickets:
                        raise TicketError.missing(self.id, str(peer))
                    name, ticket = str(self._worker.id), tickets.popleft()
                    link = client.link = TicketLink(self._worker, self.id, self._address, name, f"Ticket {ticket}")
        try:
            for ticket in tickets:
                link.tell(Redeem(ticket))
            return use(link)
        except (ConnectionError, AuthenticationError) as error:  # The next ticket opens a new connection.
            if client.link is link:
                client.link = None
            link.close()
            if isinstance(error, AuthenticationError):  # A ticket cannot be used again.
                raise SessionLostError.on(self.id) from None
            raise
