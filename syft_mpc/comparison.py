"""Comparison: the sign of a shared value, and what follows from it.

The value is opened under a uniform mask r whose bits are shared too. The sign then follows from the comparison of the
opened number with r, a tree that joins four neighbours at each level. The provider shares products of mask bits, so a
product of four factors needs one opening, and the first level none. See Note [Joining neighbours].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import prod
from typing import NamedTuple

from syft_core.values import Nested
from syft_mpc.kernels import Array, Kernels, Shape, dtype_name
from syft_mpc.protocol import Correlation, DealtForms, Draw, Open, OpenBits, Rest, Role, Spec, Steps, protocol
from syft_mpc.spdz import spdz_mul
from syft_mpc.truncation import BITS

# Note [Joining neighbours]
# ~~~~~~~~~~~~~~~~~~~~~~~~~
# Let c be the opened number c = x + r, so x = c - r. The sign of x is top(c) xor top(r) xor borrow, where the borrow is
# 1 if the lower bits of c are smaller than those of r. For each bit, "c < r" is g = ¬c·r and "c = r" is p = ¬(c xor r);
# c is public, so these are linear in r. Four neighbours, from high to low, are joined by
#     G = g3 + p3·g2 + p3·p2·g1 + p3·p2·p1·g0   and   P = p3·p2·p1·p0   (+ is xor).
# In the first level all factors are r or public, and the provider shares the products of the bits of r. In the next
# levels each factor v is opened as v + m under a mask m, and the provider shares the products of the masks: a product
# of (public + m) is a sum of products of masks with public factors. The 64 bits become 16, then 4, then 1.

_FACTORS = "abcxyzd"
"""The factors of a level: a, b, c, d are p3 to p0; x, y, z are g2, g1 and g0. Only P uses d."""
_BORROW = ("ax", "aby", "abcz")
_ALL = (*_BORROW, "abcd")
_EQUAL = ("abcd",)


@cache
def _parts_of(products: tuple[str, ...]) -> list[str]:
    """Return the products of at least two masks that occur when ``products`` are multiplied out.

    >>> _parts_of(("aby",))
    ['ab', 'ay', 'by', 'aby']
    """
    found = {
        "".join(part): None
        for factors in products
        for size in range(2, len(factors) + 1)
        for part in combinations(factors, size)
    }
    return list(found)


@cache
def _factors_of(products: tuple[str, ...]) -> list[str]:
    used = set("".join(products))
    return [factor for factor in _FACTORS if factor in used]


_NIBBLE = ["".join(part) for size in range(1, 5) for part in combinations("0123", size)]
"""The products of the four bits of a nibble, bit 0 first."""


# Note [Packed bits]
# ~~~~~~~~~~~~~~~~~~
# After the first level, 16 bits of an element become 4, and then 1. Bits of several elements are packed into one byte,
# so fewer bytes are computed, sent and dealt. The elements are a list of a length that is a multiple of 8. Two
# elements, one of each half of the list, have the lower and the upper half of a byte; in the next level eight
# elements, one of each eighth, have one bit each: bit k of byte j belongs to element k · length / 8 + j.


def _count_bytes(count: int) -> int:
    return -(-count // 8)


def sends_comparison(count: int, dtype: str = "int64") -> int:
    """Return the bytes that a party sends for the signs of ``count`` elements."""
    levels = 4 * len(_factors_of(_ALL)) + len(_factors_of(_BORROW)) + 1
    return BITS[dtype] // 8 * count + levels * _count_bytes(count)


@dataclass(frozen=True)
class SignMask(Correlation):
    """A uniform mask r with what ``sign`` needs: its bits, masks for both levels of the tree, and a random bit."""

    shape: Shape
    dtype: str
    has_product: bool
    """Whether the product of r and the bit is dealt too."""

    @cached_property
    def forms(self) -> DealtForms:
        """The forms of r, the random bit, and the masks of both levels.

        The dependent arrays are the bit as an integer, the bits of r, the products of masks, and bit times r.
        """
        count = prod(self.shape)
        size, word = _count_bytes(count), Spec(self.shape, self.dtype)
        free = (
            word,
            Spec((size,), "uint8"),
            Spec((len(_factors_of(_ALL)), 4 * size), "uint8"),
            Spec((len(_factors_of(_BORROW)), size), "uint8"),
        )
        return free, (
            word,
            Spec((len(_NIBBLE), count), "int16"),
            Spec((size,), "uint8"),
            Spec((len(_parts_of(_ALL)), 4 * size), "uint8"),
            Spec((len(_parts_of(_BORROW)), size), "uint8"),
            *((word,) if self.has_product else ()),
        )

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute them."""
        mask, rho, first, second = free
        bit = unpack_bits(kernels, rho, self.shape, self.dtype)
        words = kernels.reshape(widen(kernels, mask), (-1,))
        return (
            bit,
            _nibble_products(kernels, words << 1),
            pack_bits(kernels, words >> 63),
            _multiply_masks(kernels, first, _ALL),
            _multiply_masks(kernels, second, _BORROW),
            *((bit * mask,) if self.has_product else ()),
        )


