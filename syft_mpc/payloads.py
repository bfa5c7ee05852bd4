"""Payloads: what parties send to each other, as one buffer that holds arrays as they are in memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgpack

from syft_mpc.errors import ProtocolError
from syft_mpc.kernels import ITEM_BYTES, Array, Kernels, dtype_name, size_of

PartyPayload: TypeAlias = Any
"""A payload from one party to another: arrays in nested tuples, half a seed, or an error."""
_LENGTH = struct.Struct("<I")
_ALIGNMENT = 8
PIECE = 1 << 22
"""Bytes of a buffer that are sent at once: workers limit the messages that they receive."""
MAX_HEAD = 1 << 16
"""Maximum bytes of the description of the arrays."""
MAX_ARRAYS = 4096
"""Maximum number of arrays in a tuple; msgpack allocates memory for all of them before it reads the first."""


def is_failure(payload: object) -> bool:
    """Return whether a payload says that its sender has failed: the error, or None from another process."""
    return payload is None or isinstance(payload, Exception)


def weigh(payload: PartyPayload) -> int:
    """Return how much memory a payload takes while it waits; an empty array and an empty tuple count too."""
    if type(payload) is tuple:
        return 256 + sum(map(weigh, payload))
    return 256 + (len(payload) if isinstance(payload, bytes) else bytes_in(payload))


def bytes_in(payload: PartyPayload) -> int:
    """Return the size of the arrays in a payload."""
    if type(payload) is tuple:
        return sum(map(bytes_in, payload))
    return size_of(tuple(payload.shape), dtype_name(payload)) if hasattr(payload, "shape") else 0


def pack(kernels: Kernels, payload: PartyPayload) -> bytearray:
    """Return a payload as a buffer: the length of its description, the description, and the arrays.

    A payload consists of arrays in nested tuples; the first parts of a tuple may be bytes and integers.
    """
    arrays: list[Array] = []
    head = msgpack.packb(_describe(payload, arrays))
    parts: list[Any] = [_LENGTH.pack(len(head)), head, _padding(_LENGTH.size + len(head))]
    for array in arrays:
        parts += (kernels.to_bytes(array), _padding(size_of(tuple(array.shape), dtype_name(array))))
    return bytearray().join(parts)


def unpack(kernels: Kernels, buffer: bytearray) -> PartyPayload:
    """Invert ``pack``; the arrays use the memory of the buffer."""
    try:
        (length,) = _LENGTH.unpack_from(buffer)
        if length > MAX_HEAD:
            raise ValueError("its description is too long")
        start = _LENGTH.size + length
        head = msgpack.unpackb(
            memoryview(buffer)[_LENGTH.size : start], use_list=False, max_array_len=MAX_ARRAYS, max_ext_len=0
        )
        places = _Places(kernels, memoryview(buffer), start + len(_padding(start)))
        payload = places.rebuild(head)
        if places.end != len(buffer):
            raise ValueError("its arrays have another length")
    except (ValueError, struct.error, msgpack.UnpackException) as error:
        raise ProtocolError(f"cannot read a deposit: {error} (malformed message)") from None
    return payload


def split(buffer: bytearray, size: int = PIECE) -> Iterator[tuple[bytearray, int]]:
    """Yield the pieces of a buffer, of at most ``size`` bytes each, and how many bytes are left after each."""
    if len(buffer) <= size:
        yield buffer, 0
        return
    for start in range(0, len(buffer), size):
        yield buffer[start : start + size], max(len(buffer) - start - size, 0)


class Pieces:
    """Joins the pieces of buffers. The key of a buffer is the number of its run, and the rank of its sender."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, int], tuple[bytearray, int]] = {}
        self.held = 0
        """Bytes that wait for the rest of their buffers."""

    def join(self, key: tuple[int, int], piece: bytearray, left: int) -> bytearray | None:
        """Add a piece; return the buffer if it is complete, else None."""
        if not left and key not in self._buffers:
            return piece
        buffer, expected = self._buffers.get(key) or (bytearray(), len(piece) + left)
        if left < 0 or not piece or expected - len(piece) != left:
            self.drop(key)
            raise ProtocolError("cannot read a deposit: its pieces do not fit together (malformed message)")
        buffer += piece
        self.held += len(piece)
        self._buffers[key] = buffer, left
        if left:
            return None
        self.drop(key)
        return buffer

    @property
    def numbers(self) -> set[int]:
        """The numbers of the runs that have pieces."""
        return {number for number, _ in self._buffers}

    def drop(self, key: tuple[int, int]) -> None:
        """Forget the pieces of a buffer."""
        buffer, _ = self._buffers.pop(key, (b"", 0))
        self.held -= len(buffer)

    def drop_all(self, number: int) -> None:
        """Forget the pieces for a run."""
        for key in [key for key in self._buffers if key[0] == number]:
            self.drop(key)


def _describe(part: PartyPayload, arrays: list[Array]) -> PartyPayload:
    if type(part) is tuple:
        return [_describe(item, arrays) for item in part]
    if not hasattr(part, "dtype"):
        return part
    arrays.append(part)
    return dtype_name(part), tuple(part.shape)


class _Places:
    """Finds the arrays of a description in a buffer, one after another."""

    def __init__(self, kernels: Kernels, data: memoryview, start: int) -> None:
        self._kernels, self._data, self.end = kernels, data, start

    def rebuild(self, part: PartyPayload, depth: int = 0) -> PartyPayload:
        if type(part) is not tuple or depth > 2:
            raise ValueError("its description is not valid")
        if len(part) == 2 and type(part[0]) is str:
            return self._take(*part)
        plain = (bytes, int) if depth == 0 else ()
        return tuple([item if type(item) in plain else self.rebuild(item, depth + 1) for item in part])

    def _take(self, dtype: str, shape: PartyPayload) -> Array:
        lengths = shape if type(shape) is tuple else (None,)
        if dtype not in ITEM_BYTES or not all(type(length) is int and 0 <= length < 1 << 48 for length in lengths):
            raise ValueError("an array has an unknown type or shape")
        size, start = size_of(shape, dtype), self.end
        if size > len(self._data) - start:
            raise ValueError("an array is longer than the message")
        self.end = start + size + len(_padding(size))
        return self._kernels.from_bytes(self._data[start : start + size], dtype, shape)


def _padding(size: int) -> bytes:
    return _PADDINGS[size % _ALIGNMENT]


_PADDINGS = [bytes(-size % _ALIGNMENT) for size in range(_ALIGNMENT)]
