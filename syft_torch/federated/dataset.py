"""Datasets that are spread over workers: ``BaseDataset``, ``FederatedDataset``, ``federate`` and ``find``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias
from weakref import WeakSet

import torch
from torch.utils.data import Dataset

from syft_core.hook.hook import current_worker
from syft_core.location import WorkerLike
from syft_core.peer import Id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import get_all
from syft_core.printing import printable
from syft_core.values import Nested, Tensor
from syft_torch.federated.arranging import Columns, Fill, arrange_there
from syft_torch.federated.dataloader import ByWorker, default_collate
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.statistics import find_moments
from syft_torch.federated.sums import Aggregation
from syft_torch.federated.tables import MEAN, Missing, find_fill, name_inputs, require_agreement

Parts: TypeAlias = "Tensor | tuple[Tensor, ...]"
"""A tensor, or the tensors of a model with several inputs."""


class BaseDataset(Dataset):  # type: ignore[misc]  # torch is not typed
    """Inputs and targets of a supervised task, here or on one worker.

    Args:
        data: the inputs, one sample in each row; several tensors for a model with several inputs.
        targets: the targets, in the same order.
        transform: a function of a numpy array, applied to the input of each sample that is read here.
        owner: the worker to which the dataset belongs, by default the local one; only kept.
        id: a name; only kept.
        tags: the tags that the tensors get when they are sent.
        description: the description that they get.

    """

    search: Callable[[Nested], Sequence[Tensor]] | None = None
    """A function of the worker that finds the parts there, if the dataset was found; repeated after a restart."""
    columns: tuple[str, ...] = ()
    """The names of the columns of the inputs, if they are those of a table."""

    def __init__(
        self,
        data: Parts,
        targets: Tensor,
        transform: Callable[[Nested], Nested] | None = None,
        owner: object = None,
        id: Id | None = None,
        tags: Iterable[str] = (),
        description: str | None = None,
    ) -> None:
        self.data, self.targets = data, targets
        self.owner = current_worker() if owner is None else owner
        self.transform_, self.id, self.tags, self.description = transform, id, tuple(tags), description
        self.part_of: WeakSet[FederatedDataset] = WeakSet()
        """The federated datasets that it belongs to; while there are any, it is not changed."""
        _require_equal_lengths(self.parts)

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors of the inputs, and the targets."""
        return (*self.inputs, self.targets)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors of the inputs."""
        return tuple(self.data) if isinstance(self.data, tuple | list) else (self.data,)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Nested) -> tuple[Parts, Tensor]:
        inputs = tuple([self._transform(part[index]) for part in self.inputs])
        return inputs if isinstance(self.data, tuple | list) else inputs[0], self.targets[index]

    def _transform(self, element: Tensor) -> Tensor:
        if self.transform_ is None or is_remote(element):
            return element
        return torch.as_tensor(self.transform_(element.numpy()))

    def get_data(self) -> Parts:
        """Return the inputs."""
        return self.data

    def get_targets(self) -> Tensor:
        """Return the targets."""
        return self.targets

    def tag(self, *tags: str) -> BaseDataset:
        """Add tags, which the tensors get, too, and return this dataset."""
        self.tags = tuple(dict.fromkeys((*self.tags, *tags)))
        return self._map(lambda part: part.tag(*tags))

    def describe(self, description: str) -> BaseDataset:
        """Set the description, also of the tensors, and return this dataset."""
        self.description = description
        return self._map(lambda part: part.describe(description))

    def transform(self, transform: Callable[[Tensor], Tensor]) -> None:
        """Replace the inputs by a function of them; they must be here."""
        if any(type(part) is not torch.Tensor for part in self.inputs):
            raise TypeError("cannot transform a dataset: its inputs are not plain tensors; transform it before sending")
        self._set([transform(part) for part in self.inputs])

    def send(self, location: WorkerLike) -> BaseDataset:
        """Send the tensors to a worker, and return this dataset, which then refers to them."""
        self._require_free("send")
        parts = [part.tag(*self.tags) if self.tags else part for part in self.parts]
        if self.description is not None:
            parts = [part.describe(self.description) for part in parts]
        *inputs, self.targets = [part.send(location) for part in parts]
        self._set(inputs)
        return self

    def get(self) -> BaseDataset:
        """Fetch the tensors, and return this dataset."""
        self._require_free("fetch")
        *inputs, self.targets = get_all(*self.parts)
        self._set(inputs)
        return self

    def fix_prec(self, *args: Nested, **kwargs: Nested) -> BaseDataset:
        """Encode all tensors with fixed precision."""
        self._require_free("encode")
        return self._map(lambda part: part.fix_prec(*args, **kwargs))

    def float_prec(self, *args: Nested, **kwargs: Nested) -> BaseDataset:
        """Decode all tensors."""
        self._require_free("decode")
        return self._map(lambda part: part.float_prec(*args, **kwargs))

    def share(self, *args: Nested, **kwargs: Nested) -> BaseDataset:
        """Share all tensors among workers."""
        self._require_free("share")
        return self._map(lambda part: part.share(*args, **kwargs))

    fix_precision, float_precision = fix_prec, float_prec

    def federate(self, workers: Sequence[WorkerLike]) -> FederatedDataset:
        """Spread the dataset over workers."""
        return dataset_federate(self, workers)

    @property
    def location(self) -> Nested:
        """The worker that has the tensors, or None if they are here."""
        return self.targets.location if is_remote(self.targets) else None

    def find_again(self) -> None:
        """Repeat the search that found the dataset, because its worker has other ids now."""
        if self.search is not None:
            *inputs, self.targets = self.search(self.location)
            self._set(inputs)

    def derive(self, function: Callable[..., Sequence[Tensor]]) -> BaseDataset:
        """Return a dataset whose parts are a function of the parts of this one, computed where they are."""
        *inputs, targets = function(*self.parts)
        made = BaseDataset(tuple(inputs) if isinstance(self.data, tuple | list) else inputs[0], targets)
        made.columns = self.columns
        if (search := self.search) is not None:
            made.search = lambda worker: function(*search(worker))
        return made

    def _require_free(self, action: str) -> None:
        """Raise if the dataset is part of a federated one, which expects it where it is."""
        if self.part_of:
            raise FederatedError.part(action, self.location.id)

    def _set(self, inputs: Sequence[Tensor]) -> None:
        self.data = tuple(inputs) if isinstance(self.data, tuple | list) else inputs[0]

    def _map(self, function: Callable[[Tensor], Tensor]) -> BaseDataset:
        *inputs, self.targets = [function(part) for part in self.parts]
        self._set(inputs)
        return self

    def __repr__(self) -> str:
        shapes = ", ".join([str(tuple(part.shape)) for part in self.parts])
        return f"<BaseDataset: {shapes}{'' if self.location is None else f' on {self.location.id!r}'}>"


PointerDataset = BaseDataset
"""The name of PySyft 0.2 for a dataset whose tensors are on a worker."""


class FederatedDataset(Dataset):  # type: ignore[misc]  # torch is not typed
    """The datasets of several workers, by the worker or its id; a worker may have several."""

    def __init__(self, datasets: Iterable[BaseDataset]) -> None:
        self.by_worker: ByWorker[list[BaseDataset]] = ByWorker()
        for dataset in datasets:
            if not isinstance(dataset, BaseDataset):
                raise FederatedError.not_a_dataset(type(dataset).__name__)
            if dataset.location is None:
                raise FederatedError.local_dataset(len(dataset))
            self.by_worker.setdefault(dataset.location.id, []).append(dataset)
            dataset.part_of.add(self)
        self._merged: dict[Id, BaseDataset] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the inputs, if they are those of tables."""
        return next((dataset.columns for dataset in self), ())

    @property
    def datasets(self) -> ByWorker[BaseDataset]:
        """The dataset of each worker, as ``federated[worker]`` returns it."""
        return ByWorker({id: self[id] for id in self.by_worker})

    @property
    def workers(self) -> list[Id]:
        """The ids of the workers."""
        return list(self.by_worker)

    def __getitem__(self, worker: WorkerLike) -> BaseDataset:
        """Return the dataset of a worker; several are joined there."""
        id = _id_of(worker)
        found = self.by_worker[id]
        if len(found) == 1:
            return found[0]
        if id not in self._merged:
            self._merged[id] = _join(found)
            self._merged[id].part_of.add(self)
        return self._merged[id]

    def get_dataset(self, worker: WorkerLike) -> BaseDataset:
        """Fetch the dataset of a worker, and remove it from this one."""
        dataset, id = self[worker], _id_of(worker)
        for part in (dataset, *self.by_worker[id]):
            part.part_of.discard(self)
        try:
            dataset.get()
        except BaseException:
            for part in (dataset, *self.by_worker[id]):
                part.part_of.add(self)
            raise
        del self.by_worker[id]
        self._merged.pop(id, None)
        return dataset

    def count(self, worker: WorkerLike) -> int:
        """Return how many samples a worker has."""
        return sum(map(len, self.by_worker[_id_of(worker)]))

    def __iter__(self) -> Iterator[BaseDataset]:
        return (dataset for found in self.by_worker.values() for dataset in found)

    def __len__(self) -> int:
        return sum(map(self.count, self.by_worker))

    def __repr__(self) -> str:
        text = f"FederatedDataset\n    Distributed accross: {', '.join(map(str, self.workers))}\n"
        return printable(f"{text}    Number of datapoints: {len(self)}\n", lines=True)


