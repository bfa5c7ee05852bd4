import pytest

from syft_core.serde import Context, Limits, SerdeError, deserialize, serialize

BIG = bytes(range(256)) * 20


OBJECT = {"a": BIG, "b": [1, bytearray(BIG)], "c": b"small"}


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
