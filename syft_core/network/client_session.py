"""ClientSession: what a server knows about one client, across its connections, and the client as its worker sees it."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from syft_core.exceptions import ConnectionLostError, MessageSizeError, WorkerNotFoundError
from syft_core.messages import Message
from syft_core.network.connection import Connection, Envelope, Purpose
from syft_core.network.session import Session
from syft_core.peer import Peer
from syft_core.serde.layout import Frame
from syft_core.workers.addresses.tickets import Mandate
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.party.base import BaseWorker

TURN_SECONDS = 0.1
"""The interval at which a connection that waits for its session checks whether a newer one does."""


@dataclass(eq=False)
class ClientSession:
    """The session of one client, across its connections."""

    peer: Peer
    mandate: Mandate | None = None
    """The permissions of a worker that has opened the session with a ticket."""
    begun: str = field(default_factory=partial(secrets.token_hex, 16))
    """Distinguishes this session from earlier ones of the client, which the worker has forgotten."""
    session: Session = field(default_factory=Session)
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held by the thread that serves the session."""
    connection: Connection | None = None
    thread: int | None = None
    newest: socket.socket | None = None
    """The newest connection, which gets the session."""
    waiting: deque[tuple[Envelope, Sequence[bytearray]]] = field(default_factory=deque)
    """Messages that arrived while the worker was waiting for a response."""
    excess: MessageSizeError | None = None
    """Why the message arriving in pieces will be refused when complete; its pieces are not kept."""
    arrivals: deque[tuple[int, list[Callable[[], None]]]] = field(default_factory=deque)
    """What to call when a reply was acknowledged, with its number."""
    deposited: int = 0
    """The number of unacknowledged deposits; a large one counts more."""
    busy_since: float | None = None
    """When the current message began to execute."""
    gone_since: float | None = None
    """When the client was found to be gone while a message was executing."""
    seen: float = field(default_factory=time.monotonic)
    """When a connection of the client was last used."""
    since: float = field(default_factory=time.time)
    """When the session began, in seconds since 1970."""
    bytes_before: int = 0
    """The number of bytes moved by earlier connections."""

    @property
    def payer(self) -> str | None:
        """The user whose quotas apply."""
        return (self.mandate or self).peer.user

    @property
    def bytes_held(self) -> int:
        """The size in bytes of unacknowledged replies, and of waiting or arriving messages."""
        waiting, connection = list(self.waiting) if self.waiting else [], self.connection
        arriving = self.session.arriving.size + (0 if connection is None else connection.arriving + connection.joined)
        return self.session.unacknowledged_bytes + arriving + sum([len(part) for _, parts in waiting for part in parts])

    def await_turn(self, sock: socket.socket) -> None:
        """Wait until the served connection has ended, or the worker executes a message of the client."""
        while self.busy_since is None:
            if self._try_to_take(sock):
                self.lock.release()
                return

    @contextlib.contextmanager
    def take_over(self, sock: socket.socket, connection: Connection, heartbeat: float) -> Iterator[None]:
        """Hold the session for a connection within a block, once the served connection has ended.

        Until then, show the client that the worker is alive.
        """
        shown = time.monotonic()
        while not self._try_to_take(sock):
            if time.monotonic() - shown >= heartbeat:
                connection.ping()
                shown, self.gone_since = time.monotonic(), None
        try:
            yield
        finally:
            self.lock.release()

    def _try_to_take(self, sock: socket.socket) -> bool:
        """Interrupt the served connection; return whether it has ended, in which case the session is held.

        Only the newest connection waits for this, so that their number stays limited.
        """
        if self.newest is not sock:
            raise ConnectionLostError.closed()
        if (previous := self.connection) is not None:
            previous.interrupt()
        return self.lock.acquire(timeout=TURN_SECONDS)

    @property
    def in_flight(self) -> int:
        """The number of messages that are executing or waiting."""
        return (self.busy_since is not None) + len(self.waiting)

    @property
    def bytes_moved(self) -> int:
        """The number of bytes received and sent."""
        connection = self.connection
        now = 0 if connection is None else connection.bytes_in + connection.bytes_out
        return self.bytes_before + now


class ReverseLocation(WireLocation):
    """The client of a session, as seen by its worker: requests use the client's connection.

    The session's thread sends a request and waits for the response. Requests are not repeated on a new connection.
    """

    def __init__(
        self, worker: BaseWorker, client: ClientSession, require_room: Callable[[ClientSession], None]
    ) -> None:
        super().__init__(worker, client.peer.id)
        self._of, self._require_room = client, require_room

    def tell(self, message: Message) -> None:
        """Wait for every answer, because the client reads requests only while it is waiting itself."""
        self.ask(message)

    def send_frames(self, sent: Sequence[Frame]) -> None:
        """Send a request to the client."""
        self._require_connection().send_whole(Purpose.REQUEST, self._number, sent)

    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return the response of the client."""
        while True:
            connection = self._require_connection()
            received = connection.receive(None if wait else 0)
            if received is None:
                return None
            envelope, frames = received
            try:
                if envelope.kind is not Purpose.RESPONSE:
                    self._of.waiting.append(received)
                elif (whole := connection.join(envelope, frames)) is not None:
                    return whole
                self._require_room(self._of)
            except ConnectionLostError:
                connection.interrupt()
                raise

    def _require_connection(self) -> Connection:
        """Return the connection; only the client's own commands may use it."""
        if self._of.thread != threading.get_ident():
            raise WorkerNotFoundError.named(self.id, ())
        if self._of.connection is None:
            raise ConnectionLostError.closed()
        return self._of.connection
