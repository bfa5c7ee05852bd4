"""Tickets: how a client lets one worker act for it on another, for named objects only.

The client asks the receiving worker for a ticket and gives it to the sending worker, which connects with it. So no
worker uses its own authority for a peer, and none can do more than its client asked for.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from syft_core.exceptions import TicketError
from syft_core.hook.rules import leaves
from syft_core.messages import Batch, Call, Deposit, Describe, Fetch, Forward, Lease, Redeem, Release, Run, Store
from syft_core.peer import Id, Peer

LIFETIME = 60.0
"""Seconds after which a ticket expires."""
MAX_TICKETS = 256
"""How many unused tickets a peer may have."""
_PERMITTED = (Store, Run, Fetch, Forward, Lease, Release, Describe, Call, Redeem, Deposit)
"""What a worker may do with a ticket; searching, tagging and asking for releases concern no named object."""


@dataclass(frozen=True)
class Ticket:
    """The permission for a worker to act for a peer."""

    peer: Peer
    """Who asked for it."""
    bearer: Id
    """The worker that may use it."""
    ids: frozenset[Id]
    expires: float


class Tickets:
    """The unused tickets of a worker, by the hash of their secret."""

    def __init__(self) -> None:
        self._tickets: dict[bytes, Ticket] = {}

    def issue(self, peer: Peer, bearer: Id, ids: Iterable[Id]) -> str:
        """Return the secret of a new ticket."""
        now = time.monotonic()
        self._tickets = {key: ticket for key, ticket in self._tickets.items() if ticket.expires > now}
        if sum(ticket.peer == peer for ticket in self._tickets.values()) >= MAX_TICKETS:
            raise TicketError.too_many(str(peer), MAX_TICKETS)
        secret = secrets.token_urlsafe(32)
        self._tickets[_hash(secret)] = Ticket(peer, bearer, frozenset(ids), now + LIFETIME)
        return secret

    def redeem(self, secret: str, bearer: Id) -> Ticket:
        """Return the ticket with this secret, which cannot be used again."""
        ticket = self._tickets.pop(_hash(secret), None)
        if ticket is None or ticket.bearer != bearer or ticket.expires < time.monotonic():
            raise TicketError.invalid(bearer)
        return ticket


class Mandate:
    """What a worker may do on a connection that it opened with a ticket: act for one peer, on named objects.

    Objects that it stores or computes on the way are added.
    """

    def __init__(self, ticket: Ticket) -> None:
        self.peer, self.bearer = ticket.peer, ticket.bearer
        self._ids = set(ticket.ids)

    def covers(self, id: Id) -> bool:
        """Return whether the worker may use what has this id."""
        return id in self._ids

    def admit(self, batch: Batch, tickets: Tickets, stored: Container[Id]) -> Batch:
        """Return the batch with the peer on whose behalf it is sent; raise if a command goes beyond the mandate.

        ``stored`` are the ids in use: naming one as a result must not give access to that object.
        """
        for command in batch.commands:
            if type(command) not in _PERMITTED:
                raise TicketError.beyond(self.bearer, type(command).__name__)
            if type(command) is Redeem:
                ticket = tickets.redeem(command.ticket, self.bearer)
                if ticket.peer != self.peer:
                    raise TicketError.invalid(self.bearer)
                self._ids |= ticket.ids
            elif type(command) is not Release and not self._ids.issuperset(_used_ids(command)):
                raise TicketError.beyond(self.bearer, type(command).__name__)
            results = {*command.expected, *([command.result] if type(command) is Run else [])} - self._ids
            if any(id in stored for id in results):
                raise TicketError.beyond(self.bearer, type(command).__name__)
            self._ids |= results
        rest = tuple(command for command in batch.commands if type(command) is not Redeem)
        return replace(batch, commands=rest, behalf=(self.peer, *batch.behalf[1:]))


def _used_ids(command: object) -> set[Id]:
    """Return the ids of the stored objects that a command uses; a ``Store`` needs the id under which it stores."""
    used = {command.id} if hasattr(command, "id") else set(getattr(command, "ids", ()))
    arguments = (getattr(command, "args", ()), getattr(command, "kwargs", None) or {})
    return used | {leaf._id_at_location for leaf in leaves(arguments) if hasattr(leaf, "_id_at_location")}


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
