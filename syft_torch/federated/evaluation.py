"""Evaluation: measure a model on each worker, and combine the results over all samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from syft_core.hook.forms import Form
from syft_core.peer import Id
from syft_core.pictures.tables import html_table, text_table
from syft_core.values import Function, Nested, Tensor
from syft_torch.federated.averages import Average, WeightedMean, find_average
from syft_torch.federated.clients import Client, Clients, Measurement
from syft_torch.federated.departures import Departures
from syft_torch.federated.engines import explain, run_on_each
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.forms import DataForms, row_form
from syft_torch.federated.history import write_number
from syft_torch.federated.loops import Settings
from syft_torch.federated.losses import Recorded, record
from syft_torch.federated.metrics import Metric
from syft_torch.federated.options import Options
from syft_torch.federated.rounds import write_reasons

if TYPE_CHECKING:
    from syft_torch.federated.aggregation import SecureAggregation

SETTINGS = Settings(batch_size=1024)
"""Workers measure this many samples at once."""


class Evaluation(dict[str, Nested]):
    """Each metric over all samples, by name: a mean, or computed from counts; ``workers`` has those of each worker."""

    def __init__(self, metrics: Mapping[str, Function], averages: Sequence[Average]) -> None:
        super().__init__()
        self.names = tuple(metrics)
        self.samples = 0
        self.workers: dict[Id, dict[str, Nested]] = {}
        self.counts: dict[Id, int] = {}
        self.left_out: dict[Id, str] = {}
        self.members: list[Id] = []
        """The workers whose sum was evaluated, if only that has left them; then ``workers`` is empty."""
        self.privacy = ""
        """The ε of the model that was measured, if it was trained with ``SampleDP``."""
        self._metrics, self._averages = metrics, averages
        self._sizes = [
            metric.size if isinstance(metric, Metric) else average.size
            for metric, average in zip(metrics.values(), averages, strict=True)
        ]
        self._sums: Tensor = 0.0

    def add(self, worker: Id, sums: Tensor, samples: int) -> None:
        """Add the sums of a worker, or leave it out if they are not finite."""
        fault = self._find_fault(sums)
        if fault is not None:
            self.left_out[worker] = fault
            return
        self.workers[worker] = self._summarize(sums, samples)
        self.counts[worker] = samples
        self.samples += samples
        self._sums = self._sums + sums
        self.update(self._summarize(self._sums, self.samples))

    def add_sum(self, workers: Sequence[Id], sums: Tensor, samples: int) -> None:
        """Add the sum of several workers; no worker has metrics of its own then."""
        fault = self._find_fault(sums)
        if fault is not None:
            raise FederatedError.trainer(f"the sum of {len(workers)} workers is not usable: {fault}", "see their logs")
        self.members = list(workers)
        self.samples, self._sums = samples, sums
        self.update(self._summarize(sums, samples))

    def _find_fault(self, sums: Tensor) -> str | None:
        if type(sums) is not torch.Tensor or tuple(sums.shape) != (sum(self._sizes),) or sums.dtype != torch.float64:
            return "its answer has another form than the metrics"
        for name, part in zip(self.names, sums.split(self._sizes), strict=True):
            if not bool(part.isfinite().all()):
                return f"its metric {name!r} is not finite"
        return None

    def _summarize(self, sums: Tensor, samples: int) -> dict[str, Nested]:
        parts = zip(self._metrics.items(), self._averages, sums.split(self._sizes), strict=True)
        return {
            name: metric.summarize(part) if isinstance(metric, Metric) else average.merge(part, samples)
            for (name, metric), average, part in parts
        }

    def _cells(self) -> list[tuple[str, ...]]:
        rows = [(str(w), str(self.counts[w]), *map(write_number, found.values())) for w, found in self.workers.items()]
        name = f"the sum of {len(self.members)}" if self.members else "all"
        return [*rows, (name, str(self.samples), *map(write_number, self.values()))]

    def __str__(self) -> str:
        out = "".join([f"\n{worker} was left out: {why}" for worker, why in self.left_out.items()])
        privacy = f"\n{self.privacy}" if self.privacy else ""
        return text_table(("worker", "samples", *self.names), self._cells()) + privacy + out

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table: str = html_table("evaluation", ("worker", "samples", *self.names), self._cells(), limit=1000)
        return table + (f"<p>{self.privacy}</p>" if self.privacy else "")


@dataclass(frozen=True)
class Survey:
    """One evaluation: the clients, the metrics, what the clients run, and how their values are combined."""

    clients: Clients
    metrics: Mapping[str, Function]
    measurement: Measurement
    averages: Sequence[Average]

    def run(self, weights: Tensor, options: Options, departures: Departures) -> Evaluation:
        """Measure a model on the workers; raise if none of them could."""
        found = Evaluation(self.metrics, self.averages)

        def measure(client: Client) -> tuple[Tensor, int]:
            return client.evaluate(self.measurement, weights, options.reason, options.patience), client.samples

        with self.clients.deadline(options.timeout):
            for client, outcome in run_on_each(self.clients.values(), measure):
                if isinstance(outcome, Exception):
                    found.left_out[client.id] = explain(outcome)
                else:
                    departures.add_evaluation(client.id)
                    found.add(client.id, *outcome)
        if not found.samples:
            why = f"no worker could evaluate the model ({write_reasons(found.left_out)})"
            raise FederatedError.trainer(why, "see the reasons")
        return found

    def sum(
        self, weights: Tensor, options: Options, departures: Departures, aggregation: SecureAggregation
    ) -> Evaluation:
        """Measure a model on the workers, of which only the sum leaves them; raise if there is none."""
        found = Evaluation(self.metrics, self.averages)
        with self.clients.deadline(options.timeout):
            total, found.left_out = aggregation.sum(
                self.clients, lambda client: client.keep_evaluation(self.measurement, weights), _fail_evaluation
            )
        departures.add_sum(total.members)
        found.add_sum(total.members, torch.from_numpy(total.vector[:-1].copy()), int(total.samples))
        return found


def _fail_evaluation(why: str) -> FederatedError:
    return FederatedError.trainer(f"the model could not be evaluated: {why}", "try again")


class Measurements:
    """The metrics of a model that were recorded, in evaluation mode."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Measurement, list[Average]]] = {}

    def find(
        self, model: nn.Module, functions: Mapping[str, Function], forms: DataForms, weights: Recorded
    ) -> tuple[Measurement, list[Average]]:
        """Return metrics as workers measure them, and how their values are combined; record them if needed."""
        lengths = forms.find_lengths(SETTINGS)
        key = tuple(functions.items()), tuple(map(row_form, forms.parts)), tuple(lengths)
        known = self._known.get(key)
        with evaluation_mode(model):
            if known is not None and not known[0].recorded.has_changed():
                return known
            given, averages = tuple(functions.values()), find_averages(functions, model, forms.parts)
            compute = partial(compute_metrics, given, averages)
            recorded = record(model, compute, forms.parts, lengths, (*given, *averages), weights)
        require_answer("metrics", recorded, len(functions), 1)
        made = Measurement(recorded, SETTINGS, len(forms.parts)), averages
        self._known[key] = made
        return made


