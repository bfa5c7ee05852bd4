"""Rules of fixed-precision numbers: arithmetic, comparison, reductions and constants, as functions of ``Numbers``.

The tables at the end name the operations that every framework has; each backend adds its own names and operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, prod
from typing import TypeAlias

from syft_core.values import Function, Kwargs, Nested
from syft_mpc import functions, integers
from syft_mpc.einsum import contract
from syft_mpc.errors import PrecisionError
from syft_mpc.integers import Integers
from syft_mpc.kernels import dtype_name
from syft_mpc.numbers import Numbers, refuse
from syft_mpc.order import find_largest, round_quotients
from syft_mpc.spdz import MATRICES

Axes: TypeAlias = Nested
"""An axis, several, or None for all."""


# --- sums and products


def add(numbers: Numbers, x: Integers, other: Integers, alpha: float = 1) -> Integers:
    """Add a multiple of another number."""
    return integers.add(numbers.value(x), _multiple(numbers, other, alpha))


def sub(numbers: Numbers, x: Integers, other: Integers, alpha: float = 1) -> Integers:
    """Subtract a multiple of another number."""
    return integers.sub(numbers.value(x), _multiple(numbers, other, alpha))


def _multiple(numbers: Numbers, x: Integers, factor: float) -> Integers:
    if isinstance(x, int | float):
        return numbers.of(x * factor)
    return x if factor == 1 else numbers.times(x, factor)


def mul(numbers: Numbers, x: Integers, other: Integers) -> Integers:
    """Multiply."""
    if isinstance(other, int | float):
        return numbers.times(x, other)
    if isinstance(x, int | float):
        return numbers.times(other, x)
    return numbers.mul(x, other)


def div(numbers: Numbers, x: Integers, other: Integers, *, rounding_mode: str | None = None) -> Integers:
    """Divide: by a public number, or by a shared one."""
    if rounding_mode is not None:
        return round_quotients(numbers, x, other, rounding_mode)
    if isinstance(other, int | float):
        return numbers.over(x, other)
    if integers.is_shared(other):
        return _over_shared(numbers, x, other)
    kernels = integers.kernels_of(other)
    return numbers.over_each(numbers.value(x), kernels.decode(other, numbers.scale, kernels.dtype("float64")))


def _over_shared(numbers: Numbers, x: Integers, divisor: Integers) -> Integers:
    if numbers.scale == 1:
        raise PrecisionError.no_fractions("quotient")
    dividend = numbers.constant(x, divisor) if isinstance(x, int | float) else x
    if not integers.is_shared(dividend):
        dividend = integers.make_public(dividend, divisor)
    rank = max(len(integers.shape_of(value)) for value in (dividend, divisor))
    dividend, divisor = (
        integers.reshape(value, (1,) * (rank - len(integers.shape_of(value))) + integers.shape_of(value))
        for value in (dividend, divisor)
    )
    integers.watch(dividend, numbers.scale)
    return dividend.run(functions.quotient, divisor, scale=numbers.scale)


def power(numbers: Numbers, x: Integers, exponent: Integers) -> Integers:
    """Raise to a multiple of 1/2, by squaring, for negative ones the reciprocal; or raise a public number."""
    if isinstance(x, int | float) and x > 0:
        return numbers.compute("exp", numbers.times(exponent, log(x)))
    if not isinstance(exponent, int | float) or not (2.0 * exponent).is_integer():
        raise PrecisionError.fractional_power()
    left, base, result = int(abs(exponent)), x, None
    if exponent != int(exponent):
        result = numbers.compute("sqrt" if exponent > 0 else "rsqrt", x)
    if exponent < 0 and left:
        base = numbers.compute("reciprocal", x)
    while left:
        if left & 1:
            result = base if result is None else numbers.mul(result, base)
        left >>= 1
        base = numbers.square(base) if left else base
    return ones_like(numbers, base) if result is None else result


def matmul(numbers: Numbers, x: Integers, other: Integers) -> Integers:
    """Multiply matrices."""
    return integers.multiply(x, other, numbers.scale, MATRICES)


def einsum(numbers: Numbers, equation: str, *operands: Integers, optimize: object = None) -> Integers:
    """Compute sums of products, as an equation such as "ij,jk->ik" describes."""
    if not isinstance(equation, str):
        refuse("einsum with lists of axes", 'write an equation: `einsum("ij,jk->ik", x, y)`')
    return contract(equation, operands, numbers.scale)


def unchanged(_numbers: Numbers, x: Integers, *_numbers_or_none: float | None, **_options: object) -> Integers:
    """Return a copy."""
    return integers.multiply(x, 1)


# --- reductions


def total(_numbers: Numbers, x: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Add elements."""
    return integers.total(x, _axes(dim, options), keepdim or bool(options.get("keepdims")))


