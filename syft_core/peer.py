"""Peer: the authenticated sender of a message."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple, Protocol, TypeAlias

Id: TypeAlias = int | str
"""The name of a worker, or of an object on one."""


class Peer(NamedTuple):
    """The sender of a message: a worker id, and the user on whose behalf the worker acts.

    A transport creates it from the authenticated connection, never from the content of a message. Worker ids and users
    are separate namespaces: a worker called "board" is not the user "board".
    """

    id: Id
    user: str | None = None
    behalf: tuple[Peer, ...] = ()
    """The peers for whom a worker asks: the original requester, then each worker that forwarded the request.

    It never adds a right: a request needs the permission of every peer in it. The first one gave the sender a ticket,
    or is known to the transport; a sender that claims to act for anybody else is refused.
    """

    @property
    def chain(self) -> tuple[Peer, ...]:
        """All parties to the request, the original peer first and the sender last."""
        return (*self.behalf, Peer(self.id, self.user)) if self.behalf else (self,)

    @property
    def original(self) -> Peer:
        """The peer that made the first request."""
        return self.behalf[0] if self.behalf else self

    @property
    def payer(self) -> str:
        """The user whose quotas and turns a request uses: the connection's user, or the original requester's."""
        return self.user if self.user is not None else self.original.user or ""

    def __str__(self) -> str:
        name = self.user if self.user is not None else f"worker {self.id}"
        return f"{self.behalf[0]} through {name}" if self.behalf else name


class Owner(Protocol):
    """A worker, as far as what it owns or reads needs it."""

    id: Id
    is_client_worker: bool

    @property
    def peer(self) -> Peer:
        """The worker as a sender of messages."""


behalf: ContextVar[tuple[Peer, ...]] = ContextVar("behalf", default=())
"""The peers for whom this thread or task sends requests; empty for the program itself."""


class acting_for:  # noqa: N801  # used like a function
    """Send requests on behalf of others in a ``with`` block."""

    def __init__(self, peers: tuple[Peer, ...]) -> None:
        self._peers = peers

    def __enter__(self) -> None:
        self._token = behalf.set(self._peers)

    def __exit__(self, *_error: object) -> None:
        behalf.reset(self._token)
