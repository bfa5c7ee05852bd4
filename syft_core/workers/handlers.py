"""What a worker does with each message; the only things that a peer can make it do.

A handler returns its answer or, when it needs another party, a process that yields what it needs.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from syft_core.exceptions import InvalidTensorForRemoteGetError, OperationFailedError, SyftError, ValueRefusedError
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.messages import (
    Call,
    Describe,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    Lease,
    Message,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.peer import Id, Peer
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import CALLABLE, OBJECT
from syft_core.tensors.private import get_allowed_users, restrict
from syft_core.workers.failures import require_success, zeros_for_nobody
from syft_core.workers.ledger import record
from syft_core.workers.permissions import (
    may_leave,
    require_identity,
    require_permission,
    require_right_to_publish,
    require_right_to_tag,
)
from syft_core.workers.requests import Ask, Elsewhere, Process
from syft_core.workers.running import attribute, form_of, keep, own, resolve, run
from syft_core.workers.store import Stored, derive, lineage_of
from syft_core.workers.transfer import copy_of, ends_elsewhere, hand_over, is_tensor
from syft_core.workers.worker import Worker


def store(worker: Worker, message: Store, sender: Peer) -> None:
    """Keep an object."""
    value = message.value
    if isinstance(value, ObjectWrapper):
        raise ValueRefusedError.only_local("storing a callable", str(worker.id))
    framework = framework_of(value)  # Or it is not a tensor: nothing that others may ask for could be said of it.
    entry = Stored(value, sender.id if message.holder is None else message.holder)
    entry.published = message.publish
    entry.giver = sender
    if message.origin is not None:
        place, id = message.origin
        entry.origin = PointerTensor(worker.location_of(place), id, framework, owner=worker)
    worker.object_store.put(message.id, entry)
    own(worker, value, message.id)
    tags, description = getattr(value, "_syft_tags", None), getattr(value, "_syft_description", None)
    if tags or description:
        worker.object_store.tag(message.id, tags or (), description)


def fetch(worker: Worker, message: Fetch, sender: Peer) -> Any:
    """Hand over an object, if the policy lets it leave; write it into the ledger.

    A copy leaves of what the worker published, of what others hold pointers to, and of an attribute.
    """
    require_identity(message.user, sender, message.id, str(worker.id))
    entry = worker.object_store.entry(message.id)
    require_permission(worker.policy, entry, sender, message.id, str(worker.id))
    require_success(entry, message.id, worker)
    value = attribute(entry.value, message.attr)
    if message.attr is None and not message.keep:
        return _taken(worker, message.id, entry, sender, message.reason)
    record(worker, entry, message.id, sender, str(sender.id), message.reason)
    return _copied(value if value is None else restrict(value, entry.access))


def fetch_all(worker: Worker, message: FetchAll, sender: Peer) -> Any:
    """Hand over several objects, if the policy lets each of them leave."""
    require_identity(message.user, sender, message.ids, str(worker.id))
    entries = [worker.object_store.entry(id) for id in message.ids]
    for id, entry in zip(message.ids, entries, strict=True):
        require_permission(worker.policy, entry, sender, id, str(worker.id))
        require_success(entry, id, worker)
    pairs = zip(message.ids, entries, strict=True)
    taken = [_taken(worker, id, entry, sender, message.reason) for id, entry in pairs]
    return _all_of(taken) if any(hasattr(value, "throw") for value in taken) else taken


def _all_of(taken: list[Any]) -> Process:
    for place, value in enumerate(taken):
        if hasattr(value, "throw"):
            taken[place] = yield from value
    return taken


def _taken(worker: Worker, id: Id, entry: Stored, sender: Peer, reason: str) -> Any:
    """Return an object that leaves for good, or a copy of one that somebody else needs."""
    record(worker, entry, id, sender, str(sender.id), reason)
    value = restrict(entry.value, entry.access)
    if entry.is_needed_by_others(sender.id):
        entry.give_up(sender.id)
        return _copied(value)
    worker.object_store.remove(id, f"it was fetched by {str(sender)!r}")
    return value


def _copied(value: Any) -> Any:
    """Return what may be given away of ``value``, which stays; only what it points to elsewhere must be copied."""
    return _ask_for_copy(value) if ends_elsewhere(value) else value


def _ask_for_copy(value: Any) -> Process:
    return (yield Elsewhere(partial(copy_of, value)))


def forward(worker: Worker, message: Forward, sender: Peer) -> Any:
    """Send an object to another worker, or keep a copy of it here under another id."""
    entry = worker.object_store.entry(message.id)
    value = attribute(entry.value, message.attr)
    if message.destination != worker.id:
        return _forward(worker, message, sender, entry, value)
    if ends_elsewhere(value):
        return _copy_here(worker, message, sender, entry, value)
    return _keep_copy(worker, message, sender, entry, hand_over(value, worker))


def _copy_here(worker: Worker, message: Forward, sender: Peer, entry: Stored, value: Any) -> Process:
    copied = yield Elsewhere(lambda: hand_over(copy_of(value), worker))
    return _keep_copy(worker, message, sender, entry, copied)


def _keep_copy(worker: Worker, message: Forward, sender: Peer, entry: Stored, copied: Any) -> None:
    twin = Stored(copied, sender.id)
    derive([twin], [entry])
    worker.object_store.put(message.new_id, twin)
    own(worker, copied, message.new_id)


def _forward(worker: Worker, message: Forward, sender: Peer, entry: Stored, value: Any) -> Process:
    destination = worker.location_of(message.destination)
    _let_go(worker, message.id, sender, destination.id, "moved")
    stays = message.keep or message.requires_grad or entry.is_needed_by_others(sender.id)
    origin = None
    if message.requires_grad:  # The copy holds on to what it was copied from, to give the gradient back.
        entry.lease(destination.id)
        origin = (worker.id, message.id)
    if stays and ends_elsewhere(value):
        value = yield Elsewhere(partial(copy_of, value))
    sent = restrict(value, entry.access)
    try:
        yield Ask(destination, Store(message.new_id, sent, origin=origin, holder=sender.id))
    except BaseException:
        if origin is not None:
            entry.release(destination.id)
        raise
    if stays and not message.keep:
        entry.release(sender.id)
    elif not stays and message.id in worker.object_store:
        worker.object_store.remove(message.id, f"{str(sender)!r} moved it to {destination.id!r}")


def send_on(worker: Worker, message: SendOn, sender: Peer) -> Process | None:
    """Send an object to another worker, and keep a pointer to it in its place."""
    entry = worker.object_store.entry(message.id)
    return None if message.destination == worker.id else _send_on(worker, message, sender, entry)


def _send_on(worker: Worker, message: SendOn, sender: Peer, entry: Stored) -> Process:
    destination = worker.location_of(message.destination)
    _let_go(worker, message.id, sender, destination.id, "sent on")
    framework, id = framework_of(entry.value), new_id()
    yield Ask(destination, Store(id, restrict(entry.value, entry.access)))
    entry.hold(framework.wrapper(PointerTensor(destination, id, framework, owner=worker)))
    own(worker, entry.value, message.id)


def get_back(worker: Worker, message: GetBack, sender: Peer) -> Process:
    """Fetch what a stored pointer points to, and keep it in the pointer's place."""
    entry = worker.object_store.entry(message.id)
    pointer = getattr(entry.value, "child", None)
    if not isinstance(pointer, PointerTensor):
        raise InvalidTensorForRemoteGetError.on(message.id, worker.id)
    try:
        value = yield Elsewhere(pointer.get)
    except OperationFailedError:
        value = yield Elsewhere(partial(zeros_for_nobody, pointer))
    entry.hold(value)
    own(worker, entry.value, message.id)
    fetched = Stored(entry.value, worker.id)
    fetched.access, fetched.sources = get_allowed_users(entry.value), entry.sources
    entry.access = lineage_of([entry, fetched])[0]


