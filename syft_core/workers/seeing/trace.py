"""Trace: the messages between workers, as a table and as a sequence diagram; names and forms, never values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from syft_core.hook.chain import plain_end
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.location import Location
from syft_core.messages import Message, MessageFacts, Placed
from syft_core.peer import Id
from syft_core.pictures import Arrow, Repeated, fold, form_of, html_table, sequence_svg, text_table
from syft_core.pointers.object_pointer import Here, ObjectPointer
from syft_core.values import Nested, Tensor

traces: list[Trace] = []
"""The active traces."""

MAX_EVENTS = 20_000
"""How many messages a trace records; the rest is only counted."""
MAX_ROWS = 60
"""The default number of arrows to draw, or of lines to print."""

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
    """What it is for: ``compute``, ``fetch``, ``data`` or ``talk``."""
    objects: tuple[int | str, ...]
    """The ids of the objects in the message, at the receiver."""
    results: tuple[int | str, ...] = ()
    """The ids of the results."""
    form: str = ""
    """The form of what was computed, sent or fetched, if it is known."""
    bytes: int | None = None
    """The bytes sent and received; None if nothing was serialized."""
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


class Trace:
    """The messages between workers while a ``with`` block runs, oldest first.

    It prints as a table, renders in a notebook, and is drawn by ``svg()`` or ``save("picture.svg")``. Messages that a
    loop repeats are shown once, with the number of repetitions.
    """

    HEADER = ("times", "from", "to", "what", "objects", "results", "form", "bytes", "ms")

    def __init__(self, limit: int = MAX_EVENTS) -> None:
        self.limit = limit
        self.events: list[TraceEvent] = []
        self.dropped = 0
        """How many messages were not recorded because of ``limit``."""

    def __enter__(self) -> Trace:
        traces.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        traces.remove(self)

    def note(self, event: TraceEvent) -> None:
        """Record one message."""
        if len(self.events) < self.limit:
            self.events.append(event)
        else:
            self.dropped += 1

    # --- results

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, index: int) -> TraceEvent:
        return self.events[index]

    @property
    def departures(self) -> list[TraceEvent]:
        """The messages by which data left a worker."""
        return [event for event in self.events if event.departs]

    def summary(self) -> str:
        """Return one line with the number of messages, departures, bytes and milliseconds."""
        carried = sum(event.bytes or 0 for event in self.events)
        parts = [_count(len(self.events) + self.dropped, "message"), _count(len(self.departures), "departure")]
        if carried:
            parts.append(_bytes(carried))
        # Messages between other workers are part of the time of the message that caused them.
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
        """Return the messages with repetitions folded, and a note about those not shown."""
        shown, left, drawn = [], len(self.events) if rows is None else rows, 0
        for block, times in fold(self.events, TraceEvent.repeat_key):
            if kept := block[:left]:
                shown.append((kept, times))
                drawn += len(block) * times if len(kept) == len(block) else len(kept)
                left -= len(kept)
        more = len(self.events) - drawn + self.dropped
        return shown, f"{_count(more, 'later message')} not shown" if more > 0 else ""


def trace(limit: int = MAX_EVENTS) -> Trace:
    """Record the messages between workers while a ``with`` block runs."""
    return Trace(limit)


# --- recording


def record(location: Location, message: Message, send: Callable[[Any], Any]) -> Any:
    """Send a message, and record it in all active traces."""
    event = _event(location, message)
    for active in traces:
        active.note(event)
    before = getattr(location, "bytes_moved", 0)
    start = time.perf_counter()
    try:
        reply = send(message)
    except BaseException as error:
        event.error = type(error).__name__
        event.departs = False
        raise
    finally:
        event.seconds = time.perf_counter() - start
        event.bytes = (getattr(location, "bytes_moved", 0) - before) or None
    if event.role == "fetch":
        event.form = _forms(reply if type(reply) is list else [reply])
    elif event.role == "compute":
        placed = [leaf.id for leaf in leaves(reply) if isinstance(leaf, Placed)]
        event.results = tuple(placed or message.expected)
        changed = reply is None and not event.results
        event.form = _form_there(location, event.objects[:1] if changed else event.results)
    return reply


def summary(message: Message) -> str:
    """Return the operation and the ids of a message in one line; never a value."""
    return " ".join([message.facts.text(message), *map(str, _objects(message)), *map(str, _results(message))])


def redact(message: Message) -> Message:
    """Return a copy of a message for a log: pointers without a lease, and forms in place of tensors."""

    def without_data(leaf: Tensor) -> Nested:
        if isinstance(leaf, ObjectPointer):
            return leaf.sibling(garbage_collect_data=False)
        if isinstance(leaf, bytes | bytearray):  # Arrays that a party deposits.
            return f"{len(leaf)} bytes"
        return form_of(leaf) if build_rule(leaf) else leaf

    return type(message)(*[map_leaves(without_data, getattr(message, field.name)) for field in fields(message)])


def _event(location: Location, message: Message) -> TraceEvent:
    """Describe a message before it is sent, without keeping its objects alive."""
    facts, ends = message.facts, (str(location.client.id), str(location.id))
    role = _find_role(facts)
    event = TraceEvent(type(message).__name__, facts.text(message), *ends, role, _objects(message), _results(message))
    carried = getattr(message, facts.gives) if facts.gives else facts.operands(message)
    if role == "data":
        event.form = form_of(carried)
    has_data = any(plain_end(leaf) is not None for leaf in leaves(carried))
    # A client sends its own data; another worker sends data that it holds for others.
    event.departs = role == "fetch" or (has_data and not location.client.is_client_worker)
    return event


def _find_role(facts: MessageFacts) -> str:
    if facts.stores_results:
        return "compute"
    return "data" if facts.gives else "fetch" if facts.returns_objects else "talk"


def _form_there(location: Location, ids: Sequence[int | str]) -> str:
    """Return the forms of objects on a worker, if it is in this process."""
    store: Any = getattr(location.face, "object_store", ())
    return _forms([store.entry(id).value for id in ids if id in store])


def _forms(values: Sequence[object]) -> str:
    forms = Counter(map(form_of, values))
    return ", ".join([form if times == 1 else f"{times} x {form}" for form, times in forms.items()])


def _objects(message: Message) -> tuple[Id, ...]:
    """Return the ids of the objects that a message uses, with the attribute of each, if it means one."""
    pointers = [leaf for leaf in leaves(message.facts.operands(message)) if isinstance(leaf, ObjectPointer | Here)]
    named = [_place(id, getattr(message, "attr", None)) for id in message.facts.uses(message, "")]
    return (*named, *[_place(leaf._id_at_location, leaf.point_to_attr) for leaf in pointers])


def _results(message: Message) -> tuple[Id, ...]:
    """Return the ids of new objects, as far as they are known before the answer."""
    if message.facts.stores_results:
        return ()
    return tuple(message.expected) or message.facts.creates(message, "")


def _place(id: int | str, attr: str | None) -> int | str:
    return f"{id}::{attr}" if attr else id


# --- labels


def _name_objects(events: Sequence[TraceEvent]) -> dict[str, str]:
    """Return short names for the ids in a diagram: #1, #2, … in order of appearance."""
    ids = dict.fromkeys(str(id).partition("::")[0] for event in events for id in (*event.objects, *event.results))
    return {id: f"#{number}" for number, id in enumerate(ids, 1)}


