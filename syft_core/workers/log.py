"""The message log (``log_msgs=True``): names and forms only; it keeps no values and no objects alive."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from syft_core.hook.rules import build_rule, map_leaves
from syft_core.messages import Message
from syft_core.pictures import form_of
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.values import Tensor


def redact(message: Message) -> Message:
    """Return a copy of a message with pointers that hold no lease, and forms in place of tensors."""
    return type(message)(*[map_leaves(_without_data, getattr(message, field.name)) for field in fields(message)])


def _without_data(leaf: Tensor) -> Any:
    if isinstance(leaf, ObjectPointer):
        return leaf.sibling(garbage_collect_data=False)
    return form_of(leaf) if build_rule(leaf) else leaf
