from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.payloads import MAX_HEAD, Pieces, bytes_in, is_failure, pack, split, unpack, weigh  # noqa: E402

KERNELS = NumpyKernels()
ONE, TWO = np.arange(5, dtype="int64"), np.array([[1, 2], [3, 4]], dtype="int32")


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return type(other) is tuple and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(
    "payload",
    [
        (ONE,),
        (ONE, TWO),
        (ONE, (TWO, ONE)),
        (b"digest", 7, ONE),
        (),
        (np.zeros((0, 3), "int64"),),
        (np.array(5, "int64"),),
        (ONE[::2],),
    ],
)
def test_a_payload_arrives_as_it_was_sent(payload: Any) -> None:
    assert equal(unpack(KERNELS, pack(KERNELS, payload)), payload)


def test_arrays_use_the_memory_of_the_buffer() -> None:
    buffer = pack(KERNELS, (ONE,))
    (found,) = unpack(KERNELS, buffer)

    buffer[-8:] = (99).to_bytes(8, "little")

    assert found[-1] == 99


def altered(place: int, byte: int) -> bytearray:
    buffer = pack(KERNELS, (ONE,))
    buffer[place] = byte
    return buffer


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (bytearray(), "unpack"),
        (bytearray(b"\xff\xff\xff\xff"), "its description is too long"),
        (bytearray((MAX_HEAD + 1).to_bytes(4, "little")), "its description is too long"),
        (pack(KERNELS, (ONE,))[:-1], "an array is longer than the message"),
        (pack(KERNELS, (ONE,)) + bytes(8), "its arrays have another length"),
        (altered(4, 0xC1), ""),
        (bytearray(b"\x01\0\0\0\x07\0\0\0"), "its description is not valid"),
        (bytearray(b"\x05\0\0\0\x91\x91\x91\x91\x90\0\0\0\0\0\0\0"), "its description is not valid"),
    ],
)
def test_a_malformed_buffer_is_refused(buffer: bytearray, reason: str) -> None:
    with pytest.raises(ProtocolError, match=rf"cannot read a deposit: .*{reason}.*\(malformed message\)"):
        unpack(KERNELS, buffer)


@pytest.mark.parametrize(("dtype", "shape"), [("object", (1,)), ("int64", (-1,)), ("int64", (1 << 60,)), ("int64", 3)])
def test_an_array_of_an_unknown_type_or_shape_is_refused(dtype: str, shape: Any) -> None:
    msgpack = pytest.importorskip("msgpack")
    head = msgpack.packb([[dtype, shape]])
    buffer = bytearray(len(head).to_bytes(4, "little") + head)
    buffer += bytes(-len(buffer) % 8)

    with pytest.raises(ProtocolError, match="an array has an unknown type or shape|longer than the message"):
        unpack(KERNELS, buffer)


def test_what_waits_weighs_something_even_if_it_is_empty() -> None:
    assert weigh(()) > 0
    assert weigh((np.zeros(0, "int64"),)) > weigh(())
    assert weigh((ONE,)) >= ONE.nbytes
    assert weigh(b"12345") == weigh(()) + 5
    assert bytes_in((ONE, (TWO,), b"digest", 7)) == ONE.nbytes + TWO.nbytes


def test_a_failure_is_an_error_or_nothing() -> None:
    assert is_failure(None)
    assert is_failure(ProtocolError("mine"))
    assert not is_failure(())
    assert not is_failure(b"")


# --- pieces


@pytest.mark.parametrize("size", [1, 3, 4, 10, 11])
def test_pieces_are_joined_again(size: int) -> None:
    pieces, buffer = Pieces(), bytearray(b"0123456789")

    found = [pieces.join((1, 0), piece, left) for piece, left in split(buffer, size)]

    assert found[-1] == buffer
    assert found[:-1] == [None] * (len(found) - 1)
    assert pieces.held == 0


def test_pieces_of_different_senders_and_runs_are_kept_apart() -> None:
    pieces = Pieces()

    pieces.join((1, 0), bytearray(b"ab"), 2)
    pieces.join((1, 1), bytearray(b"cd"), 2)
    pieces.join((2, 0), bytearray(b"ef"), 2)

    assert (pieces.held, pieces.numbers) == (6, {1, 2})
    assert pieces.join((1, 1), bytearray(b"CD"), 0) == b"cdCD"
    pieces.drop_all(1)
    assert (pieces.held, pieces.numbers) == (2, {2})


@pytest.mark.parametrize(("piece", "left"), [(b"xx", 1), (b"xx", 3), (b"", 2), (b"xx", -2), (b"xxx", 0)])
def test_pieces_that_do_not_fit_together_are_refused_and_forgotten(piece: bytes, left: int) -> None:
    pieces = Pieces()
    pieces.join((1, 0), bytearray(b"ab"), 4)

    with pytest.raises(ProtocolError, match="its pieces do not fit together"):
        pieces.join((1, 0), bytearray(piece), left)

    assert (pieces.held, pieces.numbers) == (0, set())