def _step(names: dict[str, str], block: Sequence[TraceEvent], times: int) -> Repeated:
    """Return the step for a block of messages: direct repetitions become one arrow, a loop gets a frame."""
    runs = [list(run) for _, run in groupby(block, lambda event: (event.repeat_key(), event.objects))]
    if len(runs) == 1:
        return Repeated((_arrow(names, block[0], len(block) * times),))
    return Repeated(tuple([_arrow(names, run[0], len(run)) for run in runs]), times)


def _arrow(names: dict[str, str], event: TraceEvent, times: int) -> Arrow:
    details = [event.error, event.form, _bytes(event.bytes) if event.bytes else "", f"{event.seconds * 1e3:.2f} ms"]
    label, title = _label(names, event), " ".join(_cells(event))
    return Arrow(*event.direction, _arrow_kind(event), label, " · ".join(filter(None, details)), title, times)


def _label(names: dict[str, str], event: TraceEvent) -> str:
    parts = [[str(id).partition("::") for id in ids] for ids in (event.objects, event.results)]
    objects, results = [", ".join(f"{names[id]}{dots and '.'}{attr}" for id, dots, attr in ids) for ids in parts]
    if event.role == "compute":
        label = f"{event.operation}({_shorten(objects)})"
        return f"{label} → {_shorten(results)}" if results else label
    if objects and results:
        return f"{event.operation}: {objects} → {results}"
    return f"{event.operation} {_shorten(objects or results)}".strip()


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
        _shorten(" ".join(map(str, event.objects)), 64),
        _shorten(" ".join(map(str, event.results)), 64),
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


def _shorten(text: str, most: int = 34) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _bytes(number: int) -> str:
    return f"{number} B" if number < 1_000 else f"{number / 1e3:.1f} kB" if number < 1e6 else f"{number / 1e6:.1f} MB"
