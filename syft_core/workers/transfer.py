"""Handing an object to another worker of the same process: the receiver never shares memory with the sender."""

from __future__ import annotations

from typing import Any

from syft_core.hook.dispatch import HEAD, framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, map_leaves
from syft_core.pointers.object_pointer import ObjectPointer
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
    if isinstance(value, AbstractTensor) or getattr(cls, "rank", None) == HEAD:
        return _hand_over_chain(value, receiver)
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
    child = getattr(value, "child", None)
    if isinstance(child, ObjectPointer):
        return type(value)(give_lease(child))
    return value


def _hand_over_chain(chain: Any, receiver: Any) -> Any:
    child = hand_over(chain.child, receiver)
    if isinstance(chain, AbstractTensor):
        twin = type(chain)(**chain.get_class_attributes())
        twin.child = child
    else:
        twin = type(chain)(child)
        if getattr(chain, "_is_param", False):
            twin._is_param = True
    return give_identity(twin, identity_of(chain))
