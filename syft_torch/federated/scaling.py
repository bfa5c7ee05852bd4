"""Scale and split data on workers: only sums and counts leave them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial

import torch

from syft_core.values import Tensor
from syft_torch.federated.dataset import FederatedDataset
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.sums import sum_columns


@dataclass(frozen=True)
class Scaling:
    """The mean and the deviation of each column over all workers, with which inputs are standardized."""

    mean: Tensor
    deviation: Tensor
    samples: int

    @classmethod
    def fit(cls, data: FederatedDataset, reason: str = "", patience: float = 600.0) -> Scaling:
        """Compute both from one sum per worker: count, sum and squares of each column; missing values do not count.

        On private data, the sums leave if their owner allows it: with ``reason``, each owner is asked, and has
        ``patience`` seconds to decide.
        """
        _require_federated(data)
        count, mean, squares = sum_columns([dataset.inputs[0] for dataset in data], reason, patience)
        deviation = (squares / count).sqrt()
        dtype = torch.get_default_dtype()
        # A column with a single value stays 0.
        return cls(mean.to(dtype), deviation.where(deviation > 0, 1.0).to(dtype), int(count.max()))

    def apply(self, data: FederatedDataset) -> FederatedDataset:
        """Return the data with scaled inputs, on the same workers."""
        _require_federated(data)
        return FederatedDataset([dataset.derive(self._scale) for dataset in data])

    def _scale(self, inputs: Tensor, *others: Tensor) -> list[Tensor]:
        place = inputs.location
        return [(inputs - self.mean.send(place)) / self.deviation.send(place), *others]


def train_test_split(
    data: FederatedDataset, test_size: float = 0.25, seed: int = 0
) -> tuple[FederatedDataset, FederatedDataset]:
    """Split the rows on every worker at random; return the training data and the test data.

    The same seed gives the same split, which differs between workers.
    """
    _require_federated(data)
    if not 0 < test_size < 1:
        raise FederatedError.test_size(test_size)
    for worker in data.workers:
        if any(not 0 < round(len(dataset) * test_size) < len(dataset) for dataset in data.by_worker[worker]):
            raise FederatedError.small_split(worker, test_size)
    halves = [
        FederatedDataset([dataset.derive(partial(_choose_rows, test_size, seed, is_test)) for dataset in data])
        for is_test in (False, True)
    ]
    return halves[0], halves[1]


def _require_federated(data: object) -> None:
    if not isinstance(data, FederatedDataset):
        raise FederatedError.not_federated(type(data).__name__)


def _choose_rows(test_size: float, seed: int, is_test: bool, *parts: Tensor) -> list[Tensor]:
    worker, rows = parts[-1].location, len(parts[-1])
    digest = hashlib.sha256(f"{seed}/{worker.id}".encode()).digest()
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(int.from_bytes(digest[:7], "big")))
    split = round(rows * test_size)
    chosen = (order[:split] if is_test else order[split:]).sort().values.send(worker)
    return [part.index_select(0, chosen) for part in parts]
