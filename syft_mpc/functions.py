"""Functions of shared real numbers: protocols for numbers that are integers with a scale.

Each runs as one protocol: a client sends one message to each party. What lies outside the interval of a series is
found by comparisons, which take place in the same rounds as the evaluation of the series.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from math import ceil, prod, sqrt
from operator import add
from typing import NamedTuple

from syft_mpc.comparison import is_negative, largest, sends_comparison, sends_tournament
from syft_mpc.kernels import Array, dtype_name
from syft_mpc.protocol import Role, Spec, Steps, protocol, together
from syft_mpc.series import SERIES
from syft_mpc.spdz import broadcast, spdz_mul
from syft_mpc.truncation import truncate
from syft_mpc.waves import bits_of, digits, evaluate, evaluate_exp, widen

HIGHEST = 12
"""The largest x for which e^x is computed; larger ones are limited to it."""


def _begin(party: Role, x: Array) -> Steps:
    """Return the elements as a list, in the ring of 64 bits."""
    flat = party.kernels.reshape(x, (-1,))
    return flat if dtype_name(x) == "int64" else (yield from widen(party, flat))


def _end(party: Role, result: Array, like: Array) -> Array:
    """Return a list of elements with the shape and the ring of an operand."""
    return party.kernels.cast(party.kernels.reshape(result, tuple(like.shape)), dtype_name(like))


def _rounds(count: int) -> Callable[..., int]:
    return lambda x, **_options: count + (x.dtype == "int32")


def _sends(per_element: int, comparisons: int = 0) -> Callable[..., int]:
    return lambda x, **_options: _count_sent(x, per_element, comparisons)


def _count_sent(x: Spec, per_element: int, comparisons: int) -> int:
    count = prod(x.shape)
    return count * (per_element + 4 * (x.dtype == "int32")) + sends_comparison(comparisons * count)


def _shift(party: Role, x: Array, number: int) -> Array:
    return x + number if party.leads else x


# --- functions that are constant or linear outside an interval


class Tails(NamedTuple):
    """How a function continues outside the interval of its series: with constants, or with 0 and x."""

    series: str
    left: float = 0.0
    right: float = 1.0
    linear: bool = False
    """Whether it is 0 on the left and x on the right; x/2 is then added to the series."""
    stretch: int = 1
    """The argument of the series for each unit of x; the series is multiplied by it too."""


ACTIVATIONS = {
    "sigmoid": Tails("sigmoid"),
    "tanh": Tails("sigmoid", -1.0, 1.0, stretch=2),
    "erf": Tails("erf", -1.0, 1.0),
    "gelu": Tails("gelu", linear=True),
    "gelu_tanh": Tails("gelu_tanh", linear=True),
    "silu": Tails("silu", linear=True),
    "softplus": Tails("softplus", linear=True),
    "gelu_slope": Tails("gelu_slope"),
    "gelu_tanh_slope": Tails("gelu_tanh_slope"),
    "silu_slope": Tails("silu_slope"),
}


@protocol(
    rounds=_rounds(5),
    sends=lambda x, function, **_options: _count_sent(x, 32 + 16 * ACTIVATIONS[function].linear, 2),
    opens="x plus uniform masks; differences and products as is_negative, truncate and spdz_mul",
    uses="the waves of the series, two sign masks, a truncation mask and one or two triples for each element",
    by_line=True,
)
def activation(party: Role, x: Array, *, function: str, scale: int) -> Steps:
    """Compute a function of ``ACTIVATIONS``, such as sigmoid or gelu.

    1. Side by side: evaluate the series, truncate it; and compare x with both ends of its interval.
    2. Multiply what is inside, and for a linear continuation what is on the right, by the results of the comparisons.

    Rounds: 5. Bytes: 56 3/4 for each element, 72 3/4 with a linear continuation.
    """
    kernels, shape = party.kernels, ACTIVATIONS[function]
    flat = yield from _begin(party, x)
    end = int(SERIES[shape.series].high * scale / shape.stretch)
    ends = kernels.stack([_shift(party, flat, end), _shift(party, flat, -end)], 0)
    middle, outside = yield from together(_inside(party, flat, shape, scale), is_negative(party, ends))
    below, not_above = outside[0], outside[1]
    inside = not_above - below
    if shape.linear:
        above = -_shift(party, not_above, -1)
        parts = yield from spdz_mul(party, kernels.stack([inside, above], 0), kernels.stack([middle, flat], 0))
        return _end(party, parts[0] + parts[1], x)
    result = yield from spdz_mul(party, inside, middle)
    left, right = round(shape.left * scale), round(shape.right * scale)
    return _end(party, _shift(party, result + below * left - not_above * right, right), x)


def _inside(party: Role, x: Array, shape: Tails, scale: int) -> Steps:
    """Compute the function inside the interval of its series: in 2 rounds."""
    series = SERIES[shape.series]
    extra = digits(scale, max(1.0, series.high * shape.linear))
    value = yield from evaluate(party, x * shape.stretch, series, scale, scale * shape.stretch, extra)
    if shape.linear:
        value = value + x * (1 << (extra - 1))
    else:
        value = _shift(party, value, int((shape.left + shape.right) * (scale << extra)) >> 1)
    return (yield from truncate(party, value, divisor=1 << extra))


@protocol(
    rounds=_rounds(2),
    sends=_sends(16),
    opens="x plus a uniform mask, and the result plus a uniform mask",
    uses="a wave and a truncation mask for each element",
    by_line=True,
)
def wave(party: Role, x: Array, *, function: str, scale: int) -> Steps:
    """Compute the sine or the cosine, for any x: the period of the ring is that of the function.

    Rounds: 2. Bytes: 16 for each element.
    """
    flat = yield from _begin(party, x)
    extra = digits(scale, 1.0)
    value = yield from evaluate(party, flat, SERIES[function], scale, scale, extra)
    return _end(party, (yield from truncate(party, value, divisor=1 << extra)), x)


# --- powers of e


def lowest(scale: int) -> float:
    """Return an x, a multiple of 0.7, below which e^x is less than half a unit.

    >>> lowest(1 << 16)
    -11.9
    """
    return -7 * (2 * scale - 1).bit_length() / 10


@protocol(
    rounds=_rounds(5),
    sends=_sends(32, comparisons=2),
    opens="x plus uniform masks; differences and products as is_negative, truncate and spdz_mul",
    uses="16 powers, two sign masks, a truncation mask and a triple for each element",
    by_line=True,
)
def exponential(party: Role, x: Array, *, scale: int) -> Steps:
    """Compute e^x: 0 where that is less than half a unit, and e^12 for x > 12.

    Rounds: 5. Bytes: 56 3/4 for each element.
    """
    kernels = party.kernels
    flat = yield from _begin(party, x)
    low = lowest(scale)
    start, end = round(low * scale), HIGHEST * scale
    ends = kernels.stack([_shift(party, flat, -start), _shift(party, flat, -end)], 0)
    middle, outside = yield from together(_exp(party, flat, low, HIGHEST, scale, scale, 8), is_negative(party, ends))
    below, not_above = outside[0], outside[1]
    result = yield from spdz_mul(party, not_above - below, middle)
    top = int(Decimal(HIGHEST).exp() * scale)
    return _end(party, _shift(party, result - not_above * top, top), x)


def _exp(party: Role, x: Array, low: float, high: float, scale: int, result: int, blocks: int) -> Steps:
    """Compute e^x for low <= x < high: in 2 rounds."""
    extra = digits(result, 2.0 ** ceil(high * 1.4427))
    value = yield from evaluate_exp(party, x, scale, low, high, result, extra, blocks)
    return (yield from truncate(party, value, divisor=1 << extra))


# --- functions of positive numbers of any size


TOP = 9
"""Numbers are told apart by powers of 16, up to 16^TOP units."""
_LOG_16 = Decimal(16).ln()


class _Normal(NamedTuple):
    """A number x = m · 16^k · unit, where k is shared too."""

    m: Array
    """1 <= m < 16, with the scale ``one``."""
    one: int
    below: list[Array]
    """[x < unit · 16^k] for k = 0, 1 …"""

    def weigh(self, weights: Sequence[int]) -> Array:
        return _weigh(self.below, weights)


def _weigh(below: Sequence[Array], weights: Sequence[int]) -> Array:
    """Return Σ_k weights[k] · [16^k <= x < 16^(k+1)]."""
    return reduce(add, [(below[k + 1] - below[k]) * weight for k, weight in enumerate(weights)])


def _normalize(party: Role, x: Array, unit: int, count: int) -> Steps:
    """Divide a positive number by a power of 16: in 5 rounds. Numbers out of range count as its ends."""
    below = yield from _compare(party, x, unit, range(count + 1))
    one = 16 ** (count - 1)
    m = yield from spdz_mul(party, x, _weigh(below, [16 ** (count - 1 - k) for k in range(count)]))
    m = m + (below[0] - 16 * below[count]) * (one * unit)
    return _Normal(_shift(party, m, 16 * one * unit), one * unit, below)


def _normalize_between(party: Role, x: Array, unit: int, largest: int) -> Steps:
    """Divide a number between ``unit`` and ``largest`` times that by a power of 16: in 5 rounds, or in none."""
    count = max(1, ceil(bits_of(largest) / 4))
    zero = x - x
    if count == 1:
        return _Normal(x, unit, [zero, _shift(party, zero, 1)])
    below = yield from _compare(party, x, unit, range(1, count))
    below = [zero, *below, _shift(party, zero, 1)]
    m = yield from spdz_mul(party, x, _weigh(below, [16 ** (count - 1 - k) for k in range(count)]))
    return _Normal(m, unit * 16 ** (count - 1), below)


def _normalize_signed(party: Role, x: Array, unit: int, count: int) -> Steps:
    """Divide a number of any sign by a power of 16: in 5 rounds. For numbers out of range, m and k are 0."""
    kernels = party.kernels
    below = yield from _compare(party, kernels.stack([x, -x], 0), unit, range(count + 1))
    signed = [both[0] - both[1] for both in below]
    m = yield from spdz_mul(party, x, _weigh(signed, [16 ** (count - 1 - k) for k in range(count)]))
    return _Normal(m, unit * 16 ** (count - 1), signed)


def _compare(party: Role, x: Array, unit: int, exponents: Sequence[int]) -> Steps:
    differences = [_shift(party, x, -unit * 16**k) for k in exponents]
    return list((yield from is_negative(party, party.kernels.stack(differences, 0))))


def _times(
    party: Role, normal: _Normal, name: str, factors: Sequence[float], largest: float, saturate: bool = False
) -> Steps:
    """Compute f(m) · factors[k], which is at most ``largest``: in 4 rounds."""
    more = max(2, min(6, digits(1 << 26, largest)))
    bits = min(26, digits(1 << more, largest))
    value = yield from _evaluate(party, normal, name, 1 << bits)
    weights = normal.weigh([round(factor * (1 << more)) for factor in factors])
    if saturate:  # Numbers above the range get the last factor too.
        above = -_shift(party, normal.below[-1], -1)
        weights = weights + above * round(factors[-1] * (1 << more))
    return (yield from spdz_mul(party, value, weights, divisor=1 << (bits + more)))


def _evaluate(party: Role, normal: _Normal, name: str, scale: int) -> Steps:
    extra = digits(scale, 4.0)
    value = yield from evaluate(party, normal.m, SERIES[name], normal.one, scale, extra)
    return (yield from truncate(party, value, divisor=1 << extra))


def _log(party: Role, normal: _Normal, scale: int, unit: float) -> Steps:
    """Compute log(x / unit): in 2 rounds."""
    extra = digits(scale, 64.0)
    value = yield from evaluate(party, normal.m, SERIES["log"], normal.one, scale, extra)
    step = round(_LOG_16 * (scale << extra))
    inner = normal.below[1:-1]
    if inner:
        value = _shift(party, value - reduce(add, inner) * step, len(inner) * step)
    value = _shift(party, value, -round(Decimal(unit).ln() * (scale << extra)))
    return (yield from truncate(party, value, divisor=1 << extra))


def smallest(scale: int) -> int:
    """Return the smallest integer with a reciprocal: 1/x is at most 2^20, so that the product has room for it.

    >>> smallest(1 << 16), smallest(1 << 20)
    (1, 16)
    """
    return int(16 ** max(0, (bits_of(scale) - 16) // 4))


@protocol(
    rounds=_rounds(9),
    sends=lambda x, scale, **_options: _count_sent(x, 56, 2 * (TOP + 1 - bits_of(smallest(scale)) // 4)),
    opens="differences plus uniform masks, as is_negative; products as spdz_mul and truncate",
    uses="20 sign masks, the waves of the series, two triples and two truncation masks for each element",
    by_line=True,
)
def reciprocal(party: Role, x: Array, *, scale: int) -> Steps:
    """Compute 1/x, for positive and negative x; 0 where x is 0, or not in the range of ``smallest`` and 16^9 units.

    1. Compare x and -x with the powers of 16; 16^k and the sign follow from the results.
    2. Divide x by 16^k, evaluate the series for the result, which is between 1 and 16, and divide it by 16^k.

    Rounds: 9. Bytes: 303 1/2 for each element, less with more than 20 binary digits.
    """
    flat = yield from _begin(party, x)
    unit = smallest(scale)
    count = TOP - bits_of(unit) // 4
    normal = yield from _normalize_signed(party, flat, unit, count)
    factors = [scale**2 / (unit * 16**k) for k in range(count)]
    return _end(party, (yield from _times(party, normal, "reciprocal", factors, factors[0])), x)


FINE = 26
"""Binary digits of the reciprocal by which a quotient is multiplied."""


def _sends_quotient(x: Spec, y: Spec, **_options: object) -> int:
    divisors = _count_sent(y, 16 + 8 * TOP + 24, 2 * (TOP + 1))
    return divisors + _count_sent(x, 8 * (TOP - 1) + 8 * TOP, 0) + 32 * prod(broadcast(x.shape, y.shape))


@protocol(
    rounds=lambda x, _y, **_options: 9 + (x.dtype == "int32"),
    sends=_sends_quotient,
    opens="the same as reciprocal",
    uses="20 sign masks, the waves of the series, 12 triples and 11 truncation masks for each element",
    by_line=True,
)
def quotient(party: Role, x: Array, y: Array, *, scale: int) -> Steps:
    """Compute x / y; 0 where y is 0, or not smaller than 16^9 units. Both have the same number of axes.

    A product with 1/y would multiply the rounding error of 1/y by x. So x is divided first, by the power of 16 in y.

    1. Side by side: compare y and -y with the powers of 16; and divide x · scale by all of them.
    2. Divide y by 16^k, which leaves m; and choose t = x · scale / 16^k, with the sign of y.
    3. Evaluate the series for 1/m with 26 digits; and split t into its upper part and its lower 26 digits.
    4. Multiply both parts by 1/m. The upper part has lost 26 digits already; the other one is truncated.

    Rounds: 9. Bytes: 527 1/2 for each element.
    """
    kernels, ring = party.kernels, dtype_name(x)
    if ring != "int64":
        x, y = yield from together(widen(party, x), widen(party, y))
    dividend = x * scale
    compared, *lines = yield from together(
        _compare(party, kernels.stack([y, -y], 0), 1, range(TOP + 1)),
        *[truncate(party, dividend, divisor=16**k) for k in range(1, TOP)],
    )
    signed = [both[0] - both[1] for both in compared]
    marks = kernels.stack([signed[k + 1] - signed[k] for k in range(TOP)], 0)
    one = 16 ** (TOP - 1)
    m, chosen = yield from together(
        spdz_mul(party, y, _weigh(signed, [16 ** (TOP - 1 - k) for k in range(TOP)])),
        spdz_mul(party, kernels.stack([dividend, *lines], 0), marks),
    )
    t = kernels.sum(chosen, 0)
    inverse, upper = yield from together(
        _evaluate(party, _Normal(m, one, signed), "reciprocal", 1 << FINE), truncate(party, t, divisor=1 << FINE)
    )
    parts = kernels.stack([upper, t - (upper << FINE)], 0)
    whole, rest = yield from spdz_mul(party, parts, inverse[None])
    return kernels.cast(whole + (yield from truncate(party, rest, divisor=1 << FINE)), ring)


@protocol(
    rounds=_rounds(9),
    sends=_sends(56, comparisons=TOP + 1),
    opens="the same as reciprocal",
    uses="10 sign masks, the waves of the series, two triples and two truncation masks for each element",
    by_line=True,
)
def root(party: Role, x: Array, *, function: str, scale: int) -> Steps:
    """Compute "sqrt" or "rsqrt", √x or 1/√x, for x between one and 16^9 units; 0 where x is 0 or negative.

    As ``reciprocal``, without the sign. Numbers above the range are taken for its end.

    Rounds: 9. Bytes: 179 3/4 for each element.
    """
    flat = yield from _begin(party, x)
    normal = yield from _normalize(party, flat, 1, TOP)
    if function == "sqrt":
        factors = [sqrt(scale) * 4**k for k in range(TOP)]
        result = yield from _times(party, normal, function, factors, 4 * factors[-1], True)
    else:
        factors = [scale * sqrt(scale) / 4**k for k in range(TOP)]
        result = yield from _times(party, normal, function, factors, factors[0], True)
    return _end(party, result, x)


@protocol(
    rounds=_rounds(7),
    sends=_sends(32, comparisons=TOP + 1),
    opens="the same as reciprocal",
    uses="10 sign masks, the waves of the series, a triple and a truncation mask for each element",
    by_line=True,
)
def logarithm(party: Role, x: Array, *, scale: int) -> Steps:
    """Compute log x, for x between one and 16^9 units; outside, that of the ends of this range.

    As ``reciprocal``; the logarithm of 16^k is a sum of the results of the comparisons.

    Rounds: 7. Bytes: 155 3/4 for each element.
    """
    flat = yield from _begin(party, x)
    normal = yield from _normalize(party, flat, 1, TOP)
    return _end(party, (yield from _log(party, normal, scale, scale)), x)


# --- softmax


def _softmax_rounds(x: Spec, axis: int, log: bool = False, **_options: object) -> int:
    size = x.shape[axis]
    many = bits_of(size) > 4
    return 4 * (size - 1).bit_length() + 5 + 5 * many + (2 if log else 4 + 2 * many) + (x.dtype == "int32")


def _softmax_sends(x: Spec, axis: int, log: bool = False, **_options: object) -> int:
    size, total = x.shape[axis], prod(x.shape)
    rows, classes = total // size, max(1, ceil(bits_of(size) / 4))
    many = sends_comparison((classes - 1) * rows) + rows * 16 if classes > 1 else 0
    after = rows * 16 if log else rows * (24 + 24 * (classes > 1)) + total * 16
    largest_one = sends_tournament(Spec((size, rows)))
    return largest_one + _count_sent(x, 32, 1) + many + after


@protocol(
    rounds=_softmax_rounds,
    sends=_softmax_sends,
    opens="differences plus uniform masks, as is_negative; products as spdz_mul and truncate",
    uses="the same as largest, exponential and reciprocal or logarithm",
    by_line=True,
)
def softmax(party: Role, x: Array, *, axis: int, scale: int, log: bool = False) -> Steps:
    """Compute e^x / Σ e^x along an axis, or its logarithm.

    1. Subtract the largest element, so that no power of e is large; powers below half a unit are 0.
    2. The sum is between 1 and the number of elements: divide by it, or subtract its logarithm.

    Rounds: 4 for each level of a tournament, 5 for the powers, and 4 for the division or 2 for the logarithm; for more
    than 15 elements 7 more, or 5 for the logarithm.
    """
    kernels = party.kernels
    shape = tuple(x.shape)
    wide = kernels.reshape((yield from _begin(party, x)), shape)
    order = (axis, *(place for place in range(len(shape)) if place != axis))
    lines = kernels.reshape(kernels.permute(wide, order), (shape[axis], -1))
    lines = lines - (yield from largest(party, lines))
    low = lowest(scale * shape[axis])
    fine = scale << max(0, 22 - bits_of(scale))
    powers, below = yield from together(
        _exp(party, lines, low, 1 / 16, scale, fine, 2), is_negative(party, _shift(party, lines, -round(low * scale)))
    )
    powers = yield from spdz_mul(party, powers, -_shift(party, below, -1))
    normal = yield from _normalize_between(party, kernels.sum(powers, 0), fine, shape[axis])
    if log:
        result = lines - (yield from _log(party, normal, scale, 1))
    else:
        result = yield from _divide(party, powers, normal, scale, fine)
    back = [order.index(place) for place in range(len(shape))]
    moved = kernels.permute(kernels.reshape(result, tuple(shape[place] for place in order)), back)
    return kernels.cast(moved, dtype_name(x))


def _divide(party: Role, powers: Array, normal: _Normal, scale: int, fine: int) -> Steps:
    """Divide by the sum: in 4 rounds, and 2 more if it was compared with powers of 16."""
    bits = 26
    value = yield from _evaluate(party, normal, "reciprocal", 1 << bits)
    count = len(normal.below) - 1
    if count > 1:
        weights = normal.weigh([16 ** (count - 1 - k) for k in range(count)])
        value = yield from spdz_mul(party, value, weights, divisor=16 ** (count - 1))
    return (yield from spdz_mul(party, powers, value, divisor=(fine << bits) // scale))
