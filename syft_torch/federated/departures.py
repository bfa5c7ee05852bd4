"""Departures: the results that have left each worker for a trainer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from syft_core.peer import Id
from syft_core.pictures.tables import html_table
from syft_core.values import Kwargs


class Departures:
    """How many updates and evaluations have left each worker, including those that were rejected here."""

    HEADER = (
        "worker", "changes of the weights, each with a loss", "sums of an evaluation",
        "updates and evaluations within the sum of several workers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.updates: Counter[Id] = Counter()
        self.evaluations: Counter[Id] = Counter()
        self.sums: Counter[Id] = Counter()
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

    def to_html(self) -> str:
        """Return a table."""
        counters = self.updates, self.evaluations, self.sums
        workers = dict.fromkeys([worker for counter in counters for worker in counter])
        rows = [(str(worker), *[str(counter[worker]) for counter in counters]) for worker in workers]
        return html_table("what has left", self.HEADER, rows, limit=1000)

    def dump(self) -> Kwargs:
        """Return the counts as plain data."""
        return {name: list(getattr(self, name).items()) for name in _COUNTERS}

    def load(self, facts: Mapping[str, list[tuple[Id, int]]]) -> None:
        """Invert ``dump``."""
        for name in _COUNTERS:
            setattr(self, name, Counter(dict(facts.get(name, ()))))


_COUNTERS = ("updates", "evaluations", "sums")
