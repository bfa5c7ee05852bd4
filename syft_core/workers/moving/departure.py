"""Departure: the stages that every object takes on its way out of a worker.

``authorize`` asks the policy and then the rules that features have registered, ``ledger.record`` or ``hold`` writes the
ledger, ``detach`` returns what leaves, and the caller hands it over: in the answer to a message, or to another worker.
``finish`` uses up what the rules gave once it has left, ``undo`` gives it back if it has not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from syft_core.departures import RULES
from syft_core.exceptions import GetNotPermittedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.messages import Message
from syft_core.peer import Id, Peer
from syft_core.tensors.private import restrict
from syft_core.values import Tensor
from syft_core.workers.moving.transfer import ends_elsewhere, hand_over, is_tensor, rebuild
from syft_core.workers.party.store import Stored, is_leaf
from syft_core.workers.running.execution import attribute
from syft_core.workers.running.failures import require_success
from syft_core.workers.seeing.ledger import Departure, describe_departure
from syft_core.workers.seeing.permissions import Verb, refusal

if TYPE_CHECKING:
    from syft_core.workers.party.worker import Worker


# --- authorize


@dataclass
class Leaving:
    """What would leave a worker with the answer to a message, and what the policy keeps of it."""

    worker: Worker
    verb: Verb
    message: Message
    sender: Peer
    wanted: Sequence[tuple[Id, str | None]]
    """The id of each object, and the attribute that is asked for."""
    objects: list[Departure] = field(default_factory=list)
    kept: dict[int, str] = field(default_factory=dict)
    """Why the policy keeps objects, by their places in ``objects``."""
    reasons: list[str] = field(default_factory=list)
    """Why rules do not cover what is kept."""
    error: GetNotPermittedError | None = None
    """The error to raise if no rule covers it, instead of one with the reasons."""

    def cover(self, place: int, departure: Departure) -> None:
        """Let an object leave that the policy keeps."""
        self.objects[place] = departure
        del self.kept[place]


def authorize(
    worker: Worker, verb: Verb, message: Message, wanted: Sequence[tuple[Id, str | None]], sender: Peer
) -> list[Departure]:
    """Return what may leave with a message: each object, or an attribute of it. Raise unless all of them may.

    What the policy keeps may leave if a rule covers it. Also raise if an operation failed while computing an object.
    """
    leaving = Leaving(worker, verb, message, sender, wanted)
    for place, (id, attr) in enumerate(wanted):
        entry = worker.object_store.entry(id)
        value = entry.value if attr is None else attribute(entry.value, attr)
        if entry.access is None and worker.custom_policy is None:
            require_success(entry, id, worker)
        elif (why := refusal(worker, verb, entry, sender, value)) is not None:
            leaving.kept[place] = why
        else:
            require_success(entry, id, worker)
            value = drop_refused_gradient(worker, verb, entry, sender, value)
        leaving.objects.append(Departure(entry, value))
    if leaving.kept:
        _ask_rules(leaving)
    return leaving.objects


def _ask_rules(leaving: Leaving) -> None:
    """Ask the rules about what the policy keeps; raise unless they cover all of it."""
    leaving.worker.covered.add(id(leaving.message))
    for rule in RULES.values():
        rule.cover(leaving)
        if not leaving.kept:
            return
    if leaving.error is not None:
        raise leaving.error
    place, why = next(iter(leaving.kept.items()))
    why = "; ".join([why, *leaving.reasons])
    raise GetNotPermittedError.to(str(leaving.sender), leaving.objects[place].entry.id, str(leaving.worker.id), why)


# --- record


def hold(worker: Worker, message: Message, leaving: Sequence[Departure], sender: Peer, reason: str) -> None:
    """Record departures when the answer to a message is ready: it may still fail."""
    if worker.is_handing_over and not is_frozen([departure.value for departure in leaving]):
        worker.is_handing_over = False  # The lock is not held while other workers lend or copy something.
    worker.ledger.hold(message, describe_departure(leaving, sender, str(sender.id), reason))


# --- detach


def detach(worker: Worker, leaving: Departure) -> Tensor:
    """Return what leaves in an answer: without its graph, and with its restrictions unless the owner lifted them."""
    entry, value, grant, _ = leaving
    if grant is not None or value is None:
        return value
    outside = freeze(worker, leave_graph(value))
    return outside if entry.access is None else restrict(outside, entry.access)


def drop_refused_gradient(worker: Worker, verb: Verb, entry: Stored, sender: Peer, value: Tensor) -> Tensor:
    """Return a value that leaves, or a copy without its gradient if the policy keeps that here."""
    gradient = None if worker.custom_policy is None else _gradient_of(value)
    if gradient is None or refusal(worker, verb, entry, sender, gradient) is None:
        return value
    return copy_without_gradient(worker, value)


def _gradient_of(value: object) -> Tensor:
    end = plain_end(value)
    return end.grad if end is not None and is_leaf(end) else None


def copy_without_gradient(worker: Worker, value: object) -> Tensor:
    """Return a copy of a value without its gradient."""
    copy = hand_over(value, worker)
    if _gradient_of(copy) is not None:
        plain_end(copy).grad = None
    return copy


def leave_graph(value: object) -> Tensor:
    """Return a value without its graph, which stays on the worker."""
    framework = frameworks_of_types.get(type(value))
    if framework is not None:
        return framework.detach(value)
    end = plain_end(value)
    if end is None:
        return value
    outside = framework_of(end).detach
    if end is value:
        return outside(value)
    return value if outside(end) is end else rebuild(value, outside)


def freeze(worker: Worker, value: Tensor) -> Tensor:
    """Return a copy of a value that leaves: private values could be written into it before it is encoded.

    Unless it is handed over at once, the lock of the worker is not held then. Another connection of the same client may
    change the object, and others may store the first private object of the worker.
    """
    return hand_over(value, worker) if not worker.is_handing_over and is_frozen(value) else value


def is_frozen(value: Tensor) -> bool:
    """Return whether ``freeze`` copies a value, or all values of a list; it copies tensors, but not pointers."""
    values = value if type(value) is list else [value]
    return all(is_tensor(part) and not ends_elsewhere(part) for part in values)


# --- hand over


def finish(worker: Worker, message: Message) -> None:
    """Use up what let objects leave with the answer to a message."""
    if id(message) in worker.covered:
        worker.covered.discard(id(message))
        for rule in RULES.values():
            rule.finish(worker, message)


def undo(worker: Worker, messages: Iterable[Message]) -> None:
    """Forget what would have left with the answers to messages, but did not."""
    covered = [message for message in messages if id(message) in worker.covered]
    worker.covered.difference_update(map(id, covered))
    for rule in RULES.values() if covered else ():
        rule.undo(worker, covered)
    worker.ledger.forget(messages)
