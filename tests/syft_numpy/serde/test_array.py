import itertools

import pytest

np = pytest.importorskip("numpy")

import msgpack  # noqa: E402

from syft_core.serde import SerdeError, deserialize, frames, from_frames, serialize  # noqa: E402
from syft_core.serde.layout import join, pack_header  # noqa: E402

from ...serde.equality import same  # noqa: E402

ALIGNED = np.dtype([("a", "i1"), ("b", ">f8", (2,)), ("c", [("d", "U3"), ("e", "?"), ("f", "m8[3us]")])], align=True)
DTYPES = [
    *"?bBhHiIlLqQefdgFDG",
    *[">" + char for char in "hHiIqQefdFD"],
    "S1",
    "S7",
    "U1",
    "U9",
    ">U4",
    "V3",
    "M8",
    "M8[Y]",
    "M8[ns]",
    ">M8[7us]",
    "m8",
    "m8[25s]",
    ALIGNED,
    [("x", "f4"), ("y", "V2"), ("z", "S2")],
    np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [8], "itemsize": 32}),
    np.dtype([(("a title", "a"), "i4")]),
    np.dtype([]),
]


def some(dtype, *shape):
    """Return an array in which every field has a value."""
    array = np.zeros(shape, dtype)
    fill(array)
    return array


def fill(array):
    if array.dtype.names is not None:
        for name in array.dtype.names:
            fill(array[name])
    elif array.dtype.kind in "SU":
        array[...] = "ab"
    elif array.dtype.kind == "V":
        array[...] = b"\1\2\3\4"[: array.dtype.itemsize]
    elif array.size:
        array[...] = np.resize(np.arange(7) % (2 if array.dtype.kind == "b" else 7), array.shape)
        if array.dtype.kind in "fc":
            array /= 3


def there_and_back(value, **options):
    received = deserialize(serialize(value), **options)
    assert type(from_frames(frames(value), **options)) is type(received)
    return received


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (400, 3)], ids=str)
def test_every_dtype_and_shape_comes_back_writable(dtype, shape):
    array = some(dtype, *shape)
    received = there_and_back(array)
    assert received.dtype == array.dtype
    assert received.dtype.isalignedstruct == array.dtype.isalignedstruct
    assert received.shape == array.shape
    assert np.array_equal(received, array)
    assert received.flags.writeable
    received[...] = array


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if np.dtype(dtype).itemsize], ids=str)
def test_array_scalars_keep_their_type(dtype):
    scalar = some(dtype, 3)[1]
    received = there_and_back(scalar)
    assert type(received) is type(np.zeros(1, scalar.dtype.str)[0] if scalar.dtype.names is None else scalar)
    assert received == scalar
    assert received.dtype == scalar.dtype


def test_strings_of_any_length_come_back():
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("this numpy has no variable-length strings")
    array = np.array([["a", "long " * 100], ["", "grün"]], np.dtypes.StringDType())
    received = there_and_back(array)
    assert received.dtype == array.dtype
    assert received.tolist() == array.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_is_kept(order):
    array = np.asarray(np.arange(600.0).reshape(20, 30), order=order)
    received = there_and_back(array)
    assert same(received, array)
    assert received.flags.c_contiguous == array.flags.c_contiguous
    assert received.flags.f_contiguous == array.flags.f_contiguous


@pytest.mark.parametrize(
    "view",
    [np.arange(10)[::-1], np.arange(10_000)[::7], np.broadcast_to(np.arange(3), (4, 3)), np.eye(5)[1:3, 2:]],
    ids=["reversed", "stepped", "broadcast", "block"],
)
def test_views_are_sent_by_value(view):
    received = there_and_back(view)
    assert same(received, view)
    received[...] = 1


def test_only_the_elements_of_a_view_are_sent():
    assert len(serialize(np.zeros((1000, 1000))[:1, :5])) < 200


def test_fields_that_a_view_leaves_out_are_not_sent():
    whole = np.zeros(400, [("open", "u4"), ("secret", "u4"), ("last", "u4")])
    whole["secret"] = 0x5EC2E75E
    shown = whole[["open", "last"]]
    message = serialize(shown)
    assert b"\x5e\xe7\xc2\x5e" not in message
    assert np.array_equal(deserialize(message), shown)


