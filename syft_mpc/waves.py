"""Functions of a masked number: waves and powers that need one opening.

A shared number x is opened as c = x + r under a uniform mask r. For some functions, f(c - r) is a sum of products of
functions of c, which is public, and functions of r, which the provider shares. So one opening replaces a polynomial of
high degree. See Note [The same integers everywhere].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from syft_mpc.kernels import Array, Kernels, Shape
from syft_mpc.protocol import Correlation, DealtForms, Draw, Open, Rest, Role, Spec, Steps
from syft_mpc.series import Series
from syft_mpc.truncation import split_top

# Note [The same integers everywhere]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# Each party multiplies its shares with public factors that it computes itself. If two parties had factors that differ
# in the last bit, their shares would no longer add up to anything. So public factors are computed with +, - and * of
# 64-bit floats, one operation at a time, whose results IEEE 754 prescribes; with constants that are literals or come
# from ``decimal``; and never with a library's sin or exp, which differ between machines. The provider may use anything.

WORD = 1 << 64
BOUND = 61
"""Values in a computation stay below 2^BOUND; a truncation needs room for them."""


def bits_of(number: float) -> int:
    """Return the smallest n with number <= 2^n.

    >>> bits_of(1000), bits_of(1024)
    (10, 10)
    """
    fraction, exponent = math.frexp(number)
    return exponent - (fraction == 0.5)


@dataclass(frozen=True)
class Waves(Correlation):
    """Uniform r; the cosines, then the sines of multiples of r, where 2^64 is a full turn."""

    count: int
    odd: bool
    bits: int
    shape: Shape

    @cached_property
    def forms(self) -> DealtForms:
        """The form of r, and that of the waves, with ``bits`` binary digits."""
        return (Spec(self.shape),), (Spec((2 * self.count, *self.shape)),)

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute the waves."""
        return (kernels.encode(turn(kernels, free[0], self.count, self.odd), 1 << self.bits, "int64"),)


def turn(kernels: Kernels, angles: Array, count: int, odd: bool) -> Array:
    """Return the cosines, then the sines of all or odd multiples of angles, where 2^64 is a full turn."""
    quarter = kernels.cast(angles, "float64") * 2.0**-64 * (math.pi / 2)
    square = quarter * quarter
    cosine, sine = 1 / math.factorial(16), 1 / math.factorial(17)
    for degree in range(14, -2, -2):
        sign = -1 if degree % 4 else 1
        cosine = square * cosine + sign / math.factorial(degree)
        sine = square * sine + sign / math.factorial(degree + 1)
    cosine, sine = _twice(*_twice(cosine, sine * quarter))
    step = _twice(cosine, sine) if odd else (cosine, sine)
    cosines, sines = cosine[None], sine[None]
    while cosines.shape[0] < count:
        c, s = step
        more = min(cosines.shape[0], count - cosines.shape[0])
        first_cosines, first_sines = cosines[:more], sines[:more]
        cosines = kernels.concat([cosines, first_cosines * c - first_sines * s])
        sines = kernels.concat([sines, first_cosines * s + first_sines * c])
        step = _twice(c, s)
    return kernels.concat([cosines, sines])


def _twice(cosine: Array, sine: Array) -> tuple[Array, Array]:
    product = cosine * sine
    return cosine * cosine - sine * sine, product + product


def digits(scale: int, largest: float) -> int:
    """Return how many binary digits numbers below ``largest`` can have in addition to those of ``scale``."""
    return BOUND - bits_of(scale) - bits_of(largest)


def evaluate(party: Role, x: Array, series: Series, scale: int, result: int, extra: int) -> Steps:
    """Compute a series of x, which has a scale; the result has the scale ``result · 2^extra``.

    1. Open  c = x·k + r,  where k is such that the period of the series is 2^64.
    2. Σ a cos j(c - r) + b sin j(c - r)  =  Σ (a cos jc + b sin jc)[cos jr] + (a sin jc - b cos jc)[sin jr].

    Rounds: 1. The error of the waves adds 2^-27 to that of the series, times the sum of its coefficients.
    """
    kernels = party.kernels
    bits = (bits_of(result) + extra) // 2
    draw = Draw(Waves(series.waves, series.odd, bits, tuple(x.shape)))
    (r,) = yield draw
    step = round(WORD / (series.period * scale))
    masked = x * step + r
    if party.leads and series.middle:
        masked = masked - round(series.middle * scale) * step
    (c,) = yield Open(masked)
    waves = turn(kernels, c, series.waves, series.odd)
    cosines, sines = waves[: series.waves], waves[series.waves :]
    both = []
    if series.cosines:
        a = kernels.column(series.cosines, c, "float64")
        both.append((cosines * a, sines * a))
    if series.sines:
        b = kernels.column(series.sines, c, "float64")
        both.append((sines * b, cosines * -b))
    factors = both[0] if len(both) == 1 else (both[0][0] + both[1][0], both[0][1] + both[1][1])
    public = kernels.encode(kernels.concat(factors), result * 2.0 ** (extra - bits), "int64")
    (shares,) = yield Rest(draw)
    value = kernels.sum(public * shares, 0)
    return value + round(series.constant * (result << extra)) if party.leads else value