# --- the recorded functions


def compute_loss(loss: Function, model: nn.Module, *batch: Tensor) -> Nested:
    """Return the loss of a batch."""
    *inputs, targets = batch
    value = loss(model(*inputs), targets)
    return value.total / value.weight if isinstance(value, WeightedMean) else value


def compute_metrics(
    functions: Sequence[Function], averages: Sequence[Average], model: nn.Module, *batch: Tensor
) -> Nested:
    """Return what each metric adds up on a batch, divided by the number of samples."""
    *inputs, targets = batch
    output = model(*inputs)
    values = [function(output, targets) for function in functions]
    return tuple([average.split(value, targets) for average, value in zip(averages, values, strict=True)])


def find_averages(functions: Mapping[str, Function], model: nn.Module, forms: Sequence[Form]) -> list[Average]:
    """Return how the values of each metric are combined; counts are added up as they are."""
    return [
        Average() if isinstance(metric, Metric) else find_average(name, metric, model, forms)
        for name, metric in functions.items()
    ]


def choose_metrics(forms: Sequence[Form]) -> dict[str, Function]:
    """Return the accuracy, if the targets are class numbers."""
    is_class = not forms[-1].dtype.is_floating_point and len(forms[-1].shape or ()) == 1
    return {"accuracy": compute_accuracy} if is_class else {}


def compute_accuracy(output: Tensor, targets: Tensor) -> Tensor:
    """Return the share of samples whose largest output is that of their class."""
    return (output.argmax(dim=1) == targets).to(torch.float64).mean()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Return a context in which a model is evaluated; then each of its modules has its own mode again."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def require_answer(what: str, recorded: Recorded, count: int, dimensions: int) -> None:
    """Raise unless a recorded function returns the expected number of real tensors, of few enough dimensions."""
    answer = recorded.answer
    if len(answer) != count or any(len(each.shape) > dimensions or not each.dtype.is_floating_point for each in answer):
        kinds = [f"{str(each.dtype).rpartition('.')[2]}{list(each.shape or ())}" for each in answer]
        raise FederatedError.loss(what, ", ".join(kinds) or "no tensor")
