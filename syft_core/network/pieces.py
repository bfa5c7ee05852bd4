"""Pieces: large messages are split, so that each end needs little memory besides the message itself.

A buffer that does not fit into a piece continues in the first buffer of the next one. Pings, confirmations and answers
of the other end may come between two pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syft_core.exceptions import ConnectionLostError
from syft_core.serde.layout import Frame

MAX_BUFFERS = 100_000
"""The maximum number of buffers in one message."""
PIECE = (1 << 22) + (1 << 16)
"""The maximum size in bytes of a piece: a little more than the parties of a protocol send at once."""


def split(frames: Sequence[Frame]) -> Iterator[tuple[Sequence[Frame], bool]]:
    """Yield the pieces of a message, and whether another one follows; only the lengths of its buffers matter.

    >>> [(list(map(len, piece)), more) for piece, more in split([bytes(10), bytes(PIECE)])]
    [([10, 4259830], True), ([10], False)]
    """
    if sum(map(len, frames)) <= PIECE:
        yield frames, False
        return
    piece: list[Frame] = []
    room = PIECE
    for frame in frames:
        rest = memoryview(frame)
        while len(rest) > room:
            yield [*piece, rest[:room]], True
            piece, room, rest = [], PIECE, rest[room:]
        piece.append(rest)
        room -= len(rest)
    yield piece, False


class Assembly:
    """The pieces of one message that have arrived."""

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []
        self.size = 0
        """Their size in bytes; memory is allocated as they arrive."""

    def join(self, piece: list[bytearray], more: bool) -> list[bytearray] | None:
        """Add a piece; return the message, or None if another piece follows."""
        if not self._buffers and not more:
            return piece
        if not piece or len(self._buffers) + len(piece) > MAX_BUFFERS:
            raise ConnectionLostError.malformed("its pieces do not fit together")
        if self._buffers:
            self._buffers[-1] += piece[0]
            self._buffers += piece[1:]
        else:
            self._buffers = piece
        self.size += sum(map(len, piece))
        if more:
            return None
        whole = self._buffers
        self.clear()
        return whole

    def clear(self) -> None:
        """Forget the pieces."""
        self._buffers, self.size = [], 0
