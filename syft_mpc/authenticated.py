"""Authenticated shares: products among parties that may cheat; a cheater is detected and named.

The shares have pairwise tags as in BDOZ (Bendlin, Damgård, Orlandi, Zakarias 2011), in the ring of 2^64 instead of a
field, as in SPDZ2k (Cramer, Damgård, Escudero, Scholl, Xing 2018): values are integers of 32 bits in words of 64 bits.
Party j has a secret key a_j for all values. For the share x_i of party i, it has a fresh key b_ij, and party i has the
tag  m_ij = a_j·x_i + b_ij.  The sender of a share proves it with the tag, which the receiver checks.

A party that changes its share by e has to change the tag by a_j·e. If e is not 0 modulo 2^32, at most one a_j in 2^33
fits, so cheating succeeds with a probability of at most 2^-33. A change by a multiple of 2^32 may pass, but does not
change the value. The provider deals all randomness and is trusted to do it right; it learns nothing, as before. So is
the client: a client that may read what one party stores can compute its key together with another party.

The authenticated share of a party is one array of 2n - 1 words for each element, along the first axis: its share, its
tags for the n - 1 others, and its keys for the shares of the n - 1 others, both in the order of their ranks. It is
linear: sums, differences and products with public integers are computed on the whole array, without communication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from operator import add

from syft_mpc.kernels import Array, Kernels, Shape, dtype_name
from syft_mpc.prg import SEED_BYTES, Stream, new_seed
from syft_mpc.protocol import PROVIDER, Common, Receive, Role, Send, Spec, Steps, Verify, protocol
from syft_mpc.spdz import BILINEAR, ELEMENTS, bilinear_shape, require_shape

BITS = 32
"""The bits of a value. The other bits of a word are for security."""
DIGEST = Spec((32,), "uint8")
NONCE = Spec((SEED_BYTES,), "uint8")


# --- dealing


def _others(rank: int, count: int) -> list[int]:
    return [other for other in range(count) if other != rank]


def _place(rank: int, other: int) -> int:
    return other - (other > rank)


def _get_key(rank: int) -> Steps:
    """Return the key a of a party, which the provider knows too; it is the same in every run."""
    (key,) = yield Common((Spec(()),), (rank, PROVIDER), label=b"tag key")
    return key


Derive = Callable[..., Sequence[Array]]


def _deal(party: Role, free: Sequence[Shape], dependent: Sequence[Shape], derive: Derive) -> Steps:
    """Deal authenticated values: uniform ones of the shapes ``free``, and what ``derive`` computes from them.

    Shares and keys come from the seeds that the parties have in common with the provider. It sends the tags to each
    party, and to the first one its shares of the dependent values. The provider gets the values.
    """
    shapes, count = [*free, *dependent], party.count
    shares, tags = [Spec(shape) for shape in shapes], [Spec((count - 1, *shape)) for shape in shapes]
    if party.helps:
        return (yield from _deal_all(party, len(free), (*shares, *tags), derive))
    drawn = yield Common((*shares, *tags), (party.rank, PROVIDER))
    corrected = len(dependent) if party.leads else 0
    received = yield Receive(PROVIDER, (*shares[len(shares) - corrected :], *tags))
    own = [*drawn[: len(shares) - corrected], *received[:corrected]]
    parts = zip(shapes, own, received[corrected:], drawn[len(shares) :], strict=True)
    kernels = party.kernels
    return [kernels.concat([kernels.reshape(x, (1, *shape)), tag, key]) for shape, x, tag, key in parts]


def _deal_all(party: Role, free: int, specs: tuple[Spec, ...], derive: Derive) -> Steps:
    kernels, ranks, number = party.kernels, range(party.count), len(specs) // 2
    secrets, shares, keys = [], [], []
    for rank in ranks:
        secrets.append((yield from _get_key(rank)))
        drawn = yield Common(specs, (rank, PROVIDER))
        shares.append(list(drawn[:number]))
        keys.append(drawn[number:])
    values = [reduce(add, [own[k] for own in shares]) for k in range(free)]
    values.extend(derive(kernels, *values))
    for k in range(free, number):
        shares[0][k] = values[k] - reduce(add, [own[k] for own in shares[1:]])
    for rank in ranks:
        tags = [
            kernels.stack(
                [secrets[j] * shares[rank][k] + keys[j][k][_place(j, rank)] for j in _others(rank, party.count)], 0
            )
            for k in range(number)
        ]
        yield Send(rank, (*(shares[0][free:] if rank == 0 else ()), *tags))
    return values


# --- parts of protocols


def _open(party: Role, *values: Array) -> Steps:
    """Open values to all parties: each sends its shares and a digest of their tags, and checks those of the others.

    The receiver can compute the tags of the shares that it got, so a digest of them is enough. The result is the lower
    32 bits, as signed integers: the upper bits may differ between the parties if one cheats. Rounds: 1.
    """
    kernels, rank, count = party.kernels, party.rank, party.count
    key = yield from _get_key(rank)
    shares = [value[0] for value in values]
    for other in _others(rank, count):
        proof = _digest(kernels, [value[1 + _place(rank, other)] for value in values])
        yield Send(other, (*shares, _to_array(kernels, proof)))
    opened = shares
    for other in _others(rank, count):
        *parts, proof = yield Receive(other, (*[Spec(tuple(x.shape)) for x in shares], DIGEST))
        tags = [key * part + value[count + _place(rank, other)] for part, value in zip(parts, values, strict=True)]
        yield Verify(other, kernels.to_bytes(proof) == _digest(kernels, tags))
        opened = [total + part for total, part in zip(opened, parts, strict=True)]
    return [(total << BITS) >> BITS for total in opened]


def _digest(kernels: Kernels, arrays: Sequence[Array], nonce: bytes | memoryview = b"") -> bytes:
    digest = hashlib.blake2b(key=nonce, digest_size=DIGEST.shape[0])
    for array in arrays:
        digest.update(kernels.to_bytes(array))
    return digest.digest()


def _to_array(kernels: Kernels, data: bytes) -> Array:
    return kernels.from_bytes(bytearray(data), "uint8", (len(data),))


def _add(party: Role, x: Array, public: Array) -> Steps:
    """Add a public value: to the share of the first party, and to the keys of the others for that share."""
    kernels, rows = party.kernels, list(x)
    if party.leads:
        rows[0] = rows[0] + public
    else:
        place = party.count + _place(party.rank, 0)
        rows[place] = rows[place] - (yield from _get_key(party.rank)) * public
    return kernels.stack(rows, 0)


def _apply(kernels: Kernels, op: Callable[..., Array], x: Array) -> Array:
    return kernels.stack([op(row) for row in x], 0)


# --- protocols

_register = partial(protocol, uses="nothing", has_helper=True, accuses=True)


def _require_rows(party: Role, x: Array) -> None:
    _require_words(x)
    count = 2 * party.count - 1
    if tuple(x.shape)[:1] != (count,):
        raise ValueError(f"cannot use a share of the shape {tuple(x.shape)}: an authenticated one has {count} rows")


def _require_words(x: Array) -> None:
    if dtype_name(x) != "int64":
        raise ValueError(f"cannot authenticate {dtype_name(x)} numbers: tags need words of 64 bits; convert to int64")


def _parties(x: Spec) -> int:
    return (x.shape[0] + 1) // 2


def _sends_opening(count: int, *shapes: Shape) -> int:
    return count * (count - 1) * (8 * sum(map(prod, shapes)) + DIGEST.shape[0])


def _sends_dealing(count: int, free: Sequence[Shape], dependent: Sequence[Shape] = ()) -> int:
    """Return the bytes of dealing all tags, and the first party's shares of the dependent values."""
    return 8 * (count * (count - 1) * sum(map(prod, [*free, *dependent])) + sum(map(prod, dependent)))


