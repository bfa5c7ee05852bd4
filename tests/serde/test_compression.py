import random
import zlib

import pytest

from syft_core.serde import Context, Limits, SerdeError, compression, deserialize, frames, from_frames, serialize
from syft_core.serde.layout import Packing, join, pack_header

METHODS = ["auto", "zlib", *(["lz4"] if compression.LZ4 in compression.METHODS else [])]
ZEROS = bytes(100_000)
NOISE = random.Random(1).randbytes(100_000)
TEXTS = ["the same words again and again"] * 1000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [ZEROS, NOISE, TEXTS, [ZEROS, NOISE, TEXTS], 5, b"short"], ids=range(6))
def test_a_compressed_message_comes_back(method, value):
    context = Context(compression=method)
    assert deserialize(serialize(value, context)) == value
    assert from_frames(frames(value, context)) == value


@pytest.mark.parametrize("method", METHODS)
def test_repetitive_data_is_compressed(method):
    assert len(serialize([ZEROS, TEXTS], Context(compression=method))) < 5_000


@pytest.mark.parametrize("method", METHODS)
def test_noise_is_sent_uncompressed(method):
    header, buffer = frames(NOISE, Context(compression=method))
    assert buffer.obj is NOISE
    assert len(header) < 100


def test_auto_compression_only_tries_samples(monkeypatch):
    seen = []
    zlib_method = compression.METHODS[compression.ZLIB]

    def compress(data):
        seen.append(len(data))
        return zlib_method.compress(data)

    watched = compression.Method(1, "zlib", 1032, compress, zlib_method.decompress)
    assert compression.compress(NOISE, watched, sample=True) == (compression.NONE, NOISE)
    assert seen == [compression.SAMPLE] * 3


def test_nothing_is_compressed_unless_asked():
    assert len(serialize(ZEROS)) > len(ZEROS)


def test_an_unknown_method_is_refused_by_the_writer():
    with pytest.raises(SerdeError, match="cannot compress with 'brotli': the available methods are none, auto, zlib"):
        serialize(1, Context(compression="brotli"))


def pack(data, method, length, structure=b"\x92\x0e\x92\x00\x00"):
    packings = [Packing(0, len(structure)), Packing(method, length)]
    return join([pack_header(structure, [len(data)], packings), data])


def test_the_hand_written_message_is_right():
    assert deserialize(pack(zlib.compress(ZEROS), 1, len(ZEROS))) == ZEROS


@pytest.mark.parametrize(
    ("data", "method", "length"),
    [
        (zlib.compress(ZEROS), 1, 10),
        (zlib.compress(ZEROS), 1, len(ZEROS) + 1),
        (zlib.compress(ZEROS), 1, len(ZEROS) - 1),
        (zlib.compress(ZEROS)[:-3], 1, len(ZEROS)),
        (zlib.compress(ZEROS) + b"tail", 1, len(ZEROS)),
        (b"no zlib stream at all", 1, 5000),
        (zlib.compress(ZEROS), 1, 2**50),
        (zlib.compress(ZEROS), 0, len(ZEROS)),
        (zlib.compress(ZEROS), 2, len(ZEROS)),
        (zlib.compress(ZEROS), 3, len(ZEROS)),
        (zlib.compress(ZEROS), 255, len(ZEROS)),
    ],
)
def test_a_false_declaration_is_refused(data, method, length):
    with pytest.raises(SerdeError):
        deserialize(pack(data, method, length))


def test_a_bomb_is_bounded_by_the_limit():
    bomb = zlib.compress(bytes(20 * 2**20), 9)
    with pytest.raises(SerdeError, match="bytes after decompression"):
        deserialize(pack(bomb, 1, 20 * 2**20), Context(limits=Limits(max_expanded=2**20)))


def test_the_error_without_lz4_names_what_to_install(monkeypatch):
    monkeypatch.delitem(compression.METHODS, compression.LZ4, raising=False)
    with pytest.raises(SerdeError, match="for lz4 .* run `pip install '?lz4"):
        deserialize(pack(b"x" * 100, 2, 500))
    assert compression.choose("auto").name == "zlib"
