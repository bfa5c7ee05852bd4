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
from syft_core.serde.shape import count_elements
from syft_torch.serde.names import DTYPE_NAMES, DTYPE_NUMBERS, DTYPES_BY_NAME, find
from syft_torch.serde.raw import detail_dense, view_bytes

_PACKED = frozenset({DTYPES_BY_NAME.get("float4_e2m1fn_x2")})
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
_WIDE_INTEGERS = frozenset({torch.uint16, torch.uint32, torch.uint64})


@dataclass(frozen=True)
class Strategy:
    """A way to encode the elements of a tensor."""

    serialize: Callable[[torch.Tensor], Any]
    deserialize: Callable[[Any], torch.Tensor]


strategies: Registry[str, Strategy] = Registry(
    "tensor strategies", advice="add it with `strategies.register(name, Strategy(serialize, deserialize))`"
)


def get_strategy_name(worker: object) -> str:
    """Return the name of the strategy of ``worker``."""
    return getattr(worker, "serializer", None) or "torch"


def get_strategy(name: str) -> Strategy:
    """Return the strategy called ``name``."""
    found = strategies.get(name)
    if found is None:
        raise NotImplementedError(
            f"cannot serialize a tensor with the strategy {name!r}: the registered ones are {', '.join(strategies)}; "
            f"set `worker.serializer` to one of them, or register your own"
        )
    return found


def serialize_with(name: str, tensor: torch.Tensor) -> Any:
    """Encode ``tensor`` with the strategy called ``name``."""
    return get_strategy(name).serialize(tensor)


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
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise SerdeError("cannot send a sparse or quantized tensor as a list: send `x.to_dense()` or `x.dequantize()`")
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1)
    return tuple(tensor.shape), DTYPE_NAMES[tensor.dtype], _to_numbers(flat)


def from_list(data: Any) -> torch.Tensor:
    """Rebuild a tensor from the result of ``to_list``."""
    shape, name, values = _require_tuple(data)
    dtype = find(DTYPES_BY_NAME, name, "dtype")
    if type(values) is not list or count_elements(shape) != len(values):
        raise SerdeError("cannot rebuild a tensor from a list: its length does not match its shape (malformed message)")
    if dtype.is_complex:
        return torch.tensor(values, dtype=torch.complex128, device="cpu").to(dtype).reshape(tuple(shape))
    if _is_float(dtype):
        return torch.tensor(values, dtype=torch.float64, device="cpu").to(dtype).reshape(tuple(shape))
    if dtype in _INTEGERS or dtype in _WIDE_INTEGERS or dtype is torch.bool:
        return torch.tensor(values, dtype=dtype, device="cpu").reshape(tuple(shape))
    same = torch.uint8 if dtype.itemsize == 1 else torch.int16
    return torch.tensor(values, dtype=same, device="cpu").view(dtype).reshape(tuple(shape))


def _to_numbers(flat: torch.Tensor) -> list[Any]:
    dtype = flat.dtype
    if dtype.is_complex:
        values = flat.to(torch.complex128)
    elif _is_float(dtype):
        values = flat.to(torch.float64)
    elif dtype in _INTEGERS or dtype in _WIDE_INTEGERS or dtype is torch.bool:
        values = flat
    else:
        # Torch can convert bit and sub-byte dtypes to a list only as bytes.
        values = flat.view(torch.uint8 if dtype.itemsize == 1 else torch.int16)
    listed: list[Any] = values.tolist()
    return listed


def _is_float(dtype: torch.dtype) -> bool:
    """Return whether torch can convert ``dtype`` to float64, which excludes packed four-bit floats."""
    return bool(dtype.is_floating_point) and dtype not in _PACKED


def to_array(tensor: torch.Tensor) -> tuple[str, tuple[int, ...], bytes, str]:
    """Return a numpy dtype, the shape, row-major bytes and the torch dtype, which numpy may not have."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise SerdeError(
            "cannot send a sparse or quantized tensor as an array: send `x.to_dense()` or `x.dequantize()`"
        )
    plain = tensor.detach().cpu()
    name = DTYPE_NAMES[plain.dtype]
    numpy_name = _NUMPY_NAMES.get(name) or f"|V{plain.element_size()}"
    return numpy_name, tuple(plain.shape), bytes(view_bytes(plain)), name


def from_array(data: Any) -> torch.Tensor:
    """Rebuild a tensor from the result of ``to_array``."""
    numpy_name, shape, raw, name = _require_tuple(data)
    dtype = find(DTYPES_BY_NAME, name, "dtype")
    if type(numpy_name) is not str or numpy_name != (_NUMPY_NAMES.get(name) or f"|V{dtype.itemsize}"):
        raise SerdeError("cannot rebuild a tensor from an array: its two dtypes differ (malformed message)")
    return detail_dense(DTYPE_NUMBERS[dtype], raw, shape, Context())


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


_NUMPY_NAMES = {
    "bool": "|b1",
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}").str for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: np.dtype(name).str for name in ("float16", "float32", "float64", "complex64", "complex128")},
}

strategies.register("torch", Strategy(to_message, from_message))
strategies.register("numpy", Strategy(to_array, from_array))
strategies.register("all", Strategy(to_list, from_list))