@_register(
    rounds=1,
    sends=lambda *, shape: _sends_dealing(2, [shape]),
    opens="nothing",
    informs_client=True,
)
def auth_random(party: Role, *, shape: Shape) -> Steps:
    """Deal a uniform value, authenticated; the provider gets it in the clear.

    So a client inputs a value x: it gets r from the provider, publishes x - r to all parties, and they run
    ``auth_add_public``. The provider does not see x - r.

    Rounds: 1. Bytes: n(n - 1) tags for each element; the costs declared are those of two parties.
    """
    (value,) = yield from _deal(party, [tuple(shape)], [], _nothing)
    return value


def _nothing(*_arrays: Array) -> Sequence[Array]:
    return ()


@protocol(rounds=0, sends=0, opens="nothing", uses="nothing")
def auth_add_public(party: Role, x: Array, y: Array) -> Steps:
    """Add an integer that all parties know:  x_0 + y,  and  b_0j - a_j·y  at the others. Nothing is sent."""
    _require_rows(party, x)
    return (yield from _add(party, x, y))


@_register(
    rounds=2,
    sends=lambda x, **_options: _sends_dealing(2, [x.shape]) + 16 * prod(x.shape),
    opens="x - r, uniform because r is; to the provider, a digest of it under a nonce",
)
def auth_input(party: Role, x: Array, *, owner: int) -> Steps:
    """Share a value that the party of rank ``owner`` holds; the arrays of the others give the shape only.

    1. The provider deals an authenticated uniform r, and sends r + s to the owner, for an s that both have in common:
       so the owner can be sure that nobody else knows r, no matter which party sent it.
    2. The owner sends  e = x - r  and a nonce to all parties, and a digest of both to the provider.
    3. The provider sends the digest to the parties, which compare: so all have the same e. Two parties need no digest.
    4. [x] = [r] + e.

    Rounds: 2, and 3 for more than two parties. Bytes: n(n - 1) tags and n words for each element, and the digests. The
    costs declared are those of two parties.
    """
    _require_words(x)
    if not 0 <= owner < party.count:
        raise ValueError(f"cannot take the input of party {owner}: there are {party.count}, from 0 on; choose another")
    kernels, shape, echo = party.kernels, tuple(x.shape), party.count > 2
    (r,) = yield from _deal(party, [shape], [], _nothing)
    if party.helps:
        (s,) = yield Common((Spec(shape),), (owner, PROVIDER))
        yield Send(owner, (r + s,))
        if echo:
            digest = yield Receive(owner, (DIGEST,))
            for other in _others(owner, party.count):
                yield Send(other, tuple(digest))
        return x
    if party.rank == owner:
        (s,) = yield Common((Spec(shape),), (owner, PROVIDER))
        (masked,) = yield Receive(PROVIDER, (Spec(shape),))
        e, nonce = x - (masked - s), new_seed()
        sent = (e, _to_array(kernels, nonce)) if echo else (e,)
        for other in _others(owner, party.count):
            yield Send(other, sent)
        if echo:
            digest = _digest(kernels, [e], nonce)
            yield Send(PROVIDER, (_to_array(kernels, digest),))
        return (yield from _add(party, r, e))
    e, *nonces = yield Receive(owner, (Spec(shape), NONCE) if echo else (Spec(shape),))
    if echo:
        (digest,) = yield Receive(PROVIDER, (DIGEST,))
        yield Verify(owner, kernels.to_bytes(digest) == _digest(kernels, [e], kernels.to_bytes(nonces[0])))
    return (yield from _add(party, r, e))


