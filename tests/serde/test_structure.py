import tracemalloc

import msgpack
import pytest

from syft_core.serde import (
    Context,
    Limits,
    SerdeError,
    deserialize,
    serialize,
)
from syft_core.serde.layout import join, pack_header

BIG = bytes(range(256)) * 20


def message(structure, *buffers, declared=None):
    """Build a message by hand, with a correct checksum."""
    lengths = [len(buffer) for buffer in buffers] if declared is None else declared
    return join([pack_header(structure, lengths), *buffers])


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


def test_an_object_that_contains_itself_is_refused():
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(SerdeError, match="may contain itself"):
        serialize(loop)


def test_an_object_that_unfolds_endlessly_is_refused():
    laughs = ["ha"]
    for _ in range(60):
        laughs = [laughs, laughs]
    with pytest.raises(SerdeError, match=r"more than 10000 parts"):
        serialize(laughs, Context(limits=Limits(max_nodes=10_000)))


def test_depth_is_bounded_on_both_sides():
    deep = []
    for _ in range(50):
        deep = [deep]
    message = serialize(deep)
    assert deserialize(message) == deep
    shallow = Context(limits=Limits(max_depth=20))
    with pytest.raises(SerdeError, match="deeper than 20"):
        serialize(deep, shallow)
    with pytest.raises(SerdeError, match="deeper than 20"):
        deserialize(message, shallow)


@pytest.mark.parametrize("make", [list, tuple, set, lambda many: dict.fromkeys(many), lambda many: [[n] for n in many]])
def test_every_value_of_a_container_counts_towards_the_limit(make):
    data = serialize(make(range(1001)))

    with pytest.raises(SerdeError, match="of more than 1000 parts: that is the limit"):
        deserialize(data, context=Context(limits=Limits(max_nodes=1000)))
    with pytest.raises(SerdeError, match="of more than 1000 parts: that is the limit"):
        serialize(make(range(1001)), context=Context(limits=Limits(max_nodes=1000)))
