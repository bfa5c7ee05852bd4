"""Statistics of the columns of federated data: each worker sums over its own rows, with code of its own."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from syft_core.location import Location
from syft_core.messages import Message, MessageFacts
from syft_core.peer import Id, Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import pointer_at
from syft_core.values import Args, Nested, Tensor
from syft_core.workers.party.derivations import Maker
from syft_core.workers.party.status import RESTRICTED
from syft_core.workers.party.worker import Worker
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.makers import describe_loop
from syft_torch.federated.operations import OwnExecution, prepare, run
from syft_torch.federated.sums import Aggregation, fetch_released

if TYPE_CHECKING:
    from syft_torch.federated.dataset import BaseDataset, FederatedDataset

BITS, LIMBS, LOWEST = 22, 9, -99
"""A real sum is sent as whole numbers of so many bits, so that sums over workers are exact: from 2^-99 to 2^99."""
MOMENTS, HISTOGRAM = "moments", "histogram"
MAX_EDGES = 1 << 16


@dataclass(slots=True)
class Summarize(Message):
    """Compute sums over all rows of stored data; keep them under ``result``, as one flat tensor of whole numbers."""

    code: ClassVar[int] = 386
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda message: f"summarize: {message.statistic}",
        creates=lambda message, _receiver: (message.result,),
        stores_results=True,
    )
    data: Args
    """Pointers to the inputs of each dataset."""
    statistic: str
    """The count, the sum and the squares of each column, or its histogram."""
    result: int
    edges: Tensor = None
    """The edges of a histogram: numbers in increasing order."""

    @property
    def expected(self) -> range:
        """The id of the result."""
        return range(self.result, self.result + 1)


# --- the worker


def summarize(worker: Worker, message: Summarize, sender: Peer) -> Nested:
    """Compute sums over stored data, as one operation."""
    _require_valid(message)
    execution = prepare(worker, message, message.data, message.result, sender)
    shapes = {tuple(inputs.shape[1:]) for inputs in execution.args}
    if len(shapes) > 1 or not all(inputs.dim() for inputs in execution.args):
        raise FederatedError.operands(str(worker.id), "its datasets have rows of several forms", "use one at a time")
    if any(inputs.dtype.is_complex for inputs in execution.args):
        raise FederatedError.operands(str(worker.id), "its data is complex", "use real numbers")

    def compute(*inputs: Tensor) -> Tensor:
        rows = torch.cat([part.reshape(len(part), -1).to(torch.float64) for part in inputs])
        if message.statistic == HISTOGRAM:
            return _count(rows, message.edges.to(rows.device)).reshape(-1)
        count, total, squares = _sum_up(rows)
        return torch.cat([count, *total, *squares])

    def describe(execution: OwnExecution, _place: int) -> Maker | None:
        if not execution.status & RESTRICTED:
            return None
        samples = builtins.sum(map(len, execution.args))
        described = {"samples": samples, "parameters": 0, "weighted": False, "clip": None, "privacy": None}
        program = ("statistic", message.statistic, message.edges)
        return describe_loop(execution, program, (), described, [[inputs] for inputs in execution.args])

    return run(execution, message, compute, 1, describe)


def _require_valid(message: Summarize) -> None:
    if message.statistic not in (MOMENTS, HISTOGRAM):
        raise FederatedError.statistic("there is no such statistic: this worker has another release")
    if message.statistic == HISTOGRAM:
        require_edges(message.edges)
    elif message.edges is not None:
        raise FederatedError.statistic("only a histogram has edges")


def require_edges(edges: Tensor) -> None:
    """Raise unless these are the edges of a histogram."""
    is_flat = type(edges) is torch.Tensor and edges.dtype is torch.float64 and edges.dim() == 1 and not edges.is_meta
    if not is_flat or not 2 <= len(edges) <= MAX_EDGES or not (edges.diff() > 0).all() or not edges.isfinite().all():
        raise FederatedError.statistic("its edges are not at least two finite numbers in increasing order")


def _sum_up(rows: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Return the count of each column, and the parts of its sum and of the sum of its squares.

    Both have twice the precision of a number, and squares are those around the worker's own mean, plus sum² / count: so
    the deviation over all workers is right even if it is much smaller than the mean.
    """
    count = rows.isnan().logical_not().sum(0).to(torch.float64)
    least = count.clamp(min=1)
    mean = (rows.nansum(0) / least).to(torch.float32).to(torch.float64)  # So few bits that differences are exact.
    rest = (rows - mean).nansum(0)
    own = ((rows - mean) ** 2).nansum(0) - rest * rest / least
    total, error = _multiply(mean, count)
    total, error = _add(total, error + rest)
    square, low = _multiply(total, total)
    high = square / least
    product, lost = _multiply(high, least)
    low = ((square - product) - lost + low + 2 * total * error) / least
    return count, _split_sum(total, error), _split_sum(own, high, low)


