"""Ledger: one line for every object that left a worker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from syft_core.peer import Id, Peer
from syft_core.pictures import form_of, html_table, one_line, text_table

if TYPE_CHECKING:
    from syft_core.workers.store import Stored
    from syft_core.workers.worker import Worker


class Departure(NamedTuple):
    """Who took which object and when, its form, and what it was computed from; never a value."""

    when: float
    user: str
    id: Id
    form: str
    sources: tuple[Any, ...]
    to: str
    reason: str = ""
    names: tuple[str, ...] = ()
    """The tags of each source at that time, "" for a source without tags; empty if no source had any."""

    def cells(self) -> tuple[str, ...]:
        """Return the escaped cells of a table row; sources are shown by their tags, if they have any."""
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.when))
        sources = [name or str(id) for name, id in zip_longest(self.names, self.sources)]
        return moment, one_line(self.user), one_line(str(self.id)), one_line(self.form), _join(sources), *self._end()

    def kind(self) -> tuple[str, ...]:
        """Return the cells that are equal for repetitions of the same departure."""
        names = sorted(set(filter(None, self.names)))
        others = "" if names and all(self.names) else " and others" if names else f"{len(self.sources)} untagged"
        return one_line(self.user), one_line(self.form), _join(names) + others, *self._end()

    def _end(self) -> tuple[str, str]:
        return one_line(self.to), one_line(self.reason)


def _join(sources: Iterable[str]) -> str:
    """Join names of sources, escaping commas within them."""
    return ", ".join([one_line(source).replace(",", r"\x2c") for source in sources])


def record(worker: Worker, entry: Stored, peer: Peer, to: str, reason: str, value: Any = None) -> None:
    """Record in the worker's ledger that an object leaves, or ``value``, which is an attribute of it."""
    sources = _in_order(entry.sources)
    ids = tuple([getattr(source, "id", source) for source in sources])
    tags = tuple([_tags_of(source) for source in sources])
    form = form_of(entry.value if value is None else value)
    names = tags if any(tags) else ()
    worker.ledger.record(Departure(time.time(), str(peer), entry.id, form, ids, to, reason, names))


def name_sources(entry: Stored) -> list[str]:
    """Return the sources of an object, by their tags if they have any."""
    return [_tags_of(source) or str(getattr(source, "id", source)) for source in _in_order(entry.sources)]


def _in_order(sources: Iterable[Any]) -> list[Any]:
    return sorted(sources, key=lambda source: (getattr(source, "serial", -1), str(source)))


def _tags_of(source: Any) -> str:
    return " ".join(sorted(getattr(source, "tags", ())))


class Ledger:
    """The departures of one worker, oldest first. It prints as a table and renders in a notebook."""

    HEADER = ("when", "who", "object", "form", "computed from", "to", "reason")
    SUMMARY = ("times", "who", "form", "computed from", "to", "reason")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._lines: list[Departure] = []

    def record(self, departure: Departure) -> None:
        """Add a departure."""
        self._lines.append(departure)

    def __iter__(self) -> Iterator[Departure]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> Departure:
        return self._lines[index]

    def kinds(self) -> list[tuple[str, ...]]:
        """Return one row per kind of departure, starting with the number of repetitions."""
        counted = Counter(line.kind() for line in self._lines)
        return [(str(times), *kind) for kind, times in counted.items()]

    def summary(self) -> str:
        """Return a table with one row per kind of departure, which stays short for long trainings."""
        return text_table(self.SUMMARY, self.kinds()) if self._lines else self._nothing()

    def __str__(self) -> str:
        return text_table(self.HEADER, self._cells()) if self._lines else self._nothing()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        kinds = self.kinds()
        if not kinds:
            return f"<div>{escape(self._nothing())}</div>"
        page = html_table(f"what left {self.owner}", self.SUMMARY, kinds)
        lines = html_table("", self.HEADER, self._cells())
        return f"<div>{page}<details><summary>every departure</summary>{lines}</details></div>"

    def _cells(self) -> list[tuple[str, ...]]:
        return [line.cells() for line in self._lines]

    def _nothing(self) -> str:
        return f"nothing has left {self.owner!r}"
