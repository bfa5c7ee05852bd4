"""The handler of each message of the kernel; features register further messages.

A handler runs under the lock of the worker, and returns its answer. One that needs another party asks it inside
``with worker.waiting():``.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

from syft_core.exceptions import GetNotPermittedError, InvalidTensorForRemoteGetError, ValueRefusedError
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form
from syft_core.hook.ranks import is_framework_tensor
from syft_core.kinds import find_kind
from syft_core.messages import (
    AskSchema,
    Call,
    Describe,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    GetTicket,
    Handler,
    Introduce,
    Lease,
    Message,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
    register_message,
)
from syft_core.peer import Id, Peer
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import CALLABLE, OBJECT
from syft_core.tensors.private import get_allowed_users
from syft_core.tensors.schema import Schema
from syft_core.workers.moving.departure import Leaving, find_leaving, hand_to, leave
from syft_core.workers.moving.fetching import fetch, fetch_all
from syft_core.workers.moving.transfer import adopt, copy_of, ends_elsewhere, hand_over, is_tensor, require_elsewhere
from syft_core.workers.party.status import ADDED, RESTRICTED
from syft_core.workers.party.store import Holder, Stored, derive
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.calls import call
from syft_core.workers.road.derivation import derivation_of_attribute
from syft_core.workers.road.keeping import form_of, set_owner
from syft_core.workers.road.operations import run
from syft_core.workers.road.procedure import execute
from syft_core.workers.road.task import Task, attribute
from syft_core.workers.seeing.permissions import (
    is_findable,
    is_hidden,
    may_change,
    refusal,
    require_free_tags,
    require_permission,
    require_right_to_change,
    require_right_to_lease,
    require_right_to_publish,
    require_right_to_tag,
    require_right_to_use,
)


def store(worker: Worker, message: Store, sender: Peer) -> None:
    """Store an object."""
    value = message.value
    if not is_framework_tensor(type(value)):
        _require_storable(worker, value, sender)
    entry = Stored(value, sender.id if message.holder is None else _find_holder(worker, message, sender))
    entry.id, entry.giver = message.id, sender
    if message.tags:
        require_free_tags(worker, message.tags, sender, entry)
    if message.publish:
        require_right_to_publish(worker, entry, sender)
    if message.origin is not None:
        place, id = message.origin
        origin = PointerTensor(worker.location_of(place), id, framework_of(value), owner=worker)
        origin.lender = sender.id
        entry.link(origin)
    worker.object_store.put(message.id, entry)
    set_owner(worker, value, message.id)
    if (kind := find_kind(type(value))) is not None:
        kind.bind(worker, entry)
    if message.publish:
        entry.publish(None if sender.id == worker.id else sender)
    if message.tags or message.description:
        worker.object_store.tag(message.id, message.tags, message.description)


def _require_storable(worker: Worker, value: object, sender: Peer) -> None:
    """Take over a chain's leases; raise unless the object is a chain, or a plan that the worker can run."""
    if isinstance(value, ObjectWrapper):
        raise ValueRefusedError.only_local("store", str(worker.id), "a worker does not run functions of others")
    adopt(value, sender.id)
    require_elsewhere(worker, value)
    if (kind := find_kind(type(value))) is not None:
        kind.require_usable(worker, value)
    else:
        framework_of(value)  # Raises unless the object is a tensor.


def _find_holder(worker: Worker, message: Store, sender: Peer) -> Id | None:
    if message.holder not in [party.id for party in sender.chain]:
        why = f"the sender does not act on behalf of {message.holder!r}"
        raise GetNotPermittedError.to(str(sender), message.id, str(worker.id), why, "hold")
    return message.holder


def forward(worker: Worker, message: Forward, sender: Peer) -> None:
    """Send an object to another worker, or store a copy here under another id."""
    if message.destination != worker.id:
        _forward(worker, message, sender)
    else:
        entry = worker.object_store.entry(message.id)
        execute(Task(worker, sender, "run", [entry], partial(_copy_here, message=message)))


