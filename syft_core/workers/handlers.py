"""What a worker does with each message; the only things that a peer can make it do."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from syft_core.exceptions import InvalidTensorForRemoteGetError, SyftError, ValueRefusedError
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import dispatch, framework_of, plain_below
from syft_core.hook.forms import is_constant
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import build_rule, is_flat, leaves, map_leaves
from syft_core.messages import (
    Call,
    Describe,
    DescribeAll,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    Lease,
    Message,
    Named,
    Placed,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import CALLABLE, OBJECT
from syft_core.tensors.private import allowed_users_of, restricted
from syft_core.workers.changes import WATCHED, marks, note_changes, run_watched
from syft_core.workers.failures import answer_failure, fetched_blindly, require_success
from syft_core.workers.ledger import record
from syft_core.workers.permissions import (
    may_leave,
    require_identity,
    require_permission,
    require_right_to_publish,
    require_right_to_tag,
    unless_private,
)
from syft_core.workers.store import Lineage, Stored, derive, lineage_of
from syft_core.workers.transfer import copy_of, is_tensor

CAME_ALONG = frozenset({"what came along"})
"""The source of a chain that was no object here, but an argument of a command."""
READABLE = frozenset({"grad", "data"})
"""The attributes that a pointer may point to."""


def store(worker: Any, message: Store, sender: Any) -> None:
    """Keep an object."""
    value = message.value
    if isinstance(value, ObjectWrapper):
        raise ValueRefusedError.only_local("storing a callable", str(worker.id))
    framework_of(value)  # Or it is no tensor: nothing that others may ask for could be said of it.
    entry = Stored(value, sender.id if message.holder is None else message.holder)
    entry.published = message.publish
    entry.giver = worker.identity_of(sender, None)
    if message.origin is not None:
        entry.origin = message.origin
        entry.origin.garbage_collect_data, entry.origin.travels_with_lease = True, False
    worker.object_store.put(message.id, entry)
    own(worker, value, message.id)
    tags, description = getattr(value, "_syft_tags", None), getattr(value, "_syft_description", None)
    if tags or description:
        worker.object_store.tag(message.id, tags or (), description)


def run(worker: Any, message: Run, sender: Any) -> Any:
    """Run an operation of the op table on stored objects."""
    op = worker.attributes_of(message.framework).command(message.op)
    if op.reveals:
        raise ValueRefusedError.of(op.name, str(worker.id))
    if op.local or (op.spelling == "getter" and op.attr in READABLE):
        raise ValueRefusedError.only_local(op.name, str(worker.id))
    parents: list[Stored] = []
    args, kwargs = resolve(worker, message.args, parents), message.kwargs
    if kwargs:
        kwargs = dict(zip(kwargs, resolve(worker, tuple(kwargs.values()), parents), strict=True))
    worker.stats.operations += 1
    lineage = lineage_of(parents)
    try:
        if lineage[0] is None and op.operation not in WATCHED and worker.policy is unless_private:
            result = compute(worker, op, message, args, kwargs)
        else:
            result = run_watched(
                worker, op, message, sender, args, kwargs, parents, lambda: compute(worker, op, message, args, kwargs)
            )
    except Exception as error:  # noqa: BLE001  # whatever it is, the sender may have to be kept from knowing it
        again = partial(compute, worker, op, message)
        result, lineage = answer_failure(worker, op, message, sender, args, kwargs, parents, error, again)
    if op.inplace or (kwargs and kwargs.get("out") is not None):
        note_changes(worker, op, message, parents, lineage)
        return None
    return keep_results(worker, op.name, result, message.result, sender.id, lineage)


def compute(worker: Any, op: Op, message: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation under the settings of the caller; note whether its target has another form then."""
    target = kwargs.get("out") if kwargs else None
    if target is None and op.inplace and args:
        target = args[0]
    form = None if target is None else marks(target)
    if message.modes is None:
        result = dispatch(op, args, kwargs)
    else:
        with worker.attributes_of(message.framework).under(message.modes):
            result = dispatch(op, args, kwargs)
    if target is not None and form != marks(target):
        worker.forms_changed += 1
    return result


