"""What a worker does with each message; the only things that a peer can make it do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.hook.rules import build_rule, is_flat, leaves, map_leaves
from syft_core.messages import Call, Describe, Fetch, Forward, Lease, Message, Placed, Release, Run, Search, Store, Tag
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.workers.ledger import Departure
from syft_core.workers.permissions import require_permission
from syft_core.workers.store import Stored, derive

READABLE = frozenset({"grad", "data"})
"""The attributes that a pointer may point to."""


def store(worker: Any, message: Store, sender: Any) -> None:
    """Keep an object."""
    value = message.value
    entry = Stored(value, published=message.publish)
    entry.sources = frozenset([message.id])
    entry.access = _access_of(value)
    if getattr(value, "requires_grad", False) is True:
        entry.graph = frozenset([message.id])
    worker.object_store.put(message.id, entry)
    own(worker, value, message.id)
    tags, description = getattr(value, "_syft_tags", None), getattr(value, "_syft_description", None)
    if tags or description:
        worker.object_store.tag(message.id, tags or (), description)


def run(worker: Any, message: Run, sender: Any) -> Any:
    """Run an operation of the op table on stored objects."""
    op = worker.attributes_of(message.framework).ops.named(message.op)
    if op.reveals:
        raise ValueRefusedError.of(op.name, str(worker.id))
    if op.local:
        raise ValueRefusedError.only_local(op.name, str(worker.id))
    parents: list[Stored] = []
    args, kwargs = resolve(worker, message.args, parents), message.kwargs
    if kwargs:
        kwargs = resolve(worker, kwargs, parents)
    worker.stats.operations += 1
    if message.modes is None:
        result = dispatch(op, args, kwargs)
    else:
        with worker.attributes_of(message.framework).under(message.modes):
            result = dispatch(op, args, kwargs)
    if op.inplace or op.operation in _CHANGES_OTHERS:
        _note_changes(worker, op, message, parents)
        if op.inplace:
            return None
    return keep_results(worker, result, message.result, parents)


_CHANGES_OTHERS = frozenset({"backward", "__setitem__", "requires_grad"})


def fetch(worker: Any, message: Fetch, sender: Any) -> Any:
    """Hand over an object, if the policy lets it leave; write it into the ledger."""
    entry = worker.object_store.entry(message.id)
    user = worker.identity_of(sender, message.user)
    require_permission(worker.policy, entry, user, message.id, str(worker.id))
    value = attribute(entry.value, message.attr)
    record(worker, entry, message.id, user, str(getattr(sender, "id", "?")), message.reason)
    if not message.keep:
        worker.object_store.remove(message.id, f"it was fetched by {user!r}")
    return value


def forward(worker: Any, message: Forward, sender: Any) -> None:
    """Send an object on to another worker, or keep a copy of it here under another id."""
    entry = worker.object_store.entry(message.id)
    value = attribute(entry.value, message.attr)
    if message.destination is worker:
        twin = Stored(worker.hand_over(value, worker))
        derive([twin], [entry])
        worker.object_store.put(message.new_id, twin)
        own(worker, twin.value, message.new_id)
        return
    user = worker.identity_of(sender, None)
    require_permission(worker.policy, entry, user, message.id, str(worker.id))
    record(worker, entry, message.id, user, str(message.destination.id), "moved")
    message.destination.ask(Store(message.new_id, value), worker)
    if not message.keep:
        worker.object_store.remove(message.id, f"{user!r} moved it to {message.destination.id!r}")


def lease(worker: Any, message: Lease, sender: Any) -> None:
    """Count one more pointer."""
    for id in message.ids:
        worker.object_store.entry(id).leases += 1


def release(worker: Any, message: Release, sender: Any) -> None:
    """Count one pointer less."""
    worker.object_store.release(message.ids)


def describe(worker: Any, message: Describe, sender: Any) -> dict[str, Any] | None:
    """Say what form an object has."""
    value = attribute(worker.object_store.entry(message.id).value, message.attr)
    if value is None:
        return None
    return {name: getattr(value, name, None) for name in ("shape", "dtype", "device", "requires_grad", "is_leaf")}


def tag(worker: Any, message: Tag, sender: Any) -> None:
    """Tag, describe or publish an object."""
    worker.object_store.tag(message.id, message.tags, message.description)
    if message.publish:
        worker.object_store.entry(message.id).published = True


def search(worker: Any, message: Search, sender: Any) -> list[Any]:
    """Find objects; say their ids, tags and frameworks, with a lease for each."""
    found = []
    for id in worker.object_store.search(message.query):
        entry = worker.object_store.entry(id)
        entry.leases += 1
        found.append((id, tuple(sorted(entry.tags)), entry.description, framework_of(entry.value).ALIAS))
    return found


def call(worker: Any, message: Call, sender: Any) -> Any:
    """Call a stored callable with stored objects."""
    parents: list[Stored] = []
    function = worker.object_store.entry(message.id).value
    args, kwargs = resolve(worker, message.args, parents), resolve(worker, message.kwargs, parents)
    return keep_results(worker, function(*args, **kwargs), message.result, parents)


HANDLERS: dict[type[Message], Callable[[Any, Any, Any], Any]] = {
    Store: store,
    Run: run,
    Fetch: fetch,
    Forward: forward,
    Lease: lease,
    Release: release,
    Describe: describe,
    Tag: tag,
    Search: search,
    Call: call,
}


# --- what the handlers share


def resolve(worker: Any, args: Any, parents: list[Stored]) -> Any:
    """Replace pointers to this worker by what they point to, and note those objects in ``parents``."""

    def value_of(leaf: Any) -> Any:
        if isinstance(leaf, ObjectPointer) and leaf._location is worker:
            entry = worker.object_store.entry(leaf._id_at_location)
            parents.append(entry)
            return entry.value if leaf.point_to_attr is None else attribute(entry.value, leaf.point_to_attr)
        return leaf

    if type(args) is not tuple:
        return map_leaves(value_of, args)
    return tuple([value_of(arg) if is_flat(type(arg)) else map_leaves(value_of, arg) for arg in args])


def attribute(value: Any, name: str | None) -> Any:
    """Return an attribute of ``value`` that a pointer may point to, or ``value`` itself."""
    if name is None:
        return value
    if name not in READABLE:
        raise ValueRefusedError.only_local(f"reading {name!r}", "the worker")
    return getattr(value, name)


def keep_results(worker: Any, result: Any, first: int, parents: list[Stored]) -> Any:
    """Store the tensors of ``result`` under the ids from ``first`` on; return it with placeholders for them."""
    if is_flat(type(result)):
        return _keep(worker, result, first, parents) if build_rule(result) else result
    kept = [leaf for leaf in leaves(result) if build_rule(leaf)]
    ids = iter(range(first, first + len(kept)))
    return map_leaves(
        lambda leaf: _keep(worker, leaf, next(ids), parents) if build_rule(leaf) else leaf, _as_plain(result)
    )


def _keep(worker: Any, value: Any, id: int, parents: list[Stored]) -> Placed:
    entry = Stored(value)
    if parents:
        derive((entry,), parents)
    worker.object_store.put(id, entry)
    return Placed(id)


def _as_plain(result: Any) -> Any:
    return result


def own(worker: Any, value: Any, id: int | str) -> None:
    """Make ``value`` the worker's, where it can say so itself."""
    if hasattr(type(value), "_syft_id"):
        value._syft_id, value._syft_owner = id, worker


