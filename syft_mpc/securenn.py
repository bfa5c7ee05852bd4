"""SecureNN (Wagh, Gupta, Chandran, PETS 2019, https://eprint.iacr.org/2018/442): comparison with three roles.

P0 and P1 are the parties of rank 0 and 1, which hold the shares. P2 is the provider, which computes on masked values.
The functions have the paper's letters: L = 2^l is the size of the ring, p = 67 that of the field of the digits, and j
is 1 at the first party and 0 at the second. They differ from the paper where that saves messages or closes a gap:

- P0 and P2 expand P0's shares of what P2 deals from their common seed, so P2 sends to P1 only.
- The shares that P2 receives in ``private_compare`` are masked with fresh shares of 0, because P2 knows the shares of
  the bits that it dealt.
- A random rotation takes the place of the random permutation. At most one of the d_i is 0, and the others are uniform
  and not 0, so both hide the same: the position of the zero.
- ``share_convert`` is right for r = 0 as well.

The registered names begin with ``snn_``. At the provider, the operands are forms. Values may be in
[-2^(l-2), 2^(l-2)) where a sign is computed, as in the paper; the sign of others is wrong, and nobody can notice.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TypeAlias

from syft_mpc.kernels import Array, Kernels, Shape, count_windows, dtype_name
from syft_mpc.prg import Stream
from syft_mpc.protocol import PROVIDER, Common, Cost, Draw, Receive, Role, Send, Spec, Steps, protocol, spec_of
from syft_mpc.spdz import ELEMENTS, Triple, broadcast, spdz_mul
from syft_mpc.truncation import BITS

P = 67
"""The field of the digits: the smallest prime that is larger than 64 + 2."""
ShareOrSpec: TypeAlias = Array
"""A share, or at the provider its ``Spec``."""


class Digits(Spec):
    """The form of elements of Z_p, as bytes."""

    _low, _count = 0, P

    def expand(self, kernels: Kernels, stream: Stream) -> Array:
        """Return uniform digits: bytes from the largest multiple of their number on are rejected."""
        limit = 256 // self._count * self._count
        table = bytes(self._low + byte % self._count for byte in range(256))
        digits, size = bytearray(), prod(self.shape)
        while len(digits) < size:
            digits += stream.take((size - len(digits)) * 4 // 3 + 32).translate(table, bytes(range(limit, 256)))
        del digits[size:]
        return kernels.from_bytes(digits, self.dtype, self.shape)

    def subtract(self, _kernels: Kernels, x: Array, y: Array) -> Array:
        """Return x - y for bits x."""
        return (x + P - y) % P


class NonZeroDigits(Digits):
    """The form of elements of Z_p without 0."""

    _low, _count = 1, P - 1


class Residues(Spec):
    """The form of elements of Z_(L-1), from 0 to L - 2, in words of l bits."""

    def expand(self, kernels: Kernels, stream: Stream) -> Array:
        """Return residues whose distribution differs from the uniform one by less than 2^-63."""
        if self.dtype == "int64":
            return _reduce(kernels, super().expand(kernels, stream))
        words = Spec(self.shape, "int64").expand(kernels, stream)
        low, high = kernels.cast(words, self.dtype), kernels.cast(words >> 32, self.dtype)
        return _add(kernels, _reduce(kernels, low), _reduce(kernels, high))  # 2^32 is 1 modulo 2^32 - 1.

    def subtract(self, kernels: Kernels, x: Array, y: Array) -> Array:
        """Return x - y."""
        return _add(kernels, x, _negate(kernels, y))


# --- arrays


def decompose(kernels: Kernels, x: Array) -> Array:
    """Return the bits of the elements along a new last axis, the lowest first; negative numbers as modulo L."""
    bits = _bits(kernels, x, "uint8")
    return kernels.permute(bits, (*range(1, len(bits.shape)), 0))


def flip(kernels: Kernels, x: Array, axis: int) -> Array:
    """Reverse the order of the elements along an axis."""
    return kernels.xp.flip(x, (axis,))


def wrap(x: Array, y: Array) -> Array:
    """Return 1 where the sum of two elements of Z_L, as numbers from 0 to L - 1, is L or more."""
    return ((x & y) | ((x | y) & ~(x + y))) >> (BITS[dtype_name(x)] - 1) & 1


def _bits(kernels: Kernels, x: Array, dtype: str) -> Array:
    return kernels.stack([kernels.cast((x >> bit) & 1, dtype) for bit in range(BITS[dtype_name(x)])], 0)


def _reduce(kernels: Kernels, x: Array) -> Array:
    """Return x modulo L - 1: the word with all bits set is 0."""
    return x + kernels.cast(x == -1, dtype_name(x))


def _add(kernels: Kernels, x: Array, y: Array) -> Array:
    return _reduce(kernels, x + y + wrap(x, y))


def _negate(kernels: Kernels, x: Array) -> Array:
    return _reduce(kernels, ~x)


def _rotate(kernels: Kernels, x: Array, amounts: Array) -> Array:
    """Move the elements along the first axis, whose length is a power of two, to the front by an amount for each."""
    shift = 1
    while shift < x.shape[0]:
        rotated = kernels.concat([x[shift:], x[:shift]])
        x = x + (rotated - x) * kernels.cast((amounts & shift) != 0, dtype_name(x))
        shift *= 2
    return x


# --- parts of protocols


def _deal(party: Role, specs: tuple[Spec, ...], values: tuple[Array, ...] | None) -> Steps:
    """Share ``values``, which P2 knows: P0's shares come from a common seed, and P2 sends P1's. One round."""
    if party.rank == 1:
        return (yield Receive(PROVIDER, specs))
    masks = yield Common(specs, (0, PROVIDER))
    if values is None:
        return masks
    kernels = party.kernels
    shares = [spec.subtract(kernels, value, mask) for spec, value, mask in zip(specs, values, masks, strict=True)]
    yield Send(1, tuple(shares))
    return None


def _collect(spec: Spec) -> Steps:
    """Return what P0 and P1 send to P2. One round."""
    (one,) = yield Receive(0, (spec,))
    (other,) = yield Receive(1, (spec,))
    return one, other


def _share_zero(party: Role, x: ShareOrSpec) -> Steps:
    """Return a fresh share of 0, which P2 does not know."""
    (u,) = yield Common((spec_of(x),))
    return u if party.leads else -u


def _multiply(party: Role, x: ShareOrSpec, y: ShareOrSpec) -> Steps:
    """Multiply with a triple of the provider. One round."""
    if not party.helps:
        return (yield from spdz_mul(party, x, y))
    (x_shape, dtype), (y_shape, _) = spec_of(x), spec_of(y)
    shape = broadcast(x_shape, y_shape)
    yield Draw(Triple(ELEMENTS, x_shape, y_shape, shape, dtype))
    return Spec(shape, dtype)


def _compare(party: Role, shape: Shape, length: int, given: tuple[Array, ...] | None) -> Steps:
    """Tell P2 whether x > q where beta = 0, and whether x < q where beta = 1: lines 2 to 16 of Algorithm 3. One round.

    P0 and P1 are given the shares of the bits of x in Z_p, q, beta, and if it may be, where the answer is 1 for any x.
    """
    digits = (length, *shape)
    if given is None:
        one, other = yield from _collect(Spec(digits, "uint8"))
        d = one + other
        zeros = party.kernels.cast((d == 0) | (d == P), "uint8")
        return party.kernels.sum(zeros, 0)
    kernels, j = party.kernels, int(party.leads)
    x, q, beta, *special = given
    s, v, rotation = yield Common((NonZeroDigits(digits, "uint8"), Digits(digits, "uint8"), Spec(shape, "uint8")))
    x, q = kernels.cast(x, "int16"), _bits(kernels, q, "int16")
    w = x + q * (j - 2 * x)
    sums = [w[-1] * 0]
    for i in reversed(range(1, length)):
        sums.append(sums[-1] + w[i])
    c = (j * q - x) * (1 - 2 * beta) + j + kernels.stack(sums[::-1], 0)
    for always in special:  # One digit is 0, and the others are not.
        c = c * (1 - always) + kernels.stack([always * 0, *[always * j] * (length - 1)], 0)
    d = kernels.cast(((c % P) * kernels.cast(s, "int16") + (v if j else P - kernels.cast(v, "int16"))) % P, "uint8")
    yield Send(PROVIDER, (_rotate(kernels, d, rotation),))
    return None


# --- protocols

_register = partial(protocol, prefix="snn_", parties=2, has_helper=True)


def _per_element(bits: int, words: int) -> Cost:
    """Return a cost per element: a number of digits, a byte each, for each bit of a word, and a number of words."""

    def cost(x: Spec, *_specs: Spec, **_options: object) -> int:
        length = BITS[x.dtype]
        return prod(x.shape) * (bits * length + words * length // 8)

    return cost


def _cost(bits: int, words: int, dtype: str) -> int:
    return _per_element(bits, words)(Spec((), dtype))


@_register(
    rounds=1,
    sends=_per_element(0, 4),
    opens="as spdz_mul",
    uses="one triple",
)
def select_share(party: Role, alpha: ShareOrSpec, x: ShareOrSpec, y: ShareOrSpec) -> Steps:
    """Select y where the bit alpha is 1, and x where it is 0, of one shape (Algorithm 2).

    1. [w] = [y] - [x].
    2. [c] = [alpha · w].
    3. [z] = [x] + [c] + u,  where u is a share of 0.

    Rounds: 1. Bytes: 4 words. Opened: what ``spdz_mul`` opens. Used: one triple.
    """
    c = yield from _multiply(party, alpha, x if party.helps else y - x)
    return c if party.helps else x + c + (yield from _share_zero(party, x))


@_register(
    rounds=2,
    sends=lambda x, *_others: prod(x.shape) * 2 + prod(x.shape[:-1]) * x.shape[-1] // 8,
    opens="to P2: whether x > r, xor the bit beta, which P2 does not know",
    uses="nothing",
)
def private_compare(party: Role, x: ShareOrSpec, r: ShareOrSpec, beta: ShareOrSpec) -> Steps:
    """Compare a number with shared bits and a number r that P0 and P1 know (Algorithm 3).

    ``x`` are shares in Z_p of the bits along the last axis, lowest first. The result are shares of
    beta' = beta xor (x > r), a word each. P0 and P1 must choose beta at random.

    1. t = r + 1.  Let q be r where beta = 0, and t where beta = 1.
    2. [w_i] = [x_i] + j·q_i - 2·q_i·[x_i];
       [c_i] = ±(j·q_i - [x_i]) + j + Σ_(k>i) [w_k],  with - where beta = 1.
       Where beta = 1 and r = L - 1, the answer is 1: one c_i is 0, the others 1.
    3. P0 and P1 send  π(s_i·[c_i] + v_i)  to P2, with common s_i ≠ 0, shares v_i of 0, and a common rotation π.
    4. P2: beta' = 1 if one d_i is 0. P2 shares beta'.

    Rounds: 2. Bytes: 2l digits and 1 word. P2 sees beta', a random bit, and digits that are uniform but for one zero at
    a random position if beta' is 1.
    """
    shape, length = tuple(x.shape)[:-1], x.shape[-1]
    if not tuple(r.shape) == tuple(beta.shape) == shape:
        raise ValueError("cannot compare: expected one number and one random bit for each list of bits; expand them")
    dtype = "int64" if length == BITS["int64"] else "int32"
    found = None
    if party.helps:
        found = yield from _compare(party, shape, length, None)
        found = (party.kernels.cast(found, dtype),)
    else:
        kernels, axes = party.kernels, tuple(range(len(shape)))
        bits = kernels.permute(x, (len(shape), *axes))
        always = kernels.cast(r == -1, "int16") * kernels.cast(beta, "int16")
        given = (bits, r + kernels.cast(beta, dtype), kernels.cast(beta, "int16"), always)
        yield from _compare(party, shape, length, given)
    shares = yield from _deal(party, (Spec(shape, dtype),), found)
    return Spec(shape, dtype) if party.helps else shares[0]


@_register(
    rounds=4,
    sends=_per_element(3, 4),
    opens="to P2: both shares of a, plus uniform masks; and the bit eta' = eta xor eta'', with a random eta''",
    uses="nothing",
)
def share_convert(party: Role, a: ShareOrSpec) -> Steps:
    """Convert shares in Z_L to shares in Z_(L-1) of the same number from 0 to L - 2 (Algorithm 4).

    The number L - 1, which is -1, does not exist in Z_(L-1): it becomes 0. P0 and P1 know random shares r_0, r_1 of r,
    alpha = wrap(r_0, r_1), and a random bit eta''.

    1. P_j: ã_j = a_j + r_j,  beta_j = wrap(a_j, r_j).  Send ã_j to P2.
    2. P2: x = ã_0 + ã_1,  delta = wrap(ã_0, ã_1).  Share the bits of x in Z_p, and delta in Z_(L-1).
    3. ``private_compare``: P2 learns  eta' = eta'' xor (x > r - 1),  and shares it in Z_(L-1).
    4. [eta] = [eta'] + j·eta'' - 2·eta''·[eta'];
       [theta] = beta_j + j·(-alpha - 1) + [delta] + [eta],  which is wrap(a_0, a_1);
       [y] = [a] - [theta] + u.

    Rounds: 4. Bytes: 3l digits and 4 words. P2 sees two uniform words, a random bit, and uniform digits.
    """
    kernels, (shape, dtype) = party.kernels, spec_of(a)
    length, word, residue = BITS[dtype], Spec(shape, dtype), Residues(shape, dtype)
    dealt = (Digits((length, *shape), "uint8"), residue)
    if party.helps:
        one, other = yield from _collect(word)
        yield from _deal(party, dealt, (_bits(kernels, one + other, "uint8"), wrap(one, other)))
        flipped = yield from _compare(party, shape, length, None)
        yield from _deal(party, (residue,), (kernels.cast(flipped, dtype),))
        return residue
    r_0, r_1, bit, u = yield Common((word, word, Spec(shape, "uint8"), residue))
    own, r, bit = r_0 if party.leads else r_1, r_0 + r_1, bit & 1
    yield Send(PROVIDER, (a + own,))
    bits, delta = yield from _deal(party, dealt, None)
    eta_2 = kernels.cast(bit, dtype)
    short = kernels.cast(bit, "int16")
    yield from _compare(party, shape, length, (bits, r - 1 + eta_2, short, kernels.cast(r == 0, "int16") * (1 - short)))
    (eta_1,) = yield from _deal(party, (residue,), None)
    # eta' where eta'' = 0, and j - eta' where eta'' = 1.
    negated = _negate(kernels, eta_1)
    if party.leads:
        negated = _add(kernels, negated, eta_2)
    eta = eta_1 ^ ((eta_1 ^ negated) & -eta_2)
    theta = _add(kernels, _add(kernels, wrap(a, own), delta), eta)
    if party.leads:
        theta = _add(kernels, theta, _negate(kernels, wrap(r_0, r_1) + 1))
    y = _add(kernels, _reduce(kernels, a), _negate(kernels, theta))
    return _add(kernels, y, u if party.leads else _negate(kernels, u))


@_register(
    rounds=4,
    sends=_per_element(3, 8),
    opens="to P0 and P1: 2a plus a uniform mask, a fresh one for each element; to P2: a bit xor a random bit",
    uses="one triple",
)
def msb(party: Role, a: ShareOrSpec) -> Steps:
    """Compute the most significant bit of shares in Z_(L-1), as shares in Z_L (Algorithm 5).

    L - 1 is odd, so the highest bit of a is the lowest of 2a: it is 1 if 2a is reduced.

    1. P2 picks a uniform x, and shares x in Z_(L-1), its bits in Z_p, and its lowest bit x_0 in Z_L.
    2. P0 and P1 open  r = 2a + x.
    3. ``private_compare``: P2 learns  beta' = beta xor (x > r),  and shares it in Z_L.
    4. [gamma] = [beta'] + j·beta - 2·beta·[beta'],  whether 2a + x is reduced modulo L - 1;
       [delta] = [x_0] + j·r_0 - 2·r_0·[x_0].
    5. [theta] = [gamma · delta];   [alpha] = [gamma] + [delta] - 2[theta] + u.

    Rounds: 4. Bytes: 3l digits and 8 words. P0 and P1 see r, which is uniform; P2 a random bit and uniform digits.
    """
    kernels, (shape, dtype) = party.kernels, spec_of(a)
    length, word, residue = BITS[dtype], Spec(shape, dtype), Residues(shape, dtype)
    dealt = (Digits((length, *shape), "uint8"), word)
    if party.helps:
        (x_0,) = yield Common((residue,), (0, PROVIDER))
        (x_1,) = yield Common((residue,), (1, PROVIDER))
        x = _add(kernels, x_0, x_1)
        yield from _deal(party, dealt, (_bits(kernels, x, "uint8"), x & 1))
        flipped = yield from _compare(party, shape, length, None)
        yield from _deal(party, (word,), (kernels.cast(flipped, dtype),))
        return (yield from _multiply(party, word, word))
    (x,) = yield Common((residue,), (party.rank, PROVIDER))
    masked = _add(kernels, _add(kernels, a, a), x)
    yield Send(1 - party.rank, (masked,))
    bits, lowest = yield from _deal(party, dealt, None)
    (other,) = yield Receive(1 - party.rank, (residue,))
    r = _add(kernels, masked, other)
    (beta,) = yield Common((Spec(shape, "uint8"),))
    short = kernels.cast(beta & 1, "int16")
    beta = kernels.cast(beta & 1, dtype)
    yield from _compare(party, shape, length, (bits, r + beta, short))
    (flipped,) = yield from _deal(party, (word,), None)
    r_0 = r & 1
    gamma, delta = flipped * (1 - 2 * beta), lowest * (1 - 2 * r_0)
    if party.leads:
        gamma, delta = gamma + beta, delta + r_0
    theta = yield from _multiply(party, gamma, delta)
    return gamma + delta - 2 * theta + (yield from _share_zero(party, a))


@_register(
    rounds=8,
    sends=_per_element(6, 12),
    opens="as snn_share_convert and snn_msb",
    uses="one triple",
)
def relu_deriv(party: Role, a: ShareOrSpec) -> Steps:
    """Compute 1 where a >= 0, and 0 elsewhere, for a in [-2^(l-2), 2^(l-2)) (Algorithm 6).

    1. [y] = ``share_convert``(2[a]);  2a is even, so it is not L - 1.
    2. [alpha] = ``msb``([y]).
    3. [gamma] = j - [alpha] + u.

    Rounds: 8. Bytes: 6l digits and 12 words, 480 bytes for each element of 64 bits.
    """
    y = yield from share_convert(party, a if party.helps else a + a)
    alpha = yield from msb(party, y)
    if party.helps:
        return alpha
    gamma = (yield from _share_zero(party, a)) - alpha
    return gamma + 1 if party.leads else gamma


@_register(
    rounds=9,
    sends=_per_element(6, 16),
    opens="as snn_relu_deriv and spdz_mul",
    uses="two triples",
)
def relu(party: Role, a: ShareOrSpec) -> Steps:
    """Compute max(a, 0) = a · ``relu_deriv``(a) + u, for a in [-2^(l-2), 2^(l-2)) (Algorithm 7).

    Rounds: 9. Bytes: 6l digits and 16 words.
    """
    alpha = yield from relu_deriv(party, a)
    c = yield from _multiply(party, alpha, a)
    return c if party.helps else c + (yield from _share_zero(party, a))


def _quotient_bits(x: ShareOrSpec, bit_len_max: int | None) -> int:
    return bit_len_max if bit_len_max is not None else BITS[dtype_name(x)] // 2


def _sends_division(x: Spec, y: Spec, *, bit_len_max: int | None = None) -> int:
    sign, product, bits = _cost(6, 12, x.dtype), _cost(0, 4, x.dtype), _quotient_bits(x, bit_len_max)
    return prod(broadcast(x.shape, y.shape)) * (2 * sign + 3 * product + bits * (sign + product) + product)


@_register(
    rounds=lambda x, _y, *, bit_len_max=None: 10 + 9 * _quotient_bits(x, bit_len_max),
    sends=_sends_division,
    opens="as snn_relu_deriv and spdz_mul",
    uses="two triples for each bit of the quotient, and three more",
)
def division(party: Role, x: ShareOrSpec, y: ShareOrSpec, *, bit_len_max: int | None = None) -> Steps:
    """Divide x by y and round towards 0, bit by bit (Algorithm 8, with signs).

    The quotient must be less than 2^b for b = ``bit_len_max``, which is l/2 by default; |x| < 2^(l-2); and
    0 < |y| <= 2^(l-1-b). The quotient by 0 is ±(2^b - 1).

    1. Take the absolute values of x and y, and the product of their signs.
    2. u = q = 0.  For i = b-1, …, 0:
       [beta] = ``relu_deriv``([x] - [u] - 2^i[y]);   [u] = [u] + 2^i[beta · y];   [q] = [q] + 2^i[beta].
    3. [q · sign].

    Rounds: 9b + 10. Bytes: (b + 2)(6l digits and 12 words) and 4(b + 4) words.
    """
    kernels, bits, dtype = party.kernels, _quotient_bits(x, bit_len_max), dtype_name(x)
    if not 0 < bits <= BITS[dtype] - 2:
        raise ValueError(f"cannot compute a quotient of {bits} bits: it has from 1 to {BITS[dtype] - 2}")
    shape = broadcast(spec_of(x)[0], spec_of(y)[0])
    if party.helps:
        word, signs = Spec(shape, dtype), Spec((3, *shape), dtype)
        yield from relu_deriv(party, Spec((2, *shape), dtype))
        yield from _multiply(party, signs, signs)
        for _ in range(bits):
            yield from _multiply(party, (yield from relu_deriv(party, word)), word)
        return (yield from _multiply(party, word, word))
    x, y = x + 0 * y, y + 0 * x
    signs = 2 * (yield from relu_deriv(party, kernels.stack([x, y], 0)))
    if party.leads:
        signs = signs - 1
    products = yield from _multiply(
        party, kernels.stack([x, y, signs[0]], 0), kernels.stack([signs[0], signs[1], signs[1]], 0)
    )
    x, y, sign = products[0], products[1], products[2]
    quotient = x * 0
    for i in reversed(range(bits)):
        beta = yield from relu_deriv(party, x - (y << i))
        x = x - ((yield from _multiply(party, beta, y)) << i)
        quotient = quotient + (beta << i)
    return (yield from _multiply(party, quotient, sign))


def _count_rounds(n: int) -> int:
    return 9 * (n - 1).bit_length()


def _tournament(party: Role, x: ShareOrSpec, with_index: bool) -> Steps:
    (count, *rest), dtype = spec_of(x)
    if party.helps:
        while count > 1:
            pairs = count // 2
            beta = yield from relu_deriv(party, Spec((pairs, *rest), dtype))
            yield from _multiply(party, Spec((1 + with_index, pairs, *rest), dtype), beta)
            count -= pairs
        return Spec(tuple(rest), dtype)
    kernels, index = party.kernels, [x[0] * 0 + position * party.leads for position in range(count)]
    kept = kernels.stack([x, kernels.stack(index, 0)] if with_index else [x], 0)
    while count > 1:
        pairs = count // 2
        left, right = kept[:, 0 : 2 * pairs : 2], kept[:, 1 : 2 * pairs : 2]
        beta = yield from relu_deriv(party, left[0] - right[0])
        kept_pairs = right + (yield from _multiply(party, left - right, beta))
        kept = kernels.stack([kernels.concat([kept_pairs[k], kept[k, 2 * pairs :]]) for k in range(1 + with_index)], 0)
        count -= pairs
    return kept[:, 0]


@_register(
    rounds=lambda x: _count_rounds(prod(x.shape)),
    sends=lambda x: (prod(x.shape) - 1) * _cost(6, 18, x.dtype),
    opens="as snn_relu_deriv and spdz_mul",
    uses="two triples for each level",
)
def maxpool(party: Role, x: ShareOrSpec) -> Steps:
    """Find the largest of all elements and its position among them, the first if there are several; shapes are (1,).

    Algorithm 9 compares one element after the other; here pairs are compared at once, in ⌈log2 n⌉ levels:

    1. [beta] = ``relu_deriv``([left] - [right]).
    2. The value and its position: [right] + [beta · (left - right)].

    Differences must be in [-2^(l-2), 2^(l-2)).

    Rounds: 9⌈log2 n⌉. Bytes: (n - 1)(6l digits and 18 words).
    """
    shape, dtype = spec_of(x)
    count = prod(shape)
    if not count:
        raise ValueError(f"cannot find the largest element: shape {shape} has none")
    if party.helps:
        yield from _tournament(party, Spec((count, 1), dtype), True)
        return Spec((1,), dtype), Spec((1,), dtype)
    found = yield from _tournament(party, party.kernels.reshape(x, (count, 1)), True)
    return found[0], found[1]


def _padded(n: int) -> int:
    return 1 << (n - 1).bit_length()


@_register(
    rounds=lambda x: _count_rounds(prod(x.shape)) + 2,
    sends=lambda x: (prod(x.shape) - 1) * _cost(6, 18, x.dtype) + _cost(0, 2 + _padded(prod(x.shape)), x.dtype),
    opens="as snn_maxpool; to P2: shares of the position plus uniform masks",
    uses="two triples for each level",
)
def maxpool_deriv(party: Role, x: ShareOrSpec) -> Steps:
    """Compute 1 at the position of the largest of all elements, the first if there are several, and 0 elsewhere.

    Algorithm 10. It needs a number of elements that divides L; here it is rounded up to a power of two, m.

    1. [k] = the position, of ``maxpool``.
    2. P0 and P1 send  [k] + [r]  to P2, with common random shares of r.
    3. P2: shares the unit vector E with 1 at (k + r) mod m.
    4. P0 and P1 rotate their shares by r mod m, and drop the elements that were added.

    Rounds: 9⌈log2 n⌉ + 2. Bytes: those of ``maxpool``, and m + 2 words.
    """
    kernels, (shape, dtype) = party.kernels, spec_of(x)
    count = prod(shape)
    size, word = _padded(count), Spec((1,), dtype)
    vector = Spec((size, 1), dtype)
    if party.helps:
        yield from maxpool(party, x)
        k_0, k_1 = yield from _collect(word)
        k = (k_0 + k_1) & (size - 1)
        yield from _deal(party, (vector,), (kernels.stack([kernels.cast(k == i, dtype) for i in range(size)], 0),))
        return Spec(shape, dtype)
    _, position = yield from maxpool(party, x)
    r_0, r_1 = yield Common((word, word))
    yield Send(PROVIDER, (position + (r_0 if party.leads else r_1),))
    (unit,) = yield from _deal(party, (vector,), None)
    return kernels.reshape(_rotate(kernels, unit, r_0 + r_1)[:count], shape)


Sides: TypeAlias = int | tuple[int, int]


def _pair(number: Sides) -> tuple[int, int]:
    return (number, number) if isinstance(number, int) else (number[0], number[1])


def _pooled_shape(shape: Shape, kernel_size: Sides, stride: Sides, padding: int) -> Shape:
    sides = count_windows(shape[-2:], _pair(kernel_size), _pair(stride), padding=(padding, padding))
    return (*shape[:-2], *sides)


@_register(
    rounds=lambda _x, *, kernel_size=1, **_options: _count_rounds(prod(_pair(kernel_size))),
    sends=lambda x, *, kernel_size=1, stride=1, padding=0: (
        prod(_pooled_shape(x.shape, kernel_size, stride, padding))
        * (prod(_pair(kernel_size)) - 1)
        * _cost(6, 16, x.dtype)
    ),
    opens="as snn_maxpool",
    uses="two triples for each level",
)
def maxpool2d(party: Role, a: ShareOrSpec, *, kernel_size: Sides = 1, stride: Sides = 1, padding: int = 0) -> Steps:
    """Find the largest element of each window over the last two axes, with ``maxpool`` on all windows at once.

    Padding never wins. Values must be in [-2^(l-3), 2^(l-3)).

    Rounds: 9⌈log2 n⌉ for n elements in a window. Bytes: (n - 1)(6l digits and 16 words) for each window.
    """
    kernels, (shape, dtype), size = party.kernels, spec_of(a), _pair(kernel_size)
    if padding < 0 or 2 * padding > min(size):
        raise ValueError(f"cannot pad windows of {size} by {padding}: use at most half of their size")
    pooled = _pooled_shape(shape, size, stride, padding)
    if min(pooled) < 1:
        raise ValueError(f"cannot pool windows of {size} in shape {shape}: the windows are larger; use a smaller size")
    if party.helps:
        yield from _tournament(party, Spec((prod(size), *pooled), dtype), False)
        return Spec(pooled, dtype)
    lowest = -(1 << (BITS[dtype] - 3)) if party.leads else 0
    padded = kernels.pad(a - lowest, (padding, padding)) + lowest
    views = kernels.windows(padded, size, _pair(stride))
    rest = range(len(shape) - 2)
    first = (len(rest), len(rest) + 1, *rest, len(rest) + 2, len(rest) + 3)
    elements = kernels.reshape(kernels.permute(views, first), (prod(size), *pooled))
    found = yield from _tournament(party, elements, False)
    return found[0]
