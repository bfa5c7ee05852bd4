"""Evaluation while a trainer trains, and the decision to stop early."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from syft_core.values import Function, Tensor
from syft_torch.federated.dataset import FederatedDataset
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.evaluation import Evaluation
from syft_torch.federated.history import Row, to_plain
from syft_torch.federated.population import Population

_LARGER_IS_BETTER = {"loss": False, "accuracy": True}


@dataclass(frozen=True)
class EarlyStopping:
    """Ends a run when a metric has not improved for some evaluations, and returns to the best weights.

    Args:
        metric: the name of a metric of the evaluation, e.g. "loss" or "accuracy".
        patience: after how many evaluations in a row without a better value the run ends.
        min_delta: by how much a value must be better than the best one.
        larger_is_better: whether larger values are better; known for "loss" and "accuracy".
        restore: whether the model gets the weights of the best evaluation at the end; otherwise it keeps the last ones.

    """

    metric: str = "loss"
    patience: int = 3
    min_delta: float = 0.0
    larger_is_better: bool | None = None
    restore: bool = True

    def __post_init__(self) -> None:
        if type(self.patience) is not int or self.patience < 1:
            raise FederatedError.trainer(f"patience is {self.patience!r}", "pass a positive integer")
        if not (isinstance(self.min_delta, int | float) and 0 <= self.min_delta < float("inf")):
            raise FederatedError.trainer(f"min_delta is {self.min_delta!r}", "pass a number that is not negative")
        if self.larger_is_better is None and self.metric not in _LARGER_IS_BETTER:
            why = f"it is not known whether larger values of {self.metric!r} are better"
            raise FederatedError.trainer(why, "pass `larger_is_better=True` or `False`")

    def is_better(self, value: float, best: float | None) -> bool:
        """Return whether a value is finite, and better than the best one so far."""
        if not isfinite(value) or best is None:
            return isfinite(value)
        is_larger = _LARGER_IS_BETTER[self.metric] if self.larger_is_better is None else self.larger_is_better
        return (value - best if is_larger else best - value) > self.min_delta


class Watch:
    """Evaluates the model after some rounds, and decides when to stop."""

    def __init__(
        self,
        every: int | None = None,
        held_out: FederatedDataset | Population | None = None,
        metrics: Mapping[str, Function] | None = None,
        stopping: EarlyStopping | None = None,
    ) -> None:
        if every is None and (held_out is not None or metrics is not None or stopping is not None):
            every = 1
        if every is not None and (type(every) is not int or every < 1):
            raise FederatedError.trainer(f"evaluate_every is {every!r}", "pass a positive integer, or None")
        if held_out is not None and not isinstance(held_out, FederatedDataset | Population):
            raise FederatedError.trainer(
                f"the held-out data is a {type(held_out).__name__}", "pass a FederatedDataset, as for training"
            )
        if stopping is not None and not isinstance(stopping, EarlyStopping):
            raise FederatedError.trainer(f"stopping is {stopping!r}", "pass e.g. `fl.EarlyStopping(patience=3)`")
        self.every, self.held_out, self.metrics, self.stopping = every, held_out, metrics, stopping
        self._best: float | None = None
        self.best_weights: Tensor | None = None
        """The weights of the best evaluation."""
        self._passed = 0
        """Number of evaluations since the best one."""

    def require_metric(self, names: Sequence[str]) -> None:
        """Raise unless the metric that decides is one of those that are measured."""
        if self.stopping is not None and self.stopping.metric not in names:
            why = f"there is no metric {self.stopping.metric!r} to stop by: the evaluation has {', '.join(names)}"
            raise FederatedError.trainer(why, "name one of them, or pass it with `metrics={...}`")

    def begin(self, rows: Sequence[Row], best_weights: Tensor | None) -> None:
        """Continue after rounds of a checkpoint, which may have the best weights."""
        for row in rows:
            self._note(row)
        self.best_weights = best_weights

    @property
    def has_ended(self) -> bool:
        """Whether the run should end now."""
        return self.stopping is not None and self._passed >= self.stopping.patience

    def observe(
        self, row: Row, is_last: bool, evaluate: Callable[..., Evaluation], read_weights: Callable[[], Tensor]
    ) -> None:
        """Evaluate the model after a round, if it is due, and add the results to its row."""
        if self.every is None or (row.round % self.every and not is_last):
            return
        found = evaluate(self.held_out, self.metrics)
        row.evaluation = {name: to_plain(value) for name, value in found.items()}
        row.not_evaluated = dict(found.left_out)
        if self._note(row):
            self.best_weights = read_weights()

    def restore(self, set_weights: Callable[[Tensor], None]) -> bool:
        """Give the model its best weights again, if that is wanted; return whether it has other weights now."""
        if self.stopping is None or not self.stopping.restore or self.best_weights is None or not self._passed:
            return False
        set_weights(self.best_weights)
        return True

    def _note(self, row: Row) -> bool:
        if self.stopping is None or self.stopping.metric not in row.evaluation:
            return False
        value = row.evaluation[self.stopping.metric]
        if not isinstance(value, int | float):
            why = f"the metric {self.stopping.metric!r} is not a number"
            raise FederatedError.trainer(why, "stop by another one")
        if not self.stopping.is_better(value, self._best):
            self._passed += 1
            return False
        self._best, self._passed = value, 0
        return True
