"""Rules of encoded numbers for further functions of numpy; importing this module registers them."""

from __future__ import annotations

from syft_core.exceptions import OperationNotAllowedError
from syft_mpc import integers
from syft_mpc.arithmetic import absolute, mean
from syft_mpc.fixed_precision import FixedPrecisionTensor, convert
from syft_mpc.integers import Integers
from syft_mpc.numbers import Numbers
from syft_mpc.order import nearest, pick


def sort(numbers: Numbers, x: Integers, axis: int | None = -1, **options: object) -> Integers:
    """Sort along an axis."""
    _require_no(options)
    return pick(numbers, *_flatten_unless(x, axis))[0]


def argsort(numbers: Numbers, x: Integers, axis: int | None = -1, **options: object) -> Integers:
    """Return the places of the numbers in the order of their size, as numbers."""
    _require_no(options)
    return pick(numbers, *_flatten_unless(x, axis))[1]


def median(
    numbers: Numbers, x: Integers, axis: int | None = None, keepdims: bool = False, **options: object
) -> Integers:
    """Return the median along an axis: of an even count, the mean of the two in the middle."""
    _require_no(options)
    line, place = _flatten_unless(x, axis)
    length = integers.shape_of(line)[integers.find_axis(line, place)]
    middle = pick(numbers, line, place, range((length - 1) // 2, length // 2 + 1))[0]
    found = numbers.over(integers.total(middle, place, keepdims), 2 - length % 2)
    return integers.reshape(found, (1,) * len(integers.shape_of(x))) if axis is None and keepdims else found


def _require_no(options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value not in (None, False)]
    if given:
        raise OperationNotAllowedError.refused_by(
            FixedPrecisionTensor.__name__, "sort", f"it has no rule for the option {given[0]!r}; leave it out"
        )


def _flatten_unless(x: Integers, axis: int | None) -> tuple[Integers, int]:
    return (integers.flatten(x), 0) if axis is None else (x, axis)


FixedPrecisionTensor.add_rules(
    {
        "sort": sort,
        "argsort": argsort,
        **dict.fromkeys(("rint", "around"), nearest),
        "fabs": absolute,
        "average": mean,
    },
    exact=True,
)
FixedPrecisionTensor.add_rules({"median": median})
FixedPrecisionTensor.add_answers({"astype": convert})