def dataset_federate(dataset: Nested, workers: Sequence[WorkerLike]) -> FederatedDataset:
    """Split a dataset into equal parts, in order, and send one to each worker; lengths differ by one at most."""
    if isinstance(workers, str) or hasattr(workers, "id"):
        raise FederatedError.one_worker(type(workers).__name__)
    workers = list(workers)
    if len({_id_of(worker) for worker in workers}) < len(workers):
        raise FederatedError.repeated_worker()
    if not workers or len(dataset) < len(workers):
        raise FederatedError.few_samples(len(dataset), len(workers))
    data, targets = _read_all(dataset)
    inputs = data if isinstance(data, tuple) else (data,)
    pieces = [part.tensor_split(len(workers)) for part in (*inputs, targets)]
    found = []
    for worker, (*mine, labels) in zip(workers, zip(*pieces, strict=True), strict=True):
        share = BaseDataset(tuple(mine) if isinstance(data, tuple) else mine[0], labels)
        share.tags, share.description = getattr(dataset, "tags", ()), getattr(dataset, "description", None)
        found.append(share.send(worker))
    return FederatedDataset(found)


def find(
    *queries: str | Sequence[str],
    workers: Iterable[Nested],
    columns: Sequence[str] | None = None,
    label: str | None = None,
    missing: Missing = None,
    one_hot: bool = False,
    mock: bool = False,
    aggregation: Aggregation | None = None,
    reason: str = "",
    patience: float = 600.0,
) -> FederatedDataset:
    """Make a dataset of tensors on the workers: one search for each input, and the last one for the targets.

    A search is a tag or several, all of which must match. Each must have one result on every worker, or the same
    number for all searches: a worker may have several datasets.

    Args:
        queries: the searches. With ``label``, there is one, for tables whose columns have names.
        workers: where to search.
        columns: the columns of the tables that are inputs; by default all but the label. All workers must agree on
            their types, units and categories.
        label: the column with the targets.
        missing: what takes the place of missing inputs: a number, a number for each column, or "mean", the mean over
            all workers.
        one_hot: whether a category becomes a column of zeros and ones for each of its values; otherwise it is the
            number of its value. The names of the inputs are in ``dataset.columns``.
        mock: whether to use the mocks of the tables, to develop a program without the data.
        aggregation: the secure aggregation in which the sums leave from which the mean is computed.
        reason: why owners should release these sums, if they may not leave.
        patience: how many seconds to wait for the decision of an owner.

    """
    searched = tuple([(query,) if isinstance(query, str) else tuple(query) for query in queries])
    places = [current_worker().location_of(worker).face for worker in workers]
    if not places:
        raise FederatedError.no_workers()
    if label is not None or columns is not None:
        is_list = columns is None or (not isinstance(columns, str) and bool(columns) and label not in columns)
        if label is None or len(searched) != 1 or not is_list:
            raise FederatedError.table_query()
        return _find_tables(places, searched, columns, label, missing, one_hot, mock, (aggregation, reason, patience))
    if len(queries) < 2:
        raise FederatedError.few_queries(len(queries))
    if missing is not None or one_hot:
        raise FederatedError.table_query()
    found = []
    for place in places:
        matches = _search_all(place, searched, mock)
        for *inputs, targets in matches:
            dataset = BaseDataset(inputs[0] if len(inputs) == 1 else tuple(inputs), targets)
            dataset.search = partial(_search, queries=searched, mock=mock) if len(matches) == 1 else None
            found.append(dataset)
    return FederatedDataset(found)


