"""Codecs for Python's builtin types; they preserve exact types, dict order and every bit of a number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

from syft_core.exceptions import SerdeError
from syft_core.registry import Registry
from syft_core.serde.codec import Codec, CodecTable, Detail, qualified_name
from syft_core.serde.context import Context
from syft_core.serde.failures import FAILURE
from syft_core.serde.structure import BIG_INT, RANGE, TUPLE
from syft_core.values import Payload

# Classes that may be arguments of a call, such as ``float`` in ``x.astype(float)``.
scalar_types: Registry[str, type] = Registry("scalar types", advice="register it with `register_scalar_type`")

_ORDERED_DICT_NAMES = frozenset(dir(OrderedDict))


def register_codecs(table: CodecTable) -> None:
    """Register the codecs of this module in ``table``."""
    for codec in CODECS:
        table.register(codec)


def register_scalar_type(kind: type) -> None:
    """Allow the class ``kind`` itself to be sent by name; it must be a plain number type."""
    scalar_types.register(qualified_name(kind), kind)


T = TypeVar("T")


def _itself(obj: T, _: Context) -> T:
    return obj


def _to_tuple(obj: Iterable[object], _: Context) -> tuple[object, ...]:
    return tuple(obj)


def _rebuild_unique(kind: type[set[object]] | type[frozenset[object]]) -> Detail:
    def detail(payload: Payload, _: Context) -> object:
        value = kind(payload)
        if len(value) != len(payload):
            raise SerdeError(f"cannot rebuild a {kind.__name__}: an element occurs twice (malformed message)")
        return value

    return detail


def _simplify_dict(obj: dict[object, object], _: Context) -> list[object]:
    return [x for pair in obj.items() for x in pair]


def _detail_dict(payload: Payload, _: Context) -> dict[object, object]:
    keys = payload[::2]
    found = dict(zip(keys, payload[1::2], strict=True))
    if len(found) != len(keys):
        raise SerdeError("cannot rebuild a dict: a key occurs twice (malformed message)")
    return found


def _simplify_ordered_dict(obj: OrderedDict[object, object], context: Context) -> list[object]:
    # Frameworks store metadata in attributes of their state dicts.
    return [vars(obj) or None, *_simplify_dict(obj, context)]


def _detail_ordered_dict(payload: Payload, context: Context) -> OrderedDict[object, object]:
    found = OrderedDict(_detail_dict(payload[1:], context))
    attributes = payload[0]
    if attributes is not None:
        if type(attributes) is not dict or not all(type(name) is str for name in attributes):
            raise SerdeError("cannot rebuild an OrderedDict: its attributes have a wrong type (malformed message)")
        if not _ORDERED_DICT_NAMES.isdisjoint(attributes):
            raise SerdeError("cannot rebuild an OrderedDict: an attribute would hide one of its methods; rename it")
        vars(found).update(attributes)
    return found


def _simplify_range(obj: range, _: Context) -> tuple[int, int, int]:
    return obj.start, obj.stop, obj.step


def _detail_range(payload: Payload, _: Context) -> range:
    start, stop, step = payload
    return range(start, stop, step)


def _simplify_slice(obj: slice, _: Context) -> tuple[object, object, object]:
    return obj.start, obj.stop, obj.step


def _detail_slice(payload: Payload, _: Context) -> slice:
    start, stop, step = payload
    return slice(start, stop, step)


def _simplify_ellipsis(_obj: object, _: Context) -> tuple[()]:
    return ()


def _detail_ellipsis(payload: Payload, _: Context) -> object:
    if payload:
        raise SerdeError("cannot rebuild an Ellipsis: expected an empty payload (malformed message)")
    return ...


def _detail_int(payload: Payload, _: Context) -> int:
    (data,) = payload
    if type(data) is not bytes and type(data) is not memoryview:
        raise SerdeError(f"cannot rebuild an int: expected bytes, got {type(data).__name__} (malformed message)")
    return int.from_bytes(data, "little", signed=True)


def _simplify_complex(obj: complex, _: Context) -> tuple[float, float]:
    return obj.real, obj.imag


def _detail_complex(payload: Payload, _: Context) -> complex:
    real, imag = payload
    if type(real) is not float or type(imag) is not float:
        raise SerdeError("cannot rebuild a complex: expected two floats (malformed message)")
    return complex(real, imag)


def _simplify_bytes(obj: bytes | bytearray, _: Context) -> tuple[memoryview]:
    return (memoryview(obj),)


def _detail_bytes(payload: Payload, _: Context) -> bytes:
    (data,) = payload
    return bytes(memoryview(data))


def _detail_bytearray(payload: Payload, _: Context) -> bytearray:
    (data,) = payload
    return bytearray(memoryview(data))


def _simplify_type(obj: type, _: Context) -> tuple[str]:
    name = qualified_name(obj)
    if scalar_types.get(name) is not obj:
        raise SerdeError(
            f"cannot serialize the class {name}: classes are code, and only number types can be sent by name; "
            f"send an instance instead"
        )
    return (name,)


def _detail_type(payload: Payload, _: Context) -> type:
    (name,) = payload
    found = scalar_types.get(name) if type(name) is str else None
    if found is None:
        raise SerdeError("cannot rebuild a class: it is not a registered number type; load the sender's backend")
    return found


CODECS = (
    Codec(list, 3, _itself, _itself),
    Codec(tuple, TUPLE, _itself, lambda payload, _: tuple(payload)),
    Codec(dict, 5, _simplify_dict, _detail_dict),
    Codec(OrderedDict, 6, _simplify_ordered_dict, _detail_ordered_dict),
    Codec(set, 7, _to_tuple, _rebuild_unique(set)),
    Codec(frozenset, 8, _to_tuple, _rebuild_unique(frozenset)),
    Codec(range, RANGE, _simplify_range, _detail_range),
    Codec(slice, 10, _simplify_slice, _detail_slice),
    Codec(type(...), 11, _simplify_ellipsis, _detail_ellipsis),
    # Only for reading: the packer writes ints itself, and ints beyond 64 bits as this node.
    Codec(int, BIG_INT, _itself, _detail_int),
    Codec(complex, 13, _simplify_complex, _detail_complex),
    Codec(bytes, 14, _simplify_bytes, _detail_bytes),
    Codec(bytearray, 15, _simplify_bytes, _detail_bytearray),
    FAILURE,
    Codec(type, 17, _simplify_type, _detail_type),
)

for _kind in (bool, int, float, complex, str, bytes):
    register_scalar_type(_kind)
