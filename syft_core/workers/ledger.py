"""Ledger: one line for every object that left a worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from syft_core.pictures import form_of, html_table, text_table


@dataclass(frozen=True)
class Departure:
    """Who took which object when, what form it has, and what it was computed from; never what it holds."""

    when: float
    user: str
    id: int | str
    form: str
    sources: tuple[Any, ...]
    to: str
    reason: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the line as text, cell by cell."""
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.when))
        return moment, self.user, str(self.id), self.form, ", ".join(map(str, self.sources)), self.to, self.reason


def record(worker: Any, entry: Any, id: int | str, user: str, to: str, reason: str) -> None:
    """Write into the ledger of ``worker`` that what it stores as ``entry`` leaves."""
    sources = tuple(sorted(entry.sources, key=str))
    worker.ledger.record(Departure(time.time(), user, id, form_of(entry.value), sources, to, reason))


class Ledger:
    """The departures of one worker, oldest first. It prints as a table and renders in a notebook."""

    HEADER = ("when", "who", "object", "form", "computed from", "to", "reason")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._lines: list[Departure] = []

    def record(self, departure: Departure) -> None:
        """Write one line."""
        self._lines.append(departure)

    def __iter__(self) -> Iterator[Departure]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> Departure:
        return self._lines[index]

    def __str__(self) -> str:
        if not self._lines:
            return f"nothing has left {self.owner!r}"
        return text_table(self.HEADER, [line.cells() for line in self._lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(f"left {self.owner}", self.HEADER, [line.cells() for line in self._lines])