# --- powers of e


@dataclass(frozen=True)
class Exponentials(Correlation):
    """Uniform r; for each of several parts of the ring, e^-s where r is s after its start, and 0 if r is not in it."""

    parts: int
    width: float
    bits: int
    shape: Shape

    @cached_property
    def forms(self) -> DealtForms:
        """The form of r, and that of the powers, with ``bits`` binary digits."""
        return (Spec(self.shape),), (Spec((self.parts, *self.shape)),)

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute the powers."""
        part, rest = _locate(kernels, free[0], self.parts)
        powers = kernels.xp.exp(rest * -self.width)[None]
        places = part[None] == kernels.column(range(self.parts), part, "int64")
        return (kernels.encode(powers * kernels.cast(places, "float64"), 1 << self.bits, "int64"),)


def _locate(kernels: Kernels, x: Array, parts: int) -> tuple[Array, Array]:
    """Return in which of ``parts`` equal parts of the ring a number is, and how far from its start: 0 to 1."""
    low = 64 - (parts.bit_length() - 1)
    return (x >> low) & (parts - 1), kernels.cast(x & ((1 << low) - 1), "float64") * 2.0**-low


def evaluate_exp(
    party: Role, x: Array, scale: int, low: float, high: float, result: int, extra: int, blocks: int
) -> Steps:
    """Compute e^x for low <= x < high; the result has the scale ``result · 2^extra``.

    The range is divided into ``blocks`` of a width, and the ring into twice as many, so that x + r is less than once
    around the ring beyond r. Let C and R be the blocks of c and r, and t and s the distances from their starts.

    1. Open  c = x + r,  with a factor such that the ring has the width of two ranges.
    2. e^x = Σ_k e^(width·((C - k) mod 2·blocks)) · e^t · [e^-s where R = k, else 0].

    Only one of the shared values is not zero, so the errors are relative to the result, and at most e^width times
    2^-bits.

    Rounds: 1.
    """
    kernels = party.kernels
    width, parts = (high - low) / blocks, 2 * blocks
    bits = (bits_of(result) + extra + math.ceil(width * 1.4427)) // 2
    draw = Draw(Exponentials(parts, width, bits, tuple(x.shape)))
    (r,) = yield draw
    step = int(WORD / (parts * width * scale))
    masked = x * step + r
    first = round(low * scale)
    (c,) = yield Open(masked - first * step if party.leads else masked)
    part, rest = _locate(kernels, c, parts)
    block = (part[None] - kernels.column(range(parts), part, "int64")) & (parts - 1)
    public = result * 2.0 ** (extra - bits)
    start, size = Decimal(first) / scale, Decimal(width)
    powers = [float((start + size * k).exp()) * public if k <= blocks else 0.0 for k in range(parts)]
    table = kernels.column(powers, c, "float64")
    factors = kernels.reshape(table, (-1,))[block] * _exp(rest, width)[None]
    (shares,) = yield Rest(draw)
    return kernels.sum(kernels.encode(factors, 1, "int64") * shares, 0)


def _exp(x: Array, width: float) -> Array:
    """Return e^(x·width) for 0 <= x <= 1, with + and * only."""
    halvings = max(0, bits_of(width)) + 1
    small = x * (width * 2.0**-halvings)
    power = 1 / math.factorial(13)
    for degree in range(12, -1, -1):
        power = small * power + 1 / math.factorial(degree)
    for _ in range(halvings):
        power = power * power
    return power


# --- from the ring of 32 bits to that of 64


@dataclass(frozen=True)
class Widening(Correlation):
    """Uniform r of 32 bits; its lower bits and its highest bit in the ring of 64 bits."""

    shape: Shape

    @cached_property
    def forms(self) -> DealtForms:
        """The form of r, and those of its lower bits and its highest bit."""
        return (Spec(self.shape, "int32"),), (Spec(self.shape), Spec(self.shape))

    def derive(self, kernels: Kernels, *free: Array) -> Sequence[Array]:
        """Compute them."""
        low, top = split_top(kernels, free[0])
        return kernels.cast(low, "int64"), kernels.cast(top, "int64")


def widen(party: Role, x: Array) -> Steps:
    """Turn shares of the ring of 32 bits into shares of that of 64 bits, for |x| < 2^30.

    As ``truncate``: open c = x + 2^30 + r;  then  x + 2^30 = c' - r' + w·2^31  with  w = top(c) xor top(r).

    Rounds: 1.
    """
    kernels = party.kernels
    draw = Draw(Widening(tuple(x.shape)))
    (r,) = yield draw
    (c,) = yield Open(x + r + (1 << 30) if party.leads else x + r)
    c_low, c_top = [kernels.cast(part, "int64") for part in split_top(kernels, c)]
    low, top = yield Rest(draw)
    result = top * (1 - 2 * c_top) * (1 << 31) - low
    return result + c_low + c_top * (1 << 31) - (1 << 30) if party.leads else result
