"""Guards: refuse arguments that would crash torch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import torch

from syft_core.hook.attributes import Op, words
from syft_core.hook.caches import remember
from syft_core.hook.dispatch import framework_of
from syft_core.hook.guards import integer_of, limit_integers
from syft_core.hook.rules import leaves, map_leaves
from syft_core.hook.signatures import signature_of
from syft_core.values import Function, Nested, Tensor
from syft_torch.facts import DIVIDES, DIVIDES_BY, DIVIDES_SUMS, LARGEST, PARTS, UNCHECKED, is_packed
from syft_torch.versions import UNCHECKABLE


def add_guard(op: Op) -> Function | None:
    """Return the function of an operation with the guard that it needs, or None if it needs none."""
    name, func, guard = op.attr, op.func, None
    if op.operation in DIVIDES:
        guard = partial(_divide, op)
    elif op.operation in DIVIDES_SUMS:
        guard = partial(_divide_sums, op)
    elif name in UNCHECKED - UNCHECKABLE:
        heads = DIVIDES_BY.get(name)
        guard = partial(_run_on_meta_first, op) if heads is None else partial(_run_with_heads, op, heads)
    elif name in PARTS:
        guard = partial(_run_and_copy, func)
    elif name in _OWN_GUARDS:
        guard = partial(_OWN_GUARDS[name], func)
    elif op.operation in LARGEST:
        return limit_integers(func, LARGEST[op.operation])
    return guard


def _divide(op: Op, *args: Tensor, **kwargs: Tensor) -> Nested:
    """Run a division; that of the smallest integer by -1 returns what it returns for a divisor of 1.

    This is what the processor's arithmetic would give: the quotient wraps around, and nothing remains.
    """
    if op.operation in _ROUNDED and kwargs.get("rounding_mode") is None:
        return op.func(*args, **kwargs)
    places: list[int | str] = [*range(len(args[:2])), *[name for name in _OPERANDS if name in kwargs]]
    operands = [args[place] if isinstance(place, int) else kwargs[place] for place in places]
    tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
    if len(operands) != 2 or not tensors or any(tensor.is_meta for tensor in tensors):
        return op.func(*args, **kwargs)
    place = places[not op.reflected]
    dividend, divisor = operands[::-1] if op.reflected else operands
    if (safe := _replace_divisor(op, dividend, divisor)) is divisor:
        return op.func(*args, **kwargs)
    if isinstance(place, int):
        return op.func(*args[:place], safe, *args[place + 1 :], **kwargs)
    return op.func(*args, **{**kwargs, place: safe})


_OPERANDS = ("input", "self", "x", "a", "x1", "other", "x2")
"""The names of the two operands in order; torch also accepts those of numpy."""
_ROUNDED = words("div __div__")
"""Divisions that divide integers only with a rounding mode."""


def _replace_divisor(op: Op, dividend: Tensor, divisor: Tensor) -> Tensor:
    """Return a divisor with 1 in place of -1 where the dividend is the smallest integer.

    Kernels convert both to the dtype of the result, where larger numbers wrap around: 2**32 - 1 is -1 in 32 bits.
    """
    try:
        dtype = torch.result_type(dividend, divisor)
    except (TypeError, RuntimeError):  # The operation itself raises an error about the arguments.
        return divisor
    if dtype.is_floating_point or dtype.is_complex or not dtype.is_signed:
        return divisor
    bounds = torch.iinfo(dtype)
    if isinstance(divisor, int) and 0 < divisor <= bounds.max:
        return divisor
    found = torch.tensor(True) if _is_unusual(divisor) else torch.as_tensor(divisor).to(dtype).eq(-1)
    if not found.any():
        return divisor
    if _is_unusual(dividend):
        raise ValueError(f"cannot run {op.attr!r}: a sparse or nested tensor of integers is divided by -1; negate it")
    overflows = found.logical_and(torch.as_tensor(dividend).to(dtype).eq(bounds.min))
    return torch.where(overflows, 1, torch.as_tensor(divisor).to(dtype)) if overflows.any() else divisor


def _is_unusual(operand: Tensor) -> bool:
    return isinstance(operand, torch.Tensor) and (operand.layout is not torch.strided or operand.is_nested)


def _divide_sums(op: Op, *args: Tensor, **kwargs: Tensor) -> Nested:
    """Run an operation that divides sums, unless it divides integers by -1: a sum may be the smallest one.

    Some kernels use only the lower 32 bits of the divisor, which may be those of -1 or 0.
    """
    place = DIVIDES_SUMS[op.operation]
    divisor = args[place] if len(args) > place else kwargs.get("divisor_override")
    operands = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if divisor is None or any(operand.is_floating_point() for operand in operands[:1]):
        return op.func(*args, **kwargs)
    if divisor == -1:
        raise ValueError(f"cannot run {op.attr!r}: it divides sums of integers by -1; negate the result instead")
    if not -_LARGEST_DIVISOR <= divisor <= _LARGEST_DIVISOR:
        raise OverflowError(f"cannot run {op.attr!r}: its divisor has more than 32 bits; use a smaller one")
    return op.func(*args, **kwargs)


_LARGEST_DIVISOR = 2**31 - 1


def _run_on_meta_first(op: Op, *args: object, **kwargs: object) -> Nested:
    """Run an operation on the meta device first, where torch checks the shapes that its kernel does not check.

    Once per signature: whether it works there depends on nothing else. Packed sequences cannot run there; torch checks
    them, but reads the first of their batch sizes also if there is none.
    """
    if is_packed(args, kwargs):
        sizes = kwargs.get("batch_sizes", args[1] if len(args) > 1 else None)
        if isinstance(sizes, torch.Tensor) and not sizes.numel():
            raise ValueError(f"cannot run {op.attr!r}: `batch_sizes` is empty; pack at least one step")
    elif not getattr(args[0], "is_nested", False):
        signature = signature_of(op, args, kwargs)
        try:
            is_known = signature in _checked
        except TypeError:  # An argument is not hashable.
            is_known = False
        if not is_known:
            _run_on_meta(op, args, kwargs)
            tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            if all(framework_of(tensor).form_of(tensor) is not None for tensor in tensors):
                with suppress(TypeError):
                    remember(_checked, signature, True)
    return op.func(*args, **kwargs)


_checked: dict[object, bool] = {}
"""The signatures that work on the meta device."""


def _run_on_meta(op: Op, args: object, kwargs: object) -> None:
    with torch.no_grad():
        shadows, named = map_leaves(_shadow, (args, kwargs))
        op.func(*shadows, **named)


def _run_with_heads(op: Op, places: slice, *args: object, **kwargs: object) -> Nested:
    """Run an attention kernel, which divides by its numbers of features and heads, unless one of them is zero."""
    sizes = (*args[places], *[kwargs[name] for name in ("embed_dim", "num_head", "num_heads") if name in kwargs])
    if any(isinstance(size, (int, torch.Tensor)) and size == 0 for size in sizes):
        raise ValueError(f"cannot run {op.func.__name__!r} without features or heads")
    return _run_on_meta_first(op, *args, **kwargs)


def _run_with_offsets(func: Function, *args: Tensor, **kwargs: Tensor) -> Nested:
    """Run an operation on bags of indices; refuse offsets that are not in order, with which it reads out of bounds."""
    offsets = args[2] if len(args) > 2 else kwargs.get("offsets")
    if isinstance(offsets, torch.Tensor) and not offsets.is_meta and offsets.numel():
        names = ("input", "weight", "indices")
        given = [leaf for leaf in (*args[:2], *map(kwargs.get, names)) if isinstance(leaf, torch.Tensor)]
        indices = [leaf for leaf in given if not leaf.is_floating_point()]
        most = min([leaf.numel() for leaf in indices], default=0)
        bounds = torch.cat([offsets.new_zeros(1), offsets.reshape(-1), offsets.new_full((1,), most)])
        if bool(bounds.diff().lt(0).any()):
            raise ValueError("cannot run 'embedding_bag': its offsets are not in ascending order or exceed the input")
    return func(*args, **kwargs)


def _nest_if_aligned(func: Function, tensor: Tensor, mask: object, mask_check: bool = True) -> Tensor:
    """Create a nested tensor if the mask has no gaps; check it even if the caller skips the check."""
    if not torch._nested_tensor_from_mask_left_aligned(tensor, mask):
        raise ValueError(
            "cannot create a nested tensor: the padding is not at the end of each row; set "
            "`encoder.use_nested_tensor = False`"
        )
    return func(tensor, mask, mask_check=False)


def _combine(func: Function, *args: Tensor, **kwargs: Tensor) -> Nested:
    """Run ``combinations`` unless its grid is large: torch first computes ``r`` elements in every order."""
    sizes = [leaf.numel() for leaf in (*args[:1], *kwargs.values()) if isinstance(leaf, torch.Tensor)]
    length = integer_of(args[1] if len(args) > 1 else kwargs.get("r", 2))
    size = max(sizes, default=0)
    if length > 0 and (length > _MOST_DIMENSIONS or length * size**length > _LARGEST_GRID):
        raise OverflowError(
            f"cannot run 'combinations' of {length} out of {size} elements: it would compute {size}**{length} of them "
            "first; use fewer elements or a smaller `r`"
        )
    return func(*args, **kwargs)


_MOST_DIMENSIONS = 64
"""Maximum number of dimensions of a tensor."""
_LARGEST_GRID = 2**25
"""Maximum size of the grid that ``combinations`` computes, which takes about a second."""


def _run_with_data(func: Function, tensor: Tensor, *args: object, **kwargs: object) -> Nested:
    """Run an operation that copies data to the CPU; return a meta tensor, which has no data, unchanged."""
    return tensor if tensor.is_meta else func(tensor, *args, **kwargs)


def _run_and_copy(func: Function, *args: object, **kwargs: object) -> Nested:
    """Return a part of a sparse tensor as a copy, so that writing to one does not change the other."""
    return func(*args, **kwargs).clone()


def _scale_rows(func: Function, v: Tensor, g: Tensor, dim: Tensor = 0) -> Nested:
    """Run ``_weight_norm`` if there is a length for each row: its kernel reads that many without a check."""
    if isinstance(v, torch.Tensor) and isinstance(g, torch.Tensor):
        if v.numel() == 0 or g.numel() == 0:
            raise ValueError("cannot run '_weight_norm' on an empty tensor")
        axis = integer_of(dim)
        if axis in (0, v.ndim - 1) and g.numel() != (v.shape[axis] if v.ndim else 1):
            raise ValueError(
                f"cannot run '_weight_norm': g has {g.numel()} elements, and v has another number along dim {axis}; "
                "compute it with `torch.norm_except_dim(v, 2, dim)`"
            )
    return func(v, g, dim)


def _run_on_contiguous(func: Function, *args: Tensor, **kwargs: Tensor) -> Nested:
    """Run an operation on a copy of an expanded tensor, beyond whose memory its kernel would read."""
    named = {name: value if name == "out" else _make_contiguous(value) for name, value in kwargs.items()}
    return func(*map(_make_contiguous, args), **named)


def _select(func: Function, *args: Tensor, **kwargs: Tensor) -> Nested:
    """Select from a tensor, unless a dim of a nested one counts from its end: the kernel would write out of bounds."""
    tensor = args[0] if args else kwargs.get("input", kwargs.get("self"))
    if isinstance(tensor, torch.Tensor) and tensor.is_nested:
        dim = integer_of(args[1] if len(args) > 1 else kwargs.get("dim"))
        if not 0 <= dim < tensor.dim():
            raise ValueError(f"cannot run 'select' on a nested tensor: dim {dim} is not one of 0 to {tensor.dim() - 1}")
    return func(*args, **kwargs)


def _make_contiguous(leaf: Tensor) -> Tensor:
    is_expanded = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and not leaf.is_nested
    return leaf.contiguous() if is_expanded and 0 in leaf.stride() else leaf


def _shadow(leaf: Tensor) -> Nested:
    return torch.empty_like(leaf, device="meta") if isinstance(leaf, torch.Tensor) else leaf


_OWN_GUARDS: Mapping[str, Function] = {
    "embedding_bag": _run_with_offsets,
    "_nested_tensor_from_mask": _nest_if_aligned,
    "cpu": _run_with_data,
    "combinations": _combine,
    "_weight_norm": _scale_rows,
    "median": _run_on_contiguous,
    "nanmedian": _run_on_contiguous,
    "select": _select,
}
"""The guards of single operations."""
