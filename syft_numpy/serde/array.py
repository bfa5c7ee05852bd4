"""Codecs for arrays and array scalars: ``(layout, dtype, data, *shape)``, the raw bytes of their elements."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from syft_core.serde import Codec, Context, SerdeError
from syft_core.serde.received import count_bytes, count_elements, require
from syft_core.serde.structure import INLINE
from syft_core.values import Payload, Tensor
from syft_numpy.native import SyftArray
from syft_numpy.serde.dtypes import (
    LONG_DOUBLE_BYTES,
    detail_dtype,
    is_long_double,
    is_strings,
    parse_dtype,
    refuse_objects,
)
from syft_numpy.values import Array, DType

ROWS, COLUMNS, STRINGS = 0, 1, 2
_MAX_EMPTY = 2**20

_FAST = {dtype: dtype.str for dtype in map(np.dtype, "bBhHiIqQefdFD?")}
_NAMED = {name: np.dtype(name) for name in _FAST.values()}


def simplify_array(array: Array, _: Context) -> tuple[object, ...]:
    """Return the payload of an array; it keeps row-major or column-major order, other orders become row-major."""
    if type(array) is not np.ndarray and type(array) is not SyftArray:
        raise SerdeError(
            f"cannot serialize a {type(array).__name__}: it derives from numpy.ndarray, whose codec would lose the "
            f"class; convert it first, e.g. `numpy.asarray(x)`"
        )
    name = _FAST.get(array.dtype)
    if name is not None and array.flags.c_contiguous:
        return ROWS, name, (array.tobytes() if array.nbytes <= INLINE else _view(array)), *array.shape
    dtype = array.dtype
    refuse_objects(dtype)
    if is_strings(dtype):
        return STRINGS, dtype, array.ravel().tolist(), *array.shape
    columns = array.flags.f_contiguous and not array.flags.c_contiguous
    ordered = np.ascontiguousarray(array.T if columns else array)
    return (COLUMNS if columns else ROWS), name or dtype, view_bytes(ordered), *array.shape


def detail_array(payload: Payload, context: Context) -> Array:
    """Rebuild an array; the number of bytes must match its shape and dtype."""
    layout, described, data, *shape = payload
    dtype = _read_dtype(described)
    count = count_elements(shape)
    if type(layout) is not int:
        raise SerdeError("cannot rebuild an array: its layout is not a number (malformed message)")
    if layout == STRINGS:
        return _detail_strings(dtype, data, count, shape)
    size = count_bytes(data)
    if layout not in (ROWS, COLUMNS) or count * dtype.itemsize != size or is_strings(dtype):
        raise SerdeError(
            f"cannot rebuild an array: its {size} bytes do not match its shape and dtype (malformed message)"
        )
    if not size:
        require(count <= _MAX_EMPTY, "an array: it has too many elements of size zero")
        return np.zeros(shape, dtype, "F" if layout == COLUMNS else "C")
    array: Array = np.ndarray(shape, dtype, context.take_ownership(data), order="F" if layout == COLUMNS else "C")
    _check_values(array)
    return array


def simplify_scalar(scalar: np.generic, _: Context) -> tuple[object, ...]:
    """Return the payload of an array scalar."""
    dtype = scalar.dtype
    refuse_objects(dtype)
    return _FAST.get(dtype, dtype), bytes(view_bytes(np.asarray(scalar)))


def detail_scalar(payload: Payload, _: Context) -> Tensor:
    """Rebuild an array scalar."""
    described, data = payload
    dtype = _read_dtype(described)
    size = count_bytes(data, "an array scalar")
    is_matching = dtype.itemsize == size and not is_strings(dtype) and dtype.subdtype is None
    require(is_matching, "an array scalar: its bytes do not match its dtype")
    array: Array = np.ndarray((), dtype, bytearray(data)) if size else np.zeros((), dtype)
    _check_values(array)
    return array[()]


def view_bytes(array: Array) -> bytes | memoryview:
    """Return the bytes of a row-major array, with padding set to zero."""
    if not array.nbytes:
        return b""
    if _has_gaps(array.dtype):
        # Not zeros_like, which zeroes values but not the padding between them.
        clean: Array = np.ndarray(array.shape, array.dtype, bytearray(array.nbytes))
        _copy_values(array, clean)
        array = clean
    return _view(np.reshape(array, -1).view(np.uint8))


def _view(array: Any) -> memoryview:
    return memoryview(array)


def _read_dtype(described: object) -> DType:
    if isinstance(described, np.dtype):
        return described
    found = _NAMED.get(described) if type(described) is str else None
    if found is None:
        found = parse_dtype(described) if type(described) is str else detail_dtype([described], Context())
    return found


def _detail_strings(dtype: DType, data: object, count: int, shape: Sequence[int]) -> Array:
    are_strings = type(data) is list and len(data) == count and all(type(x) is str for x in data)
    require(is_strings(dtype) and are_strings, "an array of strings: its strings do not match its shape")
    return np.array(data, dtype).reshape(shape)


def _has_gaps(dtype: DType) -> bool:
    """Return whether elements contain padding, or fields that a view leaves out."""
    if dtype.subdtype is not None:
        return _has_gaps(dtype.subdtype[0])
    if dtype.fields is not None:
        fields = [dtype.fields[name][0] for name in dtype.names or ()]
        return sum(field.itemsize for field in fields) != dtype.itemsize or any(map(_has_gaps, fields))
    return is_long_double(dtype) and dtype.itemsize % LONG_DOUBLE_BYTES != 0


def _copy_values(source: Array, target: Array) -> None:
    """Copy the values of an array, and not its padding, into an array of zeros."""
    if source.dtype.fields is not None:
        for name in source.dtype.names or ():
            _copy_values(source[name], target[name])
    elif is_long_double(source.dtype):
        size = np.dtype(np.longdouble).itemsize
        contiguous = np.ascontiguousarray(source)
        parts = contiguous.reshape(-1).view(np.uint8).reshape(-1, size).copy()
        parts[:, LONG_DOUBLE_BYTES:] = 0
        # As void, because copying a long double as a number may not copy its zeroed padding.
        blank = parts.reshape(-1).view(f"V{source.dtype.itemsize}").reshape(source.shape)
        target.view(f"V{source.dtype.itemsize}")[...] = blank
    else:
        target[...] = source


def _check_values(array: Array) -> None:
    """Raise if bools or characters have invalid bits, which compiled code does not expect."""
    dtype = array.dtype
    if dtype.fields is not None:
        for name in dtype.names or ():
            _check_values(array[name])
    elif dtype.kind == "b" and array.size:
        require(array.view(np.uint8).max() <= 1, "a bool array: an element is neither 0 nor 1")
    elif dtype.kind == "U" and array.nbytes:
        characters = np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        require(characters.max() <= sys.maxunicode, "an array of strings: it has invalid characters")


ARRAY = Codec(np.ndarray, 100, simplify_array, detail_array, subclasses=True, shared=True)
SCALAR = Codec(np.generic, 101, simplify_scalar, detail_scalar, subclasses=True)