def _find_tables(
    places: Sequence[Nested],
    searched: tuple[tuple[str, ...], ...],
    columns: Sequence[str] | None,
    label: str,
    missing: Missing,
    one_hot: bool,
    mock: bool,
    asking: tuple[Aggregation | None, str, float],
) -> FederatedDataset:
    tables = [(place, table) for place in places for (table,) in _search_all(place, searched, mock)]
    schemas = [(place.id, table.schema) for place, table in tables]
    names = [name for name in schemas[0][1].names if name != label] if columns is None else list(columns)
    require_agreement(schemas, [*names, label])
    numbers = find_fill(schemas, names, label, missing, one_hot)
    dtype = torch.get_default_dtype()
    fill = None if numbers is None else torch.tensor([numbers], dtype=dtype)
    step = Columns(tuple(names), label, str(dtype).rpartition(".")[2], one_hot, fill)
    found = []
    for place, table in tables:
        dataset = BaseDataset(*arrange_there(step, [table]))
        dataset.columns = tuple(name_inputs(step, table.schema))
        if [other for other, _ in tables].count(place) == 1:
            dataset.search = partial(_search_table, searched, mock, step)
        found.append(dataset)
    if missing == MEAN:
        moments = find_moments(FederatedDataset(found), *asking)
        fill_mean = partial(_fill_inputs, moments.mean.to(dtype))
        found = [dataset.derive(fill_mean) for dataset in found]
    return FederatedDataset(found)