def _add(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return a sum, and its rounding error; the first number is the larger one."""
    total = one + other
    return total, other - (total - one)


def _multiply(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return a product, and its rounding error (Dekker 1971)."""
    (a, b), (c, d) = _halve(one), _halve(other)
    product = one * other
    return product, ((a * c - product) + a * d + b * c) + b * d


def _halve(value: Tensor) -> tuple[Tensor, Tensor]:
    scaled = value * (2.0**27 + 1)
    high = scaled - (scaled - value)
    return high, value - high


def _split_sum(*parts: Tensor) -> list[Tensor]:
    """Return the sum of some numbers as whole numbers, the lowest first."""
    return [builtins.sum(limbs) for limbs in zip(*map(_split, parts), strict=True)]


def _split(values: Tensor) -> list[Tensor]:
    """Return numbers as whole numbers of few bits, the lowest first; those that are not finite stay so."""
    rest, signs, limbs = values.abs() * 2.0**-LOWEST, values.sign(), []
    for place in reversed(range(LIMBS)):
        limb = (rest * 2.0 ** (-BITS * place)).floor()
        rest = rest - limb * 2.0 ** (BITS * place)
        limbs.append(limb * signs)
    return limbs[::-1]


def _count(rows: Tensor, edges: Tensor) -> Tensor:
    """Return how many values of each column are in each interval; the last one has both of its edges."""
    bins = len(edges) - 1
    places = torch.bucketize(rows, edges, right=True) - 1
    places = torch.where(rows == edges[-1], torch.full_like(places, bins - 1), places)
    places = torch.where((rows >= edges[0]) & (rows <= edges[-1]), places, torch.full_like(places, bins))
    counts = rows.new_zeros(rows.shape[1], bins + 1)
    return counts.scatter_add(1, places.T, torch.ones_like(rows).T)[:, :bins]


# --- the client


@dataclass(frozen=True)
class Moments:
    """The count, sum, mean and squared deviations of each column over all workers, without missing values."""

    count: Tensor
    total: Tensor
    mean: Tensor
    squares: Tensor


def find_moments(
    data: FederatedDataset, aggregation: Aggregation | None = None, reason: str = "", patience: float = 600.0
) -> Moments:
    """Return the moments of the columns of the inputs, from one tensor of sums for each worker."""
    sums, shape = _collect(data, MOMENTS, None, aggregation, reason, patience)
    count, *parts = sums.reshape(1 + 2 * LIMBS, -1)
    counts = [int(number) for number in count.tolist()]
    totals, squares = _join(parts[:LIMBS]), _join(parts[LIMBS:])
    unit = 1 << -LOWEST
    columns = list(zip(counts, totals, squares, strict=True))
    return Moments(
        count.reshape(shape),
        _to_tensor([total / unit for total in totals], shape),
        _to_tensor([total / (unit * max(number, 1)) for number, total in zip(counts, totals, strict=True)], shape),
        _to_tensor([max(s * unit * max(n, 1) - t * t, 0) / (unit * unit * max(n, 1)) for n, t, s in columns], shape),
    )


def sum(
    data: FederatedDataset, aggregation: Aggregation | None = None, reason: str = "", patience: float = 600.0
) -> Tensor:
    """Return the sum of each column of the inputs over all workers; missing values do not count.

    Private sums leave a worker if its owner allows it: only within the sum of several workers with ``aggregation``, or
    with ``reason``, which each owner is asked for, with ``patience`` seconds to decide.
    """
    return find_moments(data, aggregation, reason, patience).total


def mean(
    data: FederatedDataset, aggregation: Aggregation | None = None, reason: str = "", patience: float = 600.0
) -> Tensor:
    """Return the mean of each column of the inputs over all workers, like ``fl.sum``; NaN without any value."""
    found = find_moments(data, aggregation, reason, patience)
    return found.mean.where(found.count > 0, torch.nan)


def var(
    data: FederatedDataset,
    aggregation: Aggregation | None = None,
    reason: str = "",
    patience: float = 600.0,
    correction: int = 1,
) -> Tensor:
    """Return the variance of each column of the inputs over all workers, like ``fl.sum`` and ``torch.var``."""
    found = find_moments(data, aggregation, reason, patience)
    return found.squares / (found.count - correction).clamp(min=0)


def histogram(
    data: FederatedDataset,
    edges: Sequence[float],
    aggregation: Aggregation | None = None,
    reason: str = "",
    patience: float = 600.0,
) -> Tensor:
    """Return how many values of each column of the inputs are between these edges, like ``fl.sum``.

    As in ``numpy.histogram``, the last interval contains its upper edge. Values outside do not count.
    """
    given = torch.as_tensor(edges, dtype=torch.float64)
    require_edges(given)
    counts, shape = _collect(data, HISTOGRAM, given, aggregation, reason, patience)
    return counts.to(torch.int64).reshape(*shape, len(given) - 1)


def keep_statistic(
    datasets: Sequence[BaseDataset], statistic: str = MOMENTS, edges: Tensor | None = None
) -> tuple[Location, int]:
    """Let a worker summarize its inputs, and keep the result; return its location and the id of the result there."""
    pointers = [dataset.inputs[0].child for dataset in datasets]
    location, id = pointers[0]._location, new_id()
    location.tell(Summarize(tuple(pointers), statistic, id, edges))
    return location, id


def _collect(
    data: FederatedDataset,
    statistic: str,
    edges: Tensor | None,
    aggregation: Aggregation | None,
    reason: str,
    patience: float,
) -> tuple[Tensor, torch.Size]:
    """Let each worker summarize its inputs; return the sum over all workers, and the shape of a row."""
    results: dict[Id, Tensor] = {}
    for worker, datasets in data.by_worker.items():
        location, id = keep_statistic(datasets, statistic, edges)
        framework = location.client.attributes_of("torch")
        results[worker] = framework.wrapper(pointer_at(location, id, framework, location.client))
    shape = next(iter(data)).inputs[0].shape[1:]
    if aggregation is not None:
        return aggregation.sum_up(results), shape
    total: Tensor = torch.stack(fetch_released(list(results.values()), reason, patience)).sum(0)
    if not total.isfinite().all():
        raise FederatedError.infinite()
    return total, shape


def _join(limbs: Sequence[Tensor]) -> list[int]:
    """Return the exact numbers that ``_split`` has split, as multiples of the smallest unit."""
    columns = zip(*[limb.tolist() for limb in limbs], strict=True)
    return [builtins.sum(int(limb) << (BITS * place) for place, limb in enumerate(column)) for column in columns]


def _to_tensor(values: Sequence[float], shape: torch.Size) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).reshape(shape)
