import pytest

from syft_core.exceptions import SerdeError
from syft_core.serde.received import HUGE, MAX_DIMENSIONS, copy_writable, count_bytes, count_elements, require


@pytest.mark.parametrize(
    ("shape", "count"), [((), 1), ([3, 4], 12), ((5, 0), 0), ((1,) * MAX_DIMENSIONS, 1), ((2**62, 1), 2**62)]
)
def test_a_shape_has_a_number_of_elements(shape, count):
    assert count_elements(shape) == count


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (range(3), "its shape is a range"),
        (None, "its shape is a NoneType"),
        ("33", "its shape is a str"),
        ((1,) * (MAX_DIMENSIONS + 1), "more than 64 dimensions"),
        ((2, -1), "an invalid length"),
        ((2, True), "an invalid length"),
        ((2, 1.0), "an invalid length"),
        ((2**32, 2**31), "more than 2\\*\\*63 elements"),
    ],
)
def test_a_shape_that_no_array_has_is_refused(shape, reason):
    with pytest.raises(SerdeError, match=f"cannot rebuild an array: .*{reason}"):
        count_elements(shape)


def test_received_bytes_are_counted():
    assert count_bytes(b"abc") == 3
    assert count_bytes(memoryview(b"abc")) == 3


@pytest.mark.parametrize("data", ["abc", [1, 2], bytearray(3), None])
def test_other_types_than_received_bytes_are_refused(data):
    with pytest.raises(SerdeError, match=f"cannot rebuild a scale: expected bytes, got {type(data).__name__}"):
        count_bytes(data, "a scale")


def test_what_is_valid_passes_and_anything_else_is_named():
    require(True, "a schema")

    with pytest.raises(SerdeError, match=r"cannot rebuild a schema: no columns \(malformed message\)"):
        require(False, "a schema: no columns")


@pytest.mark.parametrize("size", [0, 5, HUGE], ids=["empty", "small", "huge"])
def test_a_copy_is_writable_and_shares_nothing(size):
    data = bytes(size)

    copied = copy_writable(data)
    if size:
        copied[0] = 7

    assert len(copied) == size
    assert data == bytes(size)