@dataclass(frozen=True)
class ZeroMask(Correlation):
    """A uniform mask r with what ``is_zero`` needs: its bits, masks for both levels of the tree, and a random bit."""

    shape: Shape
    dtype: str

    @cached_property
    def forms(self) -> DealtForms:
        """The forms of a ``SignMask``, without the highest bit of r and the product with it."""
        count, parts = prod(self.shape), len(_parts_of(_EQUAL))
        size, word = _count_bytes(count), Spec(self.shape, self.dtype)
        masks = Spec((4, 4 * size), "uint8"), Spec((4, size), "uint8")
        products = Spec((parts, 4 * size), "uint8"), Spec((parts, size), "uint8")
        return (word, Spec((size,), "uint8"), *masks), (word, Spec((len(_NIBBLE), count), "int16"), *products)

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute them."""
        mask, rho, first, second = free
        return (
            unpack_bits(kernels, rho, self.shape, self.dtype),
            _nibble_products(kernels, kernels.reshape(widen(kernels, mask), (-1,))),
            _multiply_masks(kernels, first, _EQUAL),
            _multiply_masks(kernels, second, _EQUAL),
        )


@protocol(
    rounds=4,
    sends=lambda x, *_minus, **_options: sends_comparison(prod(x.shape), x.dtype),
    opens="x plus a uniform mask, and 35 bits under uniform masks",
    uses="one sign mask",
    by_line=True,
)
def is_negative(party: Role, x: Array, *minus: Array, negated: bool = False, scale: int = 1) -> Steps:
    """Compute 1 where x < 0, and 0 elsewhere; ``negated`` exchanges 0 and 1, and ``scale`` asks for a multiple too.

    With a second value of the same shape, subtract it from x first.

    1. Open  c = x + r.
    2. Join the bits of c and r, four at a time: the borrow of c - r, as an XOR share.
    3. Open  e = sign xor η  for a random bit η;  [sign] = e + (1 - 2e)[η].

    Rounds: 4. Bytes: 12 3/8 for each element of 64 bits; the bits of eight elements are sent together.
    """
    for y in minus:
        x = x - y
    bit, _c, opened, _product = yield from _open_sign(party, x, has_product=False)
    return _report(party, _flip(party, bit, opened), negated, scale)


@protocol(
    rounds=4,
    sends=lambda x, **_options: sends_comparison(prod(x.shape), x.dtype),
    opens="the same as is_negative",
    uses="one sign mask",
    by_line=True,
)
def relu(party: Role, x: Array, *, derivative: bool = False) -> Steps:
    """Compute max(x, 0), and where asked for, also 1 where x > 0 and 0 elsewhere.

    As ``is_negative`` of -x; the product of -x and η needs no further opening, because  [-xη] = c[η] - [rη].

    Rounds: 4. Bytes: 12 3/8 for each element of 64 bits.
    """
    bit, c, opened, product = yield from _open_sign(party, -x, has_product=True)
    # x·sign = e·x - (1 - 2e)·(-x)·η
    result = x * opened - (c * bit - product) * (1 - 2 * opened)
    return (result, _flip(party, bit, opened)) if derivative else result


@protocol(
    rounds=4,
    sends=lambda x, _y, **_options: sends_comparison(prod(x.shape), x.dtype),
    opens="the same as is_negative, of x - y",
    uses="one sign mask",
)
def maximum(party: Role, x: Array, y: Array) -> Steps:
    """Compute the larger of two values of the same shape: y + relu(x - y).

    Rounds: 4. Bytes: 12 3/8 for each element of 64 bits.
    """
    return y + (yield from relu(party, x - y))


@protocol(
    rounds=4,
    sends=lambda x, **_options: BITS[x.dtype] // 8 * prod(x.shape) + 21 * _count_bytes(prod(x.shape)),
    opens="x plus a uniform mask, and 21 bits under uniform masks",
    uses="one zero mask",
    by_line=True,
)
def is_zero(party: Role, x: Array, *, negated: bool = False, scale: int = 1) -> Steps:
    """Compute 1 where x = 0, and 0 elsewhere: whether all bits of c = x + r equal those of r.

    The options are those of ``is_negative``.

    Rounds: 4. Bytes: 10 5/8 for each element of 64 bits.
    """
    kernels, dtype, shape = party.kernels, dtype_name(x), tuple(x.shape)
    draw = Draw(ZeroMask(shape, dtype))
    mask, rho, first, second = yield draw
    (c,) = yield Open(x + mask)
    bit, nibbles, first_parts, second_parts = yield Rest(draw)
    words = kernels.reshape(widen(kernels, c), (-1,))
    _, equal = _join_bits(party, _split(kernels, ~words), nibbles)
    packed = _pack_nibbles(kernels, equal[None])
    _, equal = yield from _join(party, packed, first, first_parts, _EQUAL)
    packed = _pack_quarters(kernels, equal[None])
    _, equal = yield from _join(party, packed, second, second_parts, _EQUAL)
    (opened,) = yield OpenBits(equal ^ rho)
    return _report(party, _flip(party, bit, unpack_bits(kernels, opened, shape, dtype)), negated, scale)


def _report(party: Role, bit: Array, negated: bool, scale: int) -> Nested:
    if negated:
        bit = 1 - bit if party.leads else -bit
    return bit if scale == 1 else (bit, bit * scale)


def _open_sign(party: Role, x: Array, has_product: bool) -> Steps:
    """Return [η], c = x + r, the sign of x opened as e = sign xor η, and if asked for [rη]."""
    kernels, dtype, shape = party.kernels, dtype_name(x), tuple(x.shape)
    draw = Draw(SignMask(shape, dtype, has_product))
    mask, rho, first, second = yield draw
    (c,) = yield Open(x + mask)
    bit, nibbles, top, first_parts, second_parts, *product = yield Rest(draw)
    words = kernels.reshape(widen(kernels, c), (-1,))
    borrow, equal = _join_bits(party, _split(kernels, ~(words << 1)), nibbles)
    packed = _pack_nibbles(kernels, kernels.stack([equal, borrow], 0))
    borrow, equal = yield from _join(party, packed, first, first_parts, _ALL)
    packed = _pack_quarters(kernels, kernels.stack([equal, borrow], 0))
    borrow, _ = yield from _join(party, packed, second, second_parts, _BORROW)
    sign = borrow ^ top ^ rho
    if party.leads:
        sign = sign ^ pack_bits(kernels, words >> 63)
    (opened,) = yield OpenBits(sign)
    return bit, c, unpack_bits(kernels, opened, shape, dtype), product[0] if has_product else None


def _flip(party: Role, bit: Array, opened: Array) -> Array:
    """Return the share of e xor η as an integer: e + (1 - 2e)[η]."""
    result = bit * (1 - 2 * opened)
    return result + opened if party.leads else result


def widen(kernels: Kernels, x: Array) -> Array:
    """Return the elements in the upper bits of 64-bit words; the lower bits of a smaller ring are 0."""
    return x if dtype_name(x) == "int64" else kernels.cast(x, "int64") << 32


# --- the first level


def _split(kernels: Kernels, words: Array) -> Array:
    """Return, for each bit of a nibble, that bit of all 16 nibbles of a word, as one word of 16 bits."""
    parts = words[None] >> kernels.column(range(4), words, "int64")
    parts &= 0x1111111111111111
    parts *= 0x1248
    parts >>= 12
    parts &= 0x000F000F000F000F
    parts *= 0x0001001001001000
    parts >>= 48
    return kernels.cast(parts, "int16")


def _nibble_products(kernels: Kernels, words: Array) -> Array:
    known = {str(bit): part for bit, part in enumerate(_split(kernels, words))}
    for part in _NIBBLE:
        if len(part) > 1:
            known[part] = known[part[:-1]] & known[part[-1]]
    return kernels.stack([known[part] for part in _NIBBLE], 0)


def _join_bits(party: Role, flipped: Sequence[Array], nibbles: Array) -> tuple[Array, Array]:
    """Return G and P of each nibble; ``flipped`` are the bits of ¬c, and ``nibbles`` the products of the bits of r.

    With F_k = r_k · p_(k+1) · … · p_3  and  Q_k = p_k · … · p_3:   G = Σ ¬c_k·F_k,   Q_k = F_k + ¬c_k·Q_(k+1).
    """
    products = dict(zip(_NIBBLE, nibbles, strict=True))
    borrow = equal = None
    for k in (3, 2, 1, 0):
        factor = _expand(products, flipped, str(k), tuple(range(k + 1, 4)))
        part = flipped[k] & factor
        borrow = part if borrow is None else borrow ^ part
        above = (flipped[k] if party.leads else 0) if equal is None else flipped[k] & equal
        equal = factor ^ above
    return borrow, equal


def _expand(products: Mapping[str, Array], flipped: Sequence[Array], factors: str, others: tuple[int, ...]) -> Array:
    """Return the product of the bits ``factors`` of r, and of p = r + ¬c for the bits ``others``, in order."""
    if not others:
        return products[factors]
    bit, *rest = others
    with_bit = _expand(products, flipped, f"{factors}{bit}", tuple(rest))
    return with_bit ^ (flipped[bit] & _expand(products, flipped, factors, tuple(rest)))


# --- the other levels


def _pack_nibbles(kernels: Kernels, words: Array) -> Array:
    """Return every fourth bit of words of 16 bits, lowest first, for each line of words: two elements a byte.

    See Note [Packed bits].
    """
    parts = words[:, None] >> kernels.column(range(4), words[0], "int16")
    parts &= 0x1111
    parts *= 0x1248
    parts >>= 12
    parts &= 0xF
    lines = kernels.reshape(kernels.cast(parts, "uint8"), (4 * words.shape[0], -1))
    lines = _pad(kernels, lines)
    half = lines.shape[1] // 2
    return lines[:, :half] | (lines[:, half:] << 4)


def _pack_quarters(kernels: Kernels, words: Array) -> Array:
    """Return the four bits of the halves of packed bytes, lowest first, for each line of bytes: one bit an element."""
    bits = words[:, None] >> kernels.column(range(4), words[0], "uint8")
    bits &= 0x11
    bits = kernels.reshape(bits, (4 * words.shape[0], 4, words.shape[1] // 4))
    bits = bits[:, :2] | (bits[:, 2:] << 2)
    return bits[:, 0] | (bits[:, 1] << 1)


def pack_bits(kernels: Kernels, x: Array) -> Array:
    """Pack the lowest bits of a list of integers into bytes; see Note [Packed bits]."""
    bits = kernels.reshape(_pad(kernels, kernels.cast(x & 1, "uint8")[None]), (8, -1))
    bits = bits[:4] | (bits[4:] << 4)
    bits = bits[:2] | (bits[2:] << 2)
    return bits[0] | (bits[1] << 1)


def unpack_bits(kernels: Kernels, packed: Array, shape: Shape, dtype: str) -> Array:
    """Invert ``pack_bits``: return integers that are 0 or 1."""
    bits = (packed[None] >> kernels.column(range(8), packed, "uint8")) & 1
    return kernels.reshape(kernels.cast(kernels.reshape(bits, (-1,))[: prod(shape)], dtype), shape)


def _pad(kernels: Kernels, lines: Array) -> Array:
    rows, count = lines.shape
    missing = -count % 8
    return lines if not missing else kernels.concat([lines, kernels.zeros_like(lines, (rows, missing))], 1)


def _multiply_masks(kernels: Kernels, masks: Array, products: tuple[str, ...]) -> Array:
    known = dict(zip(_factors_of(products), masks, strict=True))
    parts = _parts_of(products)
    for part in parts:
        known[part] = known[part[:-1]] & known[part[-1]]
    return kernels.stack([known[part] for part in parts], 0)


def _join(party: Role, values: Array, masks: Array, parts: Array, products: tuple[str, ...]) -> Steps:
    """Join four neighbours: return G and P as far as ``products`` contain them. One round.

    ``values`` are p0 to p3, and g0 to g3 unless only P is needed.
    """
    kernels = party.kernels
    plan = _plan_products(products)
    (opened,) = yield OpenBits(kernels.select(values, plan.factors) ^ masks)
    found = _multiply(party, opened, [masks, parts], plan)
    equal = found[-1] if "abcd" in products else None
    if values.shape[0] == 4:
        return None, equal
    return values[7] ^ found[0] ^ found[1] ^ found[2], equal


def _multiply(party: Role, public: Array, masks: Sequence[Array], plan: _Plan) -> Array:
    """Return shares of products of factors v = e + m, where e is public and the products of the masks m are shared.

    ``masks`` are the masks of all factors, and the products of masks in the order of ``_parts_of``.
    """
    kernels = party.kernels
    values = kernels.zeros_like(public, (plan.size, public.shape[1]))
    if party.leads:
        values[0] = 0xFF  # 1 is a public factor: one party has it.
    end = 1
    for lines in masks:
        start, end = end, end + lines.shape[0]
        values[start:end] = lines
    for factors, with_mask, without in plan.steps:
        more = kernels.select(public, factors)
        more &= kernels.select(values, without)
        more ^= kernels.select(values, with_mask)
        start, end = end, end + len(factors)
        values[start:end] = more
    return kernels.select(values, plan.results)


class _Plan(NamedTuple):
    factors: list[int]
    """The factors among p0 to p3 and g0 to g3."""
    steps: list[tuple[list[int], list[int], list[int]]]
    """The places of e, and of the products with and without its mask, for everything computed at once."""
    results: list[int]
    size: int
    """The number of arrays at the end."""


@cache
def _plan_products(products: tuple[str, ...]) -> _Plan:
    """Return the steps that compute products.

    A step multiplies out the last factor v = e + m of a product, of which all further factors are masks:
    factors·v·masks = factors·(m·masks) + e·(factors·masks).  Those with the same number of factors are done together.
    """
    factors, parts = _factors_of(products), _parts_of(products)
    needed: dict[int, dict[tuple[str, str], None]] = {}

    def require(done: str, masks: str) -> tuple[str, str]:
        key = done, _sort(masks)
        if done and key not in needed.setdefault(len(done), {}):
            needed[len(done)][key] = None
            require(done[:-1], key[1] + done[-1])
            require(done[:-1], key[1])
        return key

    wanted = [require(product, "") for product in products]
    places = {("", name): place for place, name in enumerate(["", *factors, *parts])}
    steps = []
    for length in sorted(needed):
        rows = [
            (factors.index(done[-1]), places[done[:-1], _sort(masks + done[-1])], places[done[:-1], masks])
            for done, masks in needed[length]
        ]
        for key in needed[length]:
            places[key] = len(places)
        steps.append(([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]))
    return _Plan(["dcbazyx".index(factor) for factor in factors], steps, [places[key] for key in wanted], len(places))


def _sort(masks: str) -> str:
    return "".join(sorted(masks, key=_FACTORS.index))


# --- the largest of several


def count_comparisons(count: int) -> tuple[int, int]:
    """Return the levels of a tournament of ``count`` values, and the number of comparisons.

    >>> count_comparisons(5)
    (3, 4)
    """
    levels = comparisons = 0
    while count > 1:
        comparisons += count // 2
        count -= count // 2
        levels += 1
    return levels, comparisons


def sends_tournament(x: Spec, **options: object) -> int:
    """Return the bytes of a tournament along the first axis."""
    count, rest = x.shape[0], prod(x.shape[1:])
    levels, sent, left = count_comparisons(count)[0], 0, count
    while left > 1:
        sent += sends_comparison(left // 2 * rest, x.dtype)
        left -= left // 2
    if options.get("positions"):
        sent += (levels - 1) * 2 * count * rest * BITS[x.dtype] // 8
    return sent


@protocol(
    rounds=lambda x, **options: (
        4 * count_comparisons(x.shape[0])[0]
        + (max(count_comparisons(x.shape[0])[0] - 1, 0) if options.get("positions") else 0)
    ),
    sends=sends_tournament,
    opens="the same as is_negative, of differences; with positions also uniform values, as spdz_mul",
    uses="one sign mask for each comparison; with positions a triple for each level but the first",
)
def largest(party: Role, x: Array, *, positions: bool = False) -> Steps:
    """Compute the largest value along the first axis, with a tournament of neighbours.

    With ``positions``, also an array like x with 1 at the first of the largest values, and 0 elsewhere: the product of
    the results of all comparisons in which the element, or the winner of its part, took part.

    Rounds: 4 for each level, of which there are log2 of the length; with positions 1 more for each level but the first.
    Bytes: 12 3/8 for each comparison of 64 bits.
    """
    kernels, count = party.kernels, x.shape[0]
    groups: list[list[int]] = [[index] for index in range(count)]
    chosen: Array | None = None
    while x.shape[0] > 1:
        even = x.shape[0] // 2 * 2
        first, second, rest = x[0:even:2], x[1:even:2], x[even:]
        larger, seconds = yield from relu(party, second - first, derivative=True)
        larger = larger + first
        if positions:
            firsts = (1 if party.leads else 0) - seconds
            groups, chosen = yield from _keep_winners(party, groups, chosen, firsts, count)
        x = kernels.concat([larger, rest]) if rest.shape[0] else larger
    if not positions:
        return x[0]
    if chosen is None:  # One value is always the largest.
        chosen = x - x + (1 if party.leads else 0)
    return x[0], chosen


def _keep_winners(party: Role, groups: list[list[int]], chosen: Array | None, bits: Array, count: int) -> Steps:
    """Multiply the marks of all elements by the result of the comparison of their groups; join the groups."""
    kernels = party.kernels
    factors: list[Array] = [None] * count
    one = bits[0] - bits[0] + (1 if party.leads else 0)
    joined = []
    for pair in range(bits.shape[0]):
        first, second = groups[2 * pair], groups[2 * pair + 1]
        won = bits[pair]
        for index in first:
            factors[index] = won
        for index in second:
            factors[index] = one - won
        joined.append(first + second)
    for group in groups[2 * bits.shape[0] :]:
        for index in group:
            factors[index] = one
        joined.append(group)
    marks = kernels.stack(factors, 0)
    return joined, marks if chosen is None else (yield from spdz_mul(party, chosen, marks))
