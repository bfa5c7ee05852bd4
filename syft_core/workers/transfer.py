"""Handing an object to another worker of the same process: the receiver never shares memory with the sender."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from syft_core.exceptions import TooManyHopsError
from syft_core.hook.chain import end_of, is_chain
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, map_leaves
from syft_core.location import Party
from syft_core.messages import Lease
from syft_core.peer import Id
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.object_pointer import Here, ObjectPointer, id_here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import deserialize, serialize
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import get_identity, set_identity
from syft_core.workers.requests import Ask, Process

_IMMUTABLE = frozenset({int, float, bool, str, bytes, complex, type(None), type(Ellipsis), range, type, frozenset})


def hand_over(value: Any, receiver: Party) -> Any:
    """Return ``value`` as ``receiver`` may keep it: tensors as copies, pointers with a lease."""
    cls = type(value)
    if cls in _IMMUTABLE:
        return value
    if is_framework_tensor(cls):
        return framework_of(value).transfer(value)
    if isinstance(value, ObjectPointer):
        return hand_over_pointer(value, receiver)
    if is_chain(value):
        return rebuilt(value, lambda end: hand_over(end, receiver))
    if not is_flat(cls):
        return map_leaves(lambda leaf: hand_over(leaf, receiver), value)
    return deserialize(serialize(value))


def give_away(values: list[Any], receiver: Party) -> list[Any]:
    """Return what the receiver may keep of ``values``, which is emptied: copies of those that others have, too."""
    values.reverse()
    given = []
    while values:
        value = values.pop()
        others = sys.getrefcount(value) - _ONLY_HERE
        mine = framework_of(value).transfer_ownership(value, others) if is_framework_tensor(type(value)) else None
        given.append(hand_over(value, receiver) if mine is None else mine)
    return given


_ONLY_HERE = 2
"""How many references there are to an object that only a variable holds: that one, and one of who counts."""


def hand_over_pointer(pointer: ObjectPointer, receiver: Party) -> Any:
    """Return a pointer of the receiver's own to the same object, with a lease of its own."""
    lent = lend(pointer, receiver.id)
    location = receiver.location_of(pointer.location_id)
    if lent.travels_with_lease:
        location.note_alias(lent.id_at_location)
    taken = lent.sibling(location=location, owner=receiver, garbage_collect_data=lent.travels_with_lease)
    taken.lender = pointer._location.client.id
    return taken


def adopt(value: Any, lender: Id) -> None:
    """Let the pointers in a received object hold the leases that their sender says it took for them.

    If it took none there, giving them back changes nothing: a worker counts leases by who gave them.
    """
    for pointer in _pointers_in(value):
        if pointer.travels_with_lease:
            pointer.garbage_collect_data, pointer.travels_with_lease, pointer.lender = True, False, lender


def require_elsewhere(worker: Party, value: Any) -> None:
    """Raise if an object points to the very worker that is to keep it."""
    if any(id_here(pointer, worker.id) is not None for pointer in _pointers_in(value)):
        raise TooManyHopsError.itself(worker.id)


def _pointers_in(value: Any) -> list[Any]:
    """Return the pointers in which a chain ends: none, one or several."""
    if is_framework_tensor(type(value)):
        return []
    end = end_of(value)
    if isinstance(end, MultiPointerTensor):
        return list(end.child.values())
    return [end] if isinstance(end, ObjectPointer | Here) else []


def lend(pointer: ObjectPointer, receiver: Id) -> ObjectPointer:
    """Return a pointer that takes a lease along to ``receiver``; the lease of ``pointer`` itself stays."""
    if (message := _lease_for(pointer, receiver)) is not None:
        pointer._location.tell(message)
    return _lent(pointer)


def _lease_for(pointer: ObjectPointer, receiver: Id) -> Lease | None:
    pointer.require_alive()
    has_lease = pointer.garbage_collect_data and pointer.point_to_attr is None
    return Lease((pointer.id_at_location,), receiver) if has_lease else None


def _lent(pointer: ObjectPointer) -> ObjectPointer:
    lent: ObjectPointer = pointer.sibling(garbage_collect_data=False)
    lent.travels_with_lease = pointer.garbage_collect_data and pointer.point_to_attr is None
    return lent


def with_leases(value: Any, receiver: Id) -> Any:
    """Return ``value``, a chain perhaps, whose pointers take leases along to the receiver of the message."""
    return _with_pointers(lambda pointer: lend(pointer, receiver), value) if ends_elsewhere(value) else value


def lend_all(value: Any, receiver: Id) -> Process:
    """Do what ``with_leases`` does to an object, or to each of a list, as a part of a handler."""
    if type(value) is list:
        for place, item in enumerate(value):
            value[place] = yield from lend_all(item, receiver)
        return value
    if not ends_elsewhere(value):
        return value
    for pointer in _pointers_in(value):
        if (message := _lease_for(pointer, receiver)) is not None:
            yield Ask(pointer._location, message)
    return _with_pointers(_lent, value)


def _with_pointers(replace: Callable[[Any], Any], value: Any) -> Any:
    """Return a chain with other pointers at its end, one or several; ``replace`` makes each."""
    return replace(value) if isinstance(value, ObjectPointer) else rebuilt(value, partial(map_leaves, replace))


def copy_of(value: Any) -> Any:
    """Return a chain that may be given away while ``value`` stays; only what it points to elsewhere is copied."""
    return _with_pointers(PointerTensor.copy, value) if ends_elsewhere(value) else value


def is_tensor(value: Any) -> bool:
    """Return whether ``value`` is a tensor of some framework, plain or at the end of a chain."""
    return is_framework_tensor(type(value)) or is_chain(value)


def ends_elsewhere(value: Any) -> bool:
    """Return whether ``value`` is, or ends in, a pointer."""
    return not is_framework_tensor(type(value)) and isinstance(end_of(value), ObjectPointer | MultiPointerTensor)


def rebuilt(chain: Any, of_end: Callable[[Any], Any]) -> Any:
    """Return a chain of the same layers on another end, which ``of_end`` makes of the end that it has."""
    below = chain.child
    child = rebuilt(below, of_end) if is_chain(below) and not isinstance(below, ObjectPointer) else of_end(below)
    if isinstance(chain, AbstractTensor):
        twin = chain.copy_onto(child)
    else:
        twin = type(chain)(child)
        if getattr(chain, "_is_param", False):
            twin._is_param = True
    return set_identity(twin, get_identity(chain))
