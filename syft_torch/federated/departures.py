"""Departures: the results that have left each worker for a trainer, and the private steps that it was asked for."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from syft_core.peer import Id
from syft_core.pictures.tables import html_table
from syft_core.values import Kwargs, Nested
from syft_torch.federated.private_steps.accounting import PrivateStep, find_epsilon


class Departures:
    """How many updates and evaluations have left each worker, including those that were rejected here."""

    HEADER = (
        "worker", "changes of the weights, each with a loss unless it is private", "sums of an evaluation",
        "updates and evaluations within the sum of several workers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.updates: Counter[Id] = Counter()
        self.evaluations: Counter[Id] = Counter()
        self.sums: Counter[Id] = Counter()
        self.steps: dict[Id, Counter[PrivateStep]] = {}
        """The private steps that each worker was asked for, also in trainings whose results never came."""
        self._lock = threading.Lock()

    def add_update(self, worker: Id) -> None:
        """Count an update, from any thread."""
        with self._lock:
            self.updates[worker] += 1

    def add_evaluation(self, worker: Id) -> None:
        """Count the sums of an evaluation."""
        with self._lock:
            self.evaluations[worker] += 1

    def add_sum(self, workers: Iterable[Id]) -> None:
        """Count what has left workers only within their sum."""
        with self._lock:
            self.sums.update(workers)

    def add_steps(self, worker: Id, step: PrivateStep, count: int) -> None:
        """Count private steps."""
        with self._lock:
            self.steps.setdefault(worker, Counter())[step] += count

    def find_epsilon(self, delta: float) -> float:
        """Return the largest ε of all workers."""
        with self._lock:
            every = [Counter(steps) for steps in self.steps.values()]
        return max((find_epsilon(steps, delta) for steps in every), default=0.0)

    def to_html(self) -> str:
        """Return a table."""
        counters = self.updates, self.evaluations, self.sums
        workers = dict.fromkeys([worker for counter in counters for worker in counter])
        rows = [(str(worker), *[str(counter[worker]) for counter in counters]) for worker in workers]
        return html_table("what has left", self.HEADER, rows, limit=1000)

    def dump(self) -> Kwargs:
        """Return the counts as plain data."""
        steps = [(worker, *step, count) for worker, found in self.steps.items() for step, count in found.items()]
        return {**{name: list(getattr(self, name).items()) for name in _COUNTERS}, "steps": steps}

    def load(self, facts: Mapping[str, Nested]) -> None:
        """Invert ``dump``."""
        for name in _COUNTERS:
            setattr(self, name, Counter(dict(facts.get(name, ()))))
        self.steps = {}
        for worker, rate, multiplier, count in facts.get("steps", ()):
            self.add_steps(worker, PrivateStep(rate, multiplier), count)


_COUNTERS = ("updates", "evaluations", "sums")