def mean(numbers: Numbers, x: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Average elements."""
    count = count_along(x, _axes(dim, options))
    return numbers.over(total(numbers, x, dim, keepdim, **options), count)


def variance(numbers: Numbers, x: Integers, *args: Nested, **options: Nested) -> Integers:
    """Compute the variance along axes, with the arguments of any framework."""
    return _variance(numbers, x, *args, **options)


def _variance(
    numbers: Numbers,
    x: Integers,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    ddof: float | None = None,
    **options: Axes,
) -> Integers:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    axes = _axes(dim, options)
    axes = tuple(range(len(integers.shape_of(x)))) if axes is None else axes
    count = count_along(x, axes)
    given = [number for number in (correction, ddof, unbiased) if number is not None]
    lost = given[0] if given else integers.kernels_of(x).correction
    centred = integers.sub(x, numbers.over(integers.total(x, axes, keepdims=True), count))
    return numbers.over(total(numbers, numbers.square(centred), axes, keepdim, **options), max(0, count - lost))


def deviation(numbers: Numbers, x: Integers, *args: Nested, **options: Nested) -> Integers:
    """Compute the standard deviation: the square root of the variance."""
    return numbers.compute("sqrt", variance(numbers, x, *args, **options))


def product(numbers: Numbers, x: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Multiply elements, along axes or all: halves with each other."""

    def multiply_all(x: Integers) -> Integers:
        length = integers.shape_of(x)[-1]
        if not length:
            return integers.add(integers.total(x, -1), numbers.scale)
        while length > 1:
            half = length // 2
            parts = [integers.take(x, part) for part in (slice(half), slice(half, 2 * half), slice(2 * half, None))]
            first = numbers.mul(parts[0], parts[1])
            x = first if length == 2 * half else integers.join([first, parts[2]])
            length -= half
        return integers.total(x, -1)

    return reduce(x, dim, keepdim, options, multiply_all)


def cumprod(numbers: Numbers, x: Integers, dim: int | None = None, *, axis: int | None = None, **_: object) -> Integers:
    """Multiply each element by all elements before it, in as many products as the length has binary digits."""
    place = dim if axis is None else axis
    if place is not None and not integers.shape_of(x):
        return integers.multiply(x, 1)
    x = integers.flatten(x) if place is None else x
    rank, place = len(integers.shape_of(x)), integers.find_axis(x, place or 0)
    order = [*(other for other in range(rank) if other != place), place]
    x, shift = integers.permute(x, order), 1
    while shift < integers.shape_of(x)[-1]:
        before, after = integers.take(x, slice(None, -shift)), integers.take(x, slice(shift, None))
        x = integers.join([integers.take(x, slice(shift)), numbers.mul(before, after)])
        shift *= 2
    return integers.permute(x, [order.index(other) for other in range(rank)])


def count_along(x: Integers, axes: Axes) -> int:
    """Return how many elements are reduced to one along axes."""
    shape = integers.shape_of(x)
    places = range(len(shape)) if axes is None else (axes if isinstance(axes, tuple) else (axes,))
    return prod(shape[integers.find_axis(x, place)] for place in places) if shape else 1


def reduce(x: Integers, dim: Axes, keepdim: bool, options: Kwargs, function: Function) -> Integers:
    """Reduce along axes, or over all elements, with a function that reduces the last axis."""
    shape = integers.shape_of(x)
    axes = options.get("axis", dim)
    axes = tuple(range(len(shape))) if axes is None or (isinstance(axes, Sequence) and not axes) else axes
    axes = tuple(integers.find_axis(x, axis) for axis in (axes if isinstance(axes, Sequence) else (axes,)))
    if not shape:
        return function(integers.reshape(x, (1,)))
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    moved = integers.permute(x, (*rest, *axes))
    kept = tuple(shape[axis] for axis in rest)
    result = function(integers.reshape(moved, (*kept, prod(shape[axis] for axis in axes))))
    if keepdim or options.get("keepdims"):
        return integers.reshape(result, tuple(1 if axis in axes else length for axis, length in enumerate(shape)))
    return result


def _axes(dim: Axes, options: Kwargs) -> Axes:
    """Return the axes given as ``dim`` or ``axis``; None means all."""
    axes = dim if options.get("axis") is None else options["axis"]
    return (tuple(axes) or None) if isinstance(axes, Sequence) else axes


# --- comparison


def _comparison(compare: Callable[..., Nested]) -> Function:
    return lambda numbers, x, other: numbers.compare(compare, numbers.value(x), numbers.value(other))


def truth(numbers: Numbers, x: Integers) -> Integers:
    """Return 1 where a number is not 0, as an integer."""
    if isinstance(x, int | float):
        return int(x != 0)
    bit = getattr(x, "bit", None)
    return integers.differ(numbers.value(x), 0) if bit is None else bit


def where(numbers: Numbers, condition: Integers, one: Integers, other: Integers) -> Integers:
    """Return elements of the first where the condition is not 0, and of the second where it is 0."""
    return integers.select(truth(numbers, condition), numbers.value(one), numbers.value(other))


def _exclude(times: int) -> Function:
    """Return the rule for x + y - times · xy of truth values: "or" for 1, "exclusive or" for 2."""

    def combine(numbers: Numbers, x: Integers, other: Integers) -> Integers:
        one, two = truth(numbers, x), truth(numbers, other)
        both = integers.multiply(one, two)
        both = both if times == 1 else integers.multiply(both, times)
        return numbers.from_bit(integers.sub(integers.add(one, two), both))

    return combine


def has_any(numbers: Numbers, x: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Return 1 if a number is not 0, along axes or of all."""
    return numbers.compare(integers.differ, _count(truth(numbers, x), dim, keepdim, options), 0)


def has_all(numbers: Numbers, x: Integers, dim: Axes = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Return 1 if no number is 0, along axes or of all."""
    zeros = integers.complement(truth(numbers, x))
    return numbers.compare(integers.equal, _count(zeros, dim, keepdim, options), 0)


def _count(bits: Integers, dim: Axes, keepdim: bool, options: Kwargs) -> Integers:
    return reduce(bits, dim, keepdim, options, lambda x: integers.total(x, -1))


def _choice(choose: Callable[..., Integers]) -> Function:
    return lambda numbers, x, other: choose(numbers.value(x), numbers.value(other))


def clamp(numbers: Numbers, x: Integers, min: float | None = None, max: float | None = None) -> Integers:
    """Limit to a range."""
    if min is not None:
        x = integers.maximum(x, numbers.value(min))
    return x if max is None else integers.minimum(x, numbers.value(max))


def absolute(_numbers: Numbers, x: Integers) -> Integers:
    """Return the absolute value: x - 2·min(x, 0)."""
    return integers.add(x, integers.multiply(integers.relu(integers.neg(x)), 2))


def sign(numbers: Numbers, x: Integers) -> Integers:
    """Return -1, 0 or 1."""
    return integers.multiply(integers.sub(integers.greater(x, 0), integers.less(x, 0)), numbers.scale)


def largest(_numbers: Numbers, x: Integers, dim: Axes = (), keepdim: bool = False, **options: Axes) -> Integers:
    """Return the largest number, along axes or of all."""
    return reduce(x, dim, keepdim, options, lambda x: find_largest(x, -1))


def smallest(numbers: Numbers, x: Integers, dim: Axes = (), keepdim: bool = False, **options: Axes) -> Integers:
    """Return the smallest number, along axes or of all."""
    return integers.neg(largest(numbers, integers.neg(x), dim, keepdim, **options))


def find_extreme(numbers: Numbers, x: Integers, dim: int, keepdim: bool = False) -> tuple[Integers, Integers]:
    """Return the largest numbers along an axis (a single number has one), and the first positions, as numbers."""
    axis, shape = integers.find_axis(x, dim), list(integers.shape_of(x))
    found, marks = find_largest(x if shape else integers.flatten(x), axis, positions=True)
    if shape:
        shape[axis : axis + 1] = [1] if keepdim else []
    kernels, rank = integers.kernels_of(marks), len(integers.shape_of(marks))
    line = kernels.cast(kernels.arange(integers.shape_of(marks)[axis]), dtype_name(marks))
    line = kernels.reshape(line, (-1, *(1,) * (rank - axis - 1)))
    place = integers.multiply(integers.total(integers.multiply(marks, line), axis), numbers.scale)
    return integers.reshape(found, shape), integers.reshape(place, shape)


def argmax(numbers: Numbers, x: Integers, dim: int | None = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Return the index of the first of the largest numbers, as a number; with ``one_hot`` 1 there and 0 elsewhere."""
    axis, shape = options.get("axis"), integers.shape_of(x)
    axis, keep = dim if axis is None else axis, keepdim or options.get("keepdims")
    if options.get("one_hot"):
        line, place = (x, integers.find_axis(x, axis)) if axis is not None and shape else (integers.flatten(x), 0)
        return numbers.from_bit(integers.reshape(find_largest(line, place, positions=True)[1], shape))
    if axis is not None:
        return find_extreme(numbers, x, axis, bool(keep))[1]
    found = find_extreme(numbers, integers.flatten(x), 0)[1]
    return integers.reshape(found, (1,) * len(shape)) if keep else found


def argmin(numbers: Numbers, x: Integers, dim: int | None = None, keepdim: bool = False, **options: Axes) -> Integers:
    """Return the index of the first of the smallest numbers, as ``argmax`` does."""
    return argmax(numbers, integers.neg(x), dim, keepdim, **options)


# --- constants


def zeros_like(_numbers: Numbers, x: Integers, **_options: object) -> Integers:
    """Return zeros of the same shape."""
    return integers.sub(x, x)


def ones_like(numbers: Numbers, x: Integers, **_options: object) -> Integers:
    """Return ones of the same shape."""
    return integers.add(integers.sub(x, x), numbers.scale)


def full_like(numbers: Numbers, x: Integers, fill_value: Integers, **_options: object) -> Integers:
    """Return a constant of the same shape."""
    return integers.add(integers.sub(x, x), numbers.value(fill_value))


def fill(numbers: Numbers, x: Integers, value: Integers) -> Integers:
    """Return a constant of the same shape."""
    return full_like(numbers, x, value)


# --- tables: rules by operation

BOUNDED: dict[str, Function] = {
    "lt": _comparison(integers.less),
    "gt": _comparison(integers.greater),
    "le": _comparison(integers.at_most),
    "ge": _comparison(integers.at_least),
    "eq": _comparison(integers.equal),
    "ne": _comparison(integers.differ),
    "maximum": _choice(integers.maximum),
    "minimum": _choice(integers.minimum),
    "clip": clamp,
}
"""They compare, so an infinite operand becomes the largest number that can be compared."""
MASKED: dict[str, Function] = {"add": add, "sub": sub, "where": where, "full_like": full_like, "fill": fill}
"""Programs mask numbers with them, so an infinite operand becomes a large number with room for sums and products."""
TRUTH: dict[str, Function] = {
    "not": lambda numbers, x: numbers.from_bit(integers.complement(truth(numbers, x))),
    "and": lambda numbers, x, y: numbers.from_bit(integers.multiply(truth(numbers, x), truth(numbers, y))),
    "or": _exclude(1),
    "xor": _exclude(2),
}
"""Rules that combine truth values, also with bitwise operators; by the last part of the operation's name."""
EXACT: dict[str, Function] = {
    "neg": lambda _numbers, x: integers.neg(x),
    "mul": mul,
    "square": lambda numbers, x: numbers.square(x),
    "pow": power,
    "matmul": matmul,
    "dot": matmul,
    "outer": lambda numbers, x, y: numbers.mul(integers.reshape(x, (-1, 1)), integers.reshape(y, (1, -1))),
    "einsum": einsum,
    "nan_to_num": unchanged,
    "sum": total,
    "mean": mean,
    "prod": product,
    "cumprod": cumprod,
    **{f"logical_{name}": rule for name, rule in TRUTH.items()},
    "any": has_any,
    "all": has_all,
    "abs": absolute,
    "sign": sign,
    **dict.fromkeys(("amax", "max"), largest),
    **dict.fromkeys(("amin", "min"), smallest),
    "argmax": argmax,
    "argmin": argmin,
    "zeros_like": zeros_like,
    "ones_like": ones_like,
}
"""Operations whose results are integers if their operands are."""
