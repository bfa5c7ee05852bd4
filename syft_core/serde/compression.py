"""Compress parts of messages: with zlib, with lz4 if it is installed, or not at all.

"auto" leaves parts under 1 KiB uncompressed. For larger parts it compresses three samples, and the whole part only if
they shrink by a tenth, with lz4 if installed and zlib's fastest level otherwise. With every method, a part that does
not shrink is sent uncompressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from syft_core.exceptions import SerdeError, how_to_install
from syft_core.serde.layout import Frame

try:
    import lz4.block as lz4_block
except ImportError:
    lz4_block = None

NONE, ZLIB, LZ4 = 0, 1, 2
MIN_SIZE = 1024
SAMPLE = 4096
MAX_SAMPLE_RATIO = 0.9


@dataclass(frozen=True)
class Method:
    """A compression method; ``max_ratio`` is the largest expansion that its format allows."""

    number: int
    name: str
    max_ratio: int
    compress: Callable[[Frame], bytes]
    decompress: Callable[[Frame, int], Frame]


def choose(compression: str) -> Method | None:
    """Return the method called ``compression``, or None for no compression."""
    if compression == "none":
        return None
    if compression == "auto":
        return METHODS.get(LZ4, METHODS[ZLIB])
    found = next((method for method in METHODS.values() if method.name == compression), None)
    if found is None:
        raise SerdeError(
            f"cannot compress with {compression!r}: the available methods are none, auto, "
            f"{', '.join(method.name for method in METHODS.values())}; for lz4 run `{how_to_install('lz4')}`"
        )
    return found


def compress(data: Frame, method: Method, sample: bool) -> tuple[int, Frame]:
    """Return the number of the method used and the compressed bytes, or NONE and ``data`` itself."""
    size = len(data)
    if size < MIN_SIZE or (sample and not _is_compressible(data, method)):
        return NONE, data
    shorter = method.compress(data)
    return (method.number, shorter) if len(shorter) < size else (NONE, data)


def decompress(data: Frame, number: int, length: int) -> Frame:
    """Decompress ``data`` to exactly ``length`` bytes, without allocating more."""
    if number == NONE:
        if len(data) != length:
            raise SerdeError("cannot read an uncompressed part: its two declared lengths differ (malformed message)")
        return data
    method = METHODS.get(number)
    if method is None:
        raise SerdeError(
            f"cannot decompress a part: method {number} is not available here; for lz4 (2) run "
            f"`{how_to_install('lz4')}`, or configure the sender to use zlib"
        )
    if length > (len(data) + 64) * method.max_ratio:
        raise SerdeError(
            f"cannot decompress {len(data)} bytes to {length}: {method.name} cannot expand that much "
            f"(malformed message)"
        )
    damaged = SerdeError(
        f"cannot decompress a part with {method.name}: it is damaged or does not have its declared length; "
        f"send it again"
    )
    try:
        plain = method.decompress(data, length)
    except Exception:  # noqa: BLE001  # each library has its own errors
        raise damaged from None
    if len(plain) != length:
        raise damaged
    return plain


def _is_compressible(data: Frame, method: Method) -> bool:
    size = len(data)
    if size <= 3 * SAMPLE:
        return True
    view = memoryview(data)
    middle = size // 2
    samples = (view[:SAMPLE], view[middle : middle + SAMPLE], view[size - SAMPLE :])
    return sum(len(method.compress(sample)) for sample in samples) < MAX_SAMPLE_RATIO * 3 * SAMPLE


def _zlib_decompress(data: Frame, length: int) -> bytes:
    # Ask for one byte more than declared, to reach the end of the stream and detect a longer one.
    stream = zlib.decompressobj()
    plain = stream.decompress(data, length + 1)
    if not stream.eof or stream.unused_data:
        raise ValueError("the stream is longer or shorter than declared")
    return plain


METHODS = {ZLIB: Method(ZLIB, "zlib", 1032, lambda data: zlib.compress(data, 1), _zlib_decompress)}
if lz4_block is not None:
    METHODS[LZ4] = Method(
        *(LZ4, "lz4", 255),
        compress=lambda data: lz4_block.compress(data, store_size=False),
        decompress=lambda data, size: lz4_block.decompress(data, uncompressed_size=size, return_bytearray=True),
    )
