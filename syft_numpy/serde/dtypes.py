"""The codec for dtypes, which are rebuilt from tables and numbers: no received name is looked up in numpy.

Simple dtypes are sent as a short string: byte order, kind, bytes per element, unit. Structured dtypes are sent as a
list of fields. The format of long doubles depends on the machine; they are sent with the size of their mantissa, and
refused if it differs at the receiver.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from syft_core.serde import Codec, Context, SerdeError
from syft_core.serde.received import require
from syft_core.values import Payload
from syft_numpy.values import DType

_SIMPLE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16)")
_SIZED = re.compile(r"[<>|][SUV](\d{1,9})")
_UNITS = frozenset({"generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"})
_TIME = re.compile(r"[<>][mM]8(?:\[(\d{0,9})([A-Za-z]{1,2})\])?")
_LONG = re.compile(r"([gG])(\d{1,3})")
_MANTISSA = int(np.finfo(np.longdouble).nmant)
_LONG_DOUBLES = {"g": np.dtype(np.longdouble), "G": np.dtype(np.clongdouble)}
# The number of bytes of a long double without padding.
LONG_DOUBLE_BYTES = 10 if _MANTISSA == 63 else np.dtype(np.longdouble).itemsize

FIELDS, SUBARRAY, STRINGS = 1, 2, 3


def refuse_objects(dtype: DType) -> None:
    """Raise if a dtype contains Python objects, at any depth."""
    if dtype.hasobject and not is_strings(dtype):
        raise SerdeError(
            f"cannot serialize an array of dtype {dtype.str}: it contains Python objects; "
            f"send `x.tolist()`, or an array of numbers or fixed-length strings"
        )


def is_strings(dtype: DType) -> bool:
    """Return whether ``dtype`` is numpy 2's variable-length string."""
    return dtype.kind == "T"


def is_long_double(dtype: DType) -> bool:
    """Return whether ``dtype`` is a real or complex long double that differs from double."""
    return dtype.char in "gG" and dtype.str not in ("<f8", "<c16", ">f8", ">c16")


def simplify_dtype(dtype: DType, _: Context) -> tuple[object, ...]:
    """Return the payload of a dtype."""
    refuse_objects(dtype)
    if is_strings(dtype):
        if hasattr(dtype, "na_object"):
            raise SerdeError("cannot serialize strings with a missing-value object: fill the missing values first")
        return (STRINGS,)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return SUBARRAY, base, *shape
    if dtype.names is not None:
        return FIELDS, dtype.itemsize, dtype.isalignedstruct, *[_describe_field(dtype, name) for name in dtype.names]
    if is_long_double(dtype):
        if not dtype.isnative:
            raise SerdeError("cannot serialize long doubles of non-native byte order: use `x.astype(float)`")
        return (f"{dtype.char}{_MANTISSA}",)
    if np.dtype(dtype.str) != dtype:  # Added by another package, for instance bfloat16.
        raise SerdeError(
            f"cannot serialize an array of dtype {dtype.name}: it is not one of numpy's own dtypes; "
            f"convert it first, e.g. `x.astype(numpy.float32)`"
        )
    return (dtype.str,)


def detail_dtype(payload: Payload, _: Context) -> DType:
    """Rebuild a dtype."""
    kind, *rest = payload
    if type(kind) is str and not rest:
        return parse_dtype(kind)
    require(type(kind) is int, "a numpy dtype: its kind is not a number")
    if kind == FIELDS:
        return _build_fields(rest)
    if kind == SUBARRAY:
        return _build_subarray(rest)
    if kind == STRINGS and not rest:
        return _build_strings()
    raise SerdeError("cannot rebuild a numpy dtype: this release does not know its kind; upgrade it")


def parse_dtype(name: str) -> DType:
    """Rebuild a simple dtype from its short string."""
    if _SIMPLE.fullmatch(name) or _SIZED.fullmatch(name):
        return np.dtype(name)
    if match := _TIME.fullmatch(name):
        count, unit = match.groups()
        is_unit = unit is None or (unit in _UNITS and (not count or int(count) > 0))
        require(is_unit, "a numpy dtype: numpy has no such unit of time")
        return np.dtype(name)
    if match := _LONG.fullmatch(name):
        char, mantissa = match.groups()
        if int(mantissa) != _MANTISSA:
            raise SerdeError(
                f"cannot rebuild a long double: its mantissa has {mantissa} bits, but {_MANTISSA} on this machine; "
                f"send `x.astype(float)`"
            )
        return _LONG_DOUBLES[char]
    raise SerdeError("cannot rebuild a numpy dtype: its description is invalid (malformed message)")


def _describe_field(dtype: DType, name: str) -> tuple[object, ...]:
    fields: Any = dtype.fields
    field, offset, *title = fields[name]
    if title and not isinstance(title[0], str):
        raise SerdeError("cannot serialize a structured dtype: the title of a field is not a string; remove it")
    return (name, field, offset, *title)


def _build_fields(rest: list[Any]) -> DType:
    itemsize, aligned, *fields = rest
    is_size = type(itemsize) is int and 0 <= itemsize < 2**31
    require(is_size and type(aligned) is bool, "a structured dtype: its size is invalid")
    require(all(_is_field(field, itemsize) for field in fields), "a structured dtype: a field does not fit into it")
    spec: dict[str, Any] = {
        key: [field[place] for field in fields] for place, key in enumerate(("names", "formats", "offsets"))
    }
    spec["itemsize"] = itemsize
    if any(len(field) == 4 for field in fields):
        spec["titles"] = [field[3] if len(field) == 4 else None for field in fields]
    rebuilt: DType = np.dtype(spec, align=aligned)  # type: ignore[call-overload]  # it wants literal keys
    return rebuilt


def _is_field(field: object, itemsize: int) -> bool:
    if type(field) is not tuple or not 3 <= len(field) <= 4 or not all(type(x) is str for x in (field[0], *field[3:])):
        return False
    dtype, offset = field[1], field[2]
    if not isinstance(dtype, np.dtype) or dtype.hasobject or type(offset) is not int:
        return False
    return 0 <= offset <= itemsize - dtype.itemsize


def _build_subarray(rest: list[Any]) -> DType:
    base, *shape = rest
    is_base = isinstance(base, np.dtype) and not base.hasobject
    is_shape = all(type(n) is int and 0 <= n < 2**31 for n in shape)
    require(is_base and is_shape, "a subarray dtype: its base or shape has a wrong type")
    return np.dtype((base, tuple(shape)))


def _build_strings() -> DType:
    kinds = vars(np.dtypes)
    if "StringDType" not in kinds:
        raise SerdeError("cannot rebuild an array of variable-length strings: they need numpy 2; install it")
    strings: DType = kinds["StringDType"]()
    return strings


DTYPE = Codec(np.dtype, 102, simplify_dtype, detail_dtype, subclasses=True)
