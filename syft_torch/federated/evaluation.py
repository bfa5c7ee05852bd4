"""Evaluation: what is measured on each worker, and what that makes over all samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from syft_core.hook.forms import Form
from syft_core.peer import Id
from syft_core.pictures.tables import html_table, text_table
from syft_core.values import Function, Nested, Tensor
from syft_torch.federated.averages import Average, WeightedMean, find_average
from syft_torch.federated.metrics import Metric


class Evaluation(dict[str, Nested]):
    """Each metric over all samples, by name: a mean, or what is computed from counts; ``workers`` has those of each."""

    def __init__(self, metrics: Mapping[str, Function], averages: Sequence[Average]) -> None:
        super().__init__()
        self.names = tuple(metrics)
        self.samples = 0
        self.workers: dict[Id, dict[str, Nested]] = {}
        self.counts: dict[Id, int] = {}
        self.left_out: dict[Id, str] = {}
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

    def _find_fault(self, sums: Tensor) -> str | None:
        """Return why the sums of a worker cannot be used, or None."""
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
        rows = [(str(w), str(self.counts[w]), *map(_write, found.values())) for w, found in self.workers.items()]
        return [*rows, ("all", str(self.samples), *map(_write, self.values()))]

    def __str__(self) -> str:
        out = "".join([f"\n{worker} was left out: {why}" for worker, why in self.left_out.items()])
        return text_table(("worker", "samples", *self.names), self._cells()) + out

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("evaluation", ("worker", "samples", *self.names), self._cells(), limit=1000)


def _write(value: Nested) -> str:
    return str(value.tolist()) if isinstance(value, torch.Tensor) else f"{value:.4g}"


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
