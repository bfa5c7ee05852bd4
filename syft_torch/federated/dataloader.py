"""FederatedDataLoader: batches of the data of several workers, each of which stays where it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch

from syft_core.location import WorkerLike
from syft_core.peer import Id
from syft_core.values import Nested
from syft_torch.federated.errors import FederatedError

if TYPE_CHECKING:
    from syft_torch.federated.dataset import BaseDataset

_log = logging.getLogger(__name__)
V = TypeVar("V")
_END = object()


def default_collate(batch: Sequence[Nested]) -> Nested:
    """Stack samples: tensors (on their worker), numbers, and those in dicts, tuples and lists."""
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(list(batch))
    if isinstance(first, bool | int | float):
        return torch.tensor(batch)
    if hasattr(first, "__array__"):
        return torch.stack([torch.as_tensor(item) for item in batch])
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, Sequence):
        if len({len(item) for item in batch}) > 1:
            raise FederatedError.uneven_samples()
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(f"cannot collate a {type(first).__name__}: pass a `collate_fn` that stacks such samples")


class ByWorker(dict[Id, V]):
    """A dict by the ids of workers; every method takes the workers themselves as keys, too."""

    def __getitem__(self, key: WorkerLike) -> V:
        return super().__getitem__(_to_id(key))

    def __setitem__(self, key: WorkerLike, value: V) -> None:
        super().__setitem__(_to_id(key), value)

    def __delitem__(self, key: WorkerLike) -> None:
        super().__delitem__(_to_id(key))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_to_id(key))

    def get(self, key: Nested, default: Nested = None) -> Nested:
        """Return the value of a worker, or ``default``."""
        return super().get(_to_id(key), default)

    def pop(self, key: Nested, *default: Nested) -> Nested:
        """Remove a worker, and return its value, or ``default``."""
        return super().pop(_to_id(key), *default)

    def setdefault(self, key: Nested, default: Nested = None) -> Nested:
        """Return the value of a worker, and set it to ``default`` if there is none."""
        return super().setdefault(_to_id(key), default)


def _to_id(worker: Nested) -> Nested:
    return getattr(worker, "id", worker)


class FederatedDataLoader:
    """Iterates over batches of a ``FederatedDataset``, worker after worker; a batch never mixes workers.

    ``next(loader)`` continues the iteration that was begun last.

    Args:
        federated_dataset: the dataset.
        batch_size: how many samples a batch has; the last batch of a worker may be smaller.
        shuffle: whether to shuffle the samples of each worker before each iteration.
        num_iterators: how many workers to take batches from at the same time; with more than one, each item is a dict
            of batches by worker.
        drop_last: whether to leave out the smaller last batch of each worker.
        collate_fn: if given, makes a batch of the list of its samples, which are read one by one.
        iter_per_worker: whether to take batches from all workers at the same time.
        **kwargs: other options of torch's loader, which are ignored with a warning.

    """

    def __init__(
        self,
        federated_dataset: Nested,
        batch_size: int = 8,
        shuffle: bool = False,
        num_iterators: int = 1,
        drop_last: bool = False,
        collate_fn: Callable[[Sequence[Nested]], Nested] = default_collate,
        iter_per_worker: bool = False,
        **kwargs: object,
    ) -> None:
        if not hasattr(federated_dataset, "datasets") or not hasattr(federated_dataset, "workers"):
            raise FederatedError.not_federated(type(federated_dataset).__name__)
        if type(batch_size) is not int or batch_size < 1:
            raise FederatedError.batch_size(batch_size)
        if kwargs:
            _log.warning("FederatedDataLoader ignores these options: %s", ", ".join(kwargs))
        self.federated_dataset = federated_dataset
        self.workers: list[Id] = federated_dataset.workers
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.collate_fn, self.iter_per_worker = collate_fn, iter_per_worker
        count = len(self.workers) if iter_per_worker else num_iterators
        self.num_iterators = max(1, min(count, len(self.workers)))
        self._iterator: Iterator[Nested] | None = None

    def count(self, worker: Id) -> int:
        """Return how many batches a worker has."""
        samples = len(self.federated_dataset[worker])
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __len__(self) -> int:
        """Return how many items an iteration has."""
        return sum(1 for _ in self._schedule([[None] * self.count(worker) for worker in self.workers]))

    def __iter__(self) -> Iterator[Nested]:
        self._iterator = self._iterate()
        return self._iterator

    def __next__(self) -> Nested:
        """Return the next item of the iteration that was begun last, or of a new one."""
        return next(self._iterator if self._iterator is not None else iter(self))

    def _iterate(self) -> Iterator[Nested]:
        for found in self._schedule([_Batches(self, worker) for worker in self.workers]):
            batches = ByWorker({worker: take() for worker, take in found.items()})
            yield batches if self.iter_per_worker or self.num_iterators > 1 else next(iter(batches.values()))

    def _schedule(self, sources: Sequence[Nested]) -> Iterator[dict[Id, Nested]]:
        """Yield batches by worker: of ``num_iterators`` workers at a time, until all are exhausted."""
        waiting = [(worker, iter(source)) for worker, source in zip(self.workers, sources, strict=True)]
        active = waiting[: self.num_iterators]
        del waiting[: self.num_iterators]
        while active or waiting:
            found = {}
            for place, (worker, batches) in enumerate(list(active)):
                taken = next(batches, _END)
                while taken is _END and waiting:  # The next worker takes the place of one that has no more.
                    worker, batches = active[place] = waiting.pop(0)
                    taken = next(batches, _END)
                if taken is _END:
                    active[place] = (worker, iter(()))
                else:
                    found[worker] = taken
            if not found:
                return
            yield found


class _Batches:
    """The batches of one worker, as functions that take them."""

    def __init__(self, loader: FederatedDataLoader, worker: Id) -> None:
        self._loader, self._worker = loader, worker

    def __iter__(self) -> Iterator[Callable[[], Nested]]:
        loader = self._loader
        dataset: BaseDataset = loader.federated_dataset[self._worker]
        order = torch.randperm(len(dataset)) if loader.shuffle else None
        for place in range(loader.count(self._worker)):
            rows = slice(place * loader.batch_size, min((place + 1) * loader.batch_size, len(dataset)))
            yield lambda rows=rows: self._take(dataset, rows, order)  # type: ignore[misc]  # mypy cannot infer it

    def _take(self, dataset: BaseDataset, rows: slice, order: torch.Tensor | None) -> Nested:
        if self._loader.collate_fn is not default_collate:
            places = range(rows.start, rows.stop) if order is None else order[rows].tolist()
            return self._loader.collate_fn([dataset[place] for place in places])
        return dataset[rows if order is None else order[rows]]
