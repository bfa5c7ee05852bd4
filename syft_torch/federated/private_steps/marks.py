"""Marks: where the samples of a batch are in a tensor, or how a number depends on their count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Batched:
    """A tensor in which each sample has its own indices along ``dim``, and nothing at others."""

    dim: int
    count: int = 1
    """Number of consecutive indices that a sample has."""

    def at(self, dim: int) -> Batched:
        """Return the mark of a tensor that has the samples in another dimension."""
        return Batched(dim, self.count)


@dataclass(frozen=True)
class Reduced:
    """A mean or a sum over the samples, or what follows from it linearly."""

    kind: str


@dataclass(frozen=True)
class Same:
    """What is the same for all samples and lengths of batches: weights, constants, and numbers that follow."""


@dataclass(frozen=True)
class LengthNumber:
    """A number that depends on the length of the batch."""

    is_length: bool
    """Whether it is the length itself."""


Mark: TypeAlias = Batched | Reduced | Same | LengthNumber
LENGTH_OF_TRIAL = 13
"""The length of the batch with which forms are followed; the rules do not depend on it."""
SHARED, LENGTH, MIXED = Same(), LengthNumber(is_length=True), LengthNumber(is_length=False)


class CoupledError(Exception):
    """A step may let samples depend on each other."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why, self.advice = why, advice


def is_number_mark(mark: object) -> bool:
    """Return whether a mark is that of a number that depends on the length of the batch."""
    return isinstance(mark, LengthNumber)
