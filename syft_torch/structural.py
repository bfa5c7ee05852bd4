"""Kernels that only move or add elements, as calls that a pointer to a share accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from syft_core.hook.dispatch import dispatch
from syft_core.values import Function, Tensor


def _slice(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return x[(slice(None),) * (dim % len(x.shape)) + (slice(start, end, step),)]


def _index(x: Tensor, indices: Sequence[Any]) -> Tensor:
    return x[tuple(slice(None) if index is None else index for index in indices)]


def _call(name: str) -> Function:
    """Return the function of torch called ``name``, for pointers without a wrapper."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from syft_torch.wrapper import Wrapper  # noqa: PLC0415  # it imports this package's attributes

        return dispatch(Wrapper.ops.look_up(f"torch.{name}"), args, kwargs)

    return call


def _pad(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    if value:
        raise ValueError("cannot pad encoded numbers with a constant other than 0: concatenate the constant instead")
    return _call("constant_pad_nd")(x, pad, 0)


def _method(name: str) -> Function:
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _clone(x: Tensor, **_options: Any) -> Tensor:
    return x * 1


_SAME = ("view", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "select", "flip", "roll", "repeat",
         "index_select", "gather", "diagonal", "tril", "triu", "unfold", "unbind", "chunk", "movedim", "reshape",
         "split_with_sizes")  # fmt: skip

STRUCTURAL: Mapping[str, Function] = {
    **{name: _method(name) for name in _SAME},
    "_unsafe_view": _method("view"),
    "view_copy": _method("view"),
    "_reshape_alias": lambda x, size, _stride: x.reshape(size),
    "split": _method("split"),
    "slice": _slice,
    "index": _index,
    "cat": lambda tensors, dim=0: _call("cat")(list(tensors), dim),
    "stack": lambda tensors, dim=0: _call("stack")(list(tensors), dim),
    "clone": _clone,
    "contiguous": lambda x, **_options: x,
    "constant_pad_nd": _pad,
    "copy": _method("copy_"),
}
"""By operation. Each function takes the arguments of the kernel, with a pointer in place of the shared value."""


def convolve(name: str) -> Function:
    """Return a convolution, or a gradient of one, for pointers and plain tensors of integers."""
    if name == "conv2d":
        return lambda x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1: _call("conv2d")(
            x, w, None, stride, padding, dilation, groups
        )
    raise NotImplementedError(name)


def real_dtype(tensor: torch.Tensor) -> torch.dtype:
    """Return the dtype of the real numbers of a tensor: its own, or the default for integers."""
    return tensor.dtype if tensor.is_floating_point() else torch.get_default_dtype()
