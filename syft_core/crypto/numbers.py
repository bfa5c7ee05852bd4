"""Real numbers as scaled integers, shared or public: arithmetic, and approximations of functions.

``Numbers(scale)`` computes on integers that mean ``integer / scale``. A product of two has the scale twice, so it is
divided by the scale once: for shared values with the protocol ``truncate``, which is off by less than one unit. Each
approximation states its domain and its error there, for a scale of 2^16; coarser scales add their own rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from syft_core.crypto import integers
from syft_core.crypto.integers import Integers

FINE = 1 << 20
"""The scale inside approximations, unless that of the caller is finer."""


@dataclass(frozen=True)
class Numbers:
    """Arithmetic on numbers with one scale."""

    scale: int

    def of(self, number: float) -> int:
        """Return a Python number as a scaled integer."""
        return round(number * self.scale)

    def mul(self, x: Integers, y: Integers) -> Integers:
        """Multiply two numbers. A factor that is known to be 0 or 1 is used without its scale, which is exact."""
        for one, other in ((x, y), (y, x)):
            bit = getattr(one, "bit", None)
            if bit is not None:
                return integers.multiply(bit, other)
        return integers.multiply(x, y, self.scale)

    def square(self, x: Integers) -> Integers:
        """Square a number."""
        return integers.multiply(x, x, self.scale)

    def times(self, x: Integers, factor: float) -> Integers:
        """Multiply by a public number: exactly if it is an integer, otherwise with 20 more bits."""
        if factor == int(factor) and abs(factor) < 1 << 31:
            return integers.multiply(x, int(factor)) if factor != 1 else x
        shift = 1 << max(0, min(20, 40 - math.frexp(factor)[1]))
        return integers.multiply(x, round(factor * shift), shift)

    def over(self, x: Integers, divisor: float) -> Integers:
        """Divide by a public number."""
        if divisor == int(divisor) and 0 < abs(divisor) < 1 << 31:
            result = integers.divide(x, abs(int(divisor)))
            return integers.neg(result) if divisor < 0 else result
        return self.times(x, 1 / divisor)

    def plus(self, x: Integers, number: float) -> Integers:
        """Add a public number."""
        return integers.add(x, self.of(number))

    def from_bit(self, bit: Integers) -> Integers:
        """Return 0 or 1 as numbers that remember their bit."""
        scaled = integers.multiply(bit, self.scale)
        if integers.is_shared(bit):
            scaled.bit = bit
        return scaled

    @cached_property
    def fine(self) -> Numbers:
        """The numbers with which approximations are computed."""
        return self if self.scale >= FINE else Numbers(FINE)

    def refine(self, x: Integers) -> Integers:
        """Return a number of this scale as one of ``fine``."""
        if self.fine is self:
            return x
        whole, rest = divmod(self.fine.scale, self.scale)
        return (
            integers.multiply(x, whole)
            if not rest
            else integers.divide(integers.multiply(x, self.fine.scale), self.scale)
        )

    def coarsen(self, x: Integers) -> Integers:
        """Return a number of ``fine`` as one of this scale."""
        if self.fine is self:
            return x
        whole, rest = divmod(self.fine.scale, self.scale)
        return (
            integers.divide(x, whole)
            if not rest
            else integers.divide(integers.multiply(x, self.scale), self.fine.scale)
        )


# --- functions; each takes numbers of the scale, and computes with finer ones


def exp(numbers: Numbers, x: Integers, steps: int = 8) -> Integers:
    """Return e^x for -1000 < x < 10, as (1 + x / 2^steps)^(2^steps).

    The relative error is x² / 2^(steps + 1); below -2^steps the result is 0.
    """
    return numbers.coarsen(_exp(numbers.fine, numbers.refine(x), steps))


def _exp(fine: Numbers, x: Integers, steps: int = 8) -> Integers:
    base = fine.plus(integers.divide(x, 1 << steps), 1)
    base = integers.relu(base)  # Otherwise the power of a large negative number would be large.
    for _ in range(steps):
        base = fine.square(base)
    return base


def reciprocal(numbers: Numbers, x: Integers) -> Integers:
    """Return 1 / x for 2^-8 < |x| < 2^16, with a relative error below 1e-4 for |x| < 2^6: Newton's method."""
    fine, value = numbers.fine, numbers.refine(x)
    negative = integers.is_negative(value)
    sign = integers.sub(1, integers.multiply(negative, 2))
    return numbers.coarsen(integers.multiply(sign, _reciprocal(fine, integers.multiply(sign, value))))


def _reciprocal(fine: Numbers, x: Integers, steps: int = 10) -> Integers:
    """Return 1 / x for positive x: y ← y(2 - xy), from 3e^(0.5 - x) + 0.003 (Knott et al. 2021)."""
    y = fine.plus(fine.times(_exp(fine, fine.plus(integers.neg(x), 0.5)), 3), 0.003)
    for _ in range(steps):
        y = fine.mul(y, integers.sub(fine.of(2), fine.mul(x, y)))
    return y