def fetch(worker: Any, message: Fetch, sender: Any) -> Any:
    """Hand over an object, if the policy lets it leave; write it into the ledger.

    A copy leaves of what the worker published, of what others hold pointers to, and of an attribute.
    """
    user = identify(worker, message, message.id, sender)
    entry = worker.object_store.entry(message.id)
    require_permission(worker.policy, entry, user, message.id, str(worker.id))
    require_success(entry, message.id, worker)
    value = attribute(entry.value, message.attr)
    if message.attr is None and not message.keep:
        return _taken(worker, message.id, entry, user, sender, message.reason)
    record(worker, entry, message.id, user, str(sender.id), message.reason)
    return copy_of(value if value is None else restricted(value, entry.access))


def fetch_all(worker: Any, message: FetchAll, sender: Any) -> list[Any]:
    """Hand over several objects, if the policy lets each of them leave."""
    user = identify(worker, message, message.ids, sender)
    entries = [worker.object_store.entry(id) for id in message.ids]
    for id, entry in zip(message.ids, entries, strict=True):
        require_permission(worker.policy, entry, user, id, str(worker.id))
        require_success(entry, id, worker)
    return [
        _taken(worker, id, entry, user, sender, message.reason) for id, entry in zip(message.ids, entries, strict=True)
    ]


def identify(worker: Any, message: Any, id: Any, sender: Any) -> str:
    """Return who asks for an object; refuse a claim to be somebody else."""
    user: str = worker.identity_of(sender, message.user)
    require_identity(message.user, user, id, str(worker.id))
    return user


def _taken(worker: Any, id: int | str, entry: Stored, user: str, sender: Any, reason: str) -> Any:
    """Return an object that leaves for good, or a copy of one that somebody else needs."""
    record(worker, entry, id, user, str(sender.id), reason)
    value = restricted(entry.value, entry.access)
    if entry.is_needed_by_others(sender.id):
        entry.give_up(sender.id)
        return copy_of(value)
    worker.object_store.remove(id, f"it was fetched by {user!r}")
    return value


def forward(worker: Any, message: Forward, sender: Any) -> None:
    """Send an object on to another worker, or keep a copy of it here under another id."""
    entry = worker.object_store.entry(message.id)
    value = attribute(entry.value, message.attr)
    if message.destination is worker:
        twin = Stored(worker.hand_over(copy_of(value), worker), sender.id)
        derive([twin], [entry])
        worker.object_store.put(message.new_id, twin)
        own(worker, twin.value, message.new_id)
        return
    _let_go(worker, message.id, sender, message.destination, "moved")
    stays = message.keep or message.requires_grad or entry.is_needed_by_others(sender.id)
    origin = None
    if message.requires_grad:  # The copy holds on to what it was copied from, to give the gradient back.
        entry.lease(message.destination.id)
        origin = PointerTensor(worker, message.id, framework_of(value), garbage_collect_data=False)
        origin._syft_owner, origin.travels_with_lease = message.destination, True
    sent = restricted(copy_of(value) if stays else value, entry.access)
    message.destination.ask(Store(message.new_id, sent, origin=origin, holder=sender.id), worker)
    if stays and not message.keep:
        entry.release(sender.id)
    elif not stays:
        user = worker.identity_of(sender, None)
        worker.object_store.remove(message.id, f"{user!r} moved it to {message.destination.id!r}")


def send_on(worker: Any, message: SendOn, sender: Any) -> None:
    """Send an object on to another worker, and keep a pointer to it in its place."""
    entry = worker.object_store.entry(message.id)
    if message.destination is worker:
        return
    _let_go(worker, message.id, sender, message.destination, "sent on")
    framework, id = framework_of(entry.value), new_id()
    message.destination.ask(Store(id, restricted(entry.value, entry.access)), worker)
    entry.value = framework.wrapper(PointerTensor(message.destination, id, framework, owner=worker))
    own(worker, entry.value, message.id)


