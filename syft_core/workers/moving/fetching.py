"""Handlers for fetching objects."""

from __future__ import annotations

from syft_core.exceptions import ValueRefusedError
from syft_core.messages import Fetch, FetchAll, Message
from syft_core.peer import Peer
from syft_core.values import Outcome, Tensor
from syft_core.workers.moving.departure import Leaving, find_leaving, finish, leave
from syft_core.workers.moving.transfer import copy_of, ends_elsewhere
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.permissions import require_identity


def fetch(worker: Worker, message: Fetch, sender: Peer) -> Outcome:
    """Return an object if the policy or its owner lets it leave; the ledger records it when the answer is ready.

    Published objects, objects with pointers of others, and attributes leave as copies.
    """
    require_identity(message.user, sender, message.id, str(worker.id))
    if message.known:
        _require_known(worker, message, sender)
    wanted = find_leaving(worker, [(message.id, message.attr)])
    (value,) = leave(Leaving(worker, "read", message, sender, wanted, attrs=[message.attr], reason=message.reason))
    if message.attr is None and not message.keep:
        return _take(worker, wanted[0].entry, value, sender)
    return _copy(worker, value)


def _require_known(worker: Worker, message: Fetch, sender: Peer) -> None:
    if sender.behalf or message.attr is not None or not worker.object_store.entry(message.id).is_known_to(sender.id):
        raise ValueRefusedError.of("get", str(worker.id))


def fetch_all(worker: Worker, message: FetchAll, sender: Peer) -> Outcome:
    """Return several objects if the policy or their owner lets all of them leave."""
    require_identity(message.user, sender, message.ids, str(worker.id))
    wanted = find_leaving(worker, [(id, None) for id in message.ids])
    values = leave(Leaving(worker, "read", message, sender, wanted, reason=message.reason))
    return [_take(worker, each.entry, value, sender) for each, value in zip(wanted, values, strict=True)]


def _take(worker: Worker, entry: Stored, value: Tensor, sender: Peer) -> Tensor:
    """Return the object itself, or a copy if others still need it."""
    entry.fetched_by = sender
    return _copy(worker, value) if entry.is_needed_by_others(sender.id) else value


def drop_fetched(worker: Worker, message: Message, sender: Peer) -> None:
    """Drop the objects that left with the answer to a message, unless others need them.

    Also use up the approvals of approved objects.
    """
    store, taken = worker.object_store, []
    finish(worker, message)
    for id in message.facts.takes(message, worker.id):
        entry = store.get(id)
        if entry is None or entry.fetched_by != sender:
            continue
        entry.fetched_by = None
        if entry.is_needed_by_others(sender.id):
            entry.remove_leases(sender.id)
        else:
            taken.append(entry)
    store.remove_all(taken, f"it was fetched by {str(sender)!r}")


def _copy(worker: Worker, value: object) -> Tensor:
    """Copy a value whose object stays; if it ends in pointers, copy what they point to."""
    if not ends_elsewhere(value):
        return value
    with worker.waiting():
        return copy_of(value)
