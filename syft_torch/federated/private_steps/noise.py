"""Random numbers of private steps: Poisson batches and Gaussian noise, from AES in counter mode with a secret key."""

from __future__ import annotations

import math

import numpy as np
import torch

from syft_core.values import Tensor
from syft_mpc.prg import Stream, new_seed

_DIGITS = 53
_MASK = (1 << _DIGITS) - 1
GRID = 2.0**-20
"""The distance of released values, in standard deviations of the noise."""


class NoiseStream:
    """The random numbers of one training; nobody else knows its key, which is not kept."""

    def __init__(self) -> None:
        self._stream = Stream(new_seed(), b"private steps")
        self._buffer = torch.empty(0, dtype=torch.int64)

    def draw_batch(self, samples: int, rate: float) -> Tensor:
        """Return the places of a batch in which each sample is with the same probability, independently."""
        limit = round(rate * (1 << _DIGITS))
        return (self._draw_words(samples).bitwise_and_(_MASK) < limit).nonzero().squeeze(1)

    def draw_gaussian(self, count: int, sigma: float = 1.0) -> Tensor:
        """Draw Gaussian numbers in float64, by the method of Box and Muller.

        Uniform numbers have 53 digits and are never 0, so the tails end at 8.6 standard deviations.
        """
        half = (count + 1) // 2
        words = self._draw_words(2 * half)
        words[:half].bitwise_and_(_MASK)
        found = words.double()
        radius = found[:half].mul_(2.0**-_DIGITS).add_(2.0 ** -(_DIGITS + 1))
        squares = radius.numpy()  # numpy's logarithm and root are faster than torch's.
        np.log(squares, out=squares)
        squares *= -2.0 * sigma**2
        np.sqrt(squares, out=squares)
        angle = found[half:].mul_(math.pi * 2.0**-63)
        cosine = angle.cos()
        torch.mul(angle.sin_(), radius, out=angle)
        radius.mul_(cosine)
        return found[:count]

    def add_noise(self, values: Tensor, sigma: float, divisor: float = 1.0) -> Tensor:
        """Return values with Gaussian noise, in float64, rounded to a grid that hides the low digits of both; divided.

        The grid is so fine that it does not matter for training, and its distance is public.
        """
        step = sigma * GRID
        found = self.draw_gaussian(values.numel(), 1 / GRID)
        return found.add_(values, alpha=1 / step).round_().mul_(step / divisor)

    def _draw_words(self, count: int) -> Tensor:
        """Draw integers of 64 random bits, which are overwritten by the next ones."""
        if count > len(self._buffer):
            self._buffer = torch.empty(count, dtype=torch.int64)
        words = self._buffer[:count]
        if count:
            self._stream.fill(memoryview(words.numpy()).cast("B"))
        return words
