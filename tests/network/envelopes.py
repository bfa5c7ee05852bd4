"""Messages as they cross the network, written by hand."""

from __future__ import annotations

import struct
from typing import Any

from syft_core.serde import from_frames


def pack(number: int, *buffers: Any, more: bool = False) -> bytes:
    lengths = [len(buffer) for buffer in buffers]
    head = struct.pack("<B?xxIQQ", 0, more, len(buffers), number, 0) + struct.pack(f"<{len(lengths)}Q", *lengths)
    return head + b"".join(map(bytes, buffers))


def unpack(message: bytes) -> Any:
    _, count, _, _ = struct.unpack_from("<BxxxIQQ", message)
    lengths = struct.unpack_from(f"<{count}Q", message, 24)
    start, parts = 24 + 8 * count, []
    for length in lengths:
        parts.append(message[start : start + length])
        start += length
    return from_frames(parts)
