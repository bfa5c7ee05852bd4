"""Strided tensors as the bytes of their elements, never of the whole storage."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from syft_core.serde import Context, SerdeError
from syft_core.serde.received import count_bytes, count_elements
from syft_core.serde.structure import INLINE
from syft_torch.serde.names import DTYPE_NUMBERS, DTYPES, DTYPES_BY_NAME, QUANTIZED, find, get_dtype_number

_NUMPY_DIMENSIONS = 32  # what every numpy supports

_STRIDED = torch.strided
_NUMPY_NAMES = "bool uint8 int8 int16 int32 int64 float16 float32 float64"
_NUMPY_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    DTYPES_BY_NAME[name]: np.dtype(name) for name in _NUMPY_NAMES.split()
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
    """Fast version of ``simplify_dense`` for contiguous cpu tensors with a numpy dtype; return None for others."""
    number = _FAST.get(tensor.dtype)
    if number is None or tensor.layout is not _STRIDED or tensor.is_nested:
        return None
    if not tensor.is_contiguous() or tensor.is_neg() or tensor._is_zerotensor():
        return None
    array = tensor.numpy()
    return number, (array.tobytes() if array.nbytes <= INLINE else memoryview(array)), *array.shape


def simplify_dense(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (dtype number, data, *shape) of a strided cpu tensor, in row-major order."""
    return simplify_plain(tensor) or (get_dtype_number(tensor.dtype), view_bytes(tensor), *tensor.shape)


def view_bytes(tensor: torch.Tensor) -> bytes | memoryview:
    """Return the elements of a strided cpu tensor as bytes in row-major order, without a copy if possible."""
    tensor = resolve(tensor)
    if not tensor.is_contiguous():
        # Some dtypes cannot be copied; integers of the same size can.
        same = _SAME_SIZE.get(tensor.element_size())
        tensor = (tensor if same is None else tensor.view(same)).contiguous()
    if not tensor.numel():
        return b""
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def resolve(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose memory has its values: not those to be conjugated or negated, nor zeros without memory."""
    # Torch 2.4 would read other memory as that of a tensor of zeros, which some gradients are.
    return (tensor.clone() if tensor._is_zerotensor() else tensor).resolve_conj().resolve_neg()


def find_memory_order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Return the dimensions in order of decreasing stride if the tensor is dense but not row-major, else None."""
    if tensor.is_contiguous() or tensor.numel() == 0:
        return None
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda d: -strides[d]))
    return order if tensor.permute(order).is_contiguous() else None


def restore_order(tensor: torch.Tensor, order: object) -> torch.Tensor:
    """Undo ``tensor.permute(order)``."""
    dimensions = list(range(tensor.dim()))
    if type(order) is not tuple or not all(type(d) is int for d in order) or sorted(order) != dimensions:
        raise SerdeError("cannot rebuild a tensor: its dimension order is not a permutation (malformed message)")
    return tensor.permute([order.index(dimension) for dimension in dimensions])


def detail_dense(number: object, data: Any, shape: Sequence[Any], context: Context) -> torch.Tensor:
    """Rebuild a strided cpu tensor; the number of bytes must match its shape and dtype."""
    received = _RECEIVED.get(number) if type(number) is int else None
    dtype, itemsize, numpy_dtype = received or find(_RECEIVED, number, "dtype")
    size = count_bytes(data)
    if count_elements(shape) * itemsize != size:
        raise SerdeError(
            f"cannot rebuild a tensor: its {size} bytes do not match its shape and {dtype} (malformed message)"
        )
    if not size:
        return torch.empty(tuple(shape), dtype=dtype, device="cpu")
    if dtype is torch.bool and np.frombuffer(data, np.uint8).max() > 1:
        raise SerdeError("cannot rebuild a bool tensor: an element is neither 0 nor 1 (malformed message)")
    memory = context.take_ownership(data)
    if len(shape) == 1:
        return torch.frombuffer(memory, dtype=dtype)
    if numpy_dtype is None or len(shape) > _NUMPY_DIMENSIONS:
        return torch.frombuffer(memory, dtype=dtype).view(tuple(shape))
    return torch.from_numpy(np.ndarray(shape, numpy_dtype, memory))


def _trigger_warnings() -> None:
    """Trigger torch's one-time warnings about read-only views and experimental dtypes, and ignore them.

    The caller has asked for read-only views, and the sender has chosen the dtype.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.frombuffer(b"\0", dtype=torch.uint8)
        torch.from_numpy(np.frombuffer(b"\0", np.uint8))
        for dtype in _EXPERIMENTAL:
            torch.empty(0, dtype=dtype)


_trigger_warnings()
