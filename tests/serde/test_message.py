import pytest

from syft_core.serde import deserialize, frames, from_frames, serialize
from syft_core.serde.layout import join

BIG = bytes(range(256)) * 20


OBJECT = {"a": BIG, "b": [1, bytearray(BIG)], "c": b"small"}


def test_the_header_comes_first_and_buffers_are_not_copied():
    header, first, second = frames(OBJECT)
    assert header[:4] == b"SYFT"
    assert len(header) < 200
    assert first.obj is BIG
    assert second.obj is OBJECT["b"][1]


def test_buffers_are_read_only_so_that_nobody_takes_over_the_senders_memory():
    assert all(memoryview(frame).readonly for frame in frames(OBJECT))


def test_joined_frames_are_the_serialized_form():
    assert join(frames(OBJECT)) == serialize(OBJECT)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_frames_may_arrive_in_any_kind_of_buffer(kind):
    assert from_frames([kind(bytes(frame)) for frame in frames(OBJECT)]) == OBJECT
    assert deserialize(kind(serialize(OBJECT))) == OBJECT


def test_a_message_may_be_one_number():
    assert deserialize(serialize(5)) == 5
