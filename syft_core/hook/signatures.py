"""The signature of a call: everything about its arguments, except values, that may affect its result."""

from __future__ import annotations

import math
from typing import Any, TypeAlias, TypeVar

from syft_core.hook.attributes import Op
from syft_core.hook.caches import remember
from syft_core.hook.chain import iter_links, plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.hook.rules import is_flat
from syft_core.values import Args, Kwargs

T = TypeVar("T")
ITEMS = "items"
"""Marks the signature of a container."""
Memo: TypeAlias = "dict[object, Any]"
"""Known facts about all calls of one signature; stages add more with ``note``."""
MAX_NOTES = 64
"""The maximum number of facts in a memo: peers choose the modes, and each mode has its own forms."""


def recall(signature: tuple[object, ...]) -> Memo:
    """Return the memo of a signature; a new one if there is none, or if the signature is not hashable."""
    try:
        found = _memos.get(signature)
    except TypeError:
        return {}
    return remember(_memos, signature, {}) if found is None else found


def note(memo: Memo, key: object, fact: T) -> T:
    """Add a fact to a memo, which is cleared first if it is full; return the fact."""
    if len(memo) >= MAX_NOTES:
        memo.clear()
    memo[key] = fact
    return fact


_memos: dict[tuple[object, ...], Memo] = {}


class Undescribed:
    """Stands for a tensor that a form does not describe. It is not hashable: no two calls with such tensors are alike.

    The size of a sparse tensor depends on its values, and a quantized one has other kinds of memory.
    """

    __slots__ = ("type",)
    __hash__ = None  # type: ignore[assignment]  # that is its purpose

    def __init__(self, kind: type) -> None:
        self.type = kind


def signature_of(op: Op, args: Args, kwargs: Kwargs) -> tuple[object, ...]:
    """Return the operation and a part for each argument.

    The part of a tensor is its form, or ``Undescribed``; that of a chain has the types of its layers, too. Keyword
    arguments are pairs of a name and a part. Not every signature is hashable.
    """
    parts: list[object] = [op]
    for arg in args:
        framework = frameworks_of_types.get(type(arg))
        parts.append(_part(op, arg) if framework is None else framework.form_of(arg) or Undescribed(type(arg)))
    if kwargs:
        parts += [(name, _part(op, arg)) for name, arg in kwargs.items()]
    return tuple(parts)


def _part(op: Op, arg: Any) -> object:
    cls = type(arg)
    if (framework := frameworks_of_types.get(cls)) is not None:
        return framework.form_of(arg) or Undescribed(cls)
    if cls is int or cls is bool or cls is str or arg is None:
        return cls, arg
    if cls is float:
        return cls, arg if op.shape_depends_on_floats else _range_of(arg)
    if not is_flat(cls):
        items = (arg.start, arg.stop, arg.step) if cls is slice else arg.items() if isinstance(arg, dict) else arg
        return cls, tuple([_part(op, item) for item in items]), ITEMS
    end = plain_end(arg)
    if end is None:
        return cls, arg
    form = framework_of(end).form_of(end) or Undescribed(type(end))
    return form if end is arg else (form, *map(type, iter_links(arg)))


def _range_of(number: float) -> tuple[float, bool, bool] | None:
    """Return the range that contains a float; a limit on probabilities or sizes holds for a whole range."""
    return None if math.isnan(number) else (math.copysign(1, number) if number else 0, number > 1, math.isinf(number))