def test_padding_is_not_sent():
    dirty = np.frombuffer(b"\xee" * 24 * 10, np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2")], align=True))
    assert dirty.dtype.itemsize == 24
    sent = bytes(frames(np.resize(dirty, 100))[1])
    assert sent[1:8] == bytes(7)
    assert sent[0] == 0xEE


def test_long_doubles_travel_between_machines_of_one_kind():
    array = np.array([1, 2, 5], np.longdouble) / 3
    assert np.array_equal(there_and_back(array), array)
    nmant = np.finfo(np.longdouble).nmant
    if nmant == 63:
        assert serialize(array).count(bytes(6)) >= 3
    structure = msgpack.packb([100, 0, [102, "g99"], bytes(16), 1])
    with pytest.raises(SerdeError, match="its mantissa has 99 bits"):
        deserialize(join([pack_header(structure, [])]))


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array([[1], [2, 3]], dtype=object),
        np.zeros(2, [("a", "i4"), ("o", "O")]),
        np.zeros(2, [("a", [("o", "O")])]),
    ],
    ids=["objects", "ragged", "field", "nested field"],
)
def test_object_arrays_are_refused(array):
    with pytest.raises(SerdeError, match=r"contains Python objects.*send `x.tolist\(\)`"):
        serialize(array)


@pytest.mark.parametrize("array", [np.ma.array([1]), np.zeros(1, "i4").view(np.recarray)], ids=["masked", "record"])
def test_subclasses_are_refused(array):
    with pytest.raises(SerdeError, match=r"derives from numpy\.ndarray"):
        serialize(array)


def test_views_of_received_bytes_are_read_only():
    for length in (3, 5000):
        received = deserialize(serialize(np.arange(length)), writable=False)
        assert not received.flags.writeable


def test_writable_arrays_do_not_share_memory_with_the_message():
    data = serialize(np.zeros(5000))
    copy = bytes(bytearray(data))
    deserialize(data)[...] = 1
    assert data == copy


F4, ONE = "<f4", bytes(4)
HOSTILE = [
    [100],
    [100, 0],
    [100, 0, F4, ONE, -1],
    [100, 0, F4, ONE, 2],
    [100, 0, F4, b"", 2**40, 2**40],
    [100, 0, F4, ONE, *[1] * 65],
    [100, 0, F4, ONE, True],
    [100, 9, F4, ONE, 1],
    [100, 2, F4, [3, "a"], 1],
    [100, 2, [102, 3], [3, 1], 1],
    [100, 2, [102, 3], "a", 1],
    [100, 0, [102, 3], ONE, 1],
    [100, 0, "|O8", bytes(8), 1],
    [100, 0, "O", bytes(8), 1],
    [100, 0, "f4,O", bytes(12), 1],
    [100, 0, "<f3", bytes(3), 1],
    [100, 0, "<U999999999", ONE, 1],
    [100, 0, "|S9999999999", ONE, 1],
    [100, 0, "<M8[parsec]", bytes(8), 1],
    [100, 0, "<M8[0s]", bytes(8), 1],
    [100, 0, "|V0", b"", 2**40],
    [100, 0, "|b1", b"\x02", 1],
    [100, 0, [102, 1, 1, False, [4, "a", [102, "|b1"], 0]], b"\x07", 1],
    [100, 0, "<U1", b"\xff\xff\xff\x7f", 1],
    [100, 0, ">U1", b"\x7f\xff\xff\xff", 1],
    [100, 0, [102, 1, 5, False, [4, "a", [102, "<U1"], 1]], b"\0\xff\xff\xff\x7f" * 2, 2],
    [101, "<U1", b"\xff\xff\xff\x7f"],
    [100, 0, 5, ONE, 1],
    [100, 0, F4, "text", 1],
    [100, 0, F4, 4, 1],
    [101, F4],
    [101, F4, b"123"],
    [101, F4, 4],
    [101, [102, 3], bytes(16)],
    [102],
    [102, 7],
    [102, "float32"],
    [102, 1, -1, False],
    [102, 1, 4, False, [4, "a", [102, F4], 1]],
    [102, 1, 4, False, [4, "a", [102, F4], -4]],
    [102, 1, 4, False, [4, "a", "O", 0]],
    [102, 1, 4, False, [4, 5, [102, F4], 0]],
    [102, 1, 8, False, [4, "a", [102, F4], 0], [4, "a", [102, F4], 4]],
    [102, 1, 4, 5],
    [102, 2, [102, F4], -1],
    [102, 2, "O", 1],
    [102, 2, [102, F4], *[2**30] * 4],
]


@pytest.mark.parametrize("structure", HOSTILE, ids=map(str, itertools.count()))
def test_a_hostile_payload_is_refused(structure):
    with pytest.raises(SerdeError):
        deserialize(join([pack_header(msgpack.packb(structure), [])]))


def test_an_error_about_an_axis_keeps_its_text_and_its_numbers():
    kind = getattr(np, "exceptions", np).AxisError
    for sent in (kind(5, 1), kind(5, 1, "axes"), kind("text")):
        received = deserialize(serialize(sent))

        assert (type(received), str(received)) == (type(sent), str(sent))
        assert (received.axis, received.ndim) == (sent.axis, sent.ndim)
