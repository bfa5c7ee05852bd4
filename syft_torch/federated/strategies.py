"""Strategies: how the updates of a round change the weights, as arithmetic on flat tensors.

A strategy of your own is a subclass of ``Strategy`` with one method, ``aggregate``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeVar

import torch

from syft_core.peer import Id
from syft_core.values import Kwargs, Tensor
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.layout import Layout


@dataclass
class Update:
    """The result of one worker: the change of the weights by its training."""

    worker: Id
    difference: Tensor
    """The parameters after training minus those that it got, as a flat tensor of at least 32 bits for each number.

    Until it is given to a strategy, statistics and counts of the model follow the parameters.

    If the strategy needs the mean alone, workers on Ray return the mean of all in one actor, and share it here.
    """
    samples: int
    loss: float
    steps: int = 1
    """Number of steps that its optimizer has made."""
    lr: float | None = None
    """The learning rate of its optimizer, if it has one for all parameters."""
    weight: float = 1.0
    """The weight of the difference: less than 1 if it is stale, in asynchronous rounds."""
    statistics: Tensor | None = None
    """The difference of the running statistics, if the model has some."""


ROUNDING = 1e-9
"""Tolerance by which a product of floats may be below a whole number."""

F = TypeVar("F", bound=Callable[..., Tensor])


def of_mean(aggregate: F) -> F:
    """Mark an ``aggregate`` that needs only the mean of the updates, weighted by samples.

    Then workers on Ray are summed where they are. A method that overrides it is not marked.
    """
    aggregate.uses_mean = True  # type: ignore[attr-defined]  # of functions
    return aggregate


def uses_mean(strategy: Strategy) -> bool:
    """Return whether a strategy needs nothing but the mean."""
    kind = type(strategy)
    return all(getattr(method, "uses_mean", False) for method in (kind.aggregate, kind.combine_statistics))


def require_updates(strategy: Strategy, count: int) -> None:
    """Raise if a round has fewer updates than a strategy needs to be robust."""
    if count < strategy.needed:
        why = f"it needs {strategy.needed} updates, and there are {count}; use more workers"
        raise FederatedError.strategy(repr(strategy), why)


def require_ageless(strategy: Strategy) -> None:
    """Raise unless a strategy can combine updates of several ages."""
    if not (uses_mean(strategy) or strategy.takes_stale):
        why = (
            "it combines updates of one round, and ignores the weight of older ones; leave out `buffer`, or use one "
            "that computes a mean, such as `fl.FedAvg()`; a strategy of your own that multiplies each difference by "
            "`update.weight` says `takes_stale = True`"
        )
        raise FederatedError.strategy(repr(strategy), why)


def merge(updates: Sequence[Update]) -> list[Update]:
    """Merge the updates that share one summed difference."""
    merged: dict[int, Update] = {}
    for update in updates:
        known = merged.get(id(update.difference))
        if known is None:
            merged[id(update.difference)] = replace(update)
        else:
            known.samples += update.samples
    return list(merged.values())


class Strategy:
    """The base class of strategies. Attributes that are numbers and tensors are saved in checkpoints."""

    takes_stale = False
    """Whether it multiplies each difference by ``update.weight``, so that it can be used in asynchronous rounds.

    Strategies that need only the mean always do.
    """

    def aggregate(self, weights: Tensor, updates: Sequence[Update]) -> Tensor:
        """Return the new weights; there is at least one update. Neither argument may be changed."""
        raise NotImplementedError("cannot use a strategy without a method: define `aggregate`")

    @of_mean
    def combine_statistics(self, statistics: Tensor, updates: Sequence[Update]) -> Tensor:
        """Return the new running statistics of the model; by default, add the mean difference."""
        return statistics + find_mean(to_statistics(updates))

    @property
    def needed(self) -> int:
        """Minimum number of updates of a round."""
        return 1

    @property
    def proximal(self) -> float:
        """How strongly local weights are drawn to those received; 0 means not at all."""
        return 0.0

    def correct(self, worker: Id) -> Tensor | None:
        """Return the correction that a worker adds to each gradient, or None."""
        return None

    def begin(self, size: int, workers: int, optimizer: str, numbers: Kwargs) -> None:
        """Prepare for models of ``size`` weights; raise if the strategy does not fit the optimizer of the workers."""

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name[0] != "_" and is_setting(value)}
        return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in shown.items()])})"


def is_setting(value: object) -> bool:
    """Return whether an attribute of a strategy is a number, or a tuple of numbers."""
    if isinstance(value, tuple):
        return all(isinstance(part, int | float) for part in value)
    return value is None or isinstance(value, int | float | str)


def to_statistics(updates: Sequence[Update]) -> list[Update]:
    """Return updates whose differences are those of the running statistics."""
    return [replace(update, difference=update.statistics, statistics=None) for update in updates]


def by_parts(aggregate: F) -> F:
    """Mark an ``aggregate`` in which each new weight depends on the same place of the weights and differences alone.

    Then large models are combined in parts, without another copy of all weights. A method that overrides it is not
    marked.
    """
    aggregate.by_parts = True  # type: ignore[attr-defined]  # of functions
    return aggregate


def goes_by_parts(strategy: Strategy) -> bool:
    """Return whether a strategy may combine parts of the weights by themselves."""
    return getattr(type(strategy).aggregate, "by_parts", False)


def find_mean(updates: Sequence[Update]) -> Tensor:
    """Return the mean of the differences, weighted by samples; a stale one counts less, and the others not more.

    So it is FedBuff's sum of differences, each times its weight, divided by their number (Nguyen et al. 2022), if all
    workers have as many samples.
    """
    total = sum([update.samples for update in updates])
    mean = torch.zeros_like(updates[0].difference)
    for update in updates:
        mean.add_(update.difference, alpha=update.samples * update.weight / total)
    return mean


def combine(strategy: Strategy, layout: Layout, weights: Tensor, updates: Sequence[Update]) -> Tensor:
    """Return the new weights of a round, as one flat tensor.

    The strategy combines the parameters, and the running statistics. Counts, such as that of batches, are added up,
    as if one program had done all trainings.
    """
    merged = merge(updates)
    counts = weights[layout.counts] + sum([update.difference[layout.counts] for update in merged])
    statistics = weights[layout.statistics]
    for update in merged:
        update.statistics = update.difference[layout.statistics] if len(statistics) else None
        update.difference = update.difference[: layout.parameters]
    found = [_require_weights(strategy, "aggregate", weights[: layout.parameters], merged)]
    if len(statistics):
        found.append(_require_weights(strategy, "combine_statistics", statistics, merged))
    return torch.cat([*[each.to(weights.dtype) for each in found], counts])


def _require_weights(strategy: Strategy, name: str, weights: Tensor, updates: Sequence[Update]) -> Tensor:
    """Return the result of a strategy's method; raise unless it can take the place of the weights."""
    found: object = getattr(strategy, name)(weights, updates)
    if not isinstance(found, torch.Tensor) or found.shape != weights.shape:
        raise FederatedError.strategy(repr(strategy), f"`{name}` must return weights of the same size")
    if not is_finite(found):
        raise FederatedError.strategy(repr(strategy), f"`{name}` returned values that are not finite")
    return found


