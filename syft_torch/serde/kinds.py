"""Payloads of sparse, quantized and meta tensors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from syft_core.serde import Context, SerdeError
from syft_core.serde.received import count_elements, require
from syft_core.values import Payload
from syft_torch.serde.names import DTYPES, LAYOUT_NUMBERS, LAYOUTS, QUANTIZED, find, get_dtype_number

COMPRESSED_ROWS = frozenset({torch.sparse_csr, torch.sparse_bsr})
COMPRESSED_COLUMNS = frozenset({torch.sparse_csc, torch.sparse_bsc})
_INTEGERS = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
_INDEX_DTYPES = frozenset({torch.int32, torch.int64})


def simplify_coo(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (shape, coalesced, indices, values)."""
    return tensor.shape, tensor.is_coalesced(), tensor._indices(), tensor._values()


def detail_coo(payload: Payload, _: Context) -> torch.Tensor:
    """Rebuild a COO tensor after checking every index against the shape."""
    shape, coalesced, indices, values = payload
    _check_sparse(shape, (indices,), values)
    require(type(coalesced) is bool, "a sparse tensor: its coalesced flag is not a bool")
    with _check_invariants():
        tensor = torch.sparse_coo_tensor(indices, values, shape, device="cpu", check_invariants=True)
        # Verify the flag: with a false one, torch would compute wrong results.
        if coalesced and not _is_ordered(indices, shape):
            raise ValueError("the indices are not in order")
    return tensor._coalesced_(coalesced).clone()  # A message may refer to the same parts elsewhere.


def simplify_compressed(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (layout number, shape, compressed indices, plain indices, values)."""
    if tensor.layout in COMPRESSED_ROWS:
        indices = tensor.crow_indices(), tensor.col_indices()
    else:
        indices = tensor.ccol_indices(), tensor.row_indices()
    return LAYOUT_NUMBERS[tensor.layout], tensor.shape, *indices, tensor.values()


def detail_compressed(payload: Payload, _: Context) -> torch.Tensor:
    """Rebuild a CSR, CSC, BSR or BSC tensor after checking every index."""
    number, shape, compressed, plain, values = payload
    layout = find(LAYOUTS, number, "layout")
    require(layout in COMPRESSED_ROWS | COMPRESSED_COLUMNS, "a sparse tensor: its layout is not a compressed one")
    _check_sparse(shape, (compressed, plain), values)
    with _check_invariants():
        return torch.sparse_compressed_tensor(
            compressed, plain, values, shape, layout=layout, device="cpu", check_invariants=True
        ).clone()


def simplify_quantized(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (dtype number, integers, scale, zero point), followed by the axis if quantized per channel."""
    if tensor.dtype not in _INTEGERS:
        raise SerdeError(f"cannot serialize a {tensor.dtype} tensor: torch does not expose its integers; dequantize it")
    if tensor.qscheme() is torch.per_tensor_affine:
        scheme: tuple[object, ...] = tensor.q_scale(), tensor.q_zero_point()
    else:
        scheme = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points(), tensor.q_per_channel_axis()
    return get_dtype_number(tensor.dtype), tensor.int_repr(), *scheme


def detail_quantized(payload: Payload, _: Context) -> torch.Tensor:
    """Rebuild a quantized tensor from its integers."""
    number, integers, scale, zero_point, *axis = payload
    dtype = find(DTYPES, number, "dtype")
    _check_tensors(integers)
    require(integers.dtype is _INTEGERS.get(dtype), "a quantized tensor: its integers do not match its dtype")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that quantized dtypes are deprecated
        if axis:
            _check_channels(integers, scale, zero_point, axis[0])
            return torch._make_per_channel_quantized_tensor(integers, scale.clone(), zero_point.clone(), axis[0])
        are_numbers = type(scale) is float and type(zero_point) is int
        require(are_numbers, "a quantized tensor: its scale or zero point is invalid")
        return torch._make_per_tensor_quantized_tensor(integers, scale, zero_point)


def simplify_meta(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (dtype number, *shape) of a meta tensor."""
    if tensor.is_quantized:
        raise SerdeError("cannot serialize a quantized meta tensor: its scale would be lost; dequantize it")
    return get_dtype_number(tensor.dtype), *tensor.shape


def detail_meta(payload: Payload, _: Context) -> torch.Tensor:
    """Rebuild a meta tensor."""
    number, *shape = payload
    dtype = find(DTYPES, number, "dtype")
    require(dtype not in QUANTIZED, "a meta tensor: quantized dtypes need a scale")
    count_elements(shape)
    return torch.empty(shape, dtype=dtype, device="meta")


def _check_tensors(*tensors: torch.Tensor) -> None:
    are_dense = all(type(tensor) is torch.Tensor and tensor.layout is torch.strided for tensor in tensors)
    require(are_dense, "a tensor: one of its parts is not a dense tensor")


def _check_sparse(shape: Any, indices: tuple[Any, ...], values: object) -> None:
    _check_tensors(*indices, values)
    are_typed = type(shape) is torch.Size and all(index.dtype in _INDEX_DTYPES for index in indices)
    require(are_typed, "a sparse tensor: its shape or indices have a wrong type")
    count_elements(shape)


def _check_channels(integers: torch.Tensor, scales: torch.Tensor, zero_points: torch.Tensor, axis: object) -> None:
    _check_tensors(scales, zero_points)
    is_axis = type(axis) is int and 0 <= axis < integers.dim()
    require(is_axis, "a quantized tensor: its channel axis does not exist")
    are_matching = scales.shape == (integers.shape[axis],) == zero_points.shape
    require(are_matching, "a quantized tensor: its scales do not match its channels")


def _is_ordered(indices: torch.Tensor, shape: torch.Size) -> bool:
    """Return whether the columns of ``indices`` are strictly increasing in lexicographic order."""
    if indices.shape[1] < 2:
        return True
    step = indices[:, 1:] - indices[:, :-1]
    first = (step != 0).to(torch.uint8).argmax(0) if len(shape) and indices.shape[0] else None
    return first is not None and bool((step.gather(0, first.unsqueeze(0)) > 0).all())


@contextmanager
def _check_invariants() -> Iterator[None]:
    """Replace torch's own error for a sparse tensor, which contains the invalid index: it is data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that compressed layouts are in beta
        try:
            yield
        except (RuntimeError, ValueError, TypeError):
            raise SerdeError(
                "cannot rebuild a sparse tensor: its indices do not match its shape (malformed message)"
            ) from None
