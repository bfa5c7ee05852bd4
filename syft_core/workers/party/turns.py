"""Turns: users take turns with a worker, however many connections and commands each of them has."""

from __future__ import annotations

from _thread import RLock, allocate_lock
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from threading import Event

from syft_core.exceptions import ConnectionLostError
from syft_core.peer import Id, Peer

TURN_SECONDS = 0.05
"""Seconds after which a command of many steps yields to others."""
is_wanted: ContextVar[Callable[[], bool]] = ContextVar("is_wanted", default=lambda: True)
"""Returns whether anyone waits for the result of this thread's command; set by a server.

Each call is a sign of life. It may raise an error that says why the command must end.
"""
OWNER = ""
"""The user of threads that do not act for a peer: the owner's program, the page."""


def yield_turn() -> None:
    """Yield point of a long command, called without the worker's lock; raise if nobody waits for the result."""
    if not is_wanted.get()():
        raise ConnectionLostError.closed()


class FairLock(RLock):  # type: ignore[misc]  # not final when it runs
    """A reentrant lock: users take turns with it, and the threads of one user get it in the order of arrival.

    A plain ``RLock`` wakes a waiting thread, but the one that released the lock can take it again first: on a busy
    machine it does so every time, and the other waits for as long as there are commands. Here, the releasing thread
    chooses the next one, which belongs to a different user than the last if possible.
    """

    def __init__(self) -> None:
        self.queue: dict[Id, deque[Event]] = {}
        """The waiting threads, by user; the user whose turn it is comes first."""
        self._last: Id | None = None
        self._next: Event | None = None
        self._mutex = allocate_lock()

    def of(self, peer: Peer) -> _Turns:
        """Return a context that holds the lock in the turns of a peer's user."""
        return _Turns(self, peer)

    def __enter__(self) -> bool:  # type: ignore[override]  # `with` passes no arguments
        if self.queue or not self.acquire(False):
            self.wait()
        return True

    def __exit__(self, *_error: object) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock; choose the next thread if others wait."""
        super().release()
        if self.queue:
            self.choose()

    def wait(self, peer: Peer | None = None, seconds: float | None = None) -> bool:
        """Take the lock when it is the turn of this thread; return False if that takes longer than ``seconds``."""
        if self._is_owned():  # type: ignore[attr-defined]  # used by `threading.Condition`, too
            return self.acquire()
        user, turn, is_taken = OWNER if peer is None else _user_of(peer), Event(), False
        with self._mutex:
            self.queue.setdefault(user, deque()).append(turn)
            is_free = self._next is None
        try:
            # It may have been released before this thread was queued.
            is_taken = (is_free and self.acquire(False)) or (turn.wait(seconds) and self.acquire())
        finally:
            self._leave(user, turn)
            if is_taken:
                self._last = user
            else:
                self.choose()
        return is_taken

    def choose(self) -> None:
        """Wake the thread whose turn it is, unless another one was chosen and has not taken the lock yet."""
        if self._is_owned():  # type: ignore[attr-defined]  # as above
            return
        with self._mutex:
            if self._next is not None or not self.queue:
                return
            user = next((user for user in self.queue if user != self._last), self._last)
            turns = self.queue.pop(user)  # type: ignore[arg-type]  # the last user, if nobody else waits
            self.queue[user] = turns  # type: ignore[index]  # To the end.
            self._next = turns[0]
            self._next.set()

    def _leave(self, user: Id, turn: Event) -> None:
        with self._mutex:
            self.queue[user].remove(turn)
            if not self.queue[user]:
                del self.queue[user]
            if self._next is turn:
                self._next = None


class _Turns:
    """Holds a lock in a ``with`` block, in the turns of a peer's user."""

    __slots__ = ("_lock", "_peer")

    def __init__(self, lock: FairLock, peer: Peer) -> None:
        self._lock, self._peer = lock, peer

    def __enter__(self) -> None:
        if self._lock.queue or not self._lock.acquire(False):
            self._lock.wait(self._peer)

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def _user_of(peer: Peer) -> Id:
    """Return the user whose turns a peer uses; a client without a user has its own."""
    return peer.payer or f"worker {peer.original.id}"
