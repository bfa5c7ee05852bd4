"""Rules of fixed-precision numbers for sorting and rounding: exact, from comparisons."""

from __future__ import annotations

from syft_core.values import Function
from syft_mpc import comparison, integers
from syft_mpc.errors import PrecisionError
from syft_mpc.integers import Integers
from syft_mpc.kernels import dtype_name
from syft_mpc.numbers import Numbers, refuse

# --- the largest


def find_largest(x: Integers, axis: int, positions: bool = False) -> Integers:
    """Return the largest integers along an axis; with ``positions`` also marks of the first of them."""
    rank = len(integers.shape_of(x))
    axis = integers.find_axis(x, axis)
    order = (axis, *(other for other in range(rank) if other != axis))
    moved = integers.permute(x, order)
    if not integers.shape_of(moved)[0]:
        raise ValueError("cannot find the largest or smallest of no numbers: the axis is empty; leave the call out")
    if integers.shape_of(moved)[0] == 1:  # The result would use the memory of x.
        moved = integers.multiply(moved, 1)
    if integers.is_shared(x):
        found = moved.run(comparison.largest, positions=True) if positions else moved.run(comparison.largest)
    else:
        found = find_largest_row(moved, positions)
    if not positions:
        return found
    back = [order.index(place) for place in range(rank)]
    return found[0], integers.permute(found[1], back)


def find_largest_row(x: Integers, positions: bool) -> Integers:
    """Return the largest of plain integers along the first axis, with ``positions`` also marks of the first of them."""
    kernels = integers.kernels_of(x)
    top = x[0]
    for row in x[1:]:
        top = integers.maximum(top, row)
    if not positions:
        return top
    rows, taken = [], kernels.zeros(tuple(top.shape), dtype_name(x))
    for row in x:
        mark = integers.is_zero(row - top) * (1 - taken)
        taken = taken + mark
        rows.append(mark)
    return top, kernels.stack(rows, 0)


# --- ranks


def pick(
    numbers: Numbers, x: Integers, dim: int, ranks: range | None = None, descending: bool = False
) -> tuple[Integers, Integers]:
    """Return the numbers with these ranks along an axis, by default all, and their places, as numbers.

    Of each number, count how many come before it: those that are smaller and, of equal ones, those to the left.
    Each rank is then compared with all counts. This takes few rounds, and the square of the length comparisons.
    """
    shape = integers.shape_of(x)
    if not shape:
        return integers.multiply(x, 1), integers.multiply(x, 0)
    axis = integers.find_axis(x, dim)
    kernels, length, ring = integers.kernels_of(x), shape[axis], dtype_name(x)
    ranks = range(length) if ranks is None else ranks
    if not all(0 <= rank < length for rank in ranks):
        raise IndexError(f"cannot pick numbers by rank: the axis has {length} of them; ask for fewer")
    before, after = shape[:axis], shape[axis + 1 :]
    one = (1,) * len(after)
    line = kernels.arange(length)
    left = kernels.cast(kernels.reshape(line, (1, -1)) < kernels.reshape(line, (-1, 1)), ring)
    key = integers.neg(x) if descending else x
    rows = integers.reshape(key, (*before, length, 1, *after))
    columns = integers.reshape(key, (*before, 1, length, *after))
    smaller = integers.less(columns, integers.add(rows, kernels.reshape(left, (length, length, *one))))
    counts = integers.reshape(integers.total(smaller, axis + 1), (*before, 1, length, *after))
    wanted = kernels.cast(line[ranks.start : ranks.stop], ring)
    marks = integers.equal(counts, kernels.reshape(wanted, (-1, 1, *one)))
    values = integers.total(integers.multiply(marks, integers.reshape(x, (*before, 1, length, *after))), axis + 1)
    places = kernels.reshape(kernels.cast(line, ring) * numbers.scale, (length, *one))
    return values, integers.total(integers.multiply(marks, places), axis + 1)


# --- rounding


def floor(numbers: Numbers, x: Integers) -> Integers:
    """Round down to an integer."""
    return integers.multiply(integers.floor_divide(x, numbers.scale), numbers.scale)


def trunc(numbers: Numbers, x: Integers) -> Integers:
    """Round towards 0 to an integer."""
    return integers.multiply(_round_quotient(x, numbers.scale, "trunc"), numbers.scale)


def nearest(numbers: Numbers, x: Integers, decimals: int = 0, **_options: object) -> Integers:
    """Round to the nearest integer, or number of decimals; a half to the even one."""
    unit, rest = divmod(numbers.scale * 10 ** max(0, -decimals), 10 ** max(0, decimals))
    if rest:
        refuse("rounding to decimals that the precision does not have", "use fewer decimals, or base=10")
    found = integers.floor_divide(integers.add(x, unit // 2), unit)
    if unit % 2:
        return integers.multiply(found, unit)
    half = integers.equal(integers.sub(integers.multiply(found, unit), x), unit // 2)
    odd = integers.sub(found, integers.multiply(integers.floor_divide(found, 2), 2))
    return integers.multiply(integers.sub(found, integers.multiply(half, odd)), unit)


def round_quotients(numbers: Numbers, x: Integers, divisor: Integers, rounding: str) -> Integers:
    """Divide by a public number, and round to an integer: "floor" or "trunc"."""
    return integers.multiply(_round_quotient(x, _find_divisor(numbers, x, divisor), rounding), numbers.scale)


def _remainder(rounding: str) -> Function:
    """Return the rule for the remainder of a division by a public number, with its sign or that of the dividend."""

    def remain(numbers: Numbers, x: Integers, other: Integers) -> Integers:
        divisor = _find_divisor(numbers, x, other)
        return integers.sub(x, integers.multiply(_round_quotient(x, divisor, rounding), divisor))

    return remain


def _find_divisor(numbers: Numbers, x: Integers, divisor: Integers) -> int:
    """Return a public divisor, the same for all elements, as a scaled integer."""
    advice = "divide first, then round: `(x / y).floor()`"
    if integers.is_shared(divisor) or not hasattr(x, "shape"):
        refuse("rounding a quotient of shared numbers", advice)
    number = numbers.of(divisor) if isinstance(divisor, int | float) else _find_same(divisor)
    if number is None:
        refuse("rounding quotients of different divisors", advice)
    if not number:
        raise PrecisionError.division_by_zero()
    return number


def _round_quotient(x: Integers, divisor: int, rounding: str) -> Integers:
    if divisor < 0:
        x, divisor = integers.neg(x), -divisor
    if rounding == "floor":
        return integers.floor_divide(x, divisor)
    if rounding != "trunc":
        raise PrecisionError.unknown_method("a quotient", rounding)
    positive = integers.relu(x)
    return integers.sub(*[integers.floor_divide(part, divisor) for part in (positive, integers.sub(positive, x))])


def _find_same(x: Integers) -> int | None:
    """Return the element of a tensor whose elements are all the same."""
    first = int(integers.flatten(x)[0])
    return first if bool((x == first).all()) else None


ROUNDING: dict[str, Function] = {
    "floor": floor,
    "ceil": lambda numbers, x: integers.neg(floor(numbers, integers.neg(x))),
    "trunc": trunc,
    "fix": trunc,
    "round": nearest,
    "floor_divide": lambda numbers, x, other: round_quotients(numbers, x, other, "floor"),
    "remainder": _remainder("floor"),
    "fmod": _remainder("trunc"),
}
