"""Activity: the commands that a worker executes, in memory that its supervisor can read after the process has died."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

_SLOT, _SLOTS = 4096, 16
SIZE = _SLOT * _SLOTS
MISCONFIGURED = 2
"""The exit code of a process that cannot start because of its configuration."""
FINISH_SECONDS = 4.0
"""How long the operations that are being executed may take to finish when the process stops."""
STOP_SECONDS = 8.0
"""How long a process may take to stop: containers are killed 10 seconds after they are asked to."""
_HEAD = struct.Struct("<QQHH")
_NUMBERS = struct.Struct("<QQ")
_IDLE = bytes(8)
_MAX_NAME, _MAX_OPERATION = 512, 2048


@dataclass(frozen=True)
class Executing:
    """One command that is being executed."""

    count: int
    """Differs for each command of a process."""
    peer: str
    """The id of the client."""
    user: str
    batch: int
    """The number of the batch in the session of the client."""
    operation: str
    """The operation with the forms of its operands, or the name of another message."""


class Activity:
    """Records of the commands that a worker executes. They are read only to name the commands.

    The first record is that of the command that holds the lock of the worker, overwritten before each command. The
    others are those of commands that compute at the same time, such as protocols; they are all changed under the lock.
    """

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, SIZE)
        self._count = 0
        self._written: tuple[bytes, bytes] = b"", b""
        """The texts of the record."""
        self._free = list(range(1, _SLOTS))

    def begin(self, who: bytes, batch: int, operation: bytes) -> None:
        """Record the next command; ``who`` is the id and the user of the client, joined by a line break."""
        self._count += 1
        before, known = self._written
        if operation is known and who is before:  # Programs repeat operations; then only the numbers change.
            _NUMBERS.pack_into(self._memory, 0, self._count, batch)
            return
        self._written = who, operation
        who, operation = who[:_MAX_NAME], operation[:_MAX_OPERATION]
        record = _HEAD.pack(self._count, batch, len(who), len(operation)) + who + operation
        self._memory[: len(record)] = record

    def end(self) -> None:
        """Record that nothing is being executed."""
        self._memory[:8] = _IDLE

    def begin_apart(self, who: bytes, batch: int, operation: bytes) -> int:
        """Record a command that runs beside the others; return its place, or 0 if all places are taken."""
        if not self._free:
            return 0
        place = self._free.pop()
        who, operation = who[:_MAX_NAME], operation[:_MAX_OPERATION]
        record = _HEAD.pack(1, batch, len(who), len(operation)) + who + operation
        self._memory[place * _SLOT : place * _SLOT + len(record)] = record
        return place

    def end_apart(self, place: int) -> None:
        """Record that a command recorded by ``begin_apart`` has ended."""
        if place:
            self._memory[place * _SLOT : place * _SLOT + 8] = _IDLE
            self._free.append(place)

    def clear(self) -> None:
        """Clear all records: a new process starts."""
        self._memory[:] = bytes(SIZE)
        self._written = b"", b""

    def read_apart(self) -> list[Executing]:
        """Return the commands that run beside the others."""
        return [found for place in range(1, _SLOTS) if (found := self.read(place)) is not None]

    def read(self, place: int = 0) -> Executing | None:
        """Return the command that is being executed under the lock, or at another place, or None."""
        start = place * _SLOT
        count, batch, length, rest = _HEAD.unpack_from(self._memory, start)
        if not count:
            return None
        start += _HEAD.size
        end = start + min(length, _MAX_NAME)
        peer, _, user = self._memory[start:end].decode(errors="replace").partition("\n")
        operation = self._memory[end : end + min(rest, _MAX_OPERATION)].decode(errors="replace")
        return Executing(count, peer, user, batch, operation)
