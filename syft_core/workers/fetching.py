"""Handlers for fetching objects and for requesting their release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING
from weakref import ref

from syft_core.exceptions import GetNotPermittedError, ReleaseError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.messages import AskRelease, Fetch, FetchAll, Message
from syft_core.peer import Id, Peer
from syft_core.tensors.private import restrict
from syft_core.values import Outcome, Tensor
from syft_core.workers.failures import require_success
from syft_core.workers.ledger import Departure, record_all, record_request
from syft_core.workers.permissions import Verb, refusal, require_identity, require_right_to_lease
from syft_core.workers.release import MAX_OPEN, Requested
from syft_core.workers.requests import Elsewhere, Process
from syft_core.workers.running import attribute, set_owner
from syft_core.workers.store import NOTHING, Failure, Sources, Stored, is_leaf
from syft_core.workers.transfer import copy_of, ends_elsewhere, give_away, hand_over, is_tensor, rebuild
from syft_core.workers.worker import Worker

if TYPE_CHECKING:
    from syft_core.location import Party
    from syft_core.workers.base import BaseWorker


def fetch(worker: Worker, message: Fetch, sender: Peer) -> Outcome:
    """Return an object if the policy lets it leave, and record it in the ledger.

    Published objects, objects that others hold pointers to, and attributes leave as copies.
    """
    require_identity(message.user, sender, message.id, str(worker.id))
    leaving = _read(worker, message, message.id, message.attr, sender)
    record_all(worker, [leaving], sender, str(sender.id), message.reason)
    if message.attr is None and not message.keep:
        return _take(worker, leaving, sender)
    return _copy(_detach(worker, leaving))


def fetch_all(worker: Worker, message: FetchAll, sender: Peer) -> Outcome:
    """Return several objects if the policy lets all of them leave."""
    require_identity(message.user, sender, message.ids, str(worker.id))
    leaving = [_read(worker, message, id, None, sender) for id in message.ids]
    record_all(worker, leaving, sender, str(sender.id), message.reason)
    taken = [_take(worker, departure, sender) for departure in leaving]
    return _collect(taken) if GeneratorType in map(type, taken) else taken


def take_plain(worker: BaseWorker, message: Message, sender: Peer, receiver: Party) -> Tensor:
    """Fetch plain objects that only a sender in this process uses; return None if that takes more than this shortcut.

    It replaces ``fetch`` or ``fetch_all``, ``drop_fetched`` and the transfer: each condition excludes something else
    that they do.
    """
    if type(message) is FetchAll:
        ids = message.ids
    elif type(message) is Fetch and message.attr is None and not message.keep:
        ids = (message.id,)
    else:
        return None
    if not ids or worker.is_attended or sender.behalf or message.user is not None or len(worker.requests):
        return None
    with worker.lock:
        if worker.dropped:
            worker.object_store.release(worker.dropped)
        entries = _find_plain(worker, ids, sender)
        if entries is None:
            return None
        worker.stats.messages += 1
        record_all(worker, [(entry, None, None) for entry in entries], sender, str(sender.id), message.reason)
        why = f"it was fetched by {str(sender)!r}"
        if type(message) is FetchAll:
            return _take_all(worker, entries, receiver, why)
        (entry,) = entries
        value = framework_of(entry.value).detach(entry.value)
        copy = None if _is_lone_number(value, entry) else hand_over(value, receiver)
        worker.object_store.remove(entry.id, why)
        del entries, entry  # An unshared object need not be copied.
        if copy is not None:
            return copy
        values = [value]
        del value
        return give_away(values, receiver)[0]


def _take_all(worker: BaseWorker, entries: list[Stored], receiver: Party, why: str) -> list[Tensor]:
    """Give plain objects to a receiver in this process, and remove them."""
    values = [framework_of(entry.value).detach(entry.value) for entry in entries]
    try:
        taken = give_away(values, receiver, held=1)
    except BaseException:
        for entry, value in zip(entries, values, strict=True):
            worker.object_store.replace(entry, value)
        raise
    worker.object_store.remove_all(entries, why)
    return taken


def _is_lone_number(value: Tensor, entry: Stored) -> bool:
    """Return whether a tensor was detached from its graph, like a loss, and is a single number with its own memory."""
    return value is not entry.value and not value.ndim and not framework_of(value).is_partial_view(value)


def store_given(worker: Worker, ids: Sequence[Id], objects: list[Tensor], sender: Peer) -> None:
    """Store plain objects that a sender in this process gives up; empty ``objects``, unless it fails.

    It replaces a ``Store`` message for each of them.
    """
    store = worker.object_store
    with worker.lock:
        if worker.dropped:  # A dropped graph may still refer to an object.
            store.release(worker.dropped)
        store.require_free(ids)
        kept = give_away(objects, worker)
        worker.stats.messages += len(ids)
        for id, value in zip(ids, kept, strict=True):
            entry = Stored(value, sender.id)
            entry.giver = sender
            store.put(id, entry)
            set_owner(worker, value, id)


def _find_plain(worker: Worker, ids: Sequence[Id], sender: Peer) -> list[Stored] | None:
    """Return plain objects that only the sender uses, or None if one of them is not."""
    entries: list[Stored] = []
    checked: Sources = NOTHING
    for id in ids:
        entry = worker.object_store.get(id)
        if (
            entry is None
            or entry.holder != sender.id
            or entry.access is not None
            or entry.published
            or entry.others
            or not entry.is_plain
            or (entry.sources is not checked and Failure in map(type, entry.sources))
            or entry in entries
        ):
            return None
        checked = entry.sources  # The tensors of a trained model have the same.
        entries.append(entry)
    return entries


def _collect(taken: list[Tensor]) -> Process:
    for place, value in enumerate(taken):
        if type(value) is GeneratorType:
            taken[place] = yield from value
    return taken


def drop_refused_gradient(worker: Worker, verb: Verb, entry: Stored, sender: Peer, value: Tensor) -> Tensor:
    """Return a value that leaves, or a copy without its gradient if the policy keeps that here."""
    gradient = None if worker.custom_policy is None else _gradient_of(value)
    if gradient is None or refusal(worker, verb, entry, sender, gradient) is None:
        return value
    return _copy_without_gradient(worker, value)


def _gradient_of(value: object) -> Tensor:
    end = plain_end(value)
    return end.grad if end is not None and is_leaf(end) else None


def _copy_without_gradient(worker: Worker, value: object) -> Tensor:
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


def _detach(worker: Worker, leaving: Departure) -> Tensor:
    """Return the value of an object that leaves, without its graph and with its restrictions, unless it is released."""
    entry, value, approval = leaving
    if approval is not None or value is None:
        return value
    outside = freeze(worker, leave_graph(value))
    return outside if entry.access is None else restrict(outside, entry.access)


def _take(worker: Worker, leaving: Departure, sender: Peer) -> Tensor:
    """Return an object that leaves the worker, or a copy if others still need it."""
    entry, value = leaving[0], _detach(worker, leaving)
    entry.fetched_by = sender
    return _copy(value) if entry.is_needed_by_others(sender.id) else value


def drop_fetched(worker: Worker, message: Message, sender: Peer) -> None:
    """Drop the objects that a ``Fetch`` or ``FetchAll`` took away, unless others need them.

    Also use up the approvals of approved objects.
    """
    store = worker.object_store
    worker.requests.use_up(message)
    ids: Iterable[Id] = message.ids if isinstance(message, FetchAll) else ()
    if isinstance(message, Fetch) and message.attr is None and not message.keep:
        ids = (message.id,)
    for id in ids:
        entry = store.get(id)
        if entry is None or entry.fetched_by != sender:
            continue
        entry.fetched_by = None
        if entry.is_needed_by_others(sender.id):
            entry.remove_leases(sender.id)
        else:
            store.remove(id, f"it was fetched by {str(sender)!r}")


def _copy(value: object) -> Tensor:
    """Return a value to send while the object stays; if it ends in pointers, what they point to is copied."""
    return _ask_for_copy(value) if ends_elsewhere(value) else value


def _ask_for_copy(value: object) -> Process:
    return (yield Elsewhere(partial(copy_of, value)))


# --- requests


def ask_release(worker: Worker, message: AskRelease, sender: Peer) -> int:
    """Add a release request to the worker's list, and return its number."""
    waiting = [request for request in worker.requests if request.state == "open" and _is_user_of(request.peer, sender)]
    if len(waiting) >= MAX_OPEN:
        raise ReleaseError.too_many(str(sender), str(worker.id), MAX_OPEN)
    if sender.behalf:
        raise ReleaseError.on_behalf(str(sender), str(worker.id))
    if not message.ids:
        raise ReleaseError.nothing(str(worker.id))
    objects = []
    for id in dict.fromkeys(message.ids):
        entry = worker.object_store.entry(id)
        require_right_to_lease(worker, entry, sender)
        value = attribute(entry.value, message.attr)
        if value is None or ends_elsewhere(value):
            raise ReleaseError.elsewhere(id, str(worker.id))
        copy = Stored(_copy_without_gradient(worker, value), sender.id)
        copy.id, copy.access, copy.sources = id, entry.access, entry.sources
        objects.append(Requested(ref(entry), message.attr, copy))
    request = worker.requests.add(sender, message.reason, objects)
    record_request(worker, request, "requested")
    return request.number