def get_back(worker: Any, message: GetBack, sender: Any) -> None:
    """Fetch what a stored pointer points to, and keep it in the pointer's place."""
    entry = worker.object_store.entry(message.id)
    pointer = getattr(entry.value, "child", None)
    if not isinstance(pointer, ObjectPointer):
        raise InvalidTensorForRemoteGetError.on(message.id, worker.id)
    entry.value = fetched_blindly(pointer)
    own(worker, entry.value, message.id)
    fetched = Stored(entry.value, worker.id)
    fetched.access, fetched.sources = allowed_users_of(entry.value), entry.sources
    entry.access = lineage_of([entry, fetched])[0]


def lease(worker: Any, message: Lease, sender: Any) -> None:
    """Count one more pointer."""
    holder = sender.id if message.holder is None else message.holder
    entries = [worker.object_store.entry(id) for id in message.ids]
    for entry in entries:
        entry.lease(holder)


def release(worker: Any, message: Release, sender: Any) -> None:
    """Count one pointer less."""
    worker.object_store.release(deque((id, sender.id) for id in message.ids))


def describe(worker: Any, message: Describe, sender: Any) -> dict[str, Any] | None:
    """Say what form an object has.

    Strides are said only of plain data and layers that leave it as it is, for which the form says all that matters;
    a plain tensor of an unusual kind has a dtype that may not travel.
    """
    return _form_of(worker, message.id, message.attr)


def describe_all(worker: Any, message: DescribeAll, sender: Any) -> list[dict[str, Any] | None]:
    """Say what forms several objects have."""
    return [_form_of(worker, id, message.attr) for id in message.ids]


def _form_of(worker: Any, id: int | str, attr: str | None) -> dict[str, Any] | None:
    value = attribute(worker.object_store.entry(id).value, attr)
    if value is None:
        return None
    plain = plain_below(value)
    form = None if plain is None else framework_of(plain).form_of(plain)
    names = ("shape", "requires_grad", "is_leaf") if plain is not None and form is None else _TOLD
    told = {name: getattr(value, name, None) for name in names}
    return {**told, "strides": None if form is None else form.strides}


_TOLD = ("shape", "dtype", "device", "requires_grad", "is_leaf")


def tag(worker: Any, message: Tag, sender: Any) -> None:
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


def search(worker: Any, message: Search, sender: Any) -> list[Any]:
    """Find objects; say their ids, tags and kinds, with a lease for each."""
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


def call(worker: Any, message: Call, sender: Any) -> Any:
    """Call a callable that the worker's owner stored here, with stored objects.

    Its tensors stay; any other result leaves, if nothing that it was computed from is kept from the caller.
    """
    entry = worker.object_store.entry(message.id)
    if not isinstance(entry.value, ObjectWrapper):
        raise ValueRefusedError.only_local(f"calling object {message.id!r}", str(worker.id))
    parents = [entry]
    args = resolve(worker, message.args, parents)
    kwargs = dict(zip(message.kwargs, resolve(worker, tuple(message.kwargs.values()), parents), strict=True))
    name = f"a call of {message.id!r}"
    try:
        result = entry.value.obj(*args, **kwargs)
    except SyftError:
        raise
    except Exception as error:
        require_telling(worker, name, sender, parents, error)
        raise
    if any(leaf is not None and not build_rule(leaf) for leaf in leaves(result)):
        if not may_leave(worker, parents, sender):
            raise ValueRefusedError.of(name, str(worker.id))
        for parent in parents:
            require_success(parent, message.id, worker)
        user = worker.identity_of(sender, None)
        record(worker, entry, message.id, user, str(getattr(sender, "id", "?")), "result of a call")
    kept = sum(1 for leaf in leaves(result) if build_rule(leaf))
    worker.object_store.require_free(range(message.result, message.result + kept))
    lineage, ids = lineage_of(parents), itertools.count(message.result)
    return map_leaves(
        lambda leaf: (
            Named(framework_of(leaf).ALIAS, (_keep(worker, leaf, next(ids), sender.id, lineage),))
            if build_rule(leaf)
            else leaf
        ),
        result,
    )


HANDLERS: dict[type[Message], Callable[[Any, Any, Any], Any]] = {
    Store: store,
    Run: run,
    Fetch: fetch,
    FetchAll: fetch_all,
    Forward: forward,
    Lease: lease,
    Release: release,
    Describe: describe,
    DescribeAll: describe_all,
    Tag: tag,
    Search: search,
    Call: call,
    SendOn: send_on,
    GetBack: get_back,
}