def _copy_here(task: Task, message: Forward) -> None:
    worker, sender, (entry,) = task.worker, task.peer, task.parents
    require_right_to_use(worker, [entry], sender)
    value = attribute(entry.value, message.attr)
    if ends_elsewhere(value):
        with worker.waiting():
            copy = hand_over(copy_of(value), worker)
    else:
        copy = hand_over(value, worker)
    entry_of_copy = Stored(copy, sender.id)
    entry_of_copy.giver = sender
    derive([entry_of_copy], [entry])
    if task.status & RESTRICTED:
        entry_of_copy.derivation = derivation_of_attribute(entry, message.attr)
    entry_of_copy.mark(entry.status & ADDED)  # A copy is restricted like its object.
    worker.object_store.put(message.new_id, entry_of_copy)
    set_owner(worker, copy, message.new_id)


def _forward(worker: Worker, message: Forward, sender: Peer) -> None:
    destination = worker.location_of(message.destination)
    wanted = find_leaving(worker, [(message.id, message.attr)])
    leaving = Leaving(worker, "move", message, sender, wanted, attrs=[message.attr], to=destination.id, reason="moved")
    (value,), (entry, _, _, _) = leave(leaving), wanted[0]
    stays = message.keep or message.requires_grad or entry.is_needed_by_others(sender.id)
    origin, lease = None, (destination.id, worker.id)
    if message.requires_grad:  # The copy holds a lease on its origin, to send the gradient back.
        entry.lease(lease)
        entry.link(copy=(destination.id, sender))
        origin = (worker.id, message.id)
    if stays and ends_elsewhere(value):
        with worker.waiting():
            value = copy_of(value)
    words = _words(entry) if message.attr is None else {}
    try:
        hand_to(destination, Store(message.new_id, value, origin=origin, holder=sender.id, **words), leaving)
    except BaseException:
        if origin is not None:
            entry.release(lease)
        raise
    if stays and not message.keep:
        entry.release(sender.id)
    elif not stays and worker.object_store.get(message.id) is entry:
        worker.object_store.remove(message.id, f"{str(sender)!r} moved it to {destination.id!r}")


def send_on(worker: Worker, message: SendOn, sender: Peer) -> None:
    """Send an object to another worker, and store a pointer in its place."""
    if message.destination == worker.id:
        return
    entry = worker.object_store.entry(message.id)
    require_permission(worker, "move", entry, sender, entry.value)
    require_right_to_change(worker, entry, sender, entry.value)
    destination = worker.location_of(message.destination)
    wanted = find_leaving(worker, [(message.id, None)])
    leaving = Leaving(worker, "move", message, sender, wanted, to=destination.id, reason="sent on")
    (value,) = leave(leaving)
    framework, id = framework_of(entry.value), message.new_id
    hand_to(destination, Store(id, value, **_words(entry)), leaving)
    worker.object_store.replace(entry, framework.wrapper(PointerTensor(destination, id, framework, owner=worker)))
    set_owner(worker, entry.value, message.id)
    worker.object_store.note(entry)


def _words(entry: Stored) -> dict[str, Any]:
    """Return the tags and the description for storing an object on another worker."""
    return {"tags": tuple(entry.tags), "description": entry.description}


def get_back(worker: Worker, message: GetBack, sender: Peer) -> None:
    """Fetch the object that a stored pointer points to, and store it in place of the pointer."""
    entry = worker.object_store.entry(message.id)
    execute(Task(worker, sender, "run", [entry], partial(_get_back, message=message)))


def _get_back(task: Task, message: GetBack) -> None:
    worker, (entry,) = task.worker, task.parents
    pointer = getattr(entry.value, "child", None)
    if not isinstance(pointer, PointerTensor):
        raise InvalidTensorForRemoteGetError.on(message.id, worker.id)
    require_right_to_change(worker, entry, task.peer, entry.value)
    with worker.waiting():
        value = pointer.get()
    entry.disown()
    require_elsewhere(worker, value)
    worker.object_store.replace(entry, value)
    set_owner(worker, entry.value, message.id)
    users = get_allowed_users(value)
    if users is not None:
        entry.restrict(users if entry.access is None else entry.access & users)
    worker.object_store.note(entry)


def lease(worker: Worker, message: Lease, sender: Peer) -> None:
    """Add a lease for the sender, or for a worker to which the sender gives a pointer."""
    entries = [worker.object_store.entry(id) for id in message.ids]
    for entry in entries:
        require_right_to_lease(worker, entry, sender)
    for entry in entries:
        if message.holder is None:
            entry.lease(sender.id)
            continue
        entry.lease((message.holder, sender.id))
        if may_change(worker, entry, sender):
            entry.disown()
            entry.writers = entry.writers or set()
            entry.writers.add(message.holder)


