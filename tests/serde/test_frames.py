import struct
import tracemalloc
import zlib

import msgpack
import pytest

from syft_core.serde import Context, Limits, SerdeError, deserialize, frames, from_frames, serialize
from syft_core.serde.layout import ALIGNMENT, as_bytes, join, pack_header, split, unpack_header

BIG = bytes(range(256)) * 20
OBJECT = {"a": BIG, "b": [1, bytearray(BIG)], "c": b"small"}


def message(structure, *buffers, declared=None):
    """Build a message by hand, with a correct checksum."""
    lengths = [len(buffer) for buffer in buffers] if declared is None else declared
    return join([pack_header(structure, lengths), *buffers])


def test_the_header_comes_first_and_buffers_are_not_copied():
    header, first, second = frames(OBJECT)
    assert header[:4] == b"SYFT"
    assert len(header) < 200
    assert first.obj is BIG
    assert second.obj is OBJECT["b"][1]


def test_buffers_are_read_only_so_that_nobody_takes_over_the_senders_memory():
    assert all(memoryview(frame).readonly for frame in frames(OBJECT))


def test_joined_parts_are_aligned():
    data = serialize(OBJECT)
    _, lengths, _, size = unpack_header(as_bytes(data), Limits())
    starts = [data.index(BIG), data.rindex(BIG)]
    assert [start % ALIGNMENT for start in starts] == [0, 0]
    assert len(split(as_bytes(data), size, lengths)) == 2


def test_joined_frames_are_the_serialized_form():
    assert join(frames(OBJECT)) == serialize(OBJECT)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_frames_may_arrive_in_any_kind_of_buffer(kind):
    assert from_frames([kind(bytes(frame)) for frame in frames(OBJECT)]) == OBJECT
    assert deserialize(kind(serialize(OBJECT))) == OBJECT


def test_a_message_may_be_one_number():
    assert deserialize(serialize(5)) == 5


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


def test_nested_headers_that_declare_millions_take_little_memory():
    bomb = b"\xdd\x00\x00\x10\x00" * 1000 + bytes(60_000)
    tracemalloc.start()
    with pytest.raises(SerdeError):
        deserialize(message(bomb))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


@pytest.mark.parametrize(
    "structure",
    [
        b"",
        b"\xc1",
        b"\x93\x03",
        b"\x90",
        b"\x81\x01\x02",
        b"\xd4\x05\x00",
        b"\xdd\xff\xff\xff\xff",
        b"\xdc\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91" * 2000 + b"\x01",
        b"\xa2\xff\xfe",
        msgpack.packb([3, 1]) + b"\x01",
        msgpack.packb([[3], 1]),
        msgpack.packb(["3", 1]),
        msgpack.packb([True, 0]),
        msgpack.packb([3.0, 1]),
        msgpack.packb([-3, 1]),
        msgpack.packb([987654321]),
        msgpack.packb([0]),
        msgpack.packb([0, 0]),
        msgpack.packb([0, -1]),
        msgpack.packb([0, None]),
        msgpack.packb([1, 0]),
        msgpack.packb([1, -1]),
        msgpack.packb([2]),
        msgpack.packb([2, 3, 5]),
        msgpack.packb([2, 0, [1]]),
        msgpack.packb([5, 1]),
        msgpack.packb([5, [3], 1]),
        msgpack.packb([5, 1, 1, 1, 2]),
        msgpack.packb([6]),
        msgpack.packb([6, 5]),
        msgpack.packb([6, [5, "items", 1]]),
        msgpack.packb([7, 1, 1]),
        msgpack.packb([7, [3]]),
        msgpack.packb([9, 1, 2]),
        msgpack.packb([9, 1, 2, 0]),
        msgpack.packb([9, "a", 2, 1]),
        msgpack.packb([10, 1]),
        msgpack.packb([11, 1]),
        msgpack.packb([12, 5]),
        msgpack.packb([12, "5"]),
        msgpack.packb([13, "a", 1.0]),
        msgpack.packb([14, 10**6]),
        msgpack.packb([14, "text"]),
        msgpack.packb([15, 10**9]),
        msgpack.packb([16, "SystemExit", "SystemExit", "bye", [5]]),
        msgpack.packb([16, "os.system", "x", "bye", [5]]),
        msgpack.packb([16, "ValueError", "ValueError", "bye", [5, "__class__", 1]]),
        msgpack.packb([16, "ValueError", "ValueError", "bye", [5, "args", 1]]),
        msgpack.packb([17, "object"]),
        msgpack.packb([17, "os.system"]),
        msgpack.packb([17, 5]),
    ],
    ids=lambda structure: structure[:12].hex() or "empty",
)
def test_a_malformed_structure_is_refused(structure):
    with pytest.raises(SerdeError):
        deserialize(message(structure))


def test_a_buffer_belongs_to_one_object():
    twice = msgpack.packb([3, [14, [0, 0]], [14, [0, 0]]])
    with pytest.raises(SerdeError, match="used twice"):
        deserialize(message(twice, BIG))


def test_an_unused_buffer_is_refused():
    with pytest.raises(SerdeError, match="1 of its buffers are unused"):
        deserialize(message(msgpack.packb([3]), BIG))


def test_a_writer_refuses_what_exceeds_the_limits_of_readers():
    with pytest.raises(SerdeError, match="2 buffers: the limit is 1"):
        serialize(OBJECT, Context(limits=Limits(max_frames=1)))
    with pytest.raises(SerdeError, match="bytes of structure: the limit is 10"):
        serialize(OBJECT, Context(limits=Limits(max_structure=10)))


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Limits(max_frames=1), "buffers"),
        (Limits(max_structure=10), "bytes of structure"),
        (Limits(max_bytes=5000), "bytes"),
        (Limits(max_nodes=2), "nodes"),
        (Limits(max_depth=1), "deeper"),
    ],
)
def test_each_limit_is_enforced(limits, what):
    data = serialize(OBJECT)
    with pytest.raises(SerdeError, match=what):
        deserialize(data, Context(limits=limits))
