"""Real numbers as scaled integers, shared or public: arithmetic.

``Numbers(scale)`` computes on integers that mean ``integer / scale``. A product of two has the scale twice, so it is
divided by the scale once: for shared values with the protocol ``truncate``, which is off by less than one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from syft_core.exceptions import OperationNotAllowedError
from syft_core.values import Function, Tensor
from syft_mpc import integers, spdz
from syft_mpc.approximations import FUNCTIONS
from syft_mpc.authenticated_tensor import is_authenticated
from syft_mpc.errors import PrecisionError
from syft_mpc.integers import Integers
from syft_mpc.kernels import Array, dtype_name


@dataclass(frozen=True)
class Numbers:
    """Arithmetic on numbers with one scale."""

    scale: int
    bits: int = 64
    """The bits of the ring."""

    @property
    def limit(self) -> float:
        """The smallest positive number that cannot be used."""
        return float(1 << (self.bits - 2)) / self.scale

    @property
    def infinity(self) -> float:
        """The number that stands for infinity as a mask: 2^38 units, or 2^20 if values have 32 bits."""
        return float(1 << (9 * self.bits // 16 + 2)) / self.scale

    @property
    def ring(self) -> str:
        """The name of the dtype of the integers."""
        return f"int{self.bits}"

    def of(self, number: float) -> int:
        """Return a Python number as a scaled integer."""
        if not abs(number) < self.limit:
            raise PrecisionError.out_of_range(self.limit)
        return round(number * self.scale)

    def value(self, x: Integers) -> Integers:
        """Return an operand as integers: integers as they are, a Python number encoded."""
        return self.of(x) if isinstance(x, int | float) else x

    def constant(self, number: float, like: Integers) -> Tensor:
        """Return a Python number as a tensor of integers, in the framework of a value."""
        return integers.kernels_of(like).zeros((), self.ring) + self.of(number)

    def encode(self, plain: Tensor) -> Tensor:
        """Return the integers of plain numbers; refuse numbers that are not finite, or too large for the ring."""
        kernels, dtype = integers.kernels_of(plain), dtype_name(plain)
        if dtype.startswith("complex"):
            raise PrecisionError.complex_number()
        if (self.scale > 1 or dtype != self.ring) and not kernels.is_within(kernels.to_floats(plain), self.limit):
            raise PrecisionError.out_of_range(self.limit)
        if dtype.startswith(("float", "bfloat")):
            return kernels.encode(plain, self.scale, self.ring)
        return kernels.cast(plain, self.ring) * self.scale

    def encode_if_plain(self, x: Integers) -> Integers:
        """Return an operand of a rule that gets plain tensors too as integers."""
        return self.encode(x) if is_plain(x) else x

    def compute(self, function: str, x: Integers, **options: int) -> Integers:
        """Compute a function of ``FUNCTIONS``: on shares with its protocol, otherwise with floats."""
        found = FUNCTIONS[function]
        if integers.is_shared(x):
            if self.scale == 1:
                raise PrecisionError.no_fractions(function)
            return x.run(found.protocol, scale=self.scale, **found.options, **options)
        kernels = integers.kernels_of(x)
        return self.encode(
            kernels.compute(found.exact, kernels.decode(x, self.scale, kernels.dtype("float64")), options)
        )

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
        """Multiply by a public number: by the nearest fraction of integers with at most 16 bits.

        Its error is about 2^-32 of the result, and the product of the integers and the numerator must fit into the
        ring. For values of 32 bits, it is 8 bits and 2^-16.
        """
        if not abs(factor) < self.limit:
            raise PrecisionError.out_of_range(self.limit)
        numerator, denominator = _approximate(factor, 8 if integers.is_small(x) else 16)
        if denominator >> (30 if integers.is_small(x) else 62):  # No value is that large.
            return integers.multiply(x, 0)
        return integers.divide(integers.multiply(x, numerator), denominator)

    def over(self, x: Integers, divisor: float) -> Integers:
        """Divide by a public number."""
        if divisor == 0:
            raise PrecisionError.division_by_zero()
        if not math.isfinite(divisor):
            raise PrecisionError.out_of_range(self.limit)
        if divisor == int(divisor) and 0 < abs(divisor) < 1 << 31:
            result = integers.divide(x, abs(int(divisor)))
            return integers.neg(result) if divisor < 0 else result
        return self.times(x, 1 / divisor)

    def over_each(self, x: Integers, divisors: Array) -> Integers:
        """Divide by public floats, one for each element, with an error of less than 2 units, and 2^-20 of the result.

        For d < 2^e, divide by 2^e, then multiply by 2^e / d. For values of 32 bits, the error is 2^-8 of the result.
        """
        kernels = integers.kernels_of(divisors)
        xp, shape = kernels.xp, spdz.broadcast(integers.shape_of(x), tuple(divisors.shape))
        if bool((divisors == 0).any()):
            raise PrecisionError.division_by_zero()
        if not bool(xp.all(xp.isfinite(divisors))):
            raise PrecisionError.out_of_range(self.limit)
        if not (integers.is_shared(x) or is_authenticated(x)):
            real = x if isinstance(x, int) else kernels.decode(x, 1, kernels.dtype("float64"))
            quotients = real / divisors
            if not kernels.is_within(quotients, 1 << (self.bits - 2)):
                raise PrecisionError.out_of_range(self.limit)
            return kernels.encode(quotients, 1, self.ring)
        first = float(xp.reshape(divisors, (-1,))[0]) if math.prod(divisors.shape) else 1.0
        if bool((divisors == first).all()):
            return self.over(integers.expand(x, shape), first)
        more, guard, ring = 8 if integers.is_small(x) else 20, 3, dtype_name(x)
        powers = xp.floor(xp.log2(xp.abs(divisors))) + 1
        powers = xp.where(powers > 0, powers, 0 * powers)
        most = int(xp.max(powers))
        if most:
            x = integers.divide(
                integers.multiply(x, kernels.encode(2.0 ** (most - powers), 1 << guard, ring)), 1 << most
            )
        factors = kernels.encode(2.0**powers / divisors, 1 << more, ring)
        return integers.divide(integers.multiply(x, factors), 1 << (more + (guard if most else 0)))

    def plus(self, x: Integers, number: float) -> Integers:
        """Add a public number."""
        return integers.add(x, self.of(number))

    def from_bit(self, bit: Integers) -> Integers:
        """Return 0 or 1 as numbers that remember their bit."""
        return _remember(bit, integers.multiply(bit, self.scale))

    def compare(self, comparison: Function, x: Integers, y: Integers) -> Integers:
        """Return the result of a comparison of integers as a number that remembers its bit."""
        if self.scale == 1:
            return self.from_bit(comparison(x, y))
        return _remember(*comparison(x, y, scale=self.scale))


def is_plain(x: Integers) -> bool:
    """Return whether an operand is a plain tensor of real numbers, not encoded yet."""
    return hasattr(x, "shape") and dtype_name(x).startswith(("float", "bfloat"))


def refuse(what: str, advice: str) -> NoReturn:
    """Refuse what no protocol computes."""
    raise OperationNotAllowedError.refused_by("FixedPrecisionTensor", what, f"there is no protocol for it; {advice}")


def _remember(bit: Integers, scaled: Integers) -> Integers:
    if integers.is_shared(bit):
        scaled.bit = bit
    return scaled


def _approximate(factor: float, bits: int) -> tuple[int, int]:
    """Return the fraction next to a number with a numerator, or for large numbers a denominator, of some bits.

    >>> _approximate(0.3, 16), _approximate(-2.5, 16), _approximate(1e-7, 16)
    ((3, 10), (-5, 2), (1, 10000000))
    """
    exact, most = Fraction(factor), 1 << bits
    if abs(exact) >= 1 or not exact:
        return exact.limit_denominator(most).as_integer_ratio()
    denominator, numerator = (1 / exact).limit_denominator(most).as_integer_ratio()
    return (numerator, denominator) if denominator > 0 else (-numerator, -denominator)
