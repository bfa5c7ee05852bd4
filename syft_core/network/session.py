"""Session: exactly-once delivery of numbered pieces of messages across connections, the same at both ends."""

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
"""The states of a session, as the worker reports them: lost means that the worker has forgotten it."""


class Session:
    """One end of a session: which messages have arrived, and which may have to be sent again.

    A message travels in one piece or several, each with a number. A piece is kept until the other end has acknowledged
    it; every piece acknowledges those that came before it.
    """

    def __init__(self) -> None:
        self.received = 0
        """The number of the last piece that arrived."""
        self.arriving = Assembly()
        """The pieces that have arrived of a message that is not complete."""
        self.sent = 0
        self.unacknowledged = 0
        """The number of messages of which pieces are kept."""
        self.unacknowledged_bytes = 0
        """The number of bytes in these messages: the pieces of one share its memory until the last is forgotten."""
        self._kept: deque[tuple[Envelope, Sequence[Frame]]] = deque()
        self._forgotten_bytes = 0
        """The number of bytes in the pieces that were forgotten of a message of which others are kept."""

    @property
    def acknowledged(self) -> int:
        """The number of the last piece that has arrived at the other end."""
        return self.sent - len(self._kept)

    def keep(self, frames: Sequence[Frame], kind: Purpose = Purpose.BATCH, more: bool = False) -> Envelope:
        """Give a piece its number, and keep it until it is acknowledged; the frames must not change."""
        self.sent += 1
        envelope = Envelope(kind, self.sent, self.received, more)
        self._kept.append((envelope, frames))
        self.unacknowledged += not more
        self.unacknowledged_bytes += sum(map(len, frames))
        return envelope

    def accept(self, envelope: Envelope) -> bool:
        """Note the arrival of a piece; return whether it is new. Pieces arrive in order."""
        self.acknowledge(envelope.received)
        if envelope.number <= self.received:
            return False
        if envelope.number != self.received + 1:
            raise ConnectionLostError.malformed(f"number {self.received + 1} is missing")
        self.received = envelope.number
        return True

    def acknowledge(self, number: int) -> None:
        """Forget the pieces up to ``number``, which have arrived at the other end."""
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
        """Send what the other end has not received on a new connection."""
        self.acknowledge(received)
        for envelope, frames in list(self._kept):
            connection.send(envelope._replace(received=self.received), frames)
