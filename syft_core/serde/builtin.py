"""Codecs for Python's builtin types; they preserve exact types, dict order and every bit of a number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

from syft_core.exceptions import SerdeError
from syft_core.registry import Registry
from syft_core.serde.codec import Codec, CodecTable, Detail, qualified_name
from syft_core.serde.context import Context
from syft_core.serde.failures import FAILURE
from syft_core.serde.received import count_bytes, require
from syft_core.serde.structure import BIG_INT, RANGE, TUPLE
from syft_core.values import Payload

# Classes that may be arguments of a call, such as ``float`` in ``x.astype(float)``.
scalar_types: Registry[str, type] = Registry("scalar types", advice="register it with `register_scalar_type`")

_ORDERED_DICT_NAMES = frozenset(dir(OrderedDict))
T = TypeVar("T")


def register_codecs(table: CodecTable) -> None:
    """Register the codecs of this module in ``table``."""
    for codec in CODECS:
        table.register(codec)


def register_scalar_type(kind: type) -> None:
    """Allow the class ``kind`` itself to be sent by name; it must be a plain number type."""
    scalar_types.register(qualified_name(kind), kind)


def _itself(obj: T, _: Context) -> T:
    return obj


def _to_tuple(obj: Iterable[object], _: Context) -> tuple[object, ...]:
    return tuple(obj)


def _rebuild_unique(kind: type[set[object]] | type[frozenset[object]]) -> Detail:
    def detail(payload: Payload, _: Context) -> object:
        value = kind(payload)
        require(len(value) == len(payload), f"a {kind.__name__}: an element occurs twice")
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
        is_valid = type(attributes) is dict and all(type(name) is str for name in attributes)
        require(is_valid, "an OrderedDict: its attributes have a wrong type")
        if not _ORDERED_DICT_NAMES.isdisjoint(attributes):
            raise SerdeError("cannot rebuild an OrderedDict: an attribute would hide one of its methods; rename it")
        vars(found).update(attributes)
    return found


def _simplify_steps(obj: range | slice, _: Context) -> tuple[object, object, object]:
    return obj.start, obj.stop, obj.step


def _rebuild_steps(kind: type[range] | type[slice]) -> Detail:
    def detail(payload: Payload, _: Context) -> object:
        start, stop, step = payload
        return kind(start, stop, step)

    return detail


def _detail_ellipsis(payload: Payload, _: Context) -> object:
    require(not payload, "an Ellipsis: expected an empty payload")
    return ...


def _detail_int(payload: Payload, _: Context) -> int:
    (data,) = payload
    count_bytes(data, "an int")
    return int.from_bytes(data, "little", signed=True)


def _detail_complex(payload: Payload, _: Context) -> complex:
    real, imag = payload
    require(type(real) is float and type(imag) is float, "a complex: expected two floats")
    return complex(real, imag)


def _simplify_bytes(obj: bytes | bytearray, _: Context) -> tuple[memoryview]:
    return (memoryview(obj),)


def _rebuild_bytes(kind: Callable[[memoryview], bytes | bytearray]) -> Detail:
    def detail(payload: Payload, _: Context) -> object:
        (data,) = payload
        return kind(memoryview(data))

    return detail


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
    Codec(range, RANGE, _simplify_steps, _rebuild_steps(range)),
    Codec(slice, 10, _simplify_steps, _rebuild_steps(slice)),
    Codec(type(...), 11, lambda _ellipsis, _: (), _detail_ellipsis),
    # Only for reading: the packer writes ints itself, and ints beyond 64 bits as this node.
    Codec(int, BIG_INT, _itself, _detail_int),
    Codec(complex, 13, lambda number, _: (number.real, number.imag), _detail_complex),
    Codec(bytes, 14, _simplify_bytes, _rebuild_bytes(bytes)),
    Codec(bytearray, 15, _simplify_bytes, _rebuild_bytes(bytearray)),
    FAILURE,
    Codec(type, 17, _simplify_type, _detail_type),
)

for _kind in (bool, int, float, complex, str, bytes):
    register_scalar_type(_kind)
