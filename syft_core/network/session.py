"""Session: exactly-once delivery of numbered message pieces across connections; both ends use the same class."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from syft_core.exceptions import ConnectionLostError
from syft_core.network.connection import Connection, Envelope, Purpose
from syft_core.network.pieces import Assembly
from syft_core.serde.layout import Frame

PROTOCOL = "syft-core.2"
"""The websocket subprotocol; both ends must agree on it."""
SESSION, CLIENT, BEGUN, RECEIVED, WORKER, STATE, REASON, HEARTBEAT, LIMIT = (
    f"Syft-{name}"
    for name in ("Session", "Client", "Begun", "Received", "Worker", "State", "Reason", "Heartbeat", "Limit")
)
"""The headers of the opening handshake."""
STARTED, RESUMED, LOST = "started", "resumed", "lost"
"""The states of a session, as reported by the worker: "lost" means that the worker has forgotten it."""


class Session:
    """One end of a session: the messages that have arrived, and those that may have to be resent.

    A message consists of one or more numbered pieces. A piece is kept until the other end has acknowledged it; every
    piece acknowledges those received before it.
    """

    def __init__(self) -> None:
        self.received = 0
        self.arriving = Assembly()
        self.sent = 0
        self.unacknowledged = 0
        """The number of messages with unacknowledged pieces."""
        self.unacknowledged_bytes = 0
        """The size in bytes of these messages: their pieces share memory until the last one is forgotten."""
        self._kept: deque[tuple[Envelope, Sequence[Frame]]] = deque()
        self._forgotten_bytes = 0
        """The size in bytes of forgotten pieces of a message that has other unacknowledged ones."""

    @property
    def acknowledged(self) -> int:
        """The number of the last piece acknowledged by the other end."""
        return self.sent - len(self._kept)

    def keep(self, frames: Sequence[Frame], kind: Purpose = Purpose.BATCH, more: bool = False) -> Envelope:
        """Assign a number to a piece, and keep it until it is acknowledged; the frames must not change."""
        self.sent += 1
        envelope = Envelope(kind, self.sent, self.received, more)
        self._kept.append((envelope, frames))
        self.unacknowledged += not more
        self.unacknowledged_bytes += sum(map(len, frames))
        return envelope

    def accept(self, envelope: Envelope) -> bool:
        """Record the arrival of a piece; return whether it is new. Pieces arrive in order."""
        self.acknowledge(envelope.received)
        if envelope.number <= self.received:
            return False
        if envelope.number != self.received + 1:
            raise ConnectionLostError.malformed(f"number {self.received + 1} is missing")
        self.received = envelope.number
        return True

    def acknowledge(self, number: int) -> None:
        """Forget the pieces up to ``number``, which the other end has received."""
        if number > self.sent:
            raise ConnectionLostError.malformed("it acknowledges a message that was never sent")
        while self._kept and self._kept[0][0].number <= number:
            envelope, frames = self._kept.popleft()
            self._forgotten_bytes += sum(map(len, frames))
            if not envelope.more:
                self.unacknowledged -= 1
                self.unacknowledged_bytes -= self._forgotten_bytes
                self._forgotten_bytes = 0

    def resume(self, connection: Connection, received: int) -> None:
        """Send the pieces that the other end has not received, on a new connection."""
        self.acknowledge(received)
        for envelope, frames in list(self._kept):
            connection.send(envelope._replace(received=self.received), frames)
