"""Holding: what a command refers to is held while it lets others go first, and looked at again after each turn.

Every handler that waits for other parties, or lets others go first, goes through ``hold_operands``: none has to
remember which of its objects another command may drop, change or make private meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from syft_core.exceptions import OperandChangedError
from syft_core.messages import Message
from syft_core.values import Outcome
from syft_core.workers.addresses.requests import Process, Request
from syft_core.workers.party.status import LINKED
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.permissions import renew_access
from syft_core.workers.seeing.visibility import find_ids

if TYPE_CHECKING:
    from syft_core.workers.party.worker import Worker


def hold_operands(worker: Worker, message: Message, process: Process) -> Outcome:
    """Run a handler to its first request; return its answer, or a process that holds the operands of the message.

    If another command changes the status of an operand in a turn, the process ends with an error.
    """
    try:
        request = next(process)
    except StopIteration as end:
        return end.value
    if not message.facts.waits:
        raise TypeError(f"cannot handle a {type(message).__name__}: its handler waits; declare that in its facts")
    hold = _Hold(worker, message)
    return _go_on(hold, process, request, hold.look())


def _go_on(hold: _Hold, process: Process, request: Request, before: object) -> Process:
    try:
        while True:
            try:
                resume = partial(process.send, (yield request))
            except Exception as error:  # noqa: BLE001  # the process handles it
                resume = partial(process.throw, error)
            if before != hold.look():
                resume = partial(process.throw, OperandChangedError.during(hold.name, hold.worker.id))
            request = resume()
            before = hold.look()
    except StopIteration as end:
        return end.value
    finally:
        process.close()
        hold.end()


class _Hold:
    """The stored objects to which a message refers, with the state of its plans; used under the lock of the worker."""

    def __init__(self, worker: Worker, message: Message) -> None:
        self.worker, self.name = worker, message.facts.text(message)
        self.entries = list({id(entry): entry for entry in _find_entries(worker, message)}.values())
        for entry in self.entries:
            worker.object_store.hold(entry)

    def look(self) -> tuple[object, ...]:
        """Return what must stay as it is while others go first: which values, who may have them, and the policy."""
        return self.worker.custom_policy, *map(_look, self.entries)

    def end(self) -> None:
        """Let go of the objects."""
        for entry in self.entries:
            self.worker.object_store.drop(entry)


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
