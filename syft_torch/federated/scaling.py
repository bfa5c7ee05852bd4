"""Scale and split data on workers: only sums and counts leave them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from syft_core.values import Tensor
from syft_torch.federated.arranging import Half, Scale, arrange_there
from syft_torch.federated.dataset import FederatedDataset
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.statistics import find_moments
from syft_torch.federated.sums import Aggregation


@dataclass(frozen=True)
class Scaling:
    """The mean and the deviation of each column over all workers, with which inputs are standardized."""

    mean: Tensor
    deviation: Tensor
    samples: int

    @classmethod
    def fit(
        cls,
        data: FederatedDataset,
        aggregation: Aggregation | None = None,
        reason: str = "",
        patience: float = 600.0,
    ) -> Scaling:
        """Compute both from the count, the sum and the squares of each column; missing values do not count.

        On private data, these sums leave if their owner allows it, see ``fl.sum``.
        """
        _require_federated(data)
        found = find_moments(data, aggregation, reason, patience)
        deviation = (found.squares / found.count).sqrt()
        dtype = torch.get_default_dtype()
        # A column with a single value stays 0.
        return cls(found.mean.to(dtype), deviation.where(deviation > 0, 1.0).to(dtype), int(found.count.max()))

    def apply(self, data: FederatedDataset) -> FederatedDataset:
        """Return the data with scaled inputs, on the same workers."""
        _require_federated(data)
        return FederatedDataset([dataset.derive(self._scale) for dataset in data])

    def _scale(self, inputs: Tensor, *others: Tensor) -> list[Tensor]:
        step = Scale(torch.stack([self.mean, self.deviation]))
        return [*arrange_there(step, [inputs]), *others]


def train_test_split(
    data: FederatedDataset, test_size: float = 0.25, seed: int = 0
) -> tuple[FederatedDataset, FederatedDataset]:
    """Split the rows on every worker at random; return the training data and the test data.

    A worker draws the rows of private data itself, once for each dataset: the split is the same again whatever the
    ``seed``, and another share is refused, because two shares could be compared. Of other data, the same seed gives the
    same split, which differs between workers.
    """
    _require_federated(data)
    if not 0 < test_size < 1:
        raise FederatedError.test_size(test_size)
    for worker in data.workers:
        if any(not 0 < round(len(dataset) * test_size) < len(dataset) for dataset in data.by_worker[worker]):
            raise FederatedError.small_split(worker, test_size)
    steps = [Half(test_size, is_test, seed) for is_test in (False, True)]
    training, testing = [
        FederatedDataset([dataset.derive(partial(_take_half, step)) for dataset in data]) for step in steps
    ]
    return training, testing


def _require_federated(data: object) -> None:
    if not isinstance(data, FederatedDataset):
        raise FederatedError.not_federated(type(data).__name__)


def _take_half(step: Half, *parts: Tensor) -> list[Tensor]:
    return arrange_there(step, parts)