def release(worker: Worker, message: Release, sender: Peer) -> None:
    """Remove a lease of the sender on each object."""
    holder: Holder = sender.id if message.lender is None else (sender.id, message.lender)
    worker.object_store.release(deque((id, holder) for id in message.ids))


def describe(worker: Worker, message: Describe, sender: Peer) -> list[Form | None]:
    """Return the forms of objects, or of the same attribute of each."""
    entries = [worker.object_store.entry(id) for id in message.ids]
    values = [attribute(entry.value, message.attr) for entry in entries]
    if worker.custom_policy is not None:
        for entry, value in zip(entries, values, strict=True):
            require_permission(worker, "describe", entry, sender, value)
    if any(map(ends_elsewhere, values)):
        with worker.waiting():
            return list(map(form_of, values))
    return list(map(form_of, values))


def ask_schema(worker: Worker, message: AskSchema, sender: Peer) -> Schema:
    """Return a table's schema, without columns that the object does not have, or a mock that is hidden."""
    entry = worker.object_store.entry(message.id)
    require_right_to_use(worker, [entry], sender)
    known = entry.schema
    if known is None or ends_elsewhere(entry.value):
        return Schema()
    shape = tuple(getattr(form_of(entry.value), "shape", None) or ())
    columns = known.columns if shape[1:] == (len(known.columns),) else ()
    mock = None if known.mock is None else worker.object_store.get(known.mock)
    is_own = mock is not None and mock.published and mock.publisher is None  # Another peer may have taken its id.
    is_shown = mock is not None and is_own and not is_hidden(worker, mock, sender)
    shown = columns, known.mock if is_shown else None
    return known if shown == (known.columns, known.mock) else Schema(*shown)


def tag(worker: Worker, message: Tag, sender: Peer) -> None:
    """Tag, describe or publish an object."""
    entry = worker.object_store.entry(message.id)
    require_right_to_tag(worker, entry, sender, message.tags)
    if message.publish:
        require_right_to_publish(worker, entry, sender)
        entry.publish(None if sender.id == worker.id else sender)
    worker.object_store.tag(message.id, message.tags, message.description)
    if hasattr(type(entry.value), "_syft_tags"):
        entry.value._syft_tags, entry.value._syft_description = set(entry.tags), entry.description


def search(worker: Worker, message: Search, sender: Peer) -> list[Any]:
    """Return id, tags, description, kind and publisher of each match, and take a lease on it for the sender."""
    found = []
    for id in worker.object_store.search(message.query):
        entry = worker.object_store.entry(id)
        if not all(is_findable(worker, entry, party) for party in sender.chain):
            continue
        if refusal(worker, "search", entry, sender, entry.value) is None:
            entry.lease(sender.id)
            publisher = tuple((entry.publisher or worker.peer)[:2]) if entry.published else None
            found.append((id, tuple(sorted(entry.tags)), entry.description, _kind_of(entry.value), publisher))
    return found


def _kind_of(value: object) -> str:
    if is_tensor(value):
        return framework_of(value).ALIAS
    if (kind := find_kind(type(value))) is not None:
        return kind.name
    return CALLABLE if isinstance(value, ObjectWrapper) else OBJECT


def get_ticket(worker: Worker, message: GetTicket, sender: Peer) -> str:
    """Issue a ticket for objects that the sender has pointers to, or that do not exist yet."""
    for id in message.ids:
        entry = worker.object_store.get(id)
        if entry is not None and not is_hidden(worker, entry, sender):
            require_right_to_lease(worker, entry, sender)
    return worker.tickets.issue(sender, message.bearer, message.ids)


def introduce(worker: Worker, message: Introduce, sender: Peer) -> None:
    """Keep a ticket of another worker, for requests on behalf of the sender."""
    worker.location_of(message.worker).accept_ticket(message.ticket, sender)


_HANDLERS: dict[type[Message], Handler] = {
    Store: store,
    Run: run,
    Fetch: fetch,
    FetchAll: fetch_all,
    Forward: forward,
    Lease: lease,
    Release: release,
    Describe: describe,
    AskSchema: ask_schema,
    Tag: tag,
    Search: search,
    Call: call,
    SendOn: send_on,
    GetBack: get_back,
    GetTicket: get_ticket,
    Introduce: introduce,
}
for _kind, _handler in _HANDLERS.items():
    register_message(_kind, _handler)
