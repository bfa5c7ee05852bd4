"""Departures: the results that have left each worker for a trainer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from syft_core.peer import Id
from syft_core.pictures.tables import html_table
from syft_core.values import Kwargs


class Departures:
    """How many updates and evaluations have left each worker, including those that were rejected here."""

    HEADER = ("worker", "changes of the weights, each with a loss", "sums of an evaluation")

    def __init__(self) -> None:
        self.updates: Counter[Id] = Counter()
        self.evaluations: Counter[Id] = Counter()
        self._lock = threading.Lock()

    def add_update(self, worker: Id) -> None:
        """Count an update, from any thread."""
        with self._lock:
            self.updates[worker] += 1

    def add_evaluation(self, worker: Id) -> None:
        """Count the sums of an evaluation."""
        with self._lock:
            self.evaluations[worker] += 1

    def to_html(self) -> str:
        """Return a table."""
        workers = dict.fromkeys([*self.updates, *self.evaluations])
        rows = [(str(worker), str(self.updates[worker]), str(self.evaluations[worker])) for worker in workers]
        return html_table("what has left", self.HEADER, rows, limit=1000)

    def dump(self) -> Kwargs:
        """Return the counts as plain data."""
        return {"updates": list(self.updates.items()), "evaluations": list(self.evaluations.items())}

    def load(self, facts: Mapping[str, list[tuple[Id, int]]]) -> None:
        """Invert ``dump``."""
        self.updates = Counter(dict(facts.get("updates", ())))
        self.evaluations = Counter(dict(facts.get("evaluations", ())))
