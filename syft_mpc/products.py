"""Matrix products of integers: each process uses the fastest of several ways for each size.

Which one is fastest depends on the processor. All of them give the same integers. The environment variable
``SYFT_PRODUCTS`` names the one to use always, for tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from syft_mpc.kernels import Array

Product: TypeAlias = "Callable[[Array, Array], Array]"
DIGITS = "digits"
"""The way that multiplies digits as floats: see Note [Digits]. It needs more steps, and the fastest functions."""
SMALL, MEDIUM = 1 << 19, 1 << 23
"""Size, in products of elements, of the part that is measured: to find the fastest way other than by digits, and
to compare it with digits.
"""
LEAST = 1 << 17
"""Minimum size, in products of elements, of a product that is computed by digits."""
LONGEST = 1 << 10
"""All lengths from this one on belong to one class."""
_clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter


class FastestProduct:
    """Multiply matrices, or stacks of them, in the way that was fastest for the first product of the same class.

    A class is a dtype, an order of axes in memory, and the powers of two up to which the lengths are.
    """

    def __init__(self, ways: Mapping[str, Product]) -> None:
        self.ways = ways
        self._names = tuple(ways)

    def __call__(self, x: Array, y: Array) -> Array:
        """Multiply arrays with at least two axes."""
        return self.ways[self.choose(x, y)](x, y)

    def choose(self, x: Array, y: Array) -> str:
        """Return the name of the way for a product; measure it the first time."""
        forced = os.environ.get("SYFT_PRODUCTS", "")
        if forced:
            if forced not in self.ways:
                raise ValueError(f"cannot multiply by {forced!r}: SYFT_PRODUCTS must be one of {', '.join(self.ways)}")
            return forced
        lengths = (x.shape[-2], x.shape[-1], y.shape[-1])
        sizes = [min(length, LONGEST).bit_length() for length in lengths]
        key = (self._names, x.dtype, x.ndim, y.ndim, *sizes, _is_transposed(x), _is_transposed(y))
        found = _chosen.get(key)
        if found is None:
            found = _chosen[key] = self._measure(x, y)
        return found

    def _measure(self, x: Array, y: Array) -> str:
        direct = [name for name in self.ways if name != DIGITS]
        best = self._find_fastest(direct, x, y, SMALL)
        if DIGITS in self.ways and x.shape[-2] * x.shape[-1] * y.shape[-1] >= LEAST:
            best = self._find_fastest([best, DIGITS], x, y, MEDIUM)
        return best

    def _find_fastest(self, names: list[str], x: Array, y: Array, most: int) -> str:
        lengths = [x.shape[-2], x.shape[-1], y.shape[-1]]
        while prod(lengths) > most:
            longest = lengths.index(max(lengths))
            lengths[longest] = (lengths[longest] + 1) // 2
        rows, terms, columns = map(slice, lengths)
        x, y = x[(slice(4),) * (x.ndim - 2) + (rows, terms)], y[(slice(4),) * (y.ndim - 2) + (terms, columns)]

        def measure(name: str) -> float:
            times = []
            for _ in range(3):
                start = _clock()
                self.ways[name](x, y)
                times.append(_clock() - start)
            return min(times)

        return min(names, key=measure)


_chosen: dict[tuple[object, ...], str] = {}
"""The fastest way of this process, by class."""


def _is_transposed(x: Array) -> bool:
    return bool(x.shape[-1] > 1 and x.shape[-2] > 1 and x.strides[-2] < x.strides[-1])
