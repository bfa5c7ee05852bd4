"""Random numbers of private steps: Poisson batches and Gaussian noise, from AES in counter mode with a secret key."""

from __future__ import annotations

import math

import torch

from syft_core.values import Tensor
from syft_mpc.prg import Stream, new_seed

_DIGITS = 53
GRID = 2.0**-20
"""The distance of released values, in standard deviations of the noise."""


class NoiseStream:
    """The random numbers of one training; nobody else knows its key, which is not kept."""

    def __init__(self) -> None:
        self._stream = Stream(new_seed(), b"private steps")

    def draw_batch(self, samples: int, rate: float) -> Tensor:
        """Return the places of a batch in which each sample is with the same probability, independently."""
        limit = round(rate * (1 << _DIGITS))
        return (self._draw_integers(samples) < limit).nonzero().squeeze(1)

    def draw_gaussian(self, count: int) -> Tensor:
        """Draw standard Gaussian numbers in float64, by the method of Box and Muller.

        Uniform numbers have 53 digits and are never 0, so the tails end at 8.6 standard deviations.
        """
        half = (count + 1) // 2
        uniform = (self._draw_integers(2 * half).double() + 0.5).mul_(2.0**-_DIGITS)
        radius = uniform[:half].log_().mul_(-2.0).sqrt_()
        angle = uniform[half:].mul_(2.0 * math.pi)
        found = torch.empty(2 * half, dtype=torch.float64)
        torch.mul(radius, angle.cos(), out=found[:half])
        torch.mul(radius, angle.sin_(), out=found[half:])
        return found[:count]

    def add_noise(self, values: Tensor, sigma: float) -> Tensor:
        """Return values with Gaussian noise, in float64, rounded to a grid that hides the low digits of both."""
        step = sigma * GRID
        noisy = self.draw_gaussian(values.numel()).mul_(sigma).add_(values)
        return noisy.div_(step).round_().mul_(step)

    def _draw_integers(self, count: int) -> Tensor:
        """Draw integers of 53 binary digits."""
        if not count:
            return torch.empty(0, dtype=torch.int64)
        words = torch.frombuffer(self._stream.take(8 * count), dtype=torch.int64)
        return words.bitwise_and_((1 << _DIGITS) - 1)