def _sends_product(x: Spec, y: Spec, *, op: str = ELEMENTS, divisor: int = 1, **options: object) -> int:
    count, forms = _parties(x), (x.shape[1:], y.shape[1:])
    shape = bilinear_shape(op, *forms, options)
    total = _sends_dealing(count, forms, [shape]) + _sends_opening(count, *forms)
    if divisor != 1:
        total += _sends_dealing(count, [shape], [shape, shape]) + _sends_opening(count, shape)
    return total


@_register(
    rounds=lambda *_specs, **options: 2 + (options.get("divisor", 1) != 1),
    sends=_sends_product,
    opens="x - a and y - b, uniform; with a divisor, also the product plus a uniform mask",
    checks_operands=True,
)
def auth_mul(party: Role, x: Array, y: Array, *, op: str = ELEMENTS, divisor: int = 1, **options: object) -> Steps:
    """Multiply two authenticated values, elementwise or with another bilinear operation.

    1. The provider deals authenticated a, b and c = a ∘ b.
    2. Open  d = x - a  and  e = y - b,  and check the tags.
    3. [xy] = [c] + d[b] + [a]e + de,  for the shares, tags and keys alike; de is public.
    4. With a divisor, divide as ``truncate`` does, for |xy| < 2^30.

    Rounds: 2, of which one is dealing, and 1 to divide. Bytes: n(n - 1) times x, y and a digest, for the openings; tags
    and corrections for dealing.
    """
    _require_rows(party, x)
    _require_rows(party, y)
    kernels, run = party.kernels, BILINEAR[op]
    forms = tuple(x.shape)[1:], tuple(y.shape)[1:]
    shape = bilinear_shape(op, *forms, options)
    dealt = yield from _deal(party, forms, [shape], lambda _kernels, a, b: (run(kernels, a, b, **options),))
    if party.helps:
        if divisor != 1:
            yield from _deal_mask(party, shape, divisor)
        return Spec((x.shape[0], *shape))
    a, b, c = dealt
    d, e = yield from _open(party, x - a, y - b)
    z = _apply(kernels, lambda row: run(kernels, d, row, **options), b)
    require_shape(z, c)
    z = z + c
    z = z + _apply(kernels, lambda row: run(kernels, row, e, **options), a)
    z = yield from _add(party, z, run(kernels, d, e, **options))
    return (yield from _truncate(party, z, divisor)) if divisor != 1 else z


