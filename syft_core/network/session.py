"""Session: exactly-once delivery of numbered messages across connections, the same at both ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from syft_core.exceptions import ConnectionLostError
from syft_core.network.connection import Connection, Envelope, Purpose
from syft_core.serde.layout import Frame

PROTOCOL = "syft-core.1"
"""The websocket subprotocol; both ends must agree on it."""
SESSION, CLIENT, RECEIVED, WORKER, STATE, REASON, HEARTBEAT = (
    f"Syft-{name}" for name in ("Session", "Client", "Received", "Worker", "State", "Reason", "Heartbeat")
)
"""The headers of the opening handshake."""
STARTED, RESUMED, LOST = "started", "resumed", "lost"
"""The states of a session, as the worker reports them: lost means that the worker has forgotten it."""


class Session:
    """One end of a session: which messages have arrived, and which may have to be sent again.

    A message is kept until the other end has acknowledged it; every message acknowledges those that came before it.
    """

    def __init__(self) -> None:
        self.received = 0
        """The number of the last message that arrived."""
        self.sent = 0
        self.unacknowledged_bytes = 0
        """The number of bytes in the messages that are kept."""
        self._kept: deque[tuple[Purpose, int, Sequence[Frame]]] = deque()

    @property
    def unacknowledged(self) -> int:
        """The number of messages that are kept."""
        return len(self._kept)

    @property
    def acknowledged(self) -> int:
        """The number of the last message that has arrived at the other end."""
        return self.sent - len(self._kept)

    def keep(self, frames: Sequence[Frame], kind: Purpose = Purpose.BATCH) -> Envelope:
        """Give a message its number, and keep it until it is acknowledged; the frames must not change."""
        self.sent += 1
        self._kept.append((kind, self.sent, frames))
        self.unacknowledged_bytes += sum(map(len, frames))
        return Envelope(kind, self.sent, self.received)

    def accept(self, envelope: Envelope) -> bool:
        """Note the arrival of a message; return whether it is new. Messages arrive in order."""
        self.acknowledge(envelope.received)
        if envelope.number <= self.received:
            return False
        if envelope.number != self.received + 1:
            raise ConnectionLostError.malformed(f"number {self.received + 1} is missing")
        self.received = envelope.number
        return True

    def acknowledge(self, number: int) -> None:
        """Forget the messages up to ``number``, which have arrived at the other end."""
        if number > self.sent:
            raise ConnectionLostError.malformed("it acknowledges a message that was never sent")
        while self._kept and self._kept[0][1] <= number:
            self.unacknowledged_bytes -= sum(map(len, self._kept.popleft()[2]))

    def resume(self, connection: Connection, received: int) -> None:
        """Send what the other end has not received on a new connection."""
        self.acknowledge(received)
        for kind, number, frames in list(self._kept):
            connection.send(Envelope(kind, number, self.received), frames)
