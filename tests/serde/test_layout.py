import struct
import zlib

import msgpack
import pytest

from syft_core.serde import Limits, SerdeError, deserialize, frames, from_frames, serialize
from syft_core.serde.layout import ALIGNMENT, as_bytes, join, pack_header, split, unpack_header

BIG = bytes(range(256)) * 20
OBJECT = {"a": BIG, "b": [1, bytearray(BIG)], "c": b"small"}


def message(structure, *buffers, declared=None):
    """Build a message by hand, with a correct checksum."""
    lengths = [len(buffer) for buffer in buffers] if declared is None else declared
    return join([pack_header(structure, lengths), *buffers])


def test_joined_parts_are_aligned():
    data = serialize(OBJECT)
    _, lengths, _, size = unpack_header(as_bytes(data), Limits())
    starts = [data.index(BIG), data.rindex(BIG)]
    assert [start % ALIGNMENT for start in starts] == [0, 0]
    assert len(split(as_bytes(data), size, lengths)) == 2


@pytest.mark.parametrize("data", [None, "text", 5, [b"SYFT"]])
def test_an_object_that_is_not_a_buffer_is_refused(data):
    with pytest.raises(SerdeError, match="frames are bytes"):
        deserialize(data)


def test_a_non_contiguous_view_is_refused():
    with pytest.raises(SerdeError, match="contiguous"):
        deserialize(memoryview(serialize([1]))[::2])


def test_every_truncation_is_refused():
    data = serialize(OBJECT)
    for length in [*range(200), len(data) - 1, len(data) - 6000]:
        with pytest.raises(SerdeError):
            deserialize(data[:length])


def test_trailing_bytes_are_refused():
    with pytest.raises(SerdeError, match="it declares 10368 bytes but has 10369"):
        deserialize(serialize(OBJECT) + b"\0")
    header, *buffers = frames(OBJECT)
    with pytest.raises(SerdeError, match="other lengths"):
        from_frames([header + b"\0", *buffers])


def test_frames_that_are_missing_or_in_another_order_are_refused():
    header, first, second = frames([BIG, BIG + b"1"])
    for received in ([header], [header, first], [header, second, first], [header, first, second, first], []):
        with pytest.raises(SerdeError):
            from_frames(received)


def test_one_changed_byte_in_the_header_is_detected():
    header, *buffers = frames(OBJECT)
    for position in range(len(header)):
        damaged = bytearray(header)
        damaged[position] ^= 0x10
        with pytest.raises(SerdeError):
            from_frames([damaged, *buffers])


def test_other_formats_and_other_versions_get_different_errors():
    data = bytearray(serialize([1]))
    with pytest.raises(SerdeError, match="not a syft-core message"):
        deserialize(b"PK\3\4" + data[4:])
    data[4] = 9
    with pytest.raises(SerdeError, match="version 9"):
        deserialize(data)


def test_an_absurd_length_is_refused_before_memory_is_allocated():
    body = struct.pack("<IQ", 1, 2**60)
    data = struct.pack("<4sBBHI", b"SYFT", 1, 0, 0, zlib.crc32(body)) + body
    with pytest.raises(SerdeError, match="bytes of structure"):
        deserialize(data)
    with pytest.raises(SerdeError, match="bytes"):
        deserialize(message(msgpack.packb([0, 0]), declared=[2**62]))
