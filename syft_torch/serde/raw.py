"""Strided tensors as the bytes of their own elements: never of the storage behind them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from syft_core.serde import Context, SerdeError
from syft_core.serde.shape import count_bytes, count_elements
from syft_core.serde.structure import INLINE
from syft_torch.serde.names import DTYPE_NUMBERS, DTYPES, DTYPES_BY_NAME, QUANTIZED, find, get_dtype_number

_NUMPY_DIMENSIONS = 32  # what every numpy supports

_STRIDED = torch.strided
_NUMPY_DTYPES = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float16: np.dtype(np.float16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}
_EXPERIMENTAL = [dtype for name, dtype in DTYPES_BY_NAME.items() if name in ("complex32", "bcomplex32")]
_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_FAST = {dtype: DTYPE_NUMBERS[dtype] for dtype in _NUMPY_DTYPES}
# wire number -> (dtype, bytes of an element, the numpy dtype or None)
_RECEIVED = {
    number: (dtype, dtype.itemsize, _NUMPY_DTYPES.get(dtype))
    for number, dtype in DTYPES.items()
    if dtype not in QUANTIZED
}


def simplify_plain(tensor: torch.Tensor) -> tuple[object, ...] | None:
    """Return what ``simplify_dense`` does for a contiguous cpu tensor that numpy understands; None for any other."""
    number = _FAST.get(tensor.dtype)
    if number is None or tensor.layout is not _STRIDED or tensor.is_nested:
        return None
    if not tensor.is_contiguous() or tensor.is_neg():
        return None
    array = tensor.numpy()
    return number, (array.tobytes() if array.nbytes <= INLINE else memoryview(array)), *array.shape


def simplify_dense(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (dtype number, data, *shape) of a strided cpu tensor, read in row-major order."""
    return simplify_plain(tensor) or (get_dtype_number(tensor.dtype), view_bytes(tensor), *tensor.shape)


def view_bytes(tensor: torch.Tensor) -> bytes | memoryview:
    """View the elements of any strided cpu tensor as bytes; copy only what is not in order already."""
    tensor = tensor.resolve_conj().resolve_neg()
    if not tensor.is_contiguous():
        # Some dtypes cannot be copied as themselves; integers of their size can.
        same = _SAME_SIZE.get(tensor.element_size())
        tensor = (tensor if same is None else tensor.view(same)).contiguous()
    if not tensor.numel():
        return b""
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def find_memory_order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Return the dimensions from the slowest to the fastest, if the tensor is dense but not row-major."""
    if tensor.is_contiguous() or tensor.numel() == 0:
        return None
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda d: -strides[d]))
    return order if tensor.permute(order).is_contiguous() else None


def restore_order(tensor: torch.Tensor, order: object) -> torch.Tensor:
    """Undo ``tensor.permute(order)``."""
    if type(order) is not tuple or not all(type(dimension) is int for dimension in order):
        raise SerdeError("cannot rebuild a tensor: its dimension order has a wrong type (malformed message)")
    if sorted(order) != list(range(tensor.dim())):
        raise SerdeError("cannot rebuild a tensor: its dimension order is no permutation; send it again")
    inverse = [0] * len(order)
    for position, dimension in enumerate(order):
        inverse[dimension] = position
    return tensor.permute(inverse)


def detail_dense(number: object, data: Any, shape: Sequence[Any], context: Context) -> torch.Tensor:
    """Rebuild a strided cpu tensor; its declared shape must fit the bytes that arrived."""
    received = _RECEIVED.get(number) if type(number) is int else None
    dtype, itemsize, numpy_dtype = received or find(_RECEIVED, number, "dtype")
    size = count_bytes(data)
    if count_elements(shape) * itemsize != size:
        raise SerdeError(
            f"cannot rebuild a tensor: {size} bytes arrived, which is not what its shape and {dtype} need; "
            f"send it again"
        )
    if not size:
        return torch.empty(tuple(shape), dtype=dtype, device="cpu")
    if dtype is torch.bool and np.frombuffer(data, np.uint8).max() > 1:
        raise SerdeError("cannot rebuild a bool tensor: an element is neither 0 nor 1; send it again")
    memory = context.take_ownership(data)
    if len(shape) == 1:
        return torch.frombuffer(memory, dtype=dtype)
    if numpy_dtype is None or len(shape) > _NUMPY_DIMENSIONS:
        return torch.frombuffer(memory, dtype=dtype).view(tuple(shape))
    return torch.from_numpy(np.ndarray(shape, numpy_dtype, memory))


def _accept_views() -> None:
    """Let torch say its once-only warnings now, to nobody.

    That a view of received bytes is not writable is what its caller asked for, and that a dtype is experimental is the
    sender's business.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.frombuffer(b"\0", dtype=torch.uint8)
        torch.from_numpy(np.frombuffer(b"\0", np.uint8))
        for dtype in _EXPERIMENTAL:
            torch.empty(0, dtype=dtype)


_accept_views()
