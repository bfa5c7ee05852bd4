"""Handing an object to another worker of the same process: the receiver never shares memory with the sender."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syft_core.hook.dispatch import HEAD, framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, map_leaves
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import deserialize, serialize
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import give_identity, identity_of

_IMMUTABLE = frozenset({int, float, bool, str, bytes, complex, type(None), type(Ellipsis), range, type, frozenset})


def hand_over(value: Any, receiver: Any) -> Any:
    """Return ``value`` as ``receiver`` may keep it: tensors as copies, pointers with their lease."""
    cls = type(value)
    if cls in _IMMUTABLE:
        return value
    if is_framework_tensor(cls):
        return framework_of(value).transfer(value)
    if isinstance(value, ObjectPointer):
        return hand_over_pointer(value, receiver)
    if _is_chain(value):
        return _rebuilt(value, lambda end: hand_over(end, receiver))
    if not is_flat(cls):
        return map_leaves(lambda leaf: hand_over(leaf, receiver), value)
    return deserialize(serialize(value))


def hand_over_pointer(pointer: ObjectPointer, receiver: Any) -> Any:
    """Give the lease of ``pointer`` to a pointer of the receiver's own."""
    leased = give_lease(pointer)
    return leased.sibling(owner=receiver, garbage_collect_data=leased.travels_with_lease)


def give_lease(pointer: Any) -> Any:
    """Return a pointer whose lease goes to whoever receives it; ``pointer`` itself keeps none."""
    pointer.require_alive()
    leased = pointer.sibling(garbage_collect_data=False)
    leased.travels_with_lease = pointer.garbage_collect_data
    pointer.garbage_collect_data = False
    return leased


def with_leases(value: Any) -> Any:
    """Return ``value``, a chain perhaps, whose pointers give their leases to the receiver of the message."""
    if isinstance(value, ObjectPointer):
        return give_lease(value)
    return _rebuilt(value, give_lease) if _ends_elsewhere(value) else value


def copy_of(value: Any) -> Any:
    """Return a chain that may be given away while ``value`` stays; only what it points to elsewhere is copied."""
    if isinstance(value, PointerTensor):
        return value.copy()
    return _rebuilt(value, lambda pointer: pointer.copy()) if _ends_elsewhere(value) else value


def is_tensor(value: Any) -> bool:
    """Say whether ``value`` is a tensor of some framework, plain or at the end of a chain."""
    return is_framework_tensor(type(value)) or _is_chain(value)


def _is_chain(value: Any) -> bool:
    return isinstance(value, AbstractTensor) or getattr(type(value), "rank", None) == HEAD


def _ends_elsewhere(value: Any) -> bool:
    while (child := getattr(value, "child", None)) is not None:
        value = child
    return isinstance(value, ObjectPointer)


def _rebuilt(chain: Any, of_end: Callable[[Any], Any]) -> Any:
    """Return a chain of the same layers on another end."""
    below = chain.child
    child = _rebuilt(below, of_end) if _is_chain(below) and not isinstance(below, ObjectPointer) else of_end(below)
    if isinstance(chain, AbstractTensor):
        twin = type(chain)(**chain.get_class_attributes())
        twin.child = child
    else:
        twin = type(chain)(child)
        if getattr(chain, "_is_param", False):
            twin._is_param = True
    return give_identity(twin, identity_of(chain))
