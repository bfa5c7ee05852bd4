"""Departure: the stages that every object takes on its way out of a worker.

``authorize`` asks the policy and then the owner's approvals, ``record_all`` or ``hold`` writes the ledger, ``detach``
returns what leaves, and the caller hands it over: in the answer to a message, or to another worker. ``finish`` uses up
approvals once it has left, ``undo`` gives them back if it has not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from syft_core.exceptions import GetNotPermittedError, ReleaseDeniedError, ReleasePendingError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.messages import Message
from syft_core.peer import Id, Peer
from syft_core.pictures import form_of
from syft_core.tensors.private import restrict
from syft_core.values import Tensor
from syft_core.workers.moving.approvals import Candidate
from syft_core.workers.moving.transfer import ends_elsewhere, hand_over, is_tensor, rebuild
from syft_core.workers.party.store import Stored, is_leaf, lineage_of
from syft_core.workers.running.execution import attribute
from syft_core.workers.running.failures import require_success
from syft_core.workers.seeing.ledger import Departure, Entry, Grant, describe_departure
from syft_core.workers.seeing.permissions import Verb, refusal

if TYPE_CHECKING:
    from syft_core.workers.moving.release import ReleaseRequest, Requested
    from syft_core.workers.party.worker import Worker


# --- authorize


def authorize(
    worker: Worker, verb: Verb, message: Message, wanted: Sequence[tuple[Id, str | None]], sender: Peer
) -> list[Departure]:
    """Return what may leave with a message: each object, or an attribute of it. Raise unless all of them may.

    What the policy keeps may be read with an approval: of a request for the object or, for all objects of the message
    that need one, a standing approval. Also raise if an operation failed while computing an object.
    """
    leaving: list[Departure] = []
    kept: list[tuple[int, str]] = []
    for id, attr in wanted:
        entry = worker.object_store.entry(id)
        value = entry.value if attr is None else attribute(entry.value, attr)
        if entry.access is None and worker.custom_policy is None:
            require_success(entry, id, worker)
            leaving.append(Departure(entry, value))
            continue
        why = refusal(worker, verb, entry, sender, value)
        if why is None:
            require_success(entry, id, worker)
            value = drop_refused_gradient(worker, verb, entry, sender, value)
        else:
            kept.append((len(leaving), why))
        leaving.append(Departure(entry, value))
    return _apply_approvals(worker, verb, message, wanted, leaving, kept, sender) if kept else leaving


def _apply_approvals(
    worker: Worker,
    verb: Verb,
    message: Message,
    wanted: Sequence[tuple[Id, str | None]],
    leaving: list[Departure],
    kept: list[tuple[int, str]],
    sender: Peer,
) -> list[Departure]:
    """Return what leaves with the approval of the owner for the objects that the policy keeps."""
    uncovered: list[tuple[int, str, ReleaseRequest | None]] = []
    approved: list[tuple[int, ReleaseRequest, Requested]] = []
    for place, why in kept:
        (id, attr), entry = wanted[place], leaving[place].entry
        request = worker.requests.of(entry, attr, sender) if verb == "read" else None
        requested = None if request is None else next(r for r in request.objects if r.is_for(entry, attr))
        if request is not None and requested is not None and not requested.is_free_for(message):
            request = requested = None
        if request is not None and requested is not None and request.state == "approved":
            require_success(requested.copy, id, worker)  # Not of the object: that would disclose what failed since.
            approved.append((place, request, requested))
        else:
            uncovered.append((place, why, request))
    if uncovered:
        copies, grant = _take_standing_approval(worker, verb, message, leaving, uncovered, sender)
        for place, _, _ in uncovered:
            entry = leaving[place].entry
            require_success(entry, entry.id, worker)
            leaving[place] = Departure(entry, copies[place], grant)
    for place, request, requested in approved:
        leaving[place] = take_copy(message, request, requested, leaving[place].entry)
    return leaving


def take_copy(message: Message, request: ReleaseRequest, requested: Requested, entry: Stored) -> Departure:
    """Return the departure of a reviewed copy, which no other message can take until this one is settled."""
    requested.taken_by = message
    grant = Grant(request.id, request.decided_by, is_repeated=request.is_repeated)
    return Departure(entry, requested.value, grant, requested.copy)


def _take_standing_approval(
    worker: Worker,
    verb: Verb,
    message: Message,
    leaving: list[Departure],
    uncovered: list[tuple[int, str, ReleaseRequest | None]],
    sender: Peer,
) -> tuple[list[Tensor], Grant]:
    """Return copies of all objects and the standing approval for those that need one, or raise the first error."""
    more = ""
    is_here = not any(ends_elsewhere(departure.value) for departure in leaving)
    if verb == "read" and is_here and worker.approvals.has_any_for(sender):
        copies = [copy_without_gradient(worker, leave_graph(departure.value)) for departure in leaving]
        forms = ", ".join(map(form_of, copies))  # As in a request, which has copies too.
        _, sources, _ = lineage_of([leaving[place].entry for place, _, _ in uncovered])
        found = worker.approvals.take(message, Candidate(sender, forms, sources))
        if isinstance(found, Grant):
            return copies, found
        more = f"; {found}" if found else ""
    place, why, request = uncovered[0]
    id = leaving[place].entry.id
    if request is None or request.state not in ("open", "denied"):
        raise GetNotPermittedError.to(str(sender), id, str(worker.id), why + more)
    if request.state == "open":
        raise ReleasePendingError.to_fetch(str(sender), id, str(worker.id), request.id)
    answer = f" ({request.answer})" if request.answer else ""
    raise ReleaseDeniedError.to_fetch(str(sender), id, str(worker.id), request.id, answer)


# --- record


def hold(worker: Worker, message: Message, leaving: Sequence[Departure], sender: Peer, reason: str) -> None:
    """Record departures when the answer to a message is ready: it may still fail."""
    worker.ledger.hold(message, describe_departure(leaving, sender, str(sender.id), reason))


def record_all(worker: Worker, leaving: Sequence[Departure], sender: Peer, to: Id, reason: str) -> list[Entry]:
    """Record departures to another worker; raise if that fails: what is not recorded must not leave."""
    left = describe_departure(leaving, sender, str(to), reason)
    worker.ledger.record(*left)
    return left


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

    The lock of the worker is not held then. Another connection of the same client may change the object, and others may
    store the first private object of the worker.
    """
    return hand_over(value, worker) if is_frozen(value) else value


def is_frozen(value: Tensor) -> bool:
    """Return whether ``freeze`` copies a value, or all values of a list; it copies tensors, but not pointers."""
    values = value if type(value) is list else [value]
    return all(is_tensor(part) and not ends_elsewhere(part) for part in values)


# --- hand over


def finish(worker: Worker, message: Message) -> None:
    """Use up the approvals with which objects have left."""
    worker.requests.use_up(message)
    worker.approvals.use_up(message)


def undo(worker: Worker, messages: Iterable[Message]) -> None:
    """Forget what would have left with the answers to messages, but did not."""
    worker.requests.give_back(messages)
    worker.approvals.give_back(messages)
    worker.ledger.forget(messages)