def is_finite(tensor: Tensor) -> bool:
    """Return whether all values are finite."""
    # The sum is a quick test: it is not finite if one value is not, and may overflow.
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


class FedAvg(Strategy):
    """The mean of all updates, weighted by samples (McMahan et al. 2017)."""

    @by_parts
    @of_mean
    def aggregate(self, weights: Tensor, updates: Sequence[Update]) -> Tensor:
        """Add the mean difference."""
        return weights + find_mean(updates)


class FedProx(FedAvg):
    """FedAvg with local weights that are drawn to the global ones, by mu / 2 ‖w - w0‖² (Li et al. 2020)."""

    def __init__(self, mu: float = 0.01) -> None:
        if not 0 <= mu < float("inf"):
            raise FederatedError.strategy("FedProx", f"mu is {mu}; pass a number that is not negative")
        self.mu = mu

    @property
    def proximal(self) -> float:
        """The factor mu."""
        return self.mu


class _ServerOptimizer(Strategy):
    """An adaptive optimizer whose gradient is the mean update (Reddi et al. 2021, algorithm 2).

    With Δ the mean difference:  m ← β1 m + (1 - β1) Δ,  v ← a mean of Δ²,  w ← w + lr m / (√v + τ).  There is no bias
    correction. At first, m = 0 and v = τ².
    """

    def __init__(self, lr: float, betas: tuple[float, float], tau: float) -> None:
        if not (lr > 0 and tau > 0 and all(0 <= beta < 1 for beta in betas)):
            name = type(self).__name__
            raise FederatedError.strategy(name, "lr and tau must be positive, and betas at least 0 and less than 1")
        self.lr, self.betas, self.tau = lr, betas, tau
        self.m: Tensor | None = None
        self.v: Tensor | None = None

    @of_mean
    def aggregate(self, weights: Tensor, updates: Sequence[Update]) -> Tensor:
        mean = find_mean(updates)
        if self.m is None or self.v is None:
            self.m, self.v = torch.zeros_like(weights), torch.full_like(weights, self.tau**2)
        first = self.betas[0]
        self.m = first * self.m + (1 - first) * mean
        self.v = self._accumulate(self.v, mean * mean)
        return weights + self.lr * self.m / (self.v.sqrt() + self.tau)

    def _accumulate(self, v: Tensor, square: Tensor) -> Tensor:
        raise NotImplementedError


