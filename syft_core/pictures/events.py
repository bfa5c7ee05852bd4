"""Show messages between workers as a table and as a sequence diagram, with repetitions folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from syft_core.pictures.sequence import Arrow, Repeated, fold, sequence_svg
from syft_core.pictures.tables import html_table, text_table, to_size, truncate

MAX_ROWS = 60
"""The default maximum of arrows drawn or lines printed."""
MAX_IDS, MAX_CELL = 34, 64
"""The maximum number of characters of a message's ids in a label, and in a table cell."""
NOTHING = "no messages"


@dataclass(slots=True)
class TraceEvent:
    """One message: sender, receiver, operation, objects and outcome."""

    kind: str
    """The type of the message: ``Run``, ``Fetch``, …"""
    operation: str
    """The requested operation: ``add``, ``backward``, ``send``, ``get``, ``move``, …"""
    sender: str
    receiver: str
    role: str
    """The purpose: ``compute``, ``fetch``, ``data`` or ``talk``."""
    objects: tuple[int | str, ...]
    """The ids of the objects in the message, on the receiver."""
    results: tuple[int | str, ...] = ()
    form: str = ""
    """The form of the computed, sent or fetched object, if it is known."""
    bytes: int | None = None
    """The number of bytes sent and received; None if nothing was serialized."""
    seconds: float = 0.0
    departs: bool = False
    """Whether data left a worker that holds it for others."""
    error: str | None = None
    """The type of the error, if the message failed."""

    @property
    def direction(self) -> tuple[str, str]:
        """The direction of the arrow: a fetched object goes from the receiver of the message to its sender."""
        fetched = self.role == "fetch" and self.error is None
        return (self.receiver, self.sender) if fetched else (self.sender, self.receiver)

    def repeat_key(self) -> tuple[Any, ...]:
        """Return a key that is equal for repetitions of the same message."""
        return self.kind, self.operation, self.sender, self.receiver, self.form, self.departs, self.error


class EventList:
    """Messages between workers, oldest first.

    It prints as a table, renders in a notebook, and is drawn by ``svg()`` or ``save("picture.svg")``. Messages that a
    loop repeats are shown once, with the number of repetitions.
    """

    HEADER = ("times", "from", "to", "what", "objects", "results", "form", "bytes", "ms")

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.dropped = 0
        """The number of unrecorded messages."""

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, index: int) -> TraceEvent:
        return self.events[index]

    @property
    def departures(self) -> list[TraceEvent]:
        """The messages with which data left a worker."""
        return [event for event in self.events if event.departs]

    def summary(self) -> str:
        """Return one line with the number of messages, departures, bytes and milliseconds."""
        carried = sum(event.bytes or 0 for event in self.events)
        parts = [_count(len(self.events) + self.dropped, "message"), _count(len(self.departures), "departure")]
        if carried:
            parts.append(to_size(carried))
        # The message that caused other messages includes their time.
        waited = sum(event.seconds for event in self.events if event.sender == self.events[0].sender)
        return ", ".join([*parts, f"{waited * 1e3:.1f} ms"])

    # --- rendering

    def table(self, rows: int | None = MAX_ROWS) -> str:
        """Return the first ``rows`` lines of the message table as text; None means all."""
        if not self.events:
            return NOTHING
        lines, more = self._lines(rows)
        return "\n".join(filter(None, [text_table(self.HEADER, lines), more, self.summary()]))

    __str__ = __repr__ = table

    def svg(self, rows: int | None = MAX_ROWS) -> str:
        """Return a sequence diagram of the first ``rows`` arrows; None means all."""
        blocks, more = self._blocks(rows)
        names = _name_objects(self.events)
        steps = [_step(names, block, times) for block, times in blocks]
        drawn = [name for step in steps for arrow in step.arrows for name in (arrow.start, arrow.end)]
        first = [self.events[0].sender] if self.events else []
        return sequence_svg(list(dict.fromkeys([*first, *drawn])), steps, self._caption(more))

    def save(self, path: str | Path, rows: int | None = MAX_ROWS) -> Path:
        """Write the sequence diagram to a file and return its path."""
        path = Path(path)
        path.write_text(self.svg(rows), encoding="utf-8")
        return path

    _repr_svg_ = svg

    def _repr_html_(self) -> str:
        if not self.events:
            return f"<div>{NOTHING}</div>"
        lines, more = self._lines(MAX_ROWS)
        table = html_table(self._caption(more), self.HEADER, lines)
        return f"<div>{self.svg()}<details><summary>table</summary>{table}</details></div>"

    def _caption(self, more: str) -> str:
        return "; ".join(filter(None, [self.summary(), more]))

    def _lines(self, rows: int | None) -> tuple[list[tuple[str, ...]], str]:
        blocks, more = self._blocks(rows)
        return [
            (_bracket(number, len(block), times), *_cells(event))
            for block, times in blocks
            for number, event in enumerate(block)
        ], more

    def _blocks(self, rows: int | None) -> tuple[list[tuple[list[TraceEvent], int]], str]:
        shown, left, drawn = [], len(self.events) if rows is None else rows, 0
        for block, times in fold(self.events, TraceEvent.repeat_key):
            if kept := block[:left]:
                shown.append((kept, times))
                drawn += len(block) * times if len(kept) == len(block) else len(kept)
                left -= len(kept)
        more = len(self.events) - drawn + self.dropped
        return shown, f"{_count(more, 'later message')} not shown" if more > 0 else ""


