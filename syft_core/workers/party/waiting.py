"""Waiting: a command lets others use its worker while it waits, and holds the objects it refers to until it ends.

A handler asks other parties, or yields its turn, in a block ``with worker.waiting():``. No handler has to remember
which of its objects another command may drop, change or make private meanwhile: the first block holds them all, and
each block checks them again when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from syft_core.exceptions import OperandChangedError
from syft_core.messages import Message
from syft_core.peer import Peer, behalf
from syft_core.workers.party.status import LINKED
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.permissions import renew_access
from syft_core.workers.seeing.visibility import find_ids

if TYPE_CHECKING:
    from syft_core.workers.party.worker import Worker


class Held:
    """The holdings of a command since it first waited: all objects its message refers to, and its share of a quota."""

    def __init__(self, worker: Worker, message: Message, peer: Peer) -> None:
        if not message.facts.waits:
            raise TypeError(f"cannot handle a {type(message).__name__}: its handler waits; declare that in its facts")
        self._worker, self._message = worker, message
        guard = worker.guard_of(peer)
        self._reservation = None if guard is None else guard.hold(message, peer)
        self._entries = list({id(entry): entry for entry in _find_entries(worker, message)}.values())
        for entry in self._entries:
            worker.object_store.hold(entry)

    def look(self) -> tuple[object, ...]:
        """Return everything that must not change meanwhile: values, the users who may have them, and the policy."""
        return self._worker.custom_policy, *map(_look, self._entries)

    def require_unchanged(self, before: object) -> None:
        """Raise if another command has changed the result of ``look``."""
        if self.look() != before:
            raise OperandChangedError.during(self._message.facts.text(self._message), self._worker.id) from None

    def end(self) -> None:
        """Release everything."""
        if self._reservation is not None:
            self._reservation.release()
        for entry in self._entries:
            self._worker.object_store.drop(entry)


NOTHING: Held | None = None
"""The holdings of a command that has not waited."""


class Waiting:
    """A ``with`` block in which a command does not hold its worker's lock, and acts for its sender elsewhere.

    Raises at the end if another command has changed the status of an operand meanwhile.
    """

    __slots__ = ("_before", "_guard", "_held", "_is_idle", "_message", "_paused", "_peer", "_token", "_worker")

    def __init__(self, worker: Worker, is_idle: bool) -> None:
        self._worker, self._is_idle = worker, is_idle

    def __enter__(self) -> None:
        worker = self._worker
        if worker.command is None:
            raise RuntimeError(f"worker {worker.id!r} executes no command that could wait")
        self._message, self._peer = worker.command
        if worker.held is None:
            worker.held = Held(worker, self._message, self._peer)
        self._held = worker.held
        self._before = self._held.look()
        if worker.save is not None:
            worker.save()
        self._guard = worker.guard_of(self._peer)
        self._paused = None if self._guard is None else self._guard.pause(self._peer, self._is_idle)
        self._token = behalf.set(self._peer.chain)
        worker.command = worker.held = None
        worker.lock.release()

    def __exit__(self, *_error: object) -> None:
        worker = self._worker
        worker.lock.of(self._peer).__enter__()
        worker.command, worker.held = (self._message, self._peer), self._held
        behalf.reset(self._token)
        if self._guard is not None:
            self._guard.resume(self._paused)
        self._held.require_unchanged(self._before)


def _find_entries(worker: Worker, message: Message) -> Iterator[Stored]:
    for id in find_ids(worker, message):
        entry = worker.object_store.get(id)
        if entry is not None:
            yield entry
            for state in (entry.state or {}).values():
                if (found := state()) is not None:
                    yield found


def _look(entry: Stored) -> tuple[object, ...]:
    renew_access(entry)
    return id(entry.value), entry.access, entry.status & ~LINKED, entry.guard