class FedAdam(_ServerOptimizer):
    """Adam on the server:  v ← β2 v + (1 - β2) Δ²."""

    def __init__(self, lr: float = 0.01, betas: tuple[float, float] = (0.9, 0.99), tau: float = 1e-3) -> None:
        super().__init__(lr, betas, tau)

    def _accumulate(self, v: Tensor, square: Tensor) -> Tensor:
        return self.betas[1] * v + (1 - self.betas[1]) * square


class FedYogi(_ServerOptimizer):
    """Yogi on the server:  v ← v - (1 - β2) Δ² sign(v - Δ²)."""

    def __init__(self, lr: float = 0.01, betas: tuple[float, float] = (0.9, 0.99), tau: float = 1e-3) -> None:
        super().__init__(lr, betas, tau)

    def _accumulate(self, v: Tensor, square: Tensor) -> Tensor:
        return v - (1 - self.betas[1]) * square * torch.sign(v - square)


class FedAdagrad(_ServerOptimizer):
    """Adagrad on the server:  v ← v + Δ², with β1 = 0."""

    def __init__(self, lr: float = 0.01, tau: float = 1e-3) -> None:
        super().__init__(lr, (0.0, 0.0), tau)

    def _accumulate(self, v: Tensor, square: Tensor) -> Tensor:
        return v + square


class Scaffold(Strategy):
    """Control variates against the drift of local training (Karimireddy et al. 2020, option II, uniform weights).

    Worker i adds  c - c_i  to each gradient. After K steps with learning rate η it has  c_i' = c_i - c - Δ_i / (K η).
    Then  w ← w + lr mean(Δ_i)  and  c ← c + sum(c_i' - c_i) / N,  for N workers in all.
    """

    def __init__(self, lr: float = 1.0) -> None:
        if not lr > 0:
            raise FederatedError.strategy("Scaffold", f"lr is {lr}; pass a positive number")
        self.lr = lr
        self.workers = 0
        self.c: Tensor | None = None
        self.controls: dict[str, Tensor] = {}
        """The control variate of each worker; those that are missing are zero."""

    def begin(self, size: int, workers: int, optimizer: str, numbers: Kwargs) -> None:
        """Require plain SGD, for which the control variates are defined."""
        extras = [name for name in ("momentum", "weight_decay", "nesterov", "maximize") if numbers.get(name)]
        if optimizer != "SGD" or extras or "lr" not in numbers:
            found = optimizer if not extras else f"{optimizer} with {extras[0]}"
            raise FederatedError.strategy("Scaffold", f"it needs plain SGD on the workers, not {found}; use optim.SGD")
        self.workers = workers

    def correct(self, worker: Id) -> Tensor | None:
        """Return c - c_i."""
        if self.c is None:
            return None
        own = self.controls.get(str(worker))
        return self.c if own is None else self.c - own

    def aggregate(self, weights: Tensor, updates: Sequence[Update]) -> Tensor:
        """Update the weights and the control variates."""
        c = torch.zeros_like(weights) if self.c is None else self.c
        change, mean = torch.zeros_like(weights), torch.zeros_like(weights)
        for update in updates:
            if update.lr is None:
                raise FederatedError.strategy("Scaffold", "it needs one learning rate; use one group of parameters")
            own = self.controls.get(str(update.worker), torch.zeros_like(weights))
            new = own - c - update.difference / (update.steps * update.lr)
            self.controls[str(update.worker)] = new
            change.add_(new - own)
            mean.add_(update.difference, alpha=1 / len(updates))
        self.c = c + change / max(self.workers, len(updates))
        return weights + self.lr * mean


