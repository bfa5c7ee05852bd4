"""Admission: who may connect to a server, which session a connection continues, and how much is kept for each user."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable

from syft_core.exceptions import ConnectionLostError, TicketError
from syft_core.network.client_session import ClientSession, ReverseLocation
from syft_core.network.credentials import Authenticate, Credentials
from syft_core.network.identity import Identity
from syft_core.network.session import LOST, RESUMED, STARTED
from syft_core.peer import Id, Peer
from syft_core.pictures.tables import one_line
from syft_core.workers.addresses.tickets import Mandate
from syft_core.workers.addresses.wire import WINDOW
from syft_core.workers.party.base import BaseWorker

_log = logging.getLogger(__name__)
MESSAGE_OVERHEAD = 1 << 24
"""The maximum size in bytes of a message, in addition to its objects."""
MAX_HELD = 1 << 30
"""The maximum size in bytes of the messages kept for a user: unacknowledged replies, and waiting messages."""
MAX_UNCOUNTED = 1 << 20
"""The size in bytes below which a session is not compared with the messages kept for the user's other sessions."""
MAX_IDLE_SESSIONS = 64
"""The maximum number of a user's sessions without a connection."""
MAX_WAITING = 2 * WINDOW
"""The maximum number of a client's messages that wait for the worker, and of unacknowledged replies."""
MAX_LINKS = 64
"""The maximum number of workers connected with a user's tickets, for each connection that the user may have."""
_MAX_NAME = 128


