"""Walk along a chain: the wrapper, the layers under it, and its end."""

from __future__ import annotations

from collections.abc import Iterator

from syft_core.hook.ranks import TRANSPARENT, WRAPPER, framework_types, is_framework_tensor
from syft_core.values import Tensor


def iter_links(value: object) -> Iterator[Tensor]:
    """Yield ``value`` and everything under it, outermost first."""
    while value is not None:
        yield value
        value = getattr(value, "child", None)


def end_of(value: object) -> Tensor:
    """Return the end of a chain: a plain tensor, a pointer, or a layer with several children."""
    while (child := getattr(value, "child", None)) is not None and not isinstance(child, dict):
        value = child
    return value


def plain_end(value: object) -> Tensor:
    """Return the plain tensor at the end of a chain, or None if its end is remote or not a tensor."""
    if framework_types.get(type(value)) or is_framework_tensor(type(value)):
        return value
    end = end_of(value)
    return end if is_framework_tensor(type(end)) else None


def plain_below(value: object) -> Tensor:
    """Return the plain tensor under transparent layers, or None if there is none."""
    while (child := getattr(value, "child", None)) is not None:
        if getattr(type(value), "rank", 0) < TRANSPARENT:
            return None
        value = child
    return value if is_framework_tensor(type(value)) else None


def is_wrapper(value: object) -> bool:
    """Return whether ``value`` is a wrapper."""
    return getattr(type(value), "rank", None) == WRAPPER


def below_wrapper(value: Tensor) -> Tensor:
    """Return the first layer under a wrapper; return anything else unchanged."""
    return value.child if is_wrapper(value) else value


def is_chain(value: object) -> bool:
    """Return whether ``value`` is a wrapper or a layer."""
    return getattr(type(value), "rank", None) is not None
