"""Options: how a ``FederatedTrainer`` trains; each has a default."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import optim

from syft_core.values import Nested
from syft_ray.workers import RayWorkers
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.loops import is_size


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a trainer trains, apart from the model, the data and the strategy.

    A wrong value is refused when the options are made; ``dataclasses.replace`` makes others.
    """

    clients_per_round: int | None = None
    """Number of workers sampled for each round; None means all."""
    min_results: int | None = None
    """Number of updates that a round needs; None means half of the workers that were asked."""
    engine: Literal["workers", "stacked"] | RayWorkers | None = None
    """How trainings run; None chooses automatically. The actors of ``sy.RayWorkers`` make the clients of a
    ``Population``."""
    drop_last: bool = False
    """Whether workers leave out a last batch that is not full, in each epoch. Otherwise, a last batch of one sample
    joins the batch before."""
    scheduler: Callable[[optim.Optimizer], Nested] | None = None
    """A function of the optimizer that returns a scheduler of its learning rate, e.g.
    ``lambda o: optim.lr_scheduler.StepLR(o, 10)``. It makes a step after each round, with the loss of the round if it
    is ``ReduceLROnPlateau``."""
    shuffle: bool = True
    """Whether workers shuffle their samples in each epoch."""
    seed: int = 0
    """The seed of samples and orders."""
    clip: float | None = None
    """The largest norm of an update; workers scale larger ones down."""
    clip_grad: float | None = None
    """The largest norm of a gradient."""
    max_norm: float | None = None
    """The norm above which an update is rejected."""
    timeout: float | None = None
    """Seconds without a sign of life after which a worker on a network, or an actor of Ray, counts as lost; None means
    those with which it was connected, and any number on Ray."""
    buffer: int | None = None
    """Updates per round, if rounds are asynchronous: workers then train all the time, and get the newest weights."""
    staleness: Callable[[int], float] | None = None
    """A function of the number of rounds since an update began that returns its weight; None means 1 / √(1 + age), as
    in FedBuff."""
    reason: str = ""
    """Why owners should release updates that may not leave. If given, each release is requested and awaited."""
    patience: float | None = 600.0
    """Seconds to wait for the decision of an owner; None means no limit."""

    def __post_init__(self) -> None:
        if self.engine not in (None, "workers", "stacked") and not isinstance(self.engine, RayWorkers):
            raise FederatedError.trainer(f"there is no engine {self.engine!r}", 'use "workers", "stacked" or None')
        for name, (is_valid, advice) in _CHECKS.items():
            value = getattr(self, name)
            if not is_valid(value):
                raise FederatedError.trainer(f"{name} is {value!r}", advice)

    def count_clients(self, available: int) -> int:
        """Return how many of the workers are asked in each round; raise if there are fewer."""
        wanted = available if self.clients_per_round is None else self.clients_per_round
        if wanted > available:
            why = f"clients_per_round is {wanted}, and there are {available} workers"
            raise FederatedError.trainer(why, "pass a positive integer that is not larger")
        most = self.buffer or wanted
        if self.min_results is not None and self.min_results > most:
            raise FederatedError.trainer(f"min_results is {self.min_results}", f"pass a positive integer up to {most}")
        return wanted

    def count_needed(self, expected: int) -> int:
        """Return how many of the expected updates a round needs."""
        if self.min_results is not None:
            return self.min_results
        return (expected + 1) // 2 if self.buffer is None else expected

    def derive_seed(self, *parts: object) -> int | None:
        """Return the seed of a training, which depends on these parts; None if samples are not shuffled."""
        if not self.shuffle:
            return None
        return int.from_bytes(hashlib.sha256(repr((self.seed, *parts)).encode()).digest()[:8], "little") >> 1


def is_count(value: object) -> bool:
    """Return whether a value is a positive integer."""
    return type(value) is int and value > 0


def _is_count_or_none(value: object) -> bool:
    return value is None or is_count(value)


def _is_bool(value: object) -> bool:
    return type(value) is bool


_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "clients_per_round": (_is_count_or_none, "pass a positive integer, or None for all"),
    "min_results": (_is_count_or_none, "pass a positive integer, or None"),
    "buffer": (_is_count_or_none, "pass a positive integer, or None"),
    "seed": (lambda value: type(value) is int, "pass an integer"),
    "drop_last": (_is_bool, "pass True or False"),
    "shuffle": (_is_bool, "pass True or False"),
    "staleness": (lambda value: value is None or callable(value), "pass a function of the age of an update"),
    "reason": (lambda value: isinstance(value, str), "pass a text that owners read"),
    **dict.fromkeys(("clip", "clip_grad", "max_norm", "timeout", "patience"), (is_size, "pass a positive number")),
}
