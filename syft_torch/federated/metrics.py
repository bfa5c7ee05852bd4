"""Metrics from counts: each worker counts, and only the counts leave it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from syft_core.values import Nested, Tensor
from syft_torch.federated.dataset import is_remote
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.sums import fetch_released


class Metric(ABC):
    """A function of outputs and targets that is computed from sums of counts; for ``trainer.evaluate`` and pointers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of counts."""

    @abstractmethod
    def count(self, output: Tensor, targets: Tensor) -> Tensor:
        """Return the counts of some samples, as a flat tensor."""

    @abstractmethod
    def summarize(self, counts: Tensor) -> Nested:
        """Return the metric, given the counts of all samples."""

    def __call__(self, output: Tensor, targets: Tensor) -> Tensor:
        """Return the counts as a mean, which workers multiply by the number of samples."""
        return self.count(output, targets) / len(targets)

    def of(
        self,
        output: Tensor | Sequence[Tensor],
        targets: Tensor | Sequence[Tensor],
        reason: str = "",
        patience: float = 600.0,
    ) -> Nested:
        """Compute the metric of tensors, of pointers, or of lists of pointers to several workers.

        On private data, counts leave if their owner allows it: with ``reason``, each owner is asked, and has
        ``patience`` seconds to decide.
        """
        outputs = [output] if isinstance(output, torch.Tensor) else list(output)
        labels = [targets] if isinstance(targets, torch.Tensor) else list(targets)
        if len(outputs) != len(labels) or not outputs:
            raise FederatedError.pairs(len(outputs), len(labels))
        found = [self.count(*pair) for pair in zip(outputs, labels, strict=True)]
        remote = iter(fetch_released([each for each in found if is_remote(each)], reason, patience))
        return self.summarize(sum(next(remote) if is_remote(each) else each for each in found))


@dataclass(frozen=True)
class AUC(Metric):
    """The area under the ROC curve of scores, or of two class scores, for targets 0 and 1.

    Each worker counts both classes in intervals of scores. Scores in the same interval count as equal, so the result is
    exact up to half of the pairs in the same interval.
    """

    bins: int = 1000

    @property
    def size(self) -> int:
        """Two classes, in each interval."""
        return 2 * self.bins

    def count(self, output: Tensor, targets: Tensor) -> Tensor:
        """Count both classes in intervals of the softsign of the score, which keeps the order."""
        scores = output[:, 1] - output[:, 0] if output.dim() == 2 and output.shape[1] == 2 else output.reshape(-1)
        scores = scores.to(torch.float64).nan_to_num()
        places = ((scores / (1 + scores.abs()) + 1) * (self.bins / 2)).to(torch.int64).clamp(0, self.bins - 1)
        ill = targets.reshape(-1).to(torch.float64)
        counts = scores.new_zeros(2, self.bins)
        return counts.scatter_add(1, torch.stack([places, places]), torch.stack([1 - ill, ill])).reshape(-1)

    def summarize(self, counts: Tensor) -> float:
        """Return which share of the pairs of both classes is in the right order; NaN if there is only one class."""
        healthy, ill = counts.round().reshape(2, self.bins)
        below = healthy.cumsum(0) - healthy / 2
        return float((ill * below).sum() / (ill.sum() * healthy.sum()))


@dataclass(frozen=True)
class ConfusionMatrix(Metric):
    """How many samples of each class (rows) were classified as each class (columns).

    Outputs are one score per class or, for two classes, one score, which is compared with ``threshold``.
    """

    classes: int = 2
    threshold: float = 0.0

    @property
    def size(self) -> int:
        """All pairs of classes."""
        return self.classes**2

    def count(self, output: Tensor, targets: Tensor) -> Tensor:
        """Count pairs of classes."""
        has_scores = output.dim() == 2 and output.shape[1] > 1
        guesses = output.argmax(1) if has_scores else output.reshape(-1) > self.threshold
        truth = _one_hot(targets.reshape(-1).to(torch.float64), self.classes)
        return (truth.T @ _one_hot(guesses.to(torch.float64), self.classes)).reshape(-1)

    def summarize(self, counts: Tensor) -> Tensor:
        """Return the matrix."""
        return counts.round().to(torch.int64).reshape(self.classes, self.classes)


def _one_hot(places: Tensor, size: int) -> Tensor:
    numbers = places.new_ones(size).cumsum(0) - 1
    return (places.unsqueeze(1) == numbers).to(torch.float64)
