"""Check the arguments of the analysis; errors name the argument, never a value in it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
IntegerArray: TypeAlias = npt.NDArray[np.int64]
LARGEST = float(1 << 53)
"""Counts and labels up to this number are exact in a float."""


def to_counts(votes: npt.ArrayLike, name: str = "votes", least: int = 2) -> Floats:
    """Return counts of votes, one for each class along the last axis; raise unless they are whole and not negative."""
    counts = _to_numbers(votes, name)
    if counts.ndim not in (1, 2) or counts.shape[-1] < least:
        raise ValueError(
            f"cannot analyse {name!r}: it has the shape {counts.shape}; "
            f"give one count for each of {least} or more classes, or a row of counts for each query"
        )
    if not _are_whole(counts) or bool(np.any(counts < 0)):
        raise ValueError(
            f"cannot analyse {name!r}: it has negative, fractional or too large counts; give numbers of votes"
        )
    return counts


def to_labels(labels: npt.ArrayLike, name: str, classes: int | None = None, least: int = 0) -> IntegerArray:
    """Return class labels as integers; raise unless they are from ``least`` on, and below ``classes`` if given."""
    found = _to_numbers(labels, name)
    if not _are_whole(found) or bool(np.any(found < least)) or (classes is not None and bool(np.any(found >= classes))):
        last = "" if classes is None else f" to {classes - 1}"
        raise ValueError(
            f"cannot use {name!r}: it has labels outside of the classes; give whole numbers from {least}{last}"
        )
    return found.astype(np.int64)


def to_positions(indices: npt.ArrayLike, name: str, queries: int) -> IntegerArray:
    """Return positions of queries as integers; raise unless each is that of a query."""
    found = _to_numbers(indices, name)
    if found.ndim != 1 or not _are_whole(found) or bool(np.any((found < 0) | (found >= queries))):
        raise ValueError(
            f"cannot use {name!r}: expected the positions of answered queries, a list of whole numbers from 0 to "
            f"{queries - 1}; give class labels as `labels=`"
        )
    return found.astype(np.int64)


def to_mask(answered: npt.ArrayLike | None, name: str, queries: int) -> npt.NDArray[np.bool_]:
    """Return which queries were answered, all by default; raise unless there is a truth value for each query."""
    if answered is None:
        return np.ones(queries, dtype=bool)
    found = np.asarray(answered)
    if found.dtype != np.bool_ or found.shape != (queries,):
        raise ValueError(f"cannot use {name!r}: expected one True or False for each of the {queries} queries")
    return found


def to_orders(orders: npt.ArrayLike, name: str = "orders") -> Floats:
    """Return Rényi orders; raise unless all of them are finite and above 1."""
    found = _to_numbers(orders, name)
    if found.ndim > 1 or found.size == 0 or not bool(np.all(np.isfinite(found) & (found > 1))):
        raise ValueError(f"cannot use {name!r}: expected a number above 1, or a list of them")
    return found


def to_order(order: float, name: str = "order") -> float:
    """Return one Rényi order; raise unless it is finite and above 1."""
    found = to_orders(order, name)
    if found.ndim:
        raise ValueError(f"cannot use {name!r}: expected one number above 1")
    return float(found)


def to_positive(number: float, name: str) -> float:
    """Return a number; raise unless it is positive, and its square neither overflows nor vanishes."""
    found = _to_numbers(number, name)
    if found.ndim or not 1e-100 < float(found) < 1e100:
        raise ValueError(f"cannot use {name!r}: expected a positive number, from 1e-100 to 1e100")
    return float(found)


def to_delta(delta: float) -> float:
    """Return the δ of a guarantee; raise unless it is between 0 and 1."""
    found = _to_numbers(delta, "delta")
    if found.ndim or not 0 < float(found) < 1:
        raise ValueError("cannot use 'delta': expected a number above 0 and below 1; choose less than 1 / people")
    return float(found)


def to_probability(number: float, name: str) -> float:
    """Return a probability; raise unless it is from 0 to 1."""
    found = _to_numbers(number, name)
    if found.ndim or not 0 <= float(found) <= 1:
        raise ValueError(f"cannot use {name!r}: expected a probability from 0 to 1")
    return float(found)


def to_whole(number: float, name: str, least: int = 0) -> int:
    """Return a whole number; raise unless it is at least ``least``."""
    found = _to_numbers(number, name)
    if found.ndim or not _are_whole(found) or float(found) < least:
        raise ValueError(f"cannot use {name!r}: expected a whole number from {least} on")
    return int(found)


def _to_numbers(values: npt.ArrayLike, name: str) -> Floats:
    try:
        found = np.asarray(_to_plain(values))
    except (ValueError, TypeError, NotImplementedError):  # Lists of different lengths, or a tensor without elements.
        found = np.asarray(None)
    if found.dtype.kind not in "iuf":
        raise TypeError(
            f"cannot use {name!r}: expected numbers, in an array, a tensor or a list of lists of equal length"
        )
    return found.astype(np.float64)


def _to_plain(values: Any) -> npt.ArrayLike:
    """Return a tensor in a form that numpy can read; it has no bfloat16."""
    if not hasattr(values, "cpu"):
        return values  # type: ignore[no-any-return]  # a list or an array
    plain = values.detach().cpu()
    return plain.float() if "bfloat16" in str(plain.dtype) else plain  # type: ignore[no-any-return]  # a tensor


def _are_whole(numbers: Floats) -> bool:
    return bool(np.all(np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) <= LARGEST)))