class _ByNumber(Strategy):
    """A strategy that combines each number separately, whatever the samples of the workers; statistics likewise."""

    def aggregate(self, weights: Tensor, updates: Sequence[Update]) -> Tensor:
        require_updates(self, len(updates))
        return weights + self._combine(torch.stack([update.difference for update in updates]).sort(dim=0).values)

    def combine_statistics(self, statistics: Tensor, updates: Sequence[Update]) -> Tensor:
        """Combine statistics in the same way: a mean would let one worker set them to anything."""
        return self.aggregate(statistics, to_statistics(updates))

    def _combine(self, values: Tensor) -> Tensor:
        """Return one row, given a row for each update; each column is sorted."""
        raise NotImplementedError


class Median(_ByNumber):
    """The median of each number (Yin et al. 2018); of an even number of updates, the mean of the two in the middle.

    It is robust if less than half of the updates of a round are wrong. So a round needs three: the median of one or two
    is their mean.
    """

    @property
    def needed(self) -> int:
        """Three: one of them may be wrong."""
        return 3

    def _combine(self, values: Tensor) -> Tensor:
        middle = (len(values) - 1) // 2, len(values) // 2
        return values[middle[0]] / 2 + values[middle[1]] / 2


class TrimmedMean(_ByNumber):
    """The mean of each number without the largest and the smallest ``share`` of the updates (Yin et al. 2018).

    It is robust if at most this share of the updates of a round is wrong, and share < 1/2. Of n updates, the largest
    and the smallest ⌊share n⌋ are left out. So a round needs 1 / share updates: of fewer, none would be left out.
    """

    def __init__(self, share: float = 0.1) -> None:
        if not 0 <= share < 0.5:
            raise FederatedError.strategy("TrimmedMean", f"share is {share}; pass at least 0 and less than 0.5")
        self.share = share

    @property
    def needed(self) -> int:
        """As many as it takes to leave out one on each side."""
        return 1 if self.share == 0 else max(ceil(1 / self.share - ROUNDING), 3)

    def _combine(self, values: Tensor) -> Tensor:
        cut = min(int(self.share * len(values) + ROUNDING), (len(values) - 1) // 2)
        return values[cut : len(values) - cut].mean(dim=0)


class Krum(Strategy):
    """The update that is closest to its neighbours, if ``byzantine`` of them may be wrong (Blanchard et al. 2017).

    The score of an update is the sum of the squared distances to its n - f - 2 nearest ones, for n updates of a round
    of which f may be wrong. With ``keep`` > 1, the mean of that many updates with the lowest scores (multi-Krum).

    The paper requires n ≥ 2f + 3: otherwise f equal updates may be nearer to each other than the right ones. Also, keep
    ≤ n - f, the number of right updates: of more, a wrong one is always among them. Statistics are those of the updates
    that were chosen.
    """

    def __init__(self, byzantine: int = 1, keep: int = 1) -> None:
        if type(byzantine) is not int or type(keep) is not int or byzantine < 0 or keep < 1:
            raise FederatedError.strategy("Krum", "byzantine must be an integer from 0, and keep an integer from 1")
        self.byzantine, self.keep = byzantine, keep

    @property
    def needed(self) -> int:
        """The number of updates for which the paper proves that it is robust."""
        return max(2 * self.byzantine + 3, self.keep + self.byzantine)

    def aggregate(self, weights: Tensor, updates: Sequence[Update]) -> Tensor:
        """Add the chosen difference, or the mean of several."""
        return weights + torch.stack([update.difference for update in self._choose(updates)]).mean(dim=0)

    def combine_statistics(self, statistics: Tensor, updates: Sequence[Update]) -> Tensor:
        """Add the mean of the same updates."""
        chosen = to_statistics(self._choose(updates))
        return statistics + torch.stack([update.difference for update in chosen]).mean(dim=0)

    def _choose(self, updates: Sequence[Update]) -> list[Update]:
        require_updates(self, len(updates))
        near = len(updates) - self.byzantine - 2
        values = torch.stack([update.difference for update in updates])
        distances = torch.stack([((values - value).double() ** 2).sum(dim=1) for value in values])
        distances.fill_diagonal_(float("inf"))
        scores = distances.sort(dim=1).values[:, :near].sum(dim=1)
        return [updates[place] for place in scores.argsort(stable=True)[: self.keep].tolist()]
