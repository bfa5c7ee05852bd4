"""Encode an object as frames or bytes, and decode it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.serde import compression
from syft_core.serde.codec import codecs
from syft_core.serde.context import DEFAULT, Context, resolve_context
from syft_core.serde.layout import Frame, Packing, as_bytes, join, pack_header, split, unpack_header
from syft_core.serde.structure import read_structure, write_structure


def frames(obj: object, context: Context | None = None) -> list[Frame]:
    """Encode ``obj`` as ``[header, buffer, ...]`` for a transport that sends several buffers.

    The buffers are read-only views of the tensors in ``obj``, not copies: send them before the tensors change.
    """
    chosen = DEFAULT if context is None else context
    structure, buffers = write_structure(obj, chosen, codecs)
    limits = chosen.limits
    if len(buffers) > limits.max_frames or len(structure) > limits.max_structure:
        limits.check_header(len(buffers), len(structure))
    if chosen.compression != "none" and (method := compression.choose(chosen.compression)) is not None:
        return _compress(structure, buffers, method, sample=chosen.compression == "auto")
    return [pack_header(structure, list(map(len, buffers))), *buffers]


def serialize(obj: object, context: Context | None = None) -> bytes:
    """Encode ``obj`` as bytes.

    >>> deserialize(serialize([1, (2, 3), {"four": 5}]))
    [1, (2, 3), {'four': 5}]
    """
    return join(frames(obj, context))


def from_frames(received: Sequence[Frame], context: Context | None = None, *, writable: bool | None = None) -> Any:
    """Decode the result of ``frames``.

    With ``writable`` (the default) arrays own their memory: a writable frame, such as a bytearray, is reused without a
    copy and must not be used for anything else; an immutable frame is copied. With ``writable=False`` arrays are views
    of the frames.
    """
    chosen = context if writable is None and context is not None else resolve_context(context, writable)
    if not received:
        raise SerdeError("cannot read a message without frames: the header is missing; send it again")
    data = memoryview(received[0]) if type(received[0]) is bytes else as_bytes(received[0])
    structure, lengths, packings, size = unpack_header(data, chosen.limits)
    buffers = [as_bytes(frame) for frame in received[1:]] if len(received) > 1 else []
    if len(data) != size or tuple(map(len, buffers)) != lengths:
        raise SerdeError(
            f"cannot read a message of {len(buffers)} buffers: it declares {len(lengths)}, or other lengths; "
            f"pass all frames in order"
        )
    if packings is not None or not chosen.writable:
        structure, buffers = _unpack(structure, buffers, packings, chosen)
    return read_structure(structure, buffers, chosen, codecs)


def deserialize(data: Frame, context: Context | None = None, *, writable: bool | None = None) -> Any:
    """Decode the result of ``serialize``; for ``writable`` see ``from_frames``."""
    chosen = resolve_context(context, writable)
    view = as_bytes(data)
    structure, lengths, packings, size = unpack_header(view, chosen.limits)
    structure, buffers = _unpack(structure, split(view, size, lengths), packings, chosen)
    return read_structure(structure, buffers, chosen, codecs)


def _unpack(
    structure: memoryview, buffers: list[memoryview], packings: Sequence[Packing] | None, context: Context
) -> tuple[memoryview, list[memoryview]]:
    if packings is not None:
        parts = zip([structure, *buffers], packings, strict=True)
        structure, *buffers = [memoryview(compression.decompress(part, *packing)) for part, packing in parts]
    return structure, buffers if context.writable else [buffer.toreadonly() for buffer in buffers]


def _compress(structure: bytes, buffers: list[memoryview], method: compression.Method, sample: bool) -> list[Frame]:
    parts: list[Frame] = [structure, *buffers]
    packed = [compression.compress(part, method, sample) for part in parts]
    packings = [Packing(number, len(part)) for (number, _), part in zip(packed, parts, strict=True)]
    shorter = [data for _, data in packed]
    return [pack_header(shorter[0], [len(data) for data in shorter[1:]], packings), *shorter[1:]]
