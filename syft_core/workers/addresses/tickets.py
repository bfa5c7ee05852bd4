"""Tickets: how a client lets one worker act for it on another, for named objects only.

The client asks the receiving worker for a ticket and gives it to the sending worker, which connects with it. Therefore
no worker uses its own authority for a peer, and none can do more than its client asked for.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from syft_core.exceptions import TicketError
from syft_core.hook.rules import leaves
from syft_core.messages import Batch, Message, Redeem, Release
from syft_core.peer import Id, Peer
from syft_core.workers.party.store import ObjectStore

LIFETIME = 60.0
"""Seconds after which a ticket expires."""
MAX_TICKETS, MAX_IDS = 256, 1 << 16
"""The maximum number of unused tickets per peer, and of objects in them."""
MAX_SECRET = 128
"""The maximum length of a ticket's secret."""


@dataclass(frozen=True)
class Ticket:
    """The permission for a worker to act for a peer."""

    peer: Peer
    """The peer that asked for it."""
    bearer: Id
    ids: frozenset[Id]
    expires: float


class Tickets:
    """The unused tickets of a worker, by the hash of their secret."""

    def __init__(self) -> None:
        self._tickets: dict[bytes, Ticket] = {}

    def issue(self, peer: Peer, bearer: Id, ids: Iterable[Id]) -> str:
        """Issue a ticket, and return its secret."""
        now = time.monotonic()
        self._tickets = {key: ticket for key, ticket in self._tickets.items() if ticket.expires > now}
        unused = [ticket for ticket in self._tickets.values() if ticket.peer == peer]
        issued = Ticket(peer, bearer, frozenset(ids), now + LIFETIME)
        if len(unused) >= MAX_TICKETS or sum(len(ticket.ids) for ticket in (*unused, issued)) > MAX_IDS:
            raise TicketError.too_many(str(peer), len(unused))
        secret = secrets.token_urlsafe(32)
        self._tickets[_hash(secret)] = issued
        return secret

    def redeem(self, secret: str, bearer: Id) -> Ticket:
        """Return the ticket with this secret; it cannot be used again."""
        ticket = self._tickets.pop(_hash(secret), None)
        if ticket is None or ticket.bearer != bearer or ticket.expires < time.monotonic():
            raise TicketError.invalid(bearer)
        return ticket


def delegates_nobody(_peer: Peer) -> bool:
    """Allow a sender without a ticket to act only for itself."""
    return False


class Mandate:
    """The permissions of a worker on a connection opened with a ticket: act for one peer, on named objects.

    It may also use the objects that it has computed for that peer.
    """

    def __init__(self, ticket: Ticket) -> None:
        self.peer, self.bearer = ticket.peer, ticket.bearer
        self._ids = set(ticket.ids)

    def names(self, note: Message) -> bool:
        """Return whether the ticket itself names all objects that a note needs."""
        return note.facts.mandate is not None and self._ids.issuperset(note.facts.mandate(note, ""))

    def admit(self, batch: Batch, tickets: Tickets) -> Batch:
        """Return the batch without its tickets, with the peer on whose behalf it is sent."""
        for command in batch.commands:
            if type(command) is Redeem:
                ticket = tickets.redeem(command.ticket, self.bearer)
                if ticket.peer != self.peer:
                    raise TicketError.invalid(self.bearer)
                self._ids |= ticket.ids
        rest = tuple(command for command in batch.commands if type(command) is not Redeem)
        return replace(batch, commands=rest, behalf=(self.peer, *batch.behalf[1:]))

    def check(self, command: Message, store: ObjectStore) -> None:
        """Raise if a command exceeds the mandate; called before each, as it may use earlier results."""
        if type(command) is Release:  # A ticket does not prove its bearer's name, to which others may have lent.
            is_lent = command.lender == self.peer.id
            command.ids = tuple([id for id in command.ids if is_lent or self._covers(id, store)])
            return
        facts = command.facts
        pointed_to = [leaf._id_at_location for leaf in leaves(command.operands) if hasattr(leaf, "_id_at_location")]
        if facts.mandate is None or not all(
            self._covers(id, store) for id in (*facts.mandate(command, ""), *pointed_to)
        ):
            raise TicketError.beyond(self.bearer, type(command).__name__)

    def _covers(self, id: Id, store: ObjectStore) -> bool:
        giver = None if id in self._ids or (entry := store.get(id)) is None else entry.giver
        return id in self._ids or (giver is not None and (giver.id, giver.original) == (self.bearer, self.peer))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
