"""Kinds of objects other than tensors that a worker stores; features register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syft_core.exceptions import AlreadyRegisteredError
from syft_core.features import FEATURES
from syft_core.values import Given


@dataclass(frozen=True)
class ObjectKind:
    """How a worker stores the objects of one class."""

    name: str
    """The kind in search results."""
    require_usable: Callable[[Given, Given], None]
    """A function of the worker and the object: raise unless the worker can use the object."""
    bind: Callable[[Given, Given], object]
    """A function of the worker and the stored object: connect it with the objects on the worker that it needs."""
    bytes_of: Callable[[Given], int]
    """A function of the object: its size in bytes."""


KINDS: dict[type, ObjectKind] = {}


def find_kind(cls: type) -> ObjectKind | None:
    """Return how a worker stores objects of a class, or None if no feature supports them."""
    if cls not in KINDS:
        FEATURES.load_type(cls)
    return KINDS.get(cls)


def register_kind(cls: type, kind: ObjectKind) -> None:
    """Let workers store objects of a class; registering the same kind again has no effect."""
    if KINDS.get(cls, kind) != kind:
        raise AlreadyRegisteredError.of("kinds of objects", cls.__name__)
    KINDS[cls] = kind