# --- what the handlers share


def resolve(worker: Any, args: tuple[Any, ...], parents: list[Stored]) -> tuple[Any, ...]:
    """Replace pointers to this worker by what they point to, and note those objects in ``parents``."""
    values = []
    for arg in args:
        cls = type(arg)
        if cls is PointerTensor and arg._location is worker:
            entry = worker.object_store.entry(arg._id_at_location)
            parents.append(entry)
            values.append(entry.value if arg.point_to_attr is None else attribute(entry.value, arg.point_to_attr))
        elif cls in _NUMBERS:
            values.append(arg)
        else:
            values.append(map_leaves(partial(_resolved, worker, parents), arg))
    return tuple(values)


_NUMBERS = frozenset({int, float, bool, str, type(None)})


def _resolved(worker: Any, parents: list[Stored], leaf: Any) -> Any:
    if isinstance(leaf, ObjectPointer) and leaf._location is worker:
        entry = worker.object_store.entry(leaf._id_at_location)
        parents.append(entry)
        return attribute(entry.value, leaf.point_to_attr)
    if getattr(leaf, "child", None) is not None:  # A chain that came along may restrict what is computed from it.
        parents.append(came := Stored(leaf, worker.id))
        came.access, came.sources = allowed_users_of(leaf), CAME_ALONG
    return leaf


def attribute(value: Any, name: str | None) -> Any:
    """Return an attribute of ``value`` that a pointer may point to, or ``value`` itself."""
    if name is None:
        return value
    if name not in READABLE:
        raise ValueRefusedError.only_local(f"reading {name!r}", "the worker")
    return getattr(value, name)


def keep_results(worker: Any, op: str, result: Any, first: int, holder: Any, lineage: Lineage) -> Any:
    """Store the tensors of ``result`` under the ids from ``first`` on; return it with placeholders for them.

    What is no tensor must be a fact about form: this is the only road on which an answer leaves.
    """
    cls = type(result)
    if is_framework_tensor(cls):
        return _keep(worker, result, first, holder, lineage)
    if result is None:
        return None
    if is_flat(cls):
        if build_rule(result):
            return _keep(worker, result, first, holder, lineage)
        _require_facts(worker, op, (result,))
        return result
    parts = leaves(result)
    kept = [leaf for leaf in parts if build_rule(leaf)]
    _require_facts(worker, op, [leaf for leaf in parts if not build_rule(leaf)])
    worker.object_store.require_free(range(first, first + len(kept)))
    ids = itertools.count(first)
    return map_leaves(
        lambda leaf: _keep(worker, leaf, next(ids), holder, lineage) if build_rule(leaf) else leaf, result
    )


def _keep(worker: Any, value: Any, id: int, holder: Any, lineage: Lineage) -> Placed:
    entry = Stored(value, holder)
    entry.access, entry.sources = lineage
    worker.object_store.put(id, entry)
    return Placed(id)


def _require_facts(worker: Any, op: str, parts: Any) -> None:
    """Refuse an answer that may be a value; which operations tell yes or no about values is in the op table."""
    if not all(map(is_constant, parts)):
        raise ValueRefusedError.of(op, str(worker.id))


def require_telling(worker: Any, op: str, sender: Any, parents: list[Stored], error: Exception) -> None:
    """Hide the text of an error about objects that the sender may not have: it may quote them."""
    if not may_leave(worker, parents, sender):
        raise ValueRefusedError.failed(op, str(worker.id), type(error).__name__) from None


def own(worker: Any, value: Any, id: int | str) -> None:
    """Make ``value`` the worker's, where it can say so itself."""
    if hasattr(type(value), "_syft_id"):
        value._syft_id, value._syft_owner = id, worker


def _let_go(worker: Any, id: int | str, sender: Any, destination: Any, reason: str) -> None:
    """Let an object go to another worker, if the policy lets it leave to the sender; write it into the ledger."""
    entry = worker.object_store.entry(id)
    user = worker.identity_of(sender, None)
    require_permission(worker.policy, entry, user, id, str(worker.id))
    require_success(entry, id, worker)
    record(worker, entry, id, user, str(destination.id), reason)
