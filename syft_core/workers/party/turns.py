"""Turns: threads take turns with a worker, however many commands each of them has."""

from __future__ import annotations

from _thread import RLock
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from threading import Event

from syft_core.exceptions import ConnectionLostError

TURN_SECONDS = 0.05
"""After how many seconds a command that consists of many steps lets others go first."""
is_wanted: ContextVar[Callable[[], bool]] = ContextVar("is_wanted", default=lambda: True)
"""Returns whether anybody waits for the result of the command that this thread executes; set by a server.

That it is called is a sign of life."""


def let_others_go_first() -> None:
    """Return at once: the lock of the worker is not held meanwhile. Raise if nobody waits for the result."""
    if not is_wanted.get()():
        raise ConnectionLostError.closed()


class FairLock(RLock):  # type: ignore[misc]  # not final when it runs
    """A reentrant lock: threads that wait for it with ``with`` get it in the order in which they came.

    A plain ``RLock`` wakes a thread that waits, but the one that released the lock can take it again first: on a busy
    machine it does so every time, and the other waits for as long as there are commands.
    """

    def __init__(self) -> None:
        self.queue: deque[Event] = deque()
        """The threads that wait; the event of the first one is set."""

    def __enter__(self) -> bool:  # type: ignore[override]  # `with` passes no arguments
        if self.queue or not self.acquire(False):
            self.wait()
        return True

    def wait(self) -> None:
        """Take the lock after the threads that wait already."""
        if self._is_owned():  # type: ignore[attr-defined]  # used by `threading.Condition`, too
            self.acquire()
            return
        turn = Event()
        self.queue.append(turn)
        try:
            if self.queue[0] is not turn:
                turn.wait()
            self.acquire()
        finally:
            is_first = self.queue[0] is turn
            self.queue.remove(turn)
            if is_first and self.queue:
                self.queue[0].set()