def lease(worker: Worker, message: Lease, sender: Peer) -> None:
    """Count one more pointer."""
    holder = sender.id if message.holder is None else message.holder
    entries = [worker.object_store.entry(id) for id in message.ids]
    for entry in entries:
        entry.lease(holder)


def release(worker: Worker, message: Release, sender: Peer) -> None:
    """Count one pointer less."""
    worker.object_store.release(deque((id, sender.id) for id in message.ids))
    session = worker.sessions.get(sender.id)
    if session is not None and session.poisoned:
        for id in message.ids:
            session.poisoned.pop(id, None)


def describe(worker: Worker, message: Describe, sender: Peer) -> list[Form | None]:
    """Return the forms of objects, or of the same attribute of each."""
    entries = [worker.object_store.entry(id) for id in message.ids]
    return [form_of(attribute(entry.value, message.attr)) for entry in entries]


def tag(worker: Worker, message: Tag, sender: Peer) -> None:
    """Tag, describe or publish an object."""
    entry = worker.object_store.entry(message.id)
    if message.tags or message.description is not None:
        require_right_to_tag(worker, entry, message.id, sender)
    if message.publish:
        require_right_to_publish(worker, entry, message.id, sender)
        entry.published, entry.touched = True, False
    worker.object_store.tag(message.id, message.tags, message.description)
    if hasattr(type(entry.value), "_syft_tags"):
        entry.value._syft_tags, entry.value._syft_description = set(entry.tags), entry.description


