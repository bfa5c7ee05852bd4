r"""The layout of a message: a header frame and raw buffers, separate or joined.

::

    header frame                                                      buffer 0     buffer 1
    +------+---+-----+---+-----+-----+--------+---------+-----------+ +----------+ +----------+
    | SYFT | v | flg | 0 | crc | n   | length | table   | structure | | raw      | | raw      |
    +------+---+-----+---+-----+-----+--------+---------+-----------+ +----------+ +----------+
      4      1   1     2   4     4     8        8n (17n)   length       table[0]     table[1]

All numbers are little-endian. The crc covers the rest of the header frame. It does not cover the buffers, which may be
large and are checked by the transport. ``table`` holds the length of each buffer. With the flag COMPRESSED it also
holds the compression method and the full length of the structure and of each buffer. In a joined message every part
starts at a multiple of 64 bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from syft_core.exceptions import SerdeError
from syft_core.serde.context import Limits

Frame: TypeAlias = "bytes | bytearray | memoryview"

MAGIC = b"SYFT"
VERSION = 1
COMPRESSED = 1
ALIGNMENT = 64

_PREFIX = struct.Struct("<4sBBHI")  # up to and including the crc
_BODY = struct.Struct("<IQ")  # the beginning of what the crc covers
_WHOLE = struct.Struct("<4sBBHIIQ")
_START = _WHOLE.size
_PADDING = bytes(ALIGNMENT)


class Packing(NamedTuple):
    """How one part is compressed: the method's number and the full length."""

    method: int
    length: int


def pack_header(structure: Frame, lengths: Sequence[int], packings: Sequence[Packing] | None = None) -> bytes:
    """Build the header frame; ``packings`` describes the structure and then each buffer."""
    count = len(lengths)
    table = struct.pack(f"<{count}Q", *lengths) if count else b""
    if packings is not None:
        table += struct.pack(f"<{count + 1}B", *[packing.method for packing in packings])
        table += struct.pack(f"<{count + 1}Q", *[packing.length for packing in packings])
    flags = COMPRESSED if packings is not None else 0
    body = b"".join((_BODY.pack(count, len(structure)), table, structure))
    return _PREFIX.pack(MAGIC, VERSION, flags, 0, zlib.crc32(body)) + body


# structure, lengths of the buffers, packings, size of the header frame
Header: TypeAlias = "tuple[memoryview, tuple[int, ...], tuple[Packing, ...] | None, int]"


def unpack_header(data: memoryview, limits: Limits) -> Header:
    """Read the header frame at the start of ``data``, and check it against the limits and its own length."""
    if len(data) < _START:
        raise SerdeError(f"cannot read a message of {len(data)} bytes: its header is truncated; send it again")
    magic, version, flags, reserved, crc, count, length = _WHOLE.unpack_from(data)
    if magic != MAGIC:
        raise SerdeError("cannot read these bytes: they are not a syft-core message; pass what `serialize` returned")
    if version != VERSION:
        raise SerdeError(
            f"cannot read a message of version {version}: this syft-core reads version {VERSION}; "
            f"install the same release at both ends"
        )
    if flags > COMPRESSED or reserved:
        raise SerdeError("cannot read a message: its header has unknown flags (malformed message)")
    if count > limits.max_frames or length > limits.max_structure:
        limits.check_header(count, length)
    start = _START + 8 * count + (9 * (count + 1) if flags & COMPRESSED else 0)
    size = start + length
    if size > len(data):
        raise SerdeError(f"cannot read a message: {size - len(data)} bytes of its header are missing; send it again")
    if zlib.crc32(data[_PREFIX.size : size]) != crc:
        raise SerdeError("cannot read a message: its checksum is wrong, it was damaged in transit; send it again")
    lengths = struct.unpack_from(f"<{count}Q", data, _START) if count else ()
    if length + sum(lengths) > limits.max_bytes:
        limits.check("bytes", length + sum(lengths), limits.max_bytes)
    packings = _unpack_packings(data, _START + 8 * count, count, limits) if flags & COMPRESSED else None
    return data[start:size], lengths, packings, size


def join(parts: Sequence[Frame]) -> bytes:
    """Join a header frame and its buffers, each at a multiple of 64 bytes, with a single copy."""
    if len(parts) == 1:
        return bytes(parts[0])
    pieces: list[Frame] = []
    for part in parts[:-1]:
        pieces.append(part)
        pieces.append(_PADDING[: -len(part) % ALIGNMENT])
    pieces.append(parts[-1])
    return b"".join(pieces)


def split(data: memoryview, size: int, lengths: Sequence[int]) -> list[memoryview]:
    """Return views of the buffers after the header of a joined message; nothing may follow the last one."""
    buffers = []
    end = size
    for length in lengths:
        start = end + -end % ALIGNMENT
        end = start + length
        buffers.append(data[start:end])
    if end != len(data):
        raise SerdeError(f"cannot read a message: it declares {end} bytes but has {len(data)}; send it again")
    return buffers


def as_bytes(frame: Frame) -> memoryview:
    """View any contiguous buffer as plain bytes."""
    try:
        view = memoryview(frame)
        return view if view.format == "B" and view.ndim == 1 and view.contiguous else view.cast("B")
    except TypeError:
        raise SerdeError(
            f"cannot read a message from a {type(frame).__name__}: frames are bytes, bytearray or contiguous "
            f"memoryviews; pass what the transport received"
        ) from None


def _unpack_packings(data: memoryview, start: int, count: int, limits: Limits) -> tuple[Packing, ...]:
    methods = data[start : start + count + 1]
    lengths = struct.unpack_from(f"<{count + 1}Q", data, start + count + 1)
    limits.check("bytes of structure", lengths[0], limits.max_structure)
    limits.check("bytes", sum(lengths), limits.max_bytes)
    expanded = sum(length for method, length in zip(methods, lengths, strict=True) if method)
    limits.check("bytes after decompression", expanded, limits.max_expanded)
    return tuple(map(Packing, methods, lengths))
