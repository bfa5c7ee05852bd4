"""Transfer objects between workers of one process, so that they never share memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from syft_core.exceptions import TooManyHopsError
from syft_core.hook.chain import end_of, is_chain
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, map_leaves
from syft_core.location import Location, Party
from syft_core.messages import Lease
from syft_core.peer import Id
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.object_pointer import Here, ObjectPointer, id_here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import deserialize, serialize
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import get_identity, set_identity
from syft_core.values import Tensor

_IMMUTABLE = frozenset({int, float, bool, str, bytes, complex, type(None), type(Ellipsis), range, type, frozenset})


def hand_over(value: object, receiver: Party) -> Tensor:
    """Return a copy of ``value`` for ``receiver``: tensors are copied, pointers get their own lease."""
    cls = type(value)
    if cls in _IMMUTABLE:
        return value
    if is_framework_tensor(cls):
        return framework_of(value).transfer(value)
    if isinstance(value, ObjectPointer):
        return hand_over_pointer(value, receiver)
    if is_chain(value):
        return rebuild(value, lambda end: hand_over(end, receiver))
    if not is_flat(cls):
        return map_leaves(lambda leaf: hand_over(leaf, receiver), value)
    return deserialize(serialize(value))


def give_away(values: list[Tensor], receiver: Party, held: int = 0) -> list[Any]:
    """Empty ``values`` and return them for ``receiver``; copy only those that are referenced elsewhere too.

    The caller holds ``held`` more references to each value, and drops them. If one value cannot be copied, ``values``
    is unchanged.
    """
    values.reverse()
    given = []
    while values:
        value = values.pop()
        others = sys.getrefcount(value) - _ONLY_HERE - held
        framework = frameworks_of_types.get(type(value))
        if framework is None and is_framework_tensor(type(value)):
            framework = framework_of(value)
        mine = None if framework is None else framework.transfer_ownership(value, others)
        try:
            given.append(hand_over(value, receiver) if mine is None else mine)
        except BaseException:
            values[:] = [*given, value, *reversed(values)]
            raise
    return given


_ONLY_HERE = 2
"""The reference count of an object held by one variable: that one, and the argument of ``getrefcount``."""


def hand_over_pointer(pointer: ObjectPointer, receiver: Party) -> Tensor:
    """Return a pointer to the same object that belongs to the receiver, with its own lease."""
    lent = lend(pointer, receiver.id)
    location = receiver.location_of(pointer.location_id)
    if lent.travels_with_lease:
        location.note_alias(lent.id_at_location)
    taken = lent.sibling(location=location, owner=receiver, garbage_collect_data=lent.travels_with_lease)
    taken.lender = pointer._location.client.id
    return taken


def adopt(value: object, lender: Id) -> None:
    """Make the pointers in a received object hold the leases that their sender claims to have taken for them.

    A false claim is harmless: workers count leases by lender, so releasing a missing lease has no effect.
    """
    for pointer in _pointers_in(value):
        if pointer.travels_with_lease:
            pointer.garbage_collect_data, pointer.travels_with_lease, pointer.lender = True, False, lender


def require_elsewhere(worker: Party, value: object) -> None:
    """Raise if an object contains a pointer to the worker that would store it."""
    if any(id_here(pointer, worker.id) is not None for pointer in _pointers_in(value)):
        raise TooManyHopsError.itself(worker.id)


def _pointers_in(value: object) -> list[Tensor]:
    end = end_of(value)
    if isinstance(end, MultiPointerTensor):
        return list(end.child.values())
    return [end] if isinstance(end, ObjectPointer | Here) else []


def lend(pointer: ObjectPointer, receiver: Id) -> ObjectPointer:
    """Return a pointer to send to ``receiver``, with a new lease for it."""
    if (message := _lease_for(pointer, receiver)) is not None:
        pointer._location.tell(message)
    return _mark_lent(pointer)


def _lease_for(pointer: ObjectPointer, receiver: Id) -> Lease | None:
    pointer.require_alive()
    has_lease = pointer.garbage_collect_data and pointer.point_to_attr is None
    return Lease((pointer.id_at_location,), receiver) if has_lease else None


def _mark_lent(pointer: ObjectPointer) -> ObjectPointer:
    lent: ObjectPointer = pointer.sibling(garbage_collect_data=False)
    lent.travels_with_lease = pointer.garbage_collect_data and pointer.point_to_attr is None
    return lent


def attach_leases(value: object, receiver: Location) -> Tensor:
    """Return ``value`` with new leases for the receiver on every pointer in it, and let the receiver use them."""

    def lend_usable(pointer: ObjectPointer) -> ObjectPointer:
        receiver.introduce(pointer._location, (pointer.id_at_location,))
        return lend(pointer, receiver.id)

    return _replace_pointers(lend_usable, value) if ends_elsewhere(value) else value


def lend_all(value: object, receiver: Id) -> Tensor:
    """Return an object, or a list of objects, with new leases for the receiver on every pointer."""
    if type(value) is list:
        return [lend_all(item, receiver) for item in value]
    if not ends_elsewhere(value):
        return value
    for pointer in _pointers_in(value):
        if (message := _lease_for(pointer, receiver)) is not None:
            pointer._location.ask(message)
    return _replace_pointers(_mark_lent, value)


def _replace_pointers(replace: Callable[[Any], Any], value: object) -> Tensor:
    return replace(value) if isinstance(value, ObjectPointer) else rebuild(value, partial(map_leaves, replace))


def copy_of(value: object) -> Tensor:
    """Return ``value`` with copies, on their workers, of the objects it points to."""
    return _replace_pointers(PointerTensor.copy, value) if ends_elsewhere(value) else value


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a tensor of a framework or a chain."""
    return is_framework_tensor(type(value)) or is_chain(value)


def ends_elsewhere(value: object) -> bool:
    """Return whether ``value`` is, or ends in, a pointer."""
    return not is_framework_tensor(type(value)) and isinstance(end_of(value), ObjectPointer | MultiPointerTensor)


def rebuild(chain: Tensor, replace: Callable[[Any], Any]) -> Tensor:
    """Return a copy of a chain whose end is replaced by ``replace(end)``."""
    below = chain.child
    child = rebuild(below, replace) if is_chain(below) and not isinstance(below, ObjectPointer) else replace(below)
    if isinstance(chain, AbstractTensor):
        twin = chain.copy_onto(child)
    else:
        twin = type(chain)(child)
        if getattr(chain, "_is_param", False):
            twin._is_param = True
    return set_identity(twin, get_identity(chain))
