"""The log of messages (``log_msgs=True``): what was said, by names and forms; it keeps no object alive and no value."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from syft_core.hook.rules import build_rule, map_leaves
from syft_core.messages import Message
from syft_core.pictures import form_of
from syft_core.pointers.object_pointer import ObjectPointer


def logged(message: Message) -> Message:
    """Return a message as the log keeps it: pointers without their leases, and the forms of tensors."""
    return type(message)(*[map_leaves(_without_data, getattr(message, field.name)) for field in fields(message)])


def _without_data(leaf: Any) -> Any:
    if isinstance(leaf, ObjectPointer):
        return leaf.sibling(garbage_collect_data=False)
    return form_of(leaf) if build_rule(leaf) else leaf
