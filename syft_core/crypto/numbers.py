"""Real numbers as scaled integers, shared or public: arithmetic.

``Numbers(scale)`` computes on integers that mean ``integer / scale``. A product of two has the scale twice, so it is
divided by the scale once: for shared values with the protocol ``truncate``, which is off by less than one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from syft_core.crypto import integers
from syft_core.crypto.authenticated_tensor import is_authenticated
from syft_core.crypto.integers import Integers
from syft_core.crypto.kernels import dtype_name
from syft_core.exceptions import PrecisionError


@dataclass(frozen=True)
class Numbers:
    """Arithmetic on numbers with one scale."""

    scale: int
    bits: int = 64
    """Of the ring."""

    @property
    def limit(self) -> float:
        """The smallest positive number that cannot be used."""
        return float(1 << (self.bits - 2)) / self.scale

    def of(self, number: float) -> int:
        """Return a Python number as a scaled integer."""
        if not abs(number) < self.limit:
            raise PrecisionError.out_of_range(self.limit)
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

        The product of the integers and 2^20 must fit into the ring. For values of 32 bits, it is 8 bits and 2^8.
        """
        if not math.isfinite(factor):
            raise PrecisionError.out_of_range(self.limit)
        if factor == int(factor) and abs(factor) < 1 << 31:
            return integers.multiply(x, int(factor))
        inverse = 1 / factor
        if inverse == int(inverse) and abs(inverse) < 1 << 31:
            return self.over(x, inverse)
        more, exponent = 8 if integers.is_small(x) else 20, math.frexp(factor)[1]
        shift = 1 << max(0, min(more - min(exponent, 0), 2 * more - exponent, 2 * more))
        return integers.multiply(x, round(factor * shift), shift)

    def over(self, x: Integers, divisor: float) -> Integers:
        """Divide by a public number."""
        if divisor == 0:
            raise PrecisionError.division_by_zero()
        if abs(divisor) != 1 and divisor == int(divisor) and 0 < abs(divisor) < 1 << 31:
            result = integers.divide(x, abs(int(divisor)))
            return integers.neg(result) if divisor < 0 else result
        return self.times(x, 1 / divisor)

    def over_each(self, x: Integers, divisors: Integers) -> Integers:
        """Divide by public numbers, one for each element: with 20 more bits than the largest of them needs."""
        kernels = integers.kernels_of(divisors)
        numbers = kernels.decode(divisors, self.scale, kernels.dtype("float64"))
        if bool((numbers == 0).any()):
            raise PrecisionError.division_by_zero()
        if not (integers.is_shared(x) or is_authenticated(x)):
            real = x if isinstance(x, int) else kernels.decode(x, 1, kernels.dtype("float64"))
            return kernels.encode(real / numbers, 1, dtype_name(divisors))
        more = 8 if integers.is_small(x) else 20
        shift = 1 << max(0, min(2 * more, more + math.frexp(float(abs(numbers).max()))[1]))
        return integers.multiply(x, kernels.encode(1 / numbers, shift, dtype_name(x)), shift)

    def plus(self, x: Integers, number: float) -> Integers:
        """Add a public number."""
        return integers.add(x, self.of(number))

    def from_bit(self, bit: Integers) -> Integers:
        """Return 0 or 1 as numbers that remember their bit."""
        scaled = integers.multiply(bit, self.scale)
        if integers.is_shared(bit):
            scaled.bit = bit
        return scaled
