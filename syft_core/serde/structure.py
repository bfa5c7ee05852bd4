"""The structure of a message: one msgpack document in which every array is a node with a wire code.

A node is ``[code, *payload]``. None, bool, int, float, str and short bytes are written as they are; everything else,
including ints beyond 64 bits, is a node. The structure itself uses three codes:

- ``[BUFFER, i]``: the i-th buffer, which is sent next to the structure and not copied into it;
- ``[REFERENCE, i]``: another reference to the i-th completed shared object; each command of a batch has its own count;
- ``[LONG, code, part, ...]``: a payload of more than ``PART`` values, split into plain arrays of at most ``PART``.

Note [Why payloads are split]: msgpack allocates memory for all declared entries of an array before it reads the first
one, so a few kilobytes of nested array headers could claim gigabytes. With at most ``PART`` entries per array and
msgpack's nesting limit of 1,024, a message cannot make it allocate more than about 32 MB that it does not fill.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgpack

from syft_core.exceptions import SerdeError
from syft_core.serde.codec import BUFFER, FIRST_USER_CODE, LONG, REFERENCE, CodecTable, qualified_name
from syft_core.serde.context import Context, Limits

NATIVE = frozenset({int, float, str, bool, type(None)})
INLINE = 1024  # bytes; a shorter buffer is cheaper inside the structure (benchmarks/serde.py --threshold)
PART = 4096
LARGEST_KEPT_PACKER = 2**20

# Errors of a detail function for a payload that its simplify did not write.
MALFORMED = (
    ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, MemoryError, NotImplementedError,
    RuntimeError, SystemError, TypeError, ValueError,
)  # fmt: skip


def write_structure(obj: object, context: Context, table: CodecTable) -> tuple[bytes, list[memoryview]]:
    """Encode ``obj``; return the msgpack bytes and the buffers that are sent with them."""
    writer = _Writer(context, table)
    try:
        tree = writer.write(obj, 0)
    except RecursionError:
        raise _depth_error(context.limits) from None
    try:
        packed: bytes = _packers.packer.pack(tree)
    except (ValueError, OverflowError, MemoryError) as error:
        _packers.packer = _new_packer()
        raise SerdeError(
            f"cannot serialize an object: msgpack refuses its structure ({type(error).__name__}); make it flatter"
        ) from None
    if len(packed) > LARGEST_KEPT_PACKER:
        _packers.packer = _new_packer()
    return packed, writer.buffers


def read_structure(
    packed: bytes | memoryview, buffers: Sequence[memoryview], context: Context, table: CodecTable
) -> Any:
    """Decode what ``write_structure`` wrote; every buffer must be used exactly once."""
    reader = _Reader(buffers, context, table)
    try:
        tree = msgpack.unpackb(
            packed,
            strict_map_key=False,
            unicode_errors="surrogatepass",
            max_array_len=PART + 2,
            max_map_len=0,
            max_ext_len=0,
        )
        value = reader.read(tree, 0) if type(tree) is list else tree
    except SerdeError:
        raise
    except RecursionError:
        raise _depth_error(context.limits) from None
    except (*MALFORMED, msgpack.exceptions.UnpackException) as error:
        raise SerdeError(
            f"cannot read a message: its structure is malformed ({type(error).__name__}); send it again"
        ) from None
    if buffers and (left := reader.count_unused()):
        raise SerdeError(f"cannot read a message: {left} of its buffers are unused (malformed message)")
    return value


class _Writer:
    """Turn one object into nested nodes, collecting its buffers."""

    __slots__ = ("_codec_of", "_context", "_known", "_max_depth", "_nodes_left", "_shared", "buffers")

    def __init__(self, context: Context, table: CodecTable) -> None:
        self.buffers: list[memoryview] = []
        self._context = context
        self._known = table.resolved.get
        self._codec_of = table.for_type
        # id -> (number, object); holding the object prevents its id from being reused.
        self._shared: dict[int, tuple[int, Any]] = {}
        self._max_depth = context.limits.max_depth
        self._nodes_left = context.limits.max_nodes

    def write(self, obj: Any, depth: int) -> Any:
        kind = type(obj)
        if kind in NATIVE or (kind is bytes and len(obj) <= INLINE):
            return obj
        if kind is memoryview:
            return self._buffer(obj)
        codec = self._known(kind) or self._codec_of(kind)
        if codec.shared:
            seen = self._shared.get(id(obj))
            if seen is not None:
                return [REFERENCE, seen[0]]
        depth += 1
        outer = self._shared
        self._shared = {} if codec.separate else outer
        payload = obj if kind is tuple or kind is list else codec.simplify(obj, self._context)
        if type(payload) is not tuple and type(payload) is not list:
            raise SerdeError(
                f"cannot serialize a {qualified_name(codec.type)}: its simplify returned a {type(payload).__name__}; "
                f"return a tuple of serializable values"
            )
        self._nodes_left -= len(payload)
        if depth > self._max_depth or self._nodes_left < 0:
            raise _limit_error("serialize an object", depth, self._context.limits)
        if NATIVE.issuperset(map(type, payload)):
            node = [*payload]
        else:
            node = [x if type(x) in NATIVE else self.write(x, depth) for x in payload]
        self._shared = outer
        if codec.shared:
            outer[id(obj)] = len(outer), obj
        if len(node) > PART:
            return _split_long(codec.code, node)
        node.insert(0, codec.code)
        return node

    def _buffer(self, view: memoryview) -> Any:
        if view.nbytes <= INLINE or not view.c_contiguous:
            return view.tobytes()
        # Read-only, so that a receiver in this process copies the sender's memory instead of reusing it.
        self.buffers.append((view if view.format == "B" and view.ndim == 1 else view.cast("B")).toreadonly())
        return [BUFFER, len(self.buffers) - 1]


class _Reader:
    """Turn nested nodes back into one object."""

    __slots__ = ("_buffers", "_context", "_find", "_max_depth", "_nodes_left", "_range_left", "_shared", "_table")

    def __init__(self, buffers: Sequence[memoryview], context: Context, table: CodecTable) -> None:
        self._buffers: list[memoryview | None] = list(buffers)
        self._context = context
        self._table = table
        self._find = table.find
        self._shared: list[Any] = []
        self._max_depth = context.limits.max_depth
        self._nodes_left = context.limits.max_nodes
        self._range_left = context.limits.max_range

    def read(self, node: list[object], depth: int) -> Any:
        depth += 1
        self._nodes_left -= len(node) - 1
        if depth > self._max_depth or self._nodes_left < 0:
            raise _limit_error("read a message", depth, self._context.limits)
        code = node[0]
        if type(code) is not int or code <= LONG:
            return self._read_long(node, depth) if type(code) is int and code == LONG else self._resolve(node)
        codec = self._find(code) or self._table.for_code(code)
        outer = self._shared
        self._shared = [] if codec.separate else outer  # Its arrays may be kept, and nothing else may write into them.
        if list in map(type, node):
            payload = [self.read(x, depth) if type(x) is list else x for x in node]
            del payload[0]
        else:
            payload = node[1:]
        if code == TUPLE:  # The most common node, in which nothing can be wrong.
            return tuple(payload)
        try:
            value = codec.detail(payload, self._context)
        except (SerdeError, RecursionError):
            raise
        except MALFORMED as error:
            # Without the original text, which may contain values.
            raise SerdeError(
                f"cannot rebuild a {qualified_name(codec.type)}: its payload is not what its codec writes "
                f"({type(error).__name__}); check that both ends have the same codec for wire code {codec.code}"
            ) from (error if codec.code >= FIRST_USER_CODE else None)
        if code == RANGE and self._range_left is not None:
            self._count_range(value, self._range_left)
        self._shared = outer
        if codec.shared:
            outer.append(value)
        return value

    def count_unused(self) -> int:
        """Return the number of buffers that the structure did not use."""
        return sum(buffer is not None for buffer in self._buffers)

    def _count_range(self, values: Any, left: int) -> None:
        if values[left : left + 1]:
            raise SerdeError(
                f"cannot accept a message whose ranges have more than {self._context.limits.max_range} values: that is "
                f"the limit; send a slice or a tensor, or raise `Limits.max_range` at the receiver"
            )
        self._range_left = left - len(values)

    def _read_long(self, node: list[Any], depth: int) -> Any:
        code, parts = node[1], node[2:]
        if type(code) is not int or code <= LONG or not all(type(part) is list for part in parts):
            raise SerdeError("cannot read a long node: its code or one of its parts is invalid (malformed message)")
        return self.read([code, *[x for part in parts for x in part]], depth - 1)

    def _resolve(self, node: list[object]) -> Any:
        code, number = node
        if type(code) is not int or type(number) is not int or number < 0:
            raise SerdeError("cannot read a node: its code or number is invalid (malformed message)")
        if code == REFERENCE:
            return self._shared[number]
        buffer = self._buffers[number]
        if code != BUFFER or buffer is None:
            # Two objects would share memory that each assumes to own.
            raise SerdeError(f"cannot read buffer {number}: it is used twice (malformed message)")
        self._buffers[number] = None
        return buffer


def _split_long(code: int, values: list[object]) -> list[Any]:
    if len(values) > PART * PART:
        raise SerdeError(
            f"cannot serialize {len(values)} values in one container: the limit is {PART * PART}; "
            f"put them into a tensor"
        )
    return [LONG, code, *[values[i : i + PART] for i in range(0, len(values), PART)]]


def _limit_error(action: str, depth: int, limits: Limits) -> SerdeError:
    if depth > limits.max_depth:
        return _depth_error(limits)
    return SerdeError(
        f"cannot {action} of more than {limits.max_nodes} parts: that is the limit; put numbers into a tensor, "
        f"or raise `Limits.max_nodes` at both ends"
    )


def _depth_error(limits: Limits) -> SerdeError:
    return SerdeError(
        f"cannot accept an object nested deeper than {limits.max_depth}: it may contain itself; flatten it, "
        f"or raise `Limits.max_depth` at both ends"
    )


class _Packers(threading.local):
    """One msgpack packer per thread: creating one costs more than packing most messages."""

    def __init__(self) -> None:
        self.packer = _new_packer()


def _new_packer() -> Any:
    return msgpack.Packer(strict_types=True, unicode_errors="surrogatepass", default=_pack_big_int)


def _pack_big_int(number: Any) -> list[Any]:
    """Encode an int beyond 64 bits, the only value here that msgpack cannot encode."""
    return [BIG_INT, number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)]


TUPLE, RANGE, BIG_INT = 4, 9, 12
_packers = _Packers()
