"""Rules of fixed-precision numbers for real functions, and for inverse matrices."""

from __future__ import annotations

import math

from syft_core.values import Function
from syft_mpc import integers
from syft_mpc.errors import PrecisionError
from syft_mpc.integers import Integers
from syft_mpc.numbers import Numbers
from syft_mpc.spdz import ELEMENTS, MATRICES


def function_rule(name: str) -> Function:
    """Return the rule that computes a function of ``approximations.FUNCTIONS``."""
    return lambda numbers, x: numbers.compute(name, x)


def _logarithm(base: int) -> Function:
    return lambda numbers, x: numbers.times(numbers.compute("log", x), 1 / math.log(base))


def reciprocal(numbers: Numbers, x: Integers, *, method: str = "series") -> Integers:
    """Compute 1/x; of 0 it is 0, if it is shared. The other methods are for comparison: "NR", "newton", "log"."""
    if method in ("series", "division") or not integers.is_shared(x):
        return numbers.compute("reciprocal", x)
    sign = integers.sub(1, integers.multiply(integers.is_negative(x), 2))
    size = integers.multiply(sign, x)
    if method == "log":
        return integers.multiply(sign, numbers.compute("exp", integers.neg(numbers.compute("log", size))))
    if method not in ("NR", "newton"):
        raise PrecisionError.unknown_method("reciprocal", method)
    # Newton's method finds 1/x from 3e^(0.5 - x) + 0.003 (Knott et al. 2021).
    near = numbers.compute("exp", numbers.plus(integers.neg(size), 0.5))
    guess = numbers.plus(integers.multiply(near, 3), 0.003)
    return integers.multiply(sign, _invert(numbers, size, guess, ELEMENTS, 10))


def _invert(numbers: Numbers, x: Integers, y: Integers, op: str, steps: int) -> Integers:
    """Improve an approximate inverse, of numbers or of matrices:  y ← 2y - y·x·y."""
    for _ in range(steps):
        product = integers.multiply(integers.multiply(y, x, numbers.scale, op), y, numbers.scale, op)
        y = integers.sub(integers.multiply(y, 2), product)
    return y


def tanh(numbers: Numbers, x: Integers, *, method: str = "series") -> Integers:
    """Compute the hyperbolic tangent. The other methods are for comparison: "chebyshev", "sigmoid"."""
    if method == "series" or not integers.is_shared(x):
        return numbers.compute("tanh", x)
    if method == "sigmoid":
        return numbers.plus(integers.multiply(numbers.compute("sigmoid", integers.multiply(x, 2)), 2), -1)
    if method != "chebyshev":
        raise PrecisionError.unknown_method("tanh", method)
    return tanh_chebyshev(numbers, x)


def tanh_chebyshev(numbers: Numbers, x: Integers, end: int = 6, terms: int = 32) -> Integers:
    """Compute a sum of Chebyshev polynomials, for the nearest number between -6 and 6 (Guo et al. 2020)."""
    y = numbers.over(integers.maximum(integers.minimum(x, numbers.of(end)), numbers.of(-end)), end)
    twice = numbers.plus(integers.multiply(numbers.square(y), 4), -2)  # 2·T2
    before, now = y, y  # T-1 and T1
    total = numbers.times(y, _chebyshev_coefficient(1, end))
    for degree in range(3, terms, 2):
        before, now = now, integers.sub(numbers.mul(twice, now), before)
        total = integers.add(total, numbers.times(now, _chebyshev_coefficient(degree, end)))
    return total


def _chebyshev_coefficient(degree: int, end: float, points: int = 256) -> float:
    angles = [math.pi * (place + 0.5) / points for place in range(points)]
    return 2 / points * sum(math.tanh(end * math.cos(angle)) * math.cos(degree * angle) for angle in angles)


def inverse(numbers: Numbers, x: Integers, steps: int = 16) -> Integers:
    """Invert square matrices of condition up to 100, with Newton's method from Aᵀ / ‖A‖².

    Shared ones are divided by ‖A‖ before and after, so that no element is larger than 1.
    """
    shape = integers.shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"cannot invert matrices of shape {shape}: the last two dimensions differ; use square ones")
    if not integers.is_shared(x):
        kernels = integers.kernels_of(x)
        return numbers.encode(kernels.xp.linalg.inv(kernels.decode(x, numbers.scale, kernels.dtype("float64"))))
    rank = len(shape)
    norm = numbers.compute("rsqrt", integers.total(numbers.square(x), (rank - 2, rank - 1), keepdims=True))
    matrix = numbers.mul(x, norm)
    start = integers.permute(matrix, (*range(rank - 2), rank - 1, rank - 2))
    return numbers.mul(_invert(numbers, matrix, start, MATRICES, steps), norm)


REAL: dict[str, Function] = {
    **{name: function_rule(name) for name in ("exp", "log", "sqrt", "sin", "cos")},
    "expm1": lambda numbers, x: numbers.plus(numbers.compute("exp", x), -1),
    "log1p": lambda numbers, x: numbers.compute("log", numbers.plus(x, 1)),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
    "reciprocal": reciprocal,
    "tanh": tanh,
    "inv": inverse,
}
