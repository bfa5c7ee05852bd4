"""Real numbers as scaled integers, shared or public: arithmetic.

``Numbers(scale)`` computes on integers that mean ``integer / scale``. A product of two has the scale twice, so it is
divided by the scale once: for shared values with the protocol ``truncate``, which is off by less than one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from syft_core.crypto import integers
from syft_core.crypto.integers import Integers
from syft_core.crypto.kernels import dtype_name


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
        """Multiply by a public number: exactly by integers and their reciprocals, otherwise with 20 more bits.

        The product of the integers and 2^20 must fit into the ring. In that of 32 bits, it is 8 bits and 2^8.
        """
        if factor == int(factor) and abs(factor) < 1 << 31:
            return integers.multiply(x, int(factor))
        inverse = 1 / factor
        if inverse == int(inverse) and abs(inverse) < 1 << 31:
            return self.over(x, inverse)
        more, exponent = 20 if dtype_name(x) == "int64" else 8, math.frexp(factor)[1]
        shift = 1 << max(0, min(more - min(exponent, 0), 2 * more - exponent, 2 * more))
        return integers.multiply(x, round(factor * shift), shift)

    def over(self, x: Integers, divisor: float) -> Integers:
        """Divide by a public number."""
        if abs(divisor) != 1 and divisor == int(divisor) and 0 < abs(divisor) < 1 << 31:
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
