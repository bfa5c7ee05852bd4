"""Handlers for fetching objects, with or without the approval of the worker's owner."""

from __future__ import annotations

from functools import partial
from types import GeneratorType
from weakref import ref

from syft_core.exceptions import ReleaseError, ValueRefusedError
from syft_core.messages import AskRelease, Fetch, FetchAll, FetchReleased, FollowRequests, Message
from syft_core.peer import Peer
from syft_core.pictures import one_line
from syft_core.values import Outcome, Tensor
from syft_core.workers.addresses.requests import Elsewhere, Process
from syft_core.workers.moving.departure import authorize, copy_without_gradient, detach, finish, hold, take_copy
from syft_core.workers.moving.release import MAX_OPEN, Requested
from syft_core.workers.moving.transfer import copy_of, ends_elsewhere
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.running.execution import attribute
from syft_core.workers.running.failures import require_success
from syft_core.workers.seeing.ledger import Departure
from syft_core.workers.seeing.permissions import require_identity, require_right_to_lease

MAX_PARTIES = 64
MAX_CLAIM = 200
"""How many characters are kept of each text that an asker says about a request."""


def fetch(worker: Worker, message: Fetch, sender: Peer) -> Outcome:
    """Return an object if the policy or its owner lets it leave; the ledger records it when the answer is ready.

    Published objects, objects that others hold pointers to, and attributes leave as copies.
    """
    require_identity(message.user, sender, message.id, str(worker.id))
    if message.known:
        _require_known(worker, message, sender)
    (leaving,) = authorize(worker, "read", message, [(message.id, message.attr)], sender)
    hold(worker, message, [leaving], sender, message.reason)
    if message.attr is None and not message.keep:
        return _take(worker, leaving, sender)
    return _copy(detach(worker, leaving))


def _require_known(worker: Worker, message: Fetch, sender: Peer) -> None:
    """Raise unless the sender knows the values of an object."""
    if sender.behalf or message.attr is not None or not worker.object_store.entry(message.id).is_known_to(sender.id):
        raise ValueRefusedError.of("get", str(worker.id))


def fetch_all(worker: Worker, message: FetchAll, sender: Peer) -> Outcome:
    """Return several objects if the policy or their owner lets all of them leave."""
    require_identity(message.user, sender, message.ids, str(worker.id))
    leaving = authorize(worker, "read", message, [(id, None) for id in message.ids], sender)
    hold(worker, message, leaving, sender, message.reason)
    taken = [_take(worker, departure, sender) for departure in leaving]
    return _collect(taken) if GeneratorType in map(type, taken) else taken


def _collect(taken: list[Tensor]) -> Process:
    for place, value in enumerate(taken):
        if type(value) is GeneratorType:
            taken[place] = yield from value
    return taken


def _take(worker: Worker, leaving: Departure, sender: Peer) -> Tensor:
    """Return an object that leaves the worker, or a copy if others still need it."""
    entry, value = leaving.entry, detach(worker, leaving)
    entry.fetched_by = sender
    return _copy(value) if entry.is_needed_by_others(sender.id) else value


def drop_fetched(worker: Worker, message: Message, sender: Peer) -> None:
    """Drop the objects that left with the answer to a message, unless others need them.

    Also use up the approvals of approved objects.
    """
    store = worker.object_store
    finish(worker, message)
    for id in message.facts.takes(message, worker.id):
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


def ask_release(worker: Worker, message: AskRelease, sender: Peer) -> str:
    """Add a release request to the worker's list, and return its id."""
    waiting = [request for request in worker.requests.made_by(sender) if request.state == "open"]
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
        copy = Stored(copy_without_gradient(worker, value), sender.id, entry.lineage)
        copy.id, copy.made_by = id, entry.made_by if message.attr is None else None
        objects.append(Requested(ref(entry), message.attr, copy))
    named = dict(zip(message.ids, message.labels, strict=False))
    labels = tuple([_shorten(named.get(id, "")) for id in dict.fromkeys(message.ids)]) if named else ()
    parties = tuple(map(_shorten, message.parties[:MAX_PARTIES]))
    claims = {"labels": labels, "parties": parties, "line": _shorten(message.line)}
    return worker.requests.add(worker, sender, message.reason, objects, **claims).id


def _shorten(text: object) -> str:
    """Return a text of a peer in one line of limited length."""
    return one_line(str(text)[:MAX_CLAIM])


def follow_requests(worker: Worker, message: FollowRequests, sender: Peer) -> list[dict[str, Tensor]]:
    """Return the state of the sender's own requests: of all, or of some by id."""
    own = {request.id: request for request in ([] if sender.behalf else worker.requests.made_by(sender))}
    for id in message.ids:
        if id not in own:
            raise ReleaseError.unknown(id, str(worker.id))
    return [own[id].to_asker() for id in message.ids or own]


def fetch_released(worker: Worker, message: FetchReleased, sender: Peer) -> list[Tensor]:
    """Return the copies of an approved request of the sender, also if the objects themselves are gone."""
    own = [request for request in worker.requests.made_by(sender) if request.id == message.request]
    if not own or sender.behalf:
        raise ReleaseError.unknown(message.request, str(worker.id))
    (request,) = own
    request.require_approval(str(worker.id))
    leaving = []
    for requested in request.objects:
        if requested.is_free_for(message):
            require_success(requested.copy, requested.copy.id, worker)
            leaving.append(take_copy(message, request, requested, requested.copy))
    hold(worker, message, leaving, sender, message.reason)
    return [detach(worker, departure) for departure in leaving]
