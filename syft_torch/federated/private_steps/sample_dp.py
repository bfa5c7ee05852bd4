"""SampleDP: how training is made private for each record, as it is given and sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from math import isfinite, sqrt

from syft_core.values import Nested
from syft_torch.federated.errors import FederatedError

LEAST_CLIP = 1e-6
"""The smallest clip: below it, terms that a float32 norm loses would no longer be negligible."""


@dataclass(frozen=True)
class SampleDP:
    """Train so that the weights reveal little about any one record, in the sense of (ε, δ)-differential privacy.

    Each step draws a random batch, scales the gradient of each sample down to the norm ``clip``, and adds Gaussian
    noise with a standard deviation of ``clip * multiplier``. docs/private-training.md says what is promised.
    """

    clip: float
    """The largest norm of the gradient of one sample."""
    multiplier: float
    """The standard deviation of the noise, divided by ``clip``."""
    delta: float
    """The δ of the promise; choose less than 1 / records."""
    rate: float | None = None
    """The probability with which a record is in a batch; None means ``batch_size`` / records, on each worker."""

    def __post_init__(self) -> None:
        for name, (is_valid, advice) in _CHECKS.items():
            value = getattr(self, name)
            is_number = type(value) in (int, float) and isfinite(value)
            if not (is_number and is_valid(value)) and not (name == "rate" and value is None):
                raise FederatedError.privacy(f"{name} is {value!r}", advice)

    @classmethod
    def read(cls, received: Nested) -> SampleDP | None:
        """Invert ``write``; raise for anything else."""
        if received is None:
            return None
        if type(received) is not tuple or len(received) != 4:
            raise FederatedError.settings("privacy", "does not have four numbers")
        return cls(*received)

    def write(self) -> tuple[float | None, ...]:
        """Return the numbers as plain data."""
        return astuple(self)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of a step."""
        return float(self.clip * self.multiplier)

    def plan(self, samples: int, epochs: int, batch_size: int | None) -> Draws:
        """Return how a worker with this number of samples draws its batches."""
        rate = self.rate if self.rate is not None else min(1.0, (batch_size or samples) / samples)
        expected = rate * samples
        most = int(expected + 4 * sqrt(expected)) + 1
        if self.rate is not None and batch_size is not None:
            most = batch_size
        return Draws(rate, epochs * max(1, round(1 / rate)), expected, min(most, samples))


@dataclass(frozen=True)
class Draws:
    """How often a worker draws a batch in a round, and how large batches are."""

    rate: float
    steps: int
    expected: float
    """The expected number of samples in a batch."""
    most: int
    """Number of samples that are computed at once: a larger batch is computed in parts."""


_CHECKS: dict[str, tuple[Callable[[float], bool], str]] = {
    "clip": (lambda value: LEAST_CLIP <= value <= 1e6, f"pass a number from {LEAST_CLIP:g} to 1e6, e.g. 1.0"),
    "multiplier": (lambda value: 0.01 <= value <= 1e6, "pass a number from 0.01 on, e.g. 1.1"),
    "delta": (lambda value: 0 < value < 1, "pass a number between 0 and 1, less than 1 / records, e.g. 1e-5"),
    "rate": (lambda value: 0 < value <= 1, "pass a probability above 0, or None for batch_size / records"),
}