def _name_objects(events: Sequence[TraceEvent]) -> dict[str, str]:
    ids = dict.fromkeys(str(id).partition("::")[0] for event in events for id in (*event.objects, *event.results))
    return {id: f"#{number}" for number, id in enumerate(ids, 1)}


def _step(names: dict[str, str], block: Sequence[TraceEvent], times: int) -> Repeated:
    runs = [list(run) for _, run in groupby(block, lambda event: (event.repeat_key(), event.objects))]
    if len(runs) == 1:
        return Repeated((_arrow(names, block[0], len(block) * times),))
    return Repeated(tuple([_arrow(names, run[0], len(run)) for run in runs]), times)


def _arrow(names: dict[str, str], event: TraceEvent, times: int) -> Arrow:
    details = [event.error, event.form, to_size(event.bytes) if event.bytes else "", f"{event.seconds * 1e3:.2f} ms"]
    label, title = _label(names, event), " ".join(_cells(event))
    return Arrow(*event.direction, _arrow_kind(event), label, " · ".join(filter(None, details)), title, times)


def _label(names: dict[str, str], event: TraceEvent) -> str:
    parts = [[str(id).partition("::") for id in ids] for ids in (event.objects, event.results)]
    objects, results = [", ".join(f"{names[id]}{dots and '.'}{attr}" for id, dots, attr in ids) for ids in parts]
    if event.role == "compute":
        label = f"{event.operation}({truncate(objects, MAX_IDS)})"
        return f"{label} → {truncate(results, MAX_IDS)}" if results else label
    if objects and results:
        return f"{event.operation}: {objects} → {results}"
    return f"{event.operation} {truncate(objects or results, MAX_IDS)}".strip()


def _arrow_kind(event: TraceEvent) -> str:
    if event.error is not None:
        return "failure"
    if event.departs:
        return "departure"
    return "talk" if event.role == "fetch" else event.role


def _cells(event: TraceEvent) -> tuple[str, ...]:
    return (
        event.sender,
        event.receiver,
        event.operation + (f" ✗ {event.error}" if event.error else ""),
        truncate(" ".join(map(str, event.objects)), MAX_CELL),
        truncate(" ".join(map(str, event.results)), MAX_CELL),
        event.form + (" leaves" if event.departs else ""),
        str(event.bytes or ""),
        f"{event.seconds * 1e3:.3f}",
    )


def _bracket(number: int, length: int, times: int) -> str:
    if times == 1:
        return ""
    if length == 1:
        return f"{times} x"
    return f"┌ {times} x" if number == 0 else "└" if number == length - 1 else "│"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