class Admission:
    """The clients of a server: their identities, their connections and their sessions.

    Args:
        worker: the worker that is served.
        authenticate: identifies who presents credentials.
        is_valid: returns whether an identity is still valid, for connections that are open.

    """

    def __init__(self, worker: BaseWorker, authenticate: Authenticate, is_valid: Callable[[Identity], bool]) -> None:
        self._worker, self._authenticate, self.is_valid = worker, authenticate, is_valid
        self.sessions_opened = 0
        """The number of sessions ever opened."""
        self._by_key: dict[str, ClientSession] = {}
        self._identities: dict[Id, Identity] = {}
        self._admitted: dict[socket.socket, tuple[tuple[str, bool], str]] = {}
        """The user of each connection, whether a worker with a ticket opened it, and its session."""
        self._lock = threading.Lock()
        worker.is_owner = self._is_owner

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions of all clients."""
        return list(self._by_key.values())

    def list_keys(self) -> list[tuple[str, ClientSession]]:
        """Return the sessions with their keys."""
        return list(self._by_key.items())

    def forget_connection(self, sock: socket.socket) -> None:
        """Forget a connection that has ended."""
        self._admitted.pop(sock, None)

    def admit(
        self, kind: str, secret: str, name: str, key: str, certificate: object
    ) -> tuple[Peer, Mandate | None, Identity | None] | None:
        """Return the peer, its mandate if it has a ticket, and its identity; None if the credentials are invalid."""
        if kind != "ticket":
            identity = self._authenticate(Credentials(secret if kind == "bearer" else None, certificate))
            if identity is None:
                return None
            return Peer(f"{name}@{identity.user}", identity.user), None, identity
        known = self._by_key.get(key)  # A ticket opens one session, which may have several connections.
        if known is not None and known.mandate is not None:
            return (known.peer, known.mandate, None) if self.is_valid_client(known) else None
        try:
            return Peer(name), Mandate(self._worker.tickets.redeem(secret, name)), None
        except TicketError:
            return None

    def refuse_name(
        self, name: str, secret: str, peer: Peer, mandate: Mandate | None, identity: Identity | None
    ) -> str:
        """Return why a client may not use this name, or an empty text.

        It must not be mistaken for another user's, or for the worker. It belongs to one token at a time: revoking the
        token ends the connections of all clients with this name.
        """
        is_name = name.isprintable() and "@" not in name and str(self._worker.id) not in (name, peer.id)
        if not (is_name and 0 < len(name) <= _MAX_NAME and 32 <= len(secret) <= _MAX_NAME):
            return "the name or the session of the client is missing or not allowed"
        known = None if mandate is not None else self._identities.get(peer.id)
        if known is None or known == identity or f"{peer.id}/{secret}" in self._by_key or not self.is_valid(known):
            return ""
        return "a client with another token has this name"

    def refuse_connection(self, peer: Peer, mandate: Mandate | None, secret: str, sock: socket.socket) -> str:
        """Return why a user may not open another connection, or an empty text and count it."""
        user = (peer if mandate is None else mandate.peer).user
        if self._worker.guard is None or user is None:
            return ""
        payer, key = (user, mandate is not None), f"{peer.id}/{secret}"
        with self._lock:
            count = len({other for paying, other in list(self._admitted.values()) if paying == payer} - {key})
            why = self._worker.guard.refuse_connection(user, count if mandate is None else count // MAX_LINKS)
            if not why:
                self._admitted[sock] = payer, key
        return why or ""

    def find_session(
        self,
        peer: Peer,
        mandate: Mandate | None,
        identity: Identity | None,
        secret: str,
        begun: str | None,
        sock: socket.socket,
    ) -> tuple[ClientSession | None, str]:
        """Return the session of a client and its state, or None if it cannot continue.

        ``begun`` names a session with messages. A client sends it as soon as it has read the answer that began the
        session, so a request without it that follows messages was delayed or repeated in transit.
        """
        key = f"{peer.id}/{secret}"
        with self._lock:
            client = self._by_key.get(key)
            if begun is not None and (client is None or client.begun != begun):
                return None, LOST
            if begun is None and client is not None and (client.session.received or client.session.sent):
                return None, RESUMED
            if identity is not None:
                self._identities[peer.id] = identity
            if client is None:
                created = self._by_key[key] = ClientSession(peer, mandate, newest=sock)
                self.sessions_opened += 1
                if mandate is None:
                    self._worker.add_client(ReverseLocation(self._worker, created, self.require_room))
            else:
                client.newest, client.gone_since, client.seen = sock, None, time.monotonic()
        if client is None:
            self._limit_idle_sessions(created)
            return created, STARTED
        client.await_turn(sock)
        client.seen = time.monotonic()
        return client, RESUMED

    def _limit_idle_sessions(self, created: ClientSession) -> None:
        idle = [
            (client.seen, key, client)
            for key, client in list(self._by_key.items())
            if client.connection is None and client.payer == created.payer and client is not created
        ]
        limit, held = self.limit_held(created), 0
        for place, (_, key, client) in enumerate(sorted(idle, key=lambda found: found[0], reverse=True)):
            held += client.bytes_held
            if place >= MAX_IDLE_SESSIONS or held > limit:
                self.end_session(key, client)

    def is_valid_client(self, client: ClientSession) -> bool:
        """Return whether a connected client would still be authenticated."""
        identity = self._identities.get((client.mandate or client).peer.id)
        return identity is None or self.is_valid(identity)

    def _is_owner(self, peer: Peer) -> bool:
        """Return whether a client has authenticated as an administrator and acts for itself."""
        identity = None if peer.behalf else self._identities.get(peer.id)
        return peer.id == self._worker.id or (identity is not None and identity.admin and self.is_valid(identity))

    def end_session(self, key: str, client: ClientSession) -> None:
        """End the session of a client that is not connected, and what depends on it."""
        with client.lock:
            if client.connection is not None:
                return
            self._by_key.pop(key, None)
            self.note_arrivals(client, client.session.sent)  # The client had time to reconnect.
            if client.mandate is not None:
                self._worker.sessions.pop(client.mandate, None)
                if self._worker.guard is not None:
                    self._worker.guard.forget(client.peer.id)
            elif all(other.peer.id != client.peer.id for other in self.sessions):
                self._end_mandates(client.peer)
                self._identities.pop(client.peer.id, None)
                self._worker.forget_client(client.peer)
        _log.info("session of %s ended", one_line(str(client.peer)))

    def _end_mandates(self, giver: Peer) -> None:
        for key, client in list(self._by_key.items()):
            if client.mandate is not None and client.mandate.peer.id == giver.id:
                self._by_key.pop(key, None)
                self._worker.sessions.pop(client.mandate, None)
                if client.connection is not None:
                    client.connection.interrupt()

    def note_arrivals(self, client: ClientSession, number: int) -> None:
        """Call what was collected for replies up to ``number``, which have arrived."""
        while client.arrivals and client.arrivals[0][0] <= number:
            with self._worker.lock.of((client.mandate or client).peer):
                for action in client.arrivals.popleft()[1]:
                    action()

    def limit_message(self, client: ClientSession) -> int:
        """Return the maximum size in bytes of a message of a client."""
        return min(self._worker.limits.max_bytes, self.limit_held(client))

    def require_room(self, client: ClientSession, in_pieces: bool = False) -> None:
        """Raise if a client keeps sending without reading the worker's replies, or without answering the worker.

        A message in pieces is not counted: if it is too large, the reply is an error.
        """
        count = max(client.session.unacknowledged, len(client.waiting))
        if count > MAX_WAITING:
            raise ConnectionLostError.malformed(f"more than {MAX_WAITING} others wait for the client")
        if not in_pieces:
            self.require_bytes(client)

    def require_bytes(self, client: ClientSession, spare: int = 0) -> None:
        """Raise if more bytes are kept for a client's user, apart from ``spare``, than the limit."""
        held, limit = self.count_held(client), self.limit_held(client)
        if held - spare > limit:
            raise ConnectionLostError.malformed(f"{held} bytes of others wait for the client, and the limit is {limit}")

    def limit_held(self, client: ClientSession) -> int:
        """Return the maximum size in bytes of the messages kept for a client's user."""
        guard, user = self._worker.guard, client.payer
        quota = None if guard is None or user is None else guard.limit_message(user)
        return MAX_HELD if quota is None else quota + MESSAGE_OVERHEAD

    def count_held(self, client: ClientSession) -> int:
        """Return the size in bytes of the messages kept for a client's user."""
        held = client.bytes_held
        if held > MAX_UNCOUNTED:
            held = sum([other.bytes_held for other in self.sessions if other.payer == client.payer])
        return held
