"""Walk along a chain: the wrapper that a user holds, the layers under it, and what it ends in."""

from __future__ import annotations

from collections.abc import Iterator

from syft_core.hook.ranks import TRANSPARENT, WRAPPER, is_framework_tensor
from syft_core.values import Tensor


def iter_links(value: object) -> Iterator[Tensor]:
    """Yield ``value`` and everything under it, outermost first."""
    while value is not None:
        yield value
        value = getattr(value, "child", None)


def end_of(value: object) -> Tensor:
    """Return what a chain ends in: plain data, a pointer, or a layer that branches."""
    while (child := getattr(value, "child", None)) is not None and not isinstance(child, dict):
        value = child
    return value


def plain_end(value: object) -> Tensor:
    """Return the plain tensor that a chain ends in, or None when that is elsewhere, or is not a tensor."""
    if is_framework_tensor(type(value)):
        return value
    end = end_of(value)
    return end if is_framework_tensor(type(end)) else None


def plain_below(value: object) -> Tensor:
    """Return the plain tensor under layers that leave values as they are, or None when there is none here."""
    while (child := getattr(value, "child", None)) is not None:
        if getattr(type(value), "rank", 0) < TRANSPARENT:
            return None
        value = child
    return value if is_framework_tensor(type(value)) else None


def is_wrapper(value: object) -> bool:
    """Return whether ``value`` heads a chain."""
    return getattr(type(value), "rank", None) == WRAPPER


def below_wrapper(value: Tensor) -> Tensor:
    """Return the first layer under a wrapper, and anything else as it is."""
    return value.child if is_wrapper(value) else value


def is_chain(value: object) -> bool:
    """Return whether ``value`` is a wrapper or a layer."""
    return getattr(type(value), "rank", None) is not None
