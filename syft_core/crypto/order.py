"""Rules of fixed-precision numbers for sorting and rounding: exact, from comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.crypto import integers
from syft_core.crypto.integers import Integers
from syft_core.crypto.kernels import dtype_name
from syft_core.crypto.layers import NeuralNumbers
from syft_core.exceptions import OperationNotAllowedError, PrecisionError
from syft_core.hook.overload import overloaded


class OrderedNumbers(NeuralNumbers):
    """The rules that ``FixedPrecisionTensor`` inherits."""

    # --- sorting

    @overloaded.method
    def sort_dim(
        self, _self: Integers, dim: int = -1, descending: bool = False, *, stable: bool = True
    ) -> tuple[Integers, Integers]:
        """Sort along an axis as torch does: return the numbers, and where they were, as numbers."""
        return self._pick(_self, dim, None, descending)

    @overloaded.method
    def topk(
        self, _self: Integers, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
    ) -> tuple[Integers, Integers]:
        """Return the k largest or smallest numbers along an axis, in this order, and where they were."""
        return self._pick(_self, dim, range(k), largest)

    @overloaded.method
    def kthvalue(self, _self: Integers, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Integers, Integers]:
        """Return the k-th smallest number along an axis, counted from 1, and where it was."""
        return self._pick_one(_self, dim, k - 1, keepdim)

    @overloaded.method
    def median_dim(self, _self: Integers, dim: int, keepdim: bool = False) -> tuple[Integers, Integers]:
        """Return the lower median along an axis, as torch does, and where it was."""
        length = integers.shape_of(_self)[integers.find_axis(_self, dim)] if integers.shape_of(_self) else 1
        return self._pick_one(_self, dim, (length - 1) // 2, keepdim)

    @overloaded.method
    def lower_median(self, _self: Integers) -> Integers:
        """Return the lower median of all numbers, as torch does."""
        flat = integers.flatten(_self)
        return self._pick_one(flat, 0, (integers.shape_of(flat)[0] - 1) // 2, False)[0]

    @overloaded.method
    def sort(self, _self: Integers, axis: int | None = -1, **options: object) -> Integers:
        """Sort along an axis as numpy does."""
        self._require_no(options)
        return self._pick(*_flatten_unless(_self, axis))[0]

    @overloaded.method
    def argsort(self, _self: Integers, axis: int | None = -1, **options: object) -> Integers:
        """Return the places of the numbers in the order of their size, as numbers."""
        self._require_no(options)
        return self._pick(*_flatten_unless(_self, axis))[1]

    @overloaded.method
    def median(self, _self: Integers, axis: int | None = None, keepdims: bool = False, **options: object) -> Integers:
        """Return the median along an axis as numpy does: of an even count, the mean of the two in the middle."""
        self._require_no(options)
        x, axis = _flatten_unless(_self, axis)
        length = integers.shape_of(x)[integers.find_axis(x, axis)]
        middle = self._pick(x, axis, range((length - 1) // 2, length // 2 + 1))[0]
        if keepdims and len(integers.shape_of(x)) != len(integers.shape_of(_self)):
            self._refuse("the median of all elements with keepdims")
        return self.numbers.over(integers.total(middle, axis, keepdims), 2 - length % 2)

    def _require_no(self, options: dict[str, object]) -> None:
        given = [name for name, value in options.items() if value not in (None, False)]
        if given:
            raise OperationNotAllowedError.refused_by(
                type(self).__name__, "sort", f"it has no rule for the option {given[0]!r}; leave it out"
            )

    def _pick_one(self, x: Integers, dim: int, place: int, keepdim: bool) -> tuple[Integers, Integers]:
        values, places = self._pick(x, dim, range(place, place + 1))
        if keepdim or not integers.shape_of(x):
            return values, places
        shape = list(integers.shape_of(x))
        del shape[integers.find_axis(x, dim)]
        return integers.reshape(values, shape), integers.reshape(places, shape)

    def _pick(
        self, x: Integers, dim: int, ranks: Sequence[int] | None = None, descending: bool = False
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
        wanted = kernels.cast(line[ranks.start : ranks.stop], ring)  # type: ignore[attr-defined]  # always a range
        marks = integers.equal(counts, kernels.reshape(wanted, (-1, 1, *one)))
        values = integers.total(integers.multiply(marks, integers.reshape(x, (*before, 1, length, *after))), axis + 1)
        numbers = kernels.reshape(kernels.cast(line, ring) * self.scale, (length, *one))
        return values, integers.total(integers.multiply(marks, numbers), axis + 1)

    # --- rounding

    @overloaded.method
    def floor(self, _self: Integers) -> Integers:
        """Round down to an integer."""
        return self._floor(_self)

    @overloaded.method
    def ceil(self, _self: Integers) -> Integers:
        """Round up to an integer."""
        return integers.neg(self._floor(integers.neg(_self)))

    @overloaded.method
    def trunc(self, _self: Integers) -> Integers:
        """Round towards 0 to an integer."""
        return integers.multiply(_round_quotient(_self, self.scale, "trunc"), self.scale)

    fix = trunc

    @overloaded.method
    def frac(self, _self: Integers) -> Integers:
        """Return the fraction, with the sign of the number."""
        whole = integers.multiply(_round_quotient(_self, self.scale, "trunc"), self.scale)
        return integers.sub(_self, whole)

    @overloaded.method
    def round(self, _self: Integers, decimals: int = 0, **_options: object) -> Integers:
        """Round to the nearest integer, or number of decimals; a half to the even one."""
        unit, rest = divmod(self.scale * 10 ** max(0, -decimals), 10 ** max(0, decimals))
        if rest:
            self._refuse("rounding to decimals that the precision does not have")
        nearest = integers.floor_divide(integers.add(_self, unit // 2), unit)
        if unit % 2:
            return integers.multiply(nearest, unit)
        half = integers.equal(integers.sub(integers.multiply(nearest, unit), _self), unit // 2)
        odd = integers.sub(nearest, integers.multiply(integers.floor_divide(nearest, 2), 2))
        return integers.multiply(integers.sub(nearest, integers.multiply(half, odd)), unit)

    rint = around = round

    @overloaded.method
    def floor_divide(self, _self: Integers, other: Integers) -> Integers:
        """Divide by a public number, and round down to an integer."""
        return self._quotient(_self, other, "floor")

    @overloaded.method
    def remainder(self, _self: Integers, other: Integers) -> Integers:
        """Return what remains of a division by a public number, with the sign of that number."""
        return self._remainder(_self, other, "floor")

    mod = remainder

    @overloaded.method
    def fmod(self, _self: Integers, other: Integers) -> Integers:
        """Return what remains of a division by a public number, with the sign of the dividend."""
        return self._remainder(_self, other, "trunc")

    def _quotient(self, x: Integers, divisor: Integers, rounding: str) -> Integers:
        """Divide by a public number and round to an integer, as torch's ``rounding_mode`` says."""
        return integers.multiply(_round_quotient(x, self._find_divisor(x, divisor), rounding), self.scale)

    def _remainder(self, x: Integers, divisor: Integers, rounding: str) -> Integers:
        number = self._find_divisor(x, divisor)
        return integers.sub(x, integers.multiply(_round_quotient(x, number, rounding), number))

    def _find_divisor(self, x: Integers, divisor: Integers) -> int:
        """Return a public divisor, the same for all elements, as a scaled integer."""
        if integers.is_shared(divisor) or not hasattr(x, "shape"):
            self._refuse("rounding a quotient of shared numbers")
        number = self.numbers.of(divisor) if isinstance(divisor, int | float) else _find_same(divisor)
        if number is None:
            self._refuse("rounding quotients of different divisors")
        if not number:
            raise PrecisionError.division_by_zero()
        return number

    def _floor(self, x: Integers) -> Integers:
        return integers.multiply(integers.floor_divide(x, self.scale), self.scale)


def _round_quotient(x: Integers, divisor: int, rounding: str) -> Integers:
    """Divide by an integer, and round as torch's ``rounding_mode`` says."""
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


def _flatten_unless(x: Integers, axis: int | None) -> tuple[Integers, int]:
    return (integers.flatten(x), 0) if axis is None else (x, axis)
