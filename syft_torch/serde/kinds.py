"""Payloads of sparse, quantized and meta tensors."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from syft_core.serde import Context, SerdeError
from syft_core.serde.shape import count_elements
from syft_core.values import Payload
from syft_torch.serde.names import DTYPES, LAYOUT_NUMBERS, LAYOUTS, QUANTIZED, find, get_dtype_number

COMPRESSED_ROWS = frozenset({torch.sparse_csr, torch.sparse_bsr})
COMPRESSED_COLUMNS = frozenset({torch.sparse_csc, torch.sparse_bsc})
_INDEX_DTYPES = frozenset({torch.int32, torch.int64})


def simplify_coo(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (shape, coalesced, indices, values)."""
    return tensor.shape, tensor.is_coalesced(), tensor._indices(), tensor._values()


def detail_coo(payload: Payload, _: Context) -> torch.Tensor:
    """Rebuild a COO tensor after checking every index against the shape."""
    shape, coalesced, indices, values = payload
    _check_sparse(shape, (indices,), values)
    if type(coalesced) is not bool:
        raise SerdeError("cannot rebuild a sparse tensor: its coalesced flag is not a bool (malformed message)")
    try:
        tensor = torch.sparse_coo_tensor(indices, values, shape, device="cpu", check_invariants=True)
    except (RuntimeError, ValueError, TypeError):
        raise _inconsistent() from None
    # Verify the flag: with a false one, torch would compute wrong results.
    if coalesced and not _is_ordered(indices, shape):
        raise _inconsistent()
    return tensor._coalesced_(coalesced)


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
    if layout not in COMPRESSED_ROWS | COMPRESSED_COLUMNS:
        raise SerdeError("cannot rebuild a sparse tensor: its layout is not a compressed one (malformed message)")
    _check_sparse(shape, (compressed, plain), values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that these layouts are in beta
        try:
            return torch.sparse_compressed_tensor(
                compressed, plain, values, shape, layout=layout, device="cpu", check_invariants=True
            )
        except (RuntimeError, ValueError, TypeError):
            raise _inconsistent() from None


def simplify_quantized(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (dtype number, integers, scale, zero point), followed by the axis if quantized per channel."""
    if tensor.dtype not in (torch.qint8, torch.quint8, torch.qint32):
        raise SerdeError(f"cannot serialize a {tensor.dtype} tensor: torch does not expose its integers; dequantize it")
    integers = tensor.int_repr()
    if tensor.qscheme() is torch.per_tensor_affine:
        return get_dtype_number(tensor.dtype), integers, tensor.q_scale(), tensor.q_zero_point()
    scales, zero_points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return get_dtype_number(tensor.dtype), integers, scales, zero_points, tensor.q_per_channel_axis()


def detail_quantized(payload: Payload, _: Context) -> torch.Tensor:
    """Rebuild a quantized tensor from its integers."""
    number, integers, scale, zero_point, *axis = payload
    dtype = find(DTYPES, number, "dtype")
    _check_tensors(integers)
    if integers.dtype is not {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}.get(dtype):
        raise SerdeError("cannot rebuild a quantized tensor: its integers do not match its dtype (malformed message)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that quantized dtypes are deprecated
        if axis:
            _check_channels(integers, scale, zero_point, axis[0])
            return torch._make_per_channel_quantized_tensor(integers, scale, zero_point, axis[0])
        if type(scale) is not float or type(zero_point) is not int:
            raise SerdeError(
                "cannot rebuild a quantized tensor: its scale or zero point is invalid (malformed message)"
            )
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
    if dtype in QUANTIZED:
        raise SerdeError("cannot rebuild a meta tensor: quantized dtypes need a scale (malformed message)")
    count_elements(shape)
    return torch.empty(shape, dtype=dtype, device="meta")


def _check_tensors(*tensors: torch.Tensor) -> None:
    if not all(type(tensor) is torch.Tensor and tensor.layout is torch.strided for tensor in tensors):
        raise SerdeError("cannot rebuild a tensor: one of its parts is not a dense tensor (malformed message)")


def _check_sparse(shape: Any, indices: tuple[Any, ...], values: object) -> None:
    _check_tensors(*indices, values)
    if type(shape) is not torch.Size or not all(index.dtype in _INDEX_DTYPES for index in indices):
        raise SerdeError("cannot rebuild a sparse tensor: its shape or indices have a wrong type (malformed message)")
    count_elements(shape)


def _check_channels(integers: torch.Tensor, scales: torch.Tensor, zero_points: torch.Tensor, axis: Any) -> None:
    _check_tensors(scales, zero_points)
    if type(axis) is not int or not 0 <= axis < integers.dim():
        raise SerdeError("cannot rebuild a quantized tensor: its channel axis does not exist (malformed message)")
    if scales.shape != (integers.shape[axis],) or zero_points.shape != scales.shape:
        raise SerdeError("cannot rebuild a quantized tensor: its scales do not match its channels (malformed message)")


def _is_ordered(indices: torch.Tensor, shape: torch.Size) -> bool:
    """Return whether the columns of ``indices`` are strictly increasing in lexicographic order."""
    if indices.shape[1] < 2:
        return True
    step = indices[:, 1:] - indices[:, :-1]
    first = (step != 0).to(torch.uint8).argmax(0) if len(shape) and indices.shape[0] else None
    return first is not None and bool((step.gather(0, first.unsqueeze(0)) > 0).all())


def _inconsistent() -> SerdeError:
    # Torch's own error contains the invalid index, which is data.
    return SerdeError("cannot rebuild a sparse tensor: its indices do not match its shape (malformed message)")
