"""Encoding: real numbers as integers of 64 bits with 32 fractional bits, so that sums are exact in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Encoded: TypeAlias = npt.NDArray[np.uint64]
Decoded: TypeAlias = npt.NDArray[np.float64]
SCALE = 2.0**32
BLOCK = 1 << 16
"""How many numbers are processed at once: they fit a processor's cache."""


def limit_of(size: int) -> float:
    """Return the bound below which every number must be, so that a sum of ``size`` workers cannot overflow."""
    return 2.0**63 / size / SCALE


def encode(parts: Sequence[npt.NDArray[np.generic]], factor: float, weight: float, size: int) -> tuple[Encoded, bool]:
    """Return the encoded numbers of flat arrays, each times ``factor``, then the weight.

    If a number is not finite or too large for a sum of ``size`` workers, all but the weight are zeros, and the second
    result is False: a refusal would reveal one bit about the data for each model.
    """
    length = sum(map(len, parts))
    encoded = np.zeros(length + 1, np.uint64)
    limit, start, fits = limit_of(size), 0, True
    for block in _iter_blocks(parts):
        values = block.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            values *= factor
            fits = fits and bool(np.all(np.abs(values) < limit))  # False for a number that is not one.
            if fits:
                values *= SCALE
                encoded[start : start + len(values)] = np.rint(values).astype(np.int64).view(np.uint64)
        start += len(values)
    if not fits:
        encoded[:] = 0
    encoded[length] = np.int64(round(weight * SCALE)).view(np.uint64)
    return encoded, fits


def decode(total: Encoded) -> Decoded:
    """Return the numbers of an encoded sum."""
    return total.view(np.int64) / SCALE


def _iter_blocks(parts: Sequence[npt.NDArray[np.generic]]) -> Iterator[npt.NDArray[np.generic]]:
    for part in parts:
        for start in range(0, len(part), BLOCK):
            yield part[start : start + BLOCK]
