"""Reading any bytes returns a value or raises SerdeError, in bounded memory and time.

``SYFT_FUZZ_MESSAGES`` sets the number of mutated messages: 5,000 by default, 300,000 in the nightly environment.
"""

import contextlib
import os
import random
import resource
import warnings

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syft_core.serde import Context, Limits, SerdeError, deserialize, frames, from_frames
from syft_core.serde.layout import join, pack_header, unpack_header

from .golden_messages import make_installed

COUNT = int(os.environ.get("SYFT_FUZZ_MESSAGES", "5000"))
SEED = int(os.environ.get("SYFT_FUZZ_SEED", "1"))
CONTEXT = Context(limits=Limits(max_bytes=2**26, max_structure=2**22))
GROWTH = 200 * 2**20

# First bytes of msgpack's types, wire codes, boundary lengths.
TELLING = [
    *(bytes([x]) for x in (0x90, 0x91, 0x9F, 0x80, 0x81, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xCA, 0xCF, 0xD3, 0xD4, 0xFF)),
    b"\xdc\xff\xff",
    b"\xdd\x00\x10\x00\x00",
    b"\xdd\xff\xff\xff\xff",
    b"\xc6\x7f\xff\xff\xff",
    b"\xcf" + b"\xff" * 8,
    b"\xd3\x80" + bytes(7),
    b"\xcb\x7f\xf8" + bytes(6),
    *(
        msgpack.packb(x)
        for x in (2**31, 2**32, 2**62, -1, "float32", "torch.nn.ReLU", [3], [0, 0], [1, 0], [2, 3, [1]])
    ),
    *(msgpack.packb([code]) for code in (*range(3, 18), *range(100, 103), *range(150, 165))),
    *(msgpack.packb(code) for code in (*range(3, 18), *range(100, 103), *range(150, 165))),
]


@pytest.fixture(scope="module")
def originals():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [[bytes(frame) for frame in frames(obj)] for obj in make_installed().values()]


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at:at] = rng.choice(TELLING)
        elif kind == 3:
            telling = rng.choice(TELLING)
            data[at : at + len(telling)] = telling
        elif kind == 4:
            del data[at : at + rng.choice((1, 1, 2, 5, 20))]
        else:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + rng.randrange(1, 30)]
    return bytes(data)


def attack(original, rng):
    """Damage a message, and usually correct its checksum, so that the damage reaches the parser."""
    if rng.random() < 0.1:
        return mutate(join(original), rng)
    structure, declared, _, _ = unpack_header(memoryview(original[0]), Limits())
    buffers = original[1:]
    structure = mutate(structure, rng)
    lengths = list(declared)
    if lengths and rng.random() < 0.1:
        lengths[rng.randrange(len(lengths))] = rng.choice((0, 1, 2**31, 2**63, len(buffers[0]) + 1))
    return join([pack_header(structure, lengths), *buffers])


def test_mutated_messages_are_read_or_refused(originals):
    rng = random.Random(SEED)
    read = refused = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(COUNT):
        message = attack(rng.choice(originals), rng)
        try:
            deserialize(message, CONTEXT, writable=rng.random() < 0.7)
            read += 1
        except SerdeError:
            refused += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert read + refused == COUNT
    assert min(read, refused) > COUNT // 50  # both ends of the parser were reached
    assert grown < GROWTH


@given(st.binary(max_size=300))
def test_noise_is_refused(noise):
    with pytest.raises(SerdeError):
        deserialize(noise)


@given(st.binary(max_size=200), st.lists(st.binary(max_size=50), max_size=3))
def test_noise_behind_a_right_header_is_read_or_refused(structure, buffers):
    message = [pack_header(structure, [len(buffer) for buffer in buffers]), *buffers]
    with contextlib.suppress(SerdeError):
        from_frames(message, CONTEXT)
    with contextlib.suppress(SerdeError):
        deserialize(join(message), CONTEXT)


codes = st.sampled_from([*range(18), *range(100, 103), *range(150, 165), 999, -1])
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=16)
)
nodes = st.recursive(
    leaves,
    lambda inner: st.tuples(codes, st.lists(inner, max_size=8)).map(lambda node: [node[0], *node[1]]),
    max_leaves=20,
)


@given(nodes)
def test_nodes_put_together_at_random_are_read_or_refused(node):
    message = join([pack_header(msgpack.packb(node), [])])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            deserialize(message, CONTEXT)
    except SerdeError:
        return
