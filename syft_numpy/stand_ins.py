"""Stand-ins: arrays of a given form whose values are known, in the place of others that may not be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_GOLDEN = 0.6180339887498949


def stand_in(array: Any, number: int) -> Any:
    """Return the stand-in with this number for an array: the same form, other values."""
    made = np.empty_like(array[tuple([slice(None) if stride else slice(1) for stride in array.strides])])
    set_values(made, number)
    return np.broadcast_to(made, array.shape) if made.shape != array.shape else made


def set_values(array: Any, number: int) -> None:
    """Give an array the values of the stand-in with this number."""
    of_floats, of_others = _VALUES[number]
    (of_floats if array.dtype.kind in "fc" else of_others)(array)


def _ones_on_the_diagonal(array: Any) -> None:
    """Fill with what has an inverse and is positive definite, where that is possible; ones where there is no square."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        array[...] = 1
    else:
        array[...] = np.eye(array.shape[-1], dtype=array.dtype)


def _fractions(array: Any) -> None:
    """Fill with numbers between 0 and 1 of which no row is like another, whatever way they are arranged."""
    array[...] = (np.arange(1, array.size + 1) * _GOLDEN % 1).reshape(array.shape)


def _with(number: int) -> Callable[[Any], None]:
    def fill(array: Any) -> None:
        array[...] = np.array(number).astype(array.dtype)  # also of texts, dates and records

    return fill


_VALUES: tuple[tuple[Callable[[Any], None], Callable[[Any], None]], ...] = (
    (_ones_on_the_diagonal, _with(0)),
    (_with(1), _with(1)),
    (_fractions, _with(0)),
    (_with(0), _with(0)),
)
"""What each stand-in holds, if it has fractions and if it has none: indices, divisors, probabilities, matrices."""
STAND_INS = len(_VALUES)