def _fill_inputs(numbers: Tensor, inputs: Tensor, targets: Tensor) -> list[Tensor]:
    return [*arrange_there(Fill(numbers.unsqueeze(0)), [inputs]), targets]


def _search_table(searched: tuple[tuple[str, ...], ...], mock: bool, step: Columns, worker: Nested) -> list[Tensor]:
    (table,) = _search(worker, searched, mock)
    return arrange_there(step, [table])


def is_remote(tensor: object) -> bool:
    """Return whether a tensor is on a worker."""
    return isinstance(getattr(tensor, "child", None), PointerTensor)


def _search_all(worker: Nested, queries: tuple[tuple[str, ...], ...], mock: bool) -> list[tuple[Tensor, ...]]:
    parts = [_sort(worker.search(list(query))) for query in queries]
    counts = list(map(len, parts))
    if 0 in counts or len(set(counts)) > 1:
        raise FederatedError.not_found(worker.id, dict(zip(map(" ".join, queries), counts, strict=True)))
    found = list(zip(*parts, strict=True))
    return [tuple([part.mock for part in each]) for each in found] if mock else found


def _search(worker: Nested, queries: tuple[tuple[str, ...], ...], mock: bool) -> tuple[Tensor, ...]:
    found = _search_all(worker, queries, mock)
    if len(found) != 1:
        counts = dict.fromkeys(map(" ".join, queries), len(found))
        raise FederatedError.not_found(worker.id, counts)
    return found[0]


def _sort(pointers: list[Nested]) -> list[Nested]:
    """Return pointers in the order of their descriptions and tags, so that parts of one dataset are matched."""
    return sorted(pointers, key=lambda found: (found.description or "", str(found.id_at_location)))


def _require_equal_lengths(parts: Sequence[Tensor]) -> None:
    lengths = [len(part) if part.dim() else 0 for part in parts]
    if len(set(lengths)) > 1:
        raise FederatedError.lengths(lengths)


def _id_of(worker: WorkerLike) -> Id:
    return worker if isinstance(worker, int | str) else worker.id


def _read_all(dataset: Nested) -> tuple[Nested, Tensor]:
    if isinstance(dataset, BaseDataset) and dataset.transform_ is None:
        return dataset.data, dataset.targets
    if isinstance(dataset, torch.utils.data.TensorDataset):
        *inputs, targets = dataset.tensors
        return (inputs[0] if len(inputs) == 1 else tuple(inputs)), targets
    *inputs, targets = default_collate([dataset[place] for place in range(len(dataset))])
    return (inputs[0] if len(inputs) == 1 else tuple(inputs)), targets


def _join(datasets: list[BaseDataset]) -> BaseDataset:
    columns = [torch.cat(list(column)) for column in zip(*[dataset.parts for dataset in datasets], strict=True)]
    *inputs, targets = columns
    joined = BaseDataset(inputs[0] if len(inputs) == 1 else tuple(inputs), targets)
    joined.columns = datasets[0].columns
    return joined
