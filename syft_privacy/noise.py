"""Discrete Gaussian noise from the generator of the operating system, exact: no float is involved.

The sampler is that of Canonne, Kamath and Steinke 2020 (arXiv 2004.00010), for whole standard deviations and many
samples at a time. A float Gaussian is not private: its low digits reveal what it was added to (Mironov 2012).
"""

from __future__ import annotations

import math
import secrets

import numpy as np
import numpy.typing as npt

from syft_privacy.arguments import IntegerArray, to_whole

LARGEST_SIGMA = 1 << 26
"""The largest standard deviation: squares of what is accepted with a probability above 2^-690 fit into 64 bits."""
_FAR = np.int64(1 << 31)
_BLOCK = 1 << 15


def _expand_reciprocal_of_e(words: int) -> list[np.uint64]:
    """Return the binary digits of 1/e = Σ (-1)^k / k!, 64 at a time."""
    spare = 64
    term, total, k = 1 << 64 * words + spare, 0, 0
    while term:
        total += -term if k % 2 else term
        k += 1
        term //= k
    total >>= spare
    return [np.uint64(total >> 64 * word & (1 << 64) - 1) for word in reversed(range(words))]


_RECIPROCAL_OF_E = _expand_reciprocal_of_e(8)
"""The first 512 binary digits; all of them are drawn with a probability of 2^-512."""


def discrete_gaussian(sigma: int, shape: tuple[int, ...]) -> IntegerArray:
    """Draw integers x with probabilities in proportion to exp(-x² / 2σ²)."""
    sigma = to_whole(sigma, "sigma", 1)
    if sigma > LARGEST_SIGMA:
        raise ValueError(f"cannot draw noise: 'sigma' is above {LARGEST_SIGMA}; use larger steps")
    coins, count = _Coins(), math.prod(shape)
    found, total = [np.empty(0, np.int64)], 0
    while total < count:
        drawn = _draw_laplace(coins, sigma, 5 * (count - total) // 2 + 32)
        # Accept y with the probability exp(-(|y| - σ)² / 2σ²).
        distance = np.abs(np.abs(drawn) - sigma)
        near = distance < _FAR
        drawn, distance = drawn[near], distance[near]
        accepted = drawn[coins.flip_exponential(distance**2, 2 * sigma**2)]
        found.append(accepted)
        total += len(accepted)
    return np.concatenate(found)[:count].reshape(shape)


def _draw_laplace(coins: _Coins, scale: int, attempts: int) -> IntegerArray:
    """Try to draw integers with probabilities in proportion to exp(-|x| / scale); return those that succeed."""
    rest = coins.draw_below(scale, attempts)
    rest = rest[coins.flip_exponential(rest, scale)]
    size = rest + scale * coins.count_successes(len(rest))
    negative = coins.draw_below(2, len(size)).astype(bool)
    kept = ~(negative & (size == 0))  # Otherwise 0 would be drawn twice as often.
    signed: IntegerArray = np.where(negative, -size, size)[kept]
    return signed


class _Coins:
    """Exact coins and dice, many at a time, from random bytes of the operating system; no byte is used twice."""

    def __init__(self) -> None:
        self._bytes, self._used = b"", 0

    def draw_below(self, limit: int, count: int) -> IntegerArray:
        if limit & (limit - 1) == 0:  # A power of two: some of the binary digits.
            digits: IntegerArray = self._draw_words(count).view("<i8") & np.int64(limit - 1)
            return digits
        end = np.uint64((1 << 64) // limit * limit - 1)  # Beyond it, small remainders would be more frequent.
        drawn = self._draw_words(count)
        while (above := drawn > end).any():
            drawn = drawn.copy()
            drawn[above] = self._draw_words(int(above.sum()))
        found: IntegerArray = (drawn % np.uint64(limit)).astype(np.int64)
        return found

    def count_successes(self, count: int) -> IntegerArray:
        """Draw how often a coin that succeeds with the probability 1/e does so before it first fails."""
        found = np.zeros(count, np.int64)
        alive = np.arange(count)
        while len(alive):
            alive = alive[self._flip_reciprocal_of_e(len(alive))]
            found[alive] += 1
        return found

    def flip_exponential(self, numerators: IntegerArray, denominator: int) -> npt.NDArray[np.bool_]:
        wholes, rest = np.divmod(numerators, denominator)
        succeeds = self._flip_fraction(rest, denominator)
        while True:
            alive = np.flatnonzero(succeeds & (wholes > 0))
            if not len(alive):
                return succeeds
            succeeds[alive] = self._flip_reciprocal_of_e(len(alive))
            wholes[alive] -= 1

    def _flip_fraction(self, numerators: IntegerArray, denominator: int) -> npt.NDArray[np.bool_]:
        """Flip coins that succeed with the probability exp(-γ), for γ = numerator / denominator from 0 to 1.

        The first k for which a coin of the probability γ/k fails is odd with this probability.
        """
        succeeds = np.zeros(len(numerators), bool)
        alive, k = np.arange(len(numerators)), 1
        while len(alive):
            goes_on = self.draw_below(denominator, len(alive)) < numerators[alive]
            if k > 1:
                goes_on &= self.draw_below(k, len(alive)) == 0
            if k % 2:
                succeeds[alive[~goes_on]] = True
            alive, k = alive[goes_on], k + 1
        return succeeds

    def _flip_reciprocal_of_e(self, count: int) -> npt.NDArray[np.bool_]:
        """Flip coins that succeed with the probability 1/e: compare random binary digits with those of 1/e."""
        succeeds, undecided = np.zeros(count, bool), np.arange(count)
        for digits in _RECIPROCAL_OF_E:  # In most cases, the first 64 digits decide.
            drawn = self._draw_words(len(undecided))
            succeeds[undecided[drawn < digits]] = True
            undecided = undecided[drawn == digits]
            if not len(undecided):
                break
        return succeeds

    def _draw_words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return random words of 64 bits; they are fetched in blocks, because each call takes a while."""
        start, self._used = self._used, self._used + 8 * count
        if self._used > len(self._bytes):
            self._bytes = secrets.token_bytes(max(8 * count, _BLOCK))
            start, self._used = 0, 8 * count
        return np.frombuffer(self._bytes, "<u8", count, start)