def _deal_mask(party: Role, shape: Shape, divisor: int) -> Steps:
    """Deal a uniform r, the quotient of the lower 31 bits of its value and the divisor, and the highest bit."""

    def derive(kernels: Kernels, r: Array) -> Sequence[Array]:
        return kernels.floor_divide(r & ((1 << (BITS - 1)) - 1), divisor), (r >> (BITS - 1)) & 1

    return (yield from _deal(party, [shape], [shape, shape], derive))


def _truncate(party: Role, x: Array, divisor: int) -> Steps:
    """Divide by a public number: ``truncate`` with authenticated masks, on the lower 32 bits."""
    kernels = party.kernels
    r, quotient, top = yield from _deal_mask(party, tuple(x.shape)[1:], divisor)
    lift = (1 << (BITS - 2)) // divisor
    (c,) = yield from _open(party, x + r)
    c = c + lift * divisor
    low, c_top = c & ((1 << (BITS - 1)) - 1), (c >> (BITS - 1)) & 1
    whole, rest = divmod(1 << (BITS - 1), divisor)
    floor = kernels.floor_divide(low, divisor)
    # The second quotient is one larger if the remainders add up to the divisor.
    carry = low - floor * divisor + (rest - divisor)
    other = whole + 1 + (carry >> 63)
    return (yield from _add(party, top * ((1 - 2 * c_top) * other) - quotient, c_top * other + floor - lift))


def _sends_quotient(x: Spec, *, divisor: int) -> int:  # by contract
    count, shape = _parties(x), x.shape[1:]
    return _sends_dealing(count, [shape], [shape, shape]) + _sends_opening(count, shape)


@_register(
    rounds=2,
    sends=_sends_quotient,
    opens="x plus a uniform mask",
    checks_operands=True,
)
def auth_truncate(party: Role, x: Array, *, divisor: int) -> Steps:
    """Divide by a public number, as ``truncate`` does, for |x| < 2^30.

    1. The provider deals an authenticated uniform r, the quotient of its lower 31 bits, and its highest bit.
    2. Open  x + r,  and check the tags.

    Rounds: 2, of which one is dealing. Bytes: n(n - 1) times x and a digest for the opening.
    """
    _require_rows(party, x)
    if not 1 <= divisor < 1 << (BITS - 2):
        raise ValueError(f"cannot divide authenticated values by {divisor}: expected a number from 1 to 2^30 - 1")
    if party.helps:
        yield from _deal_mask(party, tuple(x.shape)[1:], divisor)
        return Spec(tuple(x.shape))
    return (yield from _truncate(party, x, divisor))


@_register(
    rounds=2,
    sends=lambda x: _sends_dealing(_parties(x), [], [x.shape[1:]]) + _sends_opening(_parties(x), x.shape[1:]),
    opens="x, to all parties, and nothing of the upper 32 bits, which are masked",
    reveals=True,
)
def auth_open(party: Role, x: Array) -> Steps:
    """Open a value to all parties, and check the tags; the result is in [-2^31, 2^31).

    1. The provider deals an authenticated  2^32·r  with a uniform r.
    2. Open  x + 2^32·r,  check the tags, and return the lower 32 bits.

    Rounds: 2, of which one is dealing. Bytes: n(n - 1) times x and a digest for the opening.
    """
    _require_rows(party, x)
    shape = tuple(x.shape)[1:]
    dealt = yield from _deal(
        party, [], [shape], lambda kernels: (Spec(shape).expand(kernels, Stream(new_seed())) << BITS,)
    )
    if party.helps:
        return Spec(shape)
    (opened,) = yield from _open(party, x + dealt[0])
    return opened
