"""Turns: threads that serve clients take turns with a worker, however many commands each of them has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType

from syft_core.exceptions import ConnectionLostError

TURN_SECONDS = 0.05
"""After how many seconds a command that consists of many steps lets others go first."""
is_wanted: ContextVar[Callable[[], bool]] = ContextVar("is_wanted", default=lambda: True)
"""Returns whether anybody waits for the result of the command that this thread executes; set by a server."""


def let_others_go_first() -> None:
    """Return at once: the lock of the worker is not held meanwhile. Raise if nobody waits for the result."""
    if not is_wanted.get()():
        raise ConnectionLostError.closed()


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
