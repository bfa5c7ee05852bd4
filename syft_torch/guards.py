"""Guards: keep arguments from torch that would crash it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from syft_core.hook.guards import bounded
from syft_core.hook.rules import leaves, map_leaves
from syft_torch.facts import LARGEST, NONEMPTY, PARTS, UNCHECKED, is_packed


def guarded(name: str, func: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return ``func`` with the guard that it needs, or None if it needs none."""
    if name in UNCHECKED:
        return partial(_run_rehearsed, func)
    if name == "_nested_tensor_from_mask":
        return _run_left_aligned
    if name == "cpu":
        return partial(_run_with_data, func)
    if name in PARTS:
        return partial(_run_copying, func)
    if name in NONEMPTY:
        return partial(_run_nonempty, func)
    return bounded(func, LARGEST[name]) if name in LARGEST else None


def _run_rehearsed(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run an operation whose kernel does not look at shapes; on the meta device torch does."""
    if not is_packed(args, kwargs) and not getattr(args[0], "is_nested", False):
        with torch.no_grad():
            shadows, named = map_leaves(_shadow, (args, kwargs))
            func(*shadows, **named)
    return func(*args, **kwargs)


def _run_left_aligned(tensor: Any, mask: Any, mask_check: bool = True) -> Any:
    """Make a nested tensor, if the mask has no gaps; whoever leaves the check out has not seen the mask."""
    if not torch._nested_tensor_from_mask_left_aligned(tensor, mask):
        raise ValueError(
            "cannot make a nested tensor: the padding is not at the end of each row; an encoder works without nested "
            "tensors after `encoder.use_nested_tensor = False`"
        )
    return torch._nested_tensor_from_mask(tensor, mask, mask_check=False)


def _run_with_data(func: Callable[..., Any], tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation that brings data to the CPU; a tensor without data stands for one that is there."""
    return tensor if tensor.is_meta else func(tensor, *args, **kwargs)


def _run_copying(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return a part of a sparse tensor as a copy: what is written into one must not appear in the other."""
    return func(*args, **kwargs).clone()


def _run_nonempty(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run an operation if none of its tensors is without elements."""
    if any(isinstance(leaf, torch.Tensor) and leaf.numel() == 0 for leaf in leaves((args, kwargs))):
        raise ValueError(f"cannot run {func.__name__!r} on a tensor without elements")
    return func(*args, **kwargs)


def _shadow(leaf: Any) -> Any:
    return torch.empty_like(leaf, device="meta") if isinstance(leaf, torch.Tensor) else leaf
