import pytest

from syft_core.serde import Context, Limits, SerdeError, deserialize, serialize
from syft_core.serde.context import DEFAULT, VIEWS, resolve_context

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


def test_a_limit_may_be_reached_but_not_exceeded():
    limits = Limits(max_frames=2, max_structure=10)

    limits.check_header(2, 10)
    with pytest.raises(SerdeError, match="3 buffers: the limit is 2; send it in parts, or raise `Limits`"):
        limits.check_header(3, 10)
    with pytest.raises(SerdeError, match="11 bytes of structure"):
        limits.check_header(2, 11)


def test_a_reader_owns_writable_memory_and_copies_only_what_is_not_its_own():
    mine, others = bytearray(b"abc"), b"abc"

    assert Context().take_ownership(mine) is mine
    assert type(Context().take_ownership(others)) is bytearray
    assert Context(writable=False).take_ownership(others) is others
    assert bytes(Context().take_ownership(memoryview(others))) == b"abc"


def test_an_option_of_a_call_takes_precedence_over_the_context():
    chosen = Context(compression="zlib")

    assert resolve_context(None, None) is DEFAULT
    assert resolve_context(None, False) is VIEWS
    assert resolve_context(chosen, None) is chosen
    assert resolve_context(chosen, True) is chosen
    assert resolve_context(chosen, False) == Context(compression="zlib", writable=False)