def search(worker: Worker, message: Search, sender: Peer) -> list[Any]:
    """Find objects; return their ids, tags and kinds, with a lease for each."""
    found = []
    for id in worker.object_store.search(message.query):
        entry = worker.object_store.entry(id)
        entry.lease(sender.id)
        found.append((id, tuple(sorted(entry.tags)), entry.description, _kind_of(entry.value)))
    return found


def _kind_of(value: Any) -> str:
    if is_tensor(value):
        return framework_of(value).ALIAS
    return CALLABLE if isinstance(value, ObjectWrapper) else OBJECT


def call(worker: Worker, message: Call, sender: Peer) -> Any:
    """Call a callable that the worker's owner stored here, with stored objects.

    Its tensors stay; any other result leaves, if nothing that it was computed from is kept from the caller.
    """
    entry = worker.object_store.entry(message.id)
    if not isinstance(entry.value, ObjectWrapper):
        raise ValueRefusedError.only_local(f"calling object {message.id!r}", str(worker.id))
    parents = [entry]
    args = resolve(worker, message.args, parents, [])
    kwargs = dict(zip(message.kwargs, resolve(worker, tuple(message.kwargs.values()), parents, []), strict=True))
    name = f"a call of {message.id!r}"
    try:
        result = entry.value.obj(*args, **kwargs)
    except SyftError:
        raise
    except Exception as error:
        _require_telling(worker, name, sender, parents, error)
        raise
    if any(leaf is not None and not build_rule(leaf) for leaf in leaves(result)):
        if not may_leave(worker, parents, sender):
            raise ValueRefusedError.of(name, str(worker.id))
        for parent in parents:
            require_success(parent, message.id, worker)
        record(worker, entry, message.id, sender, str(sender.id), "result of a call")
    kept = sum(1 for leaf in leaves(result) if build_rule(leaf))
    worker.object_store.require_free(range(message.result, message.result + kept))
    lineage, ids = lineage_of(parents), itertools.count(message.result)

    def kept_or_told(leaf: Any) -> Any:
        if not build_rule(leaf):
            return leaf
        return replace(keep(worker, leaf, next(ids), sender, lineage), framework=framework_of(leaf).ALIAS)

    return map_leaves(kept_or_told, result)


Handler = Callable[[Any, Any, Peer], Any]

HANDLERS: dict[type[Message], Handler] = {
    Store: store,
    Run: run,
    Fetch: fetch,
    FetchAll: fetch_all,
    Forward: forward,
    Lease: lease,
    Release: release,
    Describe: describe,
    Tag: tag,
    Search: search,
    Call: call,
    SendOn: send_on,
    GetBack: get_back,
}


def _require_telling(worker: Worker, op: str, sender: Peer, parents: list[Stored], error: Exception) -> None:
    """Hide the text of an error about objects that the sender may not have: it may quote them."""
    if not may_leave(worker, parents, sender):
        raise ValueRefusedError.failed(op, str(worker.id), type(error).__name__) from None


def _let_go(worker: Worker, id: Id, sender: Peer, destination: Id, reason: str) -> None:
    """Let an object go to another worker, if the policy lets it leave to the sender; write it into the ledger."""
    entry = worker.object_store.entry(id)
    require_permission(worker.policy, entry, sender, id, str(worker.id))
    require_success(entry, id, worker)
    record(worker, entry, id, sender, str(destination), reason)
