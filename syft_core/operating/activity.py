"""Activity: what a worker is executing, in memory that its supervisor can read after the worker's process has died."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

SIZE = 4096
MISCONFIGURED = 2
"""The exit code of a process that cannot start because of its configuration."""
STOP_SECONDS = 15
"""How long a process that stops may take to finish what it is executing."""
_HEAD = struct.Struct("<QQHH")
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
    """One record, which the worker overwrites before each command. It is read only to name the command."""

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, SIZE)
        self._count = 0

    def begin(self, who: bytes, batch: int, operation: bytes) -> None:
        """Record the next command; ``who`` is the id and the user of the client, joined by a line break."""
        self._count += 1
        who, operation = who[:_MAX_NAME], operation[:_MAX_OPERATION]
        record = _HEAD.pack(self._count, batch, len(who), len(operation)) + who + operation
        self._memory[: len(record)] = record

    def end(self) -> None:
        """Record that nothing is being executed."""
        self._memory[:8] = _IDLE

    def read(self) -> Executing | None:
        """Return what is being executed, or None."""
        count, batch, length, rest = _HEAD.unpack_from(self._memory)
        if not count:
            return None
        end = _HEAD.size + min(length, _MAX_NAME)
        peer, _, user = self._memory[_HEAD.size : end].decode(errors="replace").partition("\n")
        operation = self._memory[end : end + min(rest, _MAX_OPERATION)].decode(errors="replace")
        return Executing(count, peer, user, batch, operation)
