"""Hand over objects that peers fetch, and take their requests for what they may not have."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from syft_core.exceptions import GetNotPermittedError, ReleaseError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.messages import AskRelease, Fetch, FetchAll, Message
from syft_core.peer import Id, Peer
from syft_core.tensors.private import restrict
from syft_core.workers.failures import require_success
from syft_core.workers.ledger import record
from syft_core.workers.permissions import refusal, require_identity, require_right_to_lease
from syft_core.workers.release import MOST_OPEN, Requested
from syft_core.workers.requests import Elsewhere, Process
from syft_core.workers.running import attribute
from syft_core.workers.store import Stored
from syft_core.workers.transfer import copy_of, ends_elsewhere, hand_over, rebuilt
from syft_core.workers.worker import Worker


def fetch(worker: Worker, message: Fetch, sender: Peer) -> Any:
    """Hand over an object, if the policy lets it leave; write it into the ledger.

    A copy leaves of what the worker published, of what others hold pointers to, and of an attribute.
    """
    require_identity(message.user, sender, message.id, str(worker.id))
    entry = worker.object_store.entry(message.id)
    value, approval = _read(worker, entry, message.attr, sender)
    require_success(entry, message.id, worker)
    record(worker, entry, sender, str(sender.id), _reasons(message.reason, approval), value)
    if not approval and value is not None:
        value = restrict(_outside_graph(value), entry.access)
    if message.attr is None and not message.keep:
        return _taken(entry, sender, value)
    return _copied(value)


def fetch_all(worker: Worker, message: FetchAll, sender: Peer) -> Any:
    """Hand over several objects, if the policy lets each of them leave."""
    require_identity(message.user, sender, message.ids, str(worker.id))
    entries = [worker.object_store.entry(id) for id in message.ids]
    allowed = [_read(worker, entry, None, sender) for entry in entries]
    for entry in entries:
        require_success(entry, entry.id, worker)
    taken = []
    for entry, (value, approval) in zip(entries, allowed, strict=True):
        record(worker, entry, sender, str(sender.id), _reasons(message.reason, approval), value)
        taken.append(_taken(entry, sender, value if approval else restrict(_outside_graph(value), entry.access)))
    return _all_of(taken) if any(hasattr(value, "throw") for value in taken) else taken


def _all_of(taken: list[Any]) -> Process:
    for place, value in enumerate(taken):
        if hasattr(value, "throw"):
            taken[place] = yield from value
    return taken


def _outside_graph(value: Any) -> Any:
    """Return what is fetched without its graph, which stays here: a backward pass must start here, too."""
    end = plain_end(value)
    if end is None:
        return value
    outside = framework_of(end).detach
    if value is end:
        return outside(end)
    return value if outside(end) is end else rebuilt(value, outside)


def _reasons(reason: str, approval: str) -> str:
    return ", ".join(filter(None, (reason, approval)))


def _taken(entry: Stored, sender: Peer, value: Any) -> Any:
    """Return an object that leaves for good once it has been handed over, or a copy of one that somebody else needs."""
    entry.fetched_by = sender
    return _copied(value) if entry.is_needed_by_others(sender.id) else value


def drop_fetched(worker: Worker, message: Message, sender: Peer) -> None:
    """Drop what a ``Fetch`` or ``FetchAll`` has handed over for good, unless somebody else needs it.

    What left with an approval needs another one to leave again.
    """
    store = worker.object_store
    ids: Iterable[Id] = message.ids if isinstance(message, FetchAll) else ()
    attr, for_good = None, True
    if isinstance(message, Fetch):
        ids, attr, for_good = (message.id,), message.attr, message.attr is None and not message.keep
    for id in ids:
        entry = store.get(id)
        if entry is not None:
            _note_release(worker, entry, attr, sender)
        if entry is None or entry.fetched_by != sender or not for_good:
            continue
        entry.fetched_by = None
        if entry.is_needed_by_others(sender.id):
            entry.give_up(sender.id)
        else:
            store.remove(id, f"it was fetched by {str(sender)!r}")


def _copied(value: Any) -> Any:
    """Return what may be given away of ``value``, which stays; only what it points to elsewhere must be copied."""
    return _ask_for_copy(value) if ends_elsewhere(value) else value


def _ask_for_copy(value: Any) -> Process:
    return (yield Elsewhere(partial(copy_of, value)))


# --- requests


def ask_release(worker: Worker, message: AskRelease, sender: Peer) -> int:
    """Put a request on the worker's table, and return its number."""
    waiting = [request for request in worker.requests if request.peer == sender and request.state == "open"]
    if len(waiting) >= MOST_OPEN:
        raise ReleaseError.too_many(str(sender), str(worker.id), MOST_OPEN)
    if sender.behalf:
        raise ReleaseError.on_behalf(str(sender), str(worker.id))
    objects = []
    for id in message.ids:
        entry = worker.object_store.entry(id)
        require_right_to_lease(worker, entry, sender)
        value = attribute(entry.value, message.attr)
        if value is None or ends_elsewhere(value):
            raise ReleaseError.elsewhere(id, str(worker.id))
        objects.append(Requested(entry, message.attr, hand_over(value, worker)))
    return worker.requests.add(sender, message.reason, objects).number


def _read(worker: Worker, entry: Stored, attr: str | None, sender: Peer) -> tuple[Any, str]:
    """Return what a peer may have of an object, and who approved that; raise if the peer may not have it."""
    value = attribute(entry.value, attr)
    why = refusal(worker, "read", entry, sender, value)
    if why is None:
        return value, ""
    request = worker.requests.of(entry, attr, sender)
    if request is None:
        raise GetNotPermittedError.to(str(sender), entry.id, str(worker.id), why)
    if request.state != "approved":
        raise GetNotPermittedError.by_request(
            str(sender), entry.id, str(worker.id), request.number, request.state, request.answer
        )
    requested = next(r for r in request.objects if r.entry is entry and r.attr == attr)
    return requested.value, f"request {request.number}, approved by {request.decided_by}"


def _note_release(worker: Worker, entry: Stored, attr: str | None, sender: Peer) -> None:
    """Count an approved object as released: an approval is good for one departure."""
    request = worker.requests.of(entry, attr, sender) if len(worker.requests) else None
    if request is not None and request.state == "approved":
        request.objects = [r for r in request.objects if not (r.entry is entry and r.attr == attr)]
        if not request.objects:
            request.state = "released"
