"""Kernels that only move or add elements, as calls that a pointer to a share accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from syft_core.hook.attributes import words
from syft_core.hook.dispatch import dispatch, frameworks
from syft_core.hook.overload import with_indices
from syft_core.values import Function, Tensor


def _slice(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return x[(slice(None),) * (dim % len(x.shape)) + (slice(start, end, step),)]


def _unselect(gradient: Tensor, sizes: Sequence[int], dim: int, index: int | slice) -> Tensor:
    """Return the gradient of a row or a slice: zeros around the gradient."""
    whole = gradient.new_zeros(tuple(sizes))
    whole[(slice(None),) * (dim % len(sizes)) + (index,)] = gradient
    return whole


def _undiagonal(gradient: Tensor, sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    """Return the gradient of a diagonal: zeros around the gradient."""
    whole = gradient.new_zeros(tuple(sizes))
    whole.diagonal(offset, dim1, dim2)[...] = gradient
    return whole


@with_indices
def _index(x: Tensor, indices: Sequence[Any]) -> Tensor:
    return x[tuple(slice(None) if index is None else index for index in indices)]


def _call(function: Function) -> Function:
    def call(*args: Any, **kwargs: Any) -> Any:
        return dispatch(frameworks[torch.Tensor].ops.of(function), args, kwargs)

    return call


def _select(x: Tensor, mask: torch.Tensor) -> Tensor:
    shape = torch.broadcast_shapes(tuple(x.shape), mask.shape)
    return x.expand(shape)[mask.expand(shape)]


def _method(name: str) -> Function:
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _clone(x: Tensor, memory_format: torch.memory_format = torch.preserve_format) -> Tensor:
    copy = x * 1
    return copy.contiguous() if memory_format is torch.contiguous_format else copy


def _new_zeros(x: Tensor, size: Sequence[int], *_strides: Any, **_options: Any) -> Tensor:
    return x.new_zeros(tuple(size))


def _put(x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False, _unsafe: bool = False) -> Tensor:
    return x.index_put(_replace_slices(tuple(x.shape), indices), values, accumulate)


def _replace_slices(shape: Sequence[int], indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the indices of several axes, with a range for each whole axis (None), which workers do not accept."""
    found: list[Any] = []
    for index in indices:
        found.extend(index.nonzero(as_tuple=True) if index is not None and index.dtype is torch.bool else [index])
    whole = [axis for axis, index in enumerate(found) if index is None]
    places = [axis for axis, index in enumerate(found) if index is not None]
    if not whole or not places:
        return tuple(found)
    chosen = torch.broadcast_tensors(*[found[axis] for axis in places])
    # The axes of the indices stay where they are if they are neighbours; otherwise they come first.
    before = places[0] if places[-1] - places[0] == len(places) - 1 else 0
    rank = chosen[0].ndim
    for axis, index in zip(places, chosen, strict=True):
        found[axis] = index.reshape((1,) * before + tuple(index.shape) + (1,) * (len(whole) - before))
    for number, axis in enumerate(whole):
        own = number if number < before else number + rank
        found[axis] = torch.arange(shape[axis]).reshape((1,) * own + (-1,) + (1,) * (rank + len(whole) - own - 1))
    return tuple(found)


def _scatter(x: Tensor, dim: int, index: Tensor, values: Tensor, reduce: str | None = None) -> Tensor:
    if reduce not in (None, "add"):
        raise ValueError(f"cannot scatter encoded numbers with reduce={reduce!r}: only sums are supported; use 'add'")
    method = x.scatter if reduce is None else x.scatter_add
    return method(dim, index, values if values.shape else values.expand(index.shape))


def _sum_rows(gradient: Tensor, indices: Tensor, rows: int, padding_idx: int, by_frequency: bool) -> Tensor:
    """Return the gradient of an embedding: the sum of the gradients of each row."""
    if by_frequency:
        raise ValueError("cannot scale the gradient of an embedding by frequency on encoded numbers: leave it out")
    total = gradient.new_zeros((rows, gradient.shape[-1])).index_put((indices,), gradient, True)
    return total if padding_idx < 0 else total.index_fill(0, torch.tensor([padding_idx]), 0)


_SAME = ("view", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "select", "flip", "roll", "repeat",
         "diagonal", "tril", "triu", "unfold", "unbind", "chunk", "movedim", "reshape",
         "split_with_sizes")  # fmt: skip

STRUCTURAL: Mapping[str, Function] = {
    **{name: _method(name) for name in _SAME},
    "_unsafe_view": _method("view"),
    "view_copy": _method("view"),
    "_reshape_alias": lambda x, size, _stride: x.reshape(size),
    "split": _method("split"),
    "unsafe_split": _method("split"),
    "unsafe_split_with_sizes": _method("split_with_sizes"),
    "diagonal_copy": _method("diagonal"),
    "cumsum": lambda x, dim, **_options: x.cumsum(dim, dtype=x.dtype),
    "slice": _slice,
    "index_select": with_indices(_method("index_select")),
    "gather": with_indices(_method("gather")),
    "index": _index,
    "_unsafe_index": _index,
    "masked_select": with_indices(_select),
    "cat": lambda tensors, dim=0: _call(torch.cat)(list(tensors), dim),
    "stack": lambda tensors, dim=0: _call(torch.stack)(list(tensors), dim),
    "clone": _clone,
    "contiguous": lambda x, **_options: x,
    "constant_pad_nd": lambda x, pad, _zero=0: _call(torch.constant_pad_nd)(x, pad, 0),
    "new_zeros": _new_zeros,
    "new_empty": _new_zeros,
    "new_empty_strided": _new_zeros,
    "empty_like": lambda x, **_options: x * 0,
    "slice_backward": lambda x, sizes, dim, start, end, step: _unselect(x, sizes, dim, slice(start, end, step)),
    "select_backward": _unselect,
    "diagonal_backward": _undiagonal,
    "index_put": with_indices(_put, 2),
    "_unsafe_index_put": with_indices(_put, 2),
    "_index_put_impl": with_indices(_put, 2),
    "index_add": with_indices(_method("index_add"), 3),
    "index_copy": with_indices(_method("index_copy"), 3),
    "scatter": with_indices(_scatter, 3),
    "scatter_add": with_indices(_method("scatter_add"), 3),
    "embedding_dense_backward": with_indices(_sum_rows),
}
"""By operation. Each function takes the arguments of the kernel, with a pointer in place of the shared value."""
MASKING = words("cat stack index_put _unsafe_index_put _index_put_impl index_copy scatter")
TRANSPOSING = words("t transpose permute")
SELECTING = words("index index_select gather")
"""Facts about some of these operations, which ``FrameworkAttributes`` describes."""


def convolve(x: Tensor, weight: Tensor, **options: Any) -> Tensor:
    """Convolve images with filters, of which one or both are pointers."""
    return _call(torch.nn.functional.conv2d)(x, weight, None, **options)


def real_dtype(tensor: torch.Tensor) -> torch.dtype:
    """Return the dtype of the real numbers of a tensor: its own, or the default for integers."""
    return tensor.dtype if tensor.is_floating_point() else torch.get_default_dtype()
