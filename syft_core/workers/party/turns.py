"""Turns: threads that serve clients take turns with a worker, however many commands each of them has."""

from __future__ import annotations

import threading
from types import TracebackType

TURN_SECONDS = 0.05
"""After how many seconds a command that consists of many steps lets others go first."""


class FairLock:
    """A reentrant lock: a thread that releases it does not get it again before one that waits for it."""

    def __init__(self) -> None:
        self._lock, self._next = threading.Lock(), threading.Lock()
        """``_next`` is held by the thread that is the next to get ``_lock``."""
        self._owner, self._depth = 0, 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return whether it was free in time."""
        thread = threading.get_ident()
        if self._owner == thread:
            self._depth += 1
            return True
        if not self._next.acquire(blocking, timeout):
            return False
        try:
            if not self._lock.acquire(blocking, timeout):
                return False
        finally:
            self._next.release()
        self._owner = thread
        return True

    def release(self) -> None:
        """Give the lock back, unless this thread has taken it several times."""
        if self._depth:
            self._depth -= 1
        else:
            self._owner = 0
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.release()
