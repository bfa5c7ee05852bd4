"""Entry: one line of a ledger, as a table row or JSON; EntryList: the departures of a worker, as a table."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from html import escape
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from syft_core.peer import Id
from syft_core.pictures.tables import html_table, one_line, text_table, to_moment
from syft_core.values import Table

Event: TypeAlias = Literal[
    "departed",
    "released",
    "resent",
    "undelivered",
    "refused",
    "requested",
    "approved",
    "denied",
    "withdrawn",
    "expired",
    "seen",
    "standing",
    "revoked",
    "revealed",
    "opened",
    "continued",
    "recovered",
    "charged",
]
"""The event that an entry records.

A "released" object departed with the owner's approval; it was "resent" if that was repeated because a crash interrupted
it. "undelivered" corrects an earlier entry: sending the object failed, so it may not have arrived. The approval of a
request may be "withdrawn"; a "standing" approval may be "revoked". A request has "expired" if the owner did not decide
in time, or the user did not fetch the approved object. An owner has "seen" the values of a request. The worker has
"revealed" its mask in a sum of several workers; the masked result departed before. Private training is "charged" to
its data before it begins.
"""
DEPARTURES = frozenset({"departed", "released", "resent"})
DECISIONS = frozenset({
    "requested", "approved", "denied", "withdrawn", "expired", "standing", "revoked", "revealed", "charged",
})  # fmt: skip
"""Entries that decide what may leave later."""


class Entry(NamedTuple):
    """Who took which object and when, its form, and what it was computed from; never a value."""

    when: float
    user: str
    id: Id
    form: str
    sources: tuple[Any, ...]
    to: str
    reason: str = ""
    names: tuple[str, ...] = ()
    """The tags of each source at the time of departure, "" for a source without tags; empty if no source had any."""
    peer: Id = ""
    event: Event = "departed"
    request: str | None = None
    approver: str = ""
    """Who decided on the request."""
    digest: str = ""
    """The digest of the reviewed object, or of a rule."""
    rule: str = ""
    """The name of the rule, if there is one."""
    how: str = ""
    """How the object was computed, and the digest of its program; empty if it depends on nothing restricted."""
    failed: int = 0
    """The number of different operations that failed while it was computed; if not 0, the value is a substitute."""
    terms: Table | None = None
    """What a request for a study asks for: a rule, not the objects (``syft_worker.desk.terms``)."""
    sum: Table | None = None
    """The facts of a sum of several workers: its list, its task, and what a restart must know (``syft_sums``)."""

    def cells(self) -> tuple[str, ...]:
        """Return the escaped cells of a table row; sources are shown by their tags, if they have any."""
        sources = [name or str(id) for name, id in zip_longest(self.names, self.sources)]
        texts = self.user, str(self.id), self.form
        return to_moment(self.when), *map(one_line, texts), self._add_failed(_join(sources)), *self._end()

    def describe_sources(self) -> str:
        """Return the escaped tags of the sources, and the number of further sources."""
        unnamed = len(self.sources) - sum(map(bool, self.names))
        others = [f"{unnamed} unnamed {'object' if unnamed == 1 else 'objects'}"] if unnamed else []
        return self._add_failed(_join([*dict.fromkeys(filter(None, self.names)), *others]))

    def kind(self) -> tuple[str, ...]:
        """Return the cells that repetitions of a departure have in common."""
        names = sorted(set(filter(None, self.names)))
        others = "" if names and all(self.names) else " and others" if names else f"{len(self.sources)} untagged"
        return one_line(self.user), one_line(self.form), self._add_failed(_join(names) + others), *self._end()

    def to_line(self) -> Table:
        """Return the entry as written to a file, without empty fields."""
        moment = datetime.fromtimestamp(self.when, timezone.utc).isoformat(timespec="microseconds")
        fields = {"time": moment, "event": self.event, **self._asdict(), "id": str(self.id), "peer": str(self.peer)}
        fields["sources"] = tuple(map(str, self.sources))  # Other programs read large integers as floats.
        del fields["when"]
        return {name: value for name, value in fields.items() if value not in ("", (), None, 0)}

    @classmethod
    def from_line(cls, line: Table) -> Entry:
        """Invert ``to_line``."""
        fields = {"user": "", "id": "", "form": "", "sources": (), "to": "", **line}
        fields["when"] = datetime.fromisoformat(line["time"]).timestamp()
        fields.update({name: tuple(fields[name]) for name in ("sources", "names") if name in fields})
        return cls(**{name: fields[name] for name in cls._fields if name in fields})

    def _end(self) -> tuple[str, str]:
        return one_line(self.to), one_line(self.reason)

    def _add_failed(self, sources: str) -> str:
        return " ".join(filter(None, (sources, describe_failed(self.failed))))


def describe_failed(count: int) -> str:
    """Return a note on the number of failed operations; an empty text for none.

    >>> describe_failed(2)
    '(computed with 2 failed operations)'
    """
    return f"(computed with {count} failed {'operation' if count == 1 else 'operations'})" if count else ""


def _join(sources: Iterable[str]) -> str:
    return ", ".join([one_line(source).replace(",", r"\x2c") for source in sources])


class EntryList:
    """The last departures of one worker, oldest first. It prints as a table and renders in a notebook."""

    HEADER = ("when", "who", "object", "form", "computed from", "to", "reason")
    SUMMARY = ("times", "who", "form", "computed from", "to", "reason")

    def __init__(self, owner: str, limit: int) -> None:
        self.owner = owner
        self._lines: deque[Entry] = deque(maxlen=limit)
        self.departures = 0
        """The number of objects that have left since the start."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> Entry:
        return self._lines[index]

    def kinds(self) -> list[tuple[str, ...]]:
        """Return one row per kind of departure, starting with the number of repetitions."""
        counted = Counter(line.kind() for line in self._lines)
        return [(str(times), *kind) for kind, times in counted.items()]

    def summary(self) -> str:
        """Return a table with one row per kind of departure, which stays short in long trainings."""
        return text_table(self.SUMMARY, self.kinds()) + self._earlier() if self._lines else self._nothing()

    def __str__(self) -> str:
        return text_table(self.HEADER, self._cells()) + self._earlier() if self._lines else self._nothing()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        kinds = self.kinds()
        if not kinds:
            return f"<div>{escape(self._nothing())}</div>"
        page = html_table(f"what left {self.owner}", self.SUMMARY, kinds)
        page += f"<p>{escape(self._earlier().strip())}</p>" if self._earlier() else ""
        lines = html_table("", self.HEADER, self._cells())
        return f"<div>{page}<details><summary>every departure</summary>{lines}</details></div>"

    def _cells(self) -> list[tuple[str, ...]]:
        return [line.cells() for line in self._lines]

    def _earlier(self) -> str:
        forgotten = self.departures - len(self._lines)
        return f"\nand {forgotten:,} earlier departures, which are not in memory" if forgotten else ""

    def _nothing(self) -> str:
        return f"nothing has left {self.owner!r}"