def record(worker: Any, entry: Stored, id: int | str, user: str, to: str, reason: str) -> None:
    """Write a departure into the ledger."""
    form = f"{type(entry.value).__name__}{list(getattr(entry.value, 'shape', ()))}"
    sources = tuple(sorted(entry.sources, key=str))
    worker.ledger.record(Departure(time.time(), user, id, form, sources, to, reason))


def _note_changes(worker: Any, op: Op, message: Run, parents: list[Stored]) -> None:
    """Let what an operation changed take over the lineage of what it was changed with."""
    target = parents[0]
    derive([target], parents)
    if op.operation == "backward":
        for id in target.graph:
            if id in worker.object_store:
                leaf = worker.object_store.entry(id)
                derive([leaf], [leaf, target])
                leaf.graph = frozenset([id])
    elif getattr(target.value, "requires_grad", False) is True and getattr(target.value, "is_leaf", False) is True:
        target.graph = frozenset([message.args[0]._id_at_location])


def _access_of(value: Any) -> frozenset[str] | None:
    """Return the users to whom a chain restricts itself, or None."""
    allowed = None
    while value is not None:
        users = getattr(value, "allowed_users", None)
        if users is not None:
            allowed = frozenset(users) if allowed is None else allowed & frozenset(users)
        value = getattr(value, "child", None)
    return allowed
