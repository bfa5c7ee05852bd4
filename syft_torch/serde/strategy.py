"""Strategies for encoding the elements of a tensor, selected by ``worker.serializer``, for peers without torch.

- "torch": raw bytes (the default);
- "numpy": a numpy dtype, a shape and row-major bytes, for peers that read numpy arrays;
- "all": a shape, a dtype name and a flat list of Python numbers, for peers that read msgpack.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from syft_core.registry import Registry
from syft_core.serde import Context, SerdeError, deserialize, serialize
from syft_core.serde.received import count_elements, require
from syft_torch.serde.names import DTYPE_NAMES, DTYPE_NUMBERS, DTYPES_BY_NAME, find
from syft_torch.serde.raw import detail_dense, resolve, view_bytes

_PACKED = DTYPES_BY_NAME.get("float4_e2m1fn_x2")
_INTEGERS = {DTYPES_BY_NAME[f"{sign}int{bits}"] for sign in ("", "u") for bits in (8, 16, 32, 64)} | {torch.bool}

_NUMPY_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
_IN_NUMPY = {name: np.dtype(name).str for name in _NUMPY_NAMES.split()}


@dataclass(frozen=True)
class TensorEncoding:
    """A way to encode the elements of a tensor."""

    serialize: Callable[[torch.Tensor], Any]
    deserialize: Callable[[Any], torch.Tensor]


strategies: Registry[str, TensorEncoding] = Registry(
    "tensor strategies", advice="add it with `strategies.register(name, TensorEncoding(serialize, deserialize))`"
)


def get_strategy_name(worker: object) -> str:
    """Return the name of the strategy of ``worker``."""
    return getattr(worker, "serializer", None) or "torch"


def get_strategy(name: str) -> TensorEncoding:
    """Return the strategy called ``name``."""
    found = strategies.get(name)
    if found is None:
        raise NotImplementedError(
            f"cannot serialize a tensor with the strategy {name!r}: the registered ones are {', '.join(strategies)}; "
            f"set `worker.serializer` to one of them, or register your own"
        )
    return found


def deserialize_with(name: object, data: object) -> torch.Tensor:
    """Decode a tensor with the strategy called ``name``, which was received."""
    # "torch" encodes a tensor as a whole message, so it cannot occur inside a message.
    if type(name) is not str or name == "torch" or name not in strategies:
        raise SerdeError("cannot rebuild a tensor: its strategy is not registered here; register it")
    return strategies[name].deserialize(data)


def to_list(tensor: torch.Tensor) -> tuple[tuple[int, ...], str, list[Any]]:
    """Return the shape, the dtype name and a flat list of numbers; warn if autograd history is lost."""
    if tensor.requires_grad:
        warnings.warn("a tensor that requires grad is serialized as plain numbers: its history is lost", stacklevel=3)
    flat = resolve(_require_strided(tensor, "a list")).reshape(-1)
    listed, convert = _get_list_dtype(flat.dtype)
    return tuple(tensor.shape), DTYPE_NAMES[tensor.dtype], convert(flat, listed).tolist()


def from_list(data: object) -> torch.Tensor:
    """Rebuild a tensor from the result of ``to_list``."""
    shape, name, values = _require_tuple(data)
    dtype = find(DTYPES_BY_NAME, name, "dtype")
    is_complete = type(values) is list and count_elements(shape) == len(values)
    require(is_complete, "a tensor from a list: its length does not match its shape")
    listed, convert = _get_list_dtype(dtype)
    return convert(torch.tensor(values, dtype=listed, device="cpu"), dtype).reshape(tuple(shape))


def _get_list_dtype(dtype: torch.dtype) -> tuple[torch.dtype, Callable[[torch.Tensor, torch.dtype], torch.Tensor]]:
    """Return the dtype as which elements are listed, and the function that converts them and back."""
    if dtype.is_complex:
        return torch.complex128, torch.Tensor.to
    if dtype.is_floating_point and dtype is not _PACKED:
        return torch.float64, torch.Tensor.to
    if dtype in _INTEGERS:
        return dtype, torch.Tensor.to
    # Torch can convert bit and sub-byte dtypes to a list only as bytes.
    return torch.uint8 if dtype.itemsize == 1 else torch.int16, torch.Tensor.view


def to_array(tensor: torch.Tensor) -> tuple[str, tuple[int, ...], bytes, str]:
    """Return a numpy dtype, the shape, row-major bytes and the torch dtype, which numpy may not have."""
    plain = _require_strided(tensor, "an array")
    return _get_numpy_name(plain.dtype), tuple(plain.shape), bytes(view_bytes(plain)), DTYPE_NAMES[plain.dtype]


def from_array(data: object) -> torch.Tensor:
    """Rebuild a tensor from the result of ``to_array``."""
    numpy_name, shape, raw, name = _require_tuple(data)
    dtype = find(DTYPES_BY_NAME, name, "dtype")
    is_same = type(numpy_name) is str and numpy_name == _get_numpy_name(dtype)
    require(is_same, "a tensor from an array: its two dtypes differ")
    return detail_dense(DTYPE_NUMBERS[dtype], raw, shape, Context())


def _get_numpy_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype in numpy, or of as many bytes if numpy does not have it."""
    return _IN_NUMPY.get(DTYPE_NAMES[dtype]) or f"|V{dtype.itemsize}"


def _require_strided(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    """Return a strided tensor detached and on the cpu; raise for any other."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise SerdeError(f"cannot send a sparse or quantized tensor as {kind}: send `x.to_dense()` or `x.dequantize()`")
    return tensor.detach().cpu()


def _require_tuple(data: object) -> tuple[Any, ...]:
    """Return received data if it is a tuple; iterating over other types might never end."""
    if type(data) is not tuple:
        raise SerdeError(f"cannot rebuild a tensor: expected a tuple, got {type(data).__name__} (malformed message)")
    return data


def to_message(tensor: torch.Tensor) -> bytes:
    """Serialize ``tensor`` as a separate message."""
    return serialize(tensor.detach().requires_grad_(tensor.requires_grad))


def from_message(data: Any) -> torch.Tensor:
    """Deserialize the result of ``to_message``."""
    tensor = deserialize(data)
    if not isinstance(tensor, torch.Tensor):
        raise SerdeError(f"cannot rebuild a tensor: the message contains a {type(tensor).__name__} (malformed message)")
    return tensor


strategies.register("torch", TensorEncoding(to_message, from_message))
strategies.register("numpy", TensorEncoding(to_array, from_array))
strategies.register("all", TensorEncoding(to_list, from_list))
