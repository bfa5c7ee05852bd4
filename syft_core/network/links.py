"""PeerLocation: another worker on the network, as a worker sees it that acts for its clients."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from syft_core.exceptions import AuthenticationError, ConnectionLostError, TicketError
from syft_core.hook.forms import Form
from syft_core.location import Location
from syft_core.messages import Message, Redeem
from syft_core.network.address import Address
from syft_core.network.client import WebsocketLocation
from syft_core.peer import Id, Peer, behalf
from syft_core.values import Outcome
from syft_core.workers.base import BaseWorker
from syft_core.workers.tickets import MAX_SECRET, MAX_TICKETS


class PeerLocation(Location):
    """The location of another worker: requests on behalf of a client use a connection opened with its ticket.

    The address comes from the configuration of the worker's owner, never from a client.
    """

    def __init__(self, worker: BaseWorker, id: Id, address: Address) -> None:
        super().__init__(worker, id)
        self._worker, self._address = worker, address
        self._links: dict[Peer, WebsocketLocation] = {}
        self._tickets: dict[Peer, deque[str]] = {}
        self._lock = threading.Lock()

    def accept_ticket(self, ticket: str, peer: Peer) -> None:
        """Keep a ticket until a request on behalf of ``peer`` needs it."""
        if len(ticket) > MAX_SECRET:
            raise TicketError.invalid(self._worker.id)
        with self._lock:
            self._tickets.setdefault(peer.original, deque(maxlen=MAX_TICKETS)).append(ticket)

    def forget_peer(self, peer: Peer) -> None:
        """Drop the tickets and the connection of a peer that is gone."""
        with self._lock:
            self._tickets.pop(peer, None)
            link = self._links.pop(peer, None)
        if link is not None:
            link.disconnect()

    def ask(self, message: Message) -> Outcome:
        """Send a message on behalf of the client for which the worker acts, and return the answer."""
        return self._use_link(lambda link: link.ask(message))

    def tell(self, message: Message) -> None:
        """Send a message on behalf of the client for which the worker acts."""

        def tell(link: WebsocketLocation) -> None:
            link.tell(message)
            link.push()

        self._use_link(tell)

    def flush(self) -> None:
        """Wait until everything that was sent on behalf of the client has been executed."""
        self._use_link(lambda link: link.flush())

    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Ask the worker for the forms of objects."""
        forms: list[Form | None] = self._use_link(lambda link: link.describe(ids, attr))
        return forms

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the lease of a dropped pointer for release, over any connection."""
        for link in list(self._links.values())[:1]:
            link.drop(id, lender)

    def close(self) -> None:
        """Close all connections."""
        while self._links:
            self._links.popitem()[1].close()

    def _use_link(self, use: Callable[[WebsocketLocation], Any]) -> Any:
        peer = (behalf.get() or (self._worker.peer,))[0]
        with self._lock:
            tickets, link = self._tickets.pop(peer, deque()), self._links.get(peer)
            if link is None:
                if not tickets:
                    raise TicketError.missing(self.id, str(peer))
                link = WebsocketLocation(
                    self._worker, self.id, self._address, str(self._worker.id), f"Ticket {tickets.popleft()}"
                )
                self._links[peer] = link
        try:
            for ticket in tickets:
                link.tell(Redeem(ticket))
            return use(link)
        except (ConnectionError, AuthenticationError) as error:  # The next ticket opens a new connection.
            with self._lock:
                if self._links.get(peer) is link:
                    del self._links[peer]
            link.close()
            if isinstance(error, AuthenticationError):  # A ticket cannot be used again.
                raise ConnectionLostError.restarted(self.id, "the worker has forgotten it") from None
            raise
