"""Measure the memory of objects and messages, for the quota of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from math import prod
from typing import Any

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.rules import leaves
from syft_core.kinds import find_kind
from syft_core.messages import Message
from syft_core.values import Tensor
from syft_core.workers.party.store import Stored, is_leaf


def bytes_of(value: object) -> int:
    """Return the memory of a plan, or of the tensors in a value."""
    if (kind := find_kind(type(value))) is not None:
        return kind.bytes_of(value)
    return sum([framework_of(end).bytes_of(end) for end in ends_of(value)])


def bytes_of_copy(value: object) -> int:
    """Return the memory of a copy of a value, in which no elements share memory."""
    if (kind := find_kind(type(value))) is not None:
        return kind.bytes_of(value)
    total = 0
    for end in ends_of(value):
        framework = framework_of(end)
        known = framework.form_of(end)
        size = None if known is None or known.shape is None else prod(known.shape) * known.dtype.itemsize
        gradient = end.grad if is_leaf(end) else None
        total += framework.bytes_of(end) if size is None else size + bytes_of_copy(gradient)
    return total


def bytes_of_message(message: Message) -> int:
    """Return the memory of the tensors in a message, apart from the object that the receiver stores."""
    names = [field.name for field in fields(message) if field.name != message.facts.gives]
    return sum([bytes_of(getattr(message, name)) for name in names])


def bytes_of_words(tagged: Message | Stored) -> int:
    """Return about how many bytes tags and a description take."""
    return sum(map(len, getattr(tagged, "tags", ()))) + len(getattr(tagged, "description", None) or "")


def bytes_beyond(values: Iterable[object], others: Iterable[object]) -> int:
    """Return the memory of values, each part once, without those that share all of it with ``others``."""
    seen = Seen()
    for other in others:
        seen.add("", other)
    return sum([seen.add("", value) for value in values])


class Seen:
    """The memory that was counted for each user: tensors that share memory count once for one user."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int | str]] = set()
        self.stored: set[int | str] = set()
        """The memory of all objects of all users."""

    def add(self, user: str, value: object) -> int:
        """Return the memory of a value that was not counted for a user before."""
        if (kind := find_kind(type(value))) is not None:
            return kind.bytes_of(value)
        total = 0
        for end in ends_of(value):
            framework = framework_of(end)
            memory = framework.memory_of(end)
            self.stored.update(memory or ())
            keys = {(user, key) for key in memory or ()}
            if not keys or not keys <= self._seen:
                total += framework.bytes_of(end)
                self._seen |= keys
        return total

    def add_graphs(self, user: str, value: object) -> int:
        """Return the memory that only the graph of a value keeps in use; call it after all objects were added."""
        total = 0
        for end in ends_of(value):
            if getattr(end, "requires_grad", False):
                for key, size in framework_of(end).saved_by_graphs([end]).items():
                    if key not in self.stored and (user, key) not in self._seen:
                        self._seen.add((user, key))
                        total += size
        return total


def ends_of(value: object) -> list[Tensor]:
    """Return the plain tensors in a value that are on this worker."""
    found: list[Any] = [plain_end(leaf) for leaf in leaves(value)]
    return [end for end in found if end is not None]