def _is_user_of(peer: Peer, sender: Peer) -> bool:
    """Return whether two peers are clients of one user; a peer without a user is a user of its own."""
    return peer == sender if sender.user is None else peer.user == sender.user


def _read(worker: Worker, message: Message, id: Id, attr: str | None, sender: Peer) -> Departure:
    """Return an object, the value that a peer may read, and the request by which it may; raise if it may not read it.

    Also raise if an operation failed while computing the object.
    """
    entry = worker.object_store.entry(id)
    value = entry.value if attr is None else attribute(entry.value, attr)
    if entry.access is None and worker.custom_policy is None:
        require_success(entry, id, worker)
        return entry, value, None
    why = refusal(worker, "read", entry, sender, value)
    if why is None:
        require_success(entry, id, worker)
        return entry, drop_refused_gradient(worker, "read", entry, sender, value), None
    request = worker.requests.of(entry, attr, sender)
    requested = None if request is None else next(r for r in request.objects if r.is_for(entry, attr))
    if request is None or requested is None or not requested.is_free_for(message):
        raise GetNotPermittedError.to(str(sender), entry.id, str(worker.id), why)
    if request.state != "approved":
        raise GetNotPermittedError.by_request(
            str(sender), entry.id, str(worker.id), request.number, request.state, request.answer
        )
    require_success(requested.copy, id, worker)  # Not of the object itself: that would disclose what failed since.
    requested.taken_by = message
    return entry, requested.value, request
