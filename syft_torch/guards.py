"""Guards: refuse arguments that would crash torch."""

from __future__ import annotations

from functools import partial

import torch

from syft_core.hook.guards import limit_integers
from syft_core.hook.rules import leaves, map_leaves
from syft_core.values import Function, Nested, Tensor
from syft_torch.facts import DIVIDES_BY, LARGEST, NONEMPTY, PARTS, UNCHECKED, is_packed
from syft_torch.versions import UNCHECKABLE


def add_guard(name: str, func: Function) -> Function | None:
    """Return ``func`` with the guard that it needs, or None if it needs none."""
    if name in UNCHECKED - UNCHECKABLE:
        heads = DIVIDES_BY.get(name)
        return partial(_run_on_meta_first, func) if heads is None else partial(_run_with_heads, func, heads)
    if name == "_nested_tensor_from_mask":
        return _nest_if_aligned
    if name == "cpu":
        return partial(_run_with_data, func)
    if name in PARTS:
        return partial(_run_and_copy, func)
    if name in NONEMPTY:
        return partial(_run_nonempty, func)
    return limit_integers(func, LARGEST[name]) if name in LARGEST else None


def _run_on_meta_first(func: Function, *args: object, **kwargs: object) -> Nested:
    """Run an operation on the meta device first, where torch checks the shapes that its kernel does not check."""
    if not is_packed(args, kwargs) and not getattr(args[0], "is_nested", False):
        with torch.no_grad():
            shadows, named = map_leaves(_shadow, (args, kwargs))
            func(*shadows, **named)
    return func(*args, **kwargs)


def _run_with_heads(func: Function, places: slice, *args: object, **kwargs: object) -> Nested:
    """Run an attention kernel, which divides by its numbers of features and heads, unless one of them is zero."""
    sizes = (*args[places], *[kwargs[name] for name in ("embed_dim", "num_head", "num_heads") if name in kwargs])
    if any(isinstance(size, (int, torch.Tensor)) and size == 0 for size in sizes):
        raise ValueError(f"cannot run {func.__name__!r} without features or heads")
    return _run_on_meta_first(func, *args, **kwargs)


def _nest_if_aligned(tensor: Tensor, mask: object, mask_check: bool = True) -> Tensor:
    """Create a nested tensor if the mask has no gaps; check it even if the caller skips the check."""
    if not torch._nested_tensor_from_mask_left_aligned(tensor, mask):
        raise ValueError(
            "cannot create a nested tensor: the padding is not at the end of each row; set "
            "`encoder.use_nested_tensor = False`"
        )
    return torch._nested_tensor_from_mask(tensor, mask, mask_check=False)


def _run_with_data(func: Function, tensor: Tensor, *args: object, **kwargs: object) -> Nested:
    """Run an operation that copies data to the CPU; return a meta tensor, which has no data, unchanged."""
    return tensor if tensor.is_meta else func(tensor, *args, **kwargs)


def _run_and_copy(func: Function, *args: object, **kwargs: object) -> Nested:
    """Return a part of a sparse tensor as a copy, so that writing to one does not change the other."""
    return func(*args, **kwargs).clone()


def _run_nonempty(func: Function, *args: object, **kwargs: object) -> Nested:
    """Run an operation unless one of its tensors is empty."""
    if any(isinstance(leaf, torch.Tensor) and leaf.numel() == 0 for leaf in leaves((args, kwargs))):
        raise ValueError(f"cannot run {func.__name__!r} on an empty tensor")
    return func(*args, **kwargs)


def _shadow(leaf: Tensor) -> Nested:
    return torch.empty_like(leaf, device="meta") if isinstance(leaf, torch.Tensor) else leaf
