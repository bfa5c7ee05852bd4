"""Trace: the messages between workers, as a table and as a sequence diagram; names and forms, never values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from syft_core import messages
from syft_core.hook.attributes import COMPARATORS, INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS, UNARY_OPERATORS
from syft_core.hook.chain import plain_end
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.location import Location
from syft_core.messages import Call, Fetch, FetchAll, Forward, Message, Placed, Run, RunPlan, Store
from syft_core.pictures import Arrow, Step, fold, form_of, html_table, sequence_svg, text_table
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
class Event:
    """One message: sender, receiver, operation, objects and outcome."""

    kind: str
    """The type of the message: ``Run``, ``Fetch``, …"""
    operation: str
    """The requested operation: ``add``, ``backward``, ``send``, ``get``, ``move``, …"""
    sender: str
    receiver: str
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
        fetched = self.kind in ("Fetch", "FetchAll") and self.error is None
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
        self.events: list[Event] = []
        self.dropped = 0
        """How many messages were not recorded because of ``limit``."""

    def __enter__(self) -> Trace:
        traces.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        traces.remove(self)

    def note(self, event: Event) -> None:
        """Record one message."""
        if len(self.events) < self.limit:
            self.events.append(event)
        else:
            self.dropped += 1

    # --- results

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, index: int) -> Event:
        return self.events[index]

    @property
    def departures(self) -> list[Event]:
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

    def _blocks(self, rows: int | None) -> tuple[list[tuple[list[Event], int]], str]:
        """Return the messages with repetitions folded, and a note about those not shown."""
        shown, left, drawn = [], len(self.events) if rows is None else rows, 0
        for block, times in fold(self.events, Event.repeat_key):
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
    if isinstance(message, Fetch):
        event.form = form_of(reply)
    elif isinstance(message, FetchAll):
        event.form = _forms(reply)
    elif isinstance(message, Run | Call | RunPlan):
        placed = [leaf.id for leaf in leaves(reply) if isinstance(leaf, Placed)]
        event.results = tuple(placed or message.expected)
        changed = reply is None and not event.results
        event.form = _form_there(location, event.objects[:1] if changed else event.results)
    return reply


def summary(message: Message) -> str:
    """Return the operation and the ids of a message in one line; never a value."""
    operation, objects, results = _ABOUT[type(message)](message)
    return " ".join([operation, *map(str, objects), *map(str, results)])


def redact(message: Message) -> Message:
    """Return a copy of a message for a log: pointers without a lease, and forms in place of tensors."""

    def without_data(leaf: Tensor) -> Nested:
        if isinstance(leaf, ObjectPointer):
            return leaf.sibling(garbage_collect_data=False)
        if isinstance(leaf, bytes | bytearray):  # Arrays that a party deposits.
            return f"{len(leaf)} bytes"
        return form_of(leaf) if build_rule(leaf) else leaf

    return type(message)(*[map_leaves(without_data, getattr(message, field.name)) for field in fields(message)])


def _event(location: Location, message: Message) -> Event:
    """Describe a message before it is sent, without keeping its objects alive."""
    operation, objects, results = _ABOUT[type(message)](message)
    ends = str(location.client.id), str(location.id)
    event = Event(type(message).__name__, operation, *ends, tuple(objects), tuple(results))
    if isinstance(message, Store):
        event.form = form_of(message.value)
    carried = message.value if isinstance(message, Store) else getattr(message, "args", ())
    has_data = any(plain_end(leaf) is not None for leaf in leaves(carried))
    # A client sends its own data; another worker sends data that it holds for others.
    event.departs = isinstance(message, Fetch | FetchAll) or (has_data and not location.client.is_client_worker)
    return event


def _form_there(location: Location, ids: Sequence[int | str]) -> str:
    """Return the forms of objects on a worker, if it is in this process."""
    store: Any = getattr(location.face, "object_store", ())
    return _forms([store.entry(id).value for id in ids if id in store])


def _forms(values: Sequence[object]) -> str:
    forms = Counter(map(form_of, values))
    return ", ".join([form if times == 1 else f"{times} x {form}" for form, times in forms.items()])


_About = tuple[str, Sequence[Any], Sequence[Any]]


def _about_forward(message: Forward) -> _About:
    name = "copy" if message.keep else "move"
    return f"{name} to {message.destination}", [_place(message.id, message.attr)], [message.new_id]


_ABOUT: dict[type[Message], Callable[[Any], _About]] = {
    Store: lambda message: ("publish" if message.publish else "send", (), (message.id,)),
    Run: lambda message: (operation_name(message.op), _find_pointers(message), ()),
    Call: lambda message: ("call", [message.id, *_find_pointers(message)], ()),
    RunPlan: lambda message: ("run plan", [message.id, *_find_pointers(message)], ()),
    Fetch: lambda message: ("get a copy" if message.keep else "get", (_place(message.id, message.attr),), ()),
    FetchAll: lambda message: ("get", message.ids, ()),
    messages.AskRelease: lambda message: ("ask for release", message.ids, ()),
    Forward: _about_forward,
    messages.Lease: lambda message: ("lease", message.ids, ()),
    messages.Release: lambda message: ("release", message.ids, ()),
    messages.Describe: lambda message: ("ask the form", [_place(id, message.attr) for id in message.ids], ()),
    messages.Tag: lambda message: ("tag", (message.id,), ()),
    messages.SendOn: lambda message: (f"send on to {message.destination}", (message.id,), ()),
    messages.GetBack: lambda message: ("get back", (message.id,), ()),
    messages.GetTicket: lambda message: (f"get a ticket for {message.bearer}", message.ids, ()),
    messages.Introduce: lambda message: (f"introduce {message.worker}", (), ()),
    messages.OpenChannel: lambda message: (f"open a channel of {', '.join(map(str, message.parties))}", (), ()),
    messages.RunProtocol: lambda message: (f"run {message.name}", _find_pointers(message), message.expected),
    messages.Prepare: lambda message: (f"prepare {message.name}", (), ()),
    messages.Deposit: lambda message: (f"deposit for run {message.number}", (), ()),
    messages.Search: lambda message: (f"search {' '.join(map(str, message.query))}".strip(), (), ()),
}


def _find_pointers(message: Run | Call | RunPlan | messages.RunProtocol) -> list[Any]:
    found = [
        leaf
        for leaf in leaves((message.args, getattr(message, "kwargs", ())))
        if isinstance(leaf, ObjectPointer | Here)
    ]
    return [_place(leaf._id_at_location, leaf.point_to_attr) for leaf in found]


def _place(id: int | str, attr: str | None) -> int | str:
    return f"{id}::{attr}" if attr else id


def operation_name(op: str) -> str:
    """Return the short name of an operation of an op table.

    >>> [operation_name(f"frame.Tensor.{name}") for name in ("__add__", "__imul__", "grad.__get__", "__getitem__")]
    ['add', 'mul_', 'grad', 'getitem']
    """
    *path, attr = op.split(".")
    if attr in ("__get__", "__set__"):
        return path[-1] if attr == "__get__" else f"set {path[-1]}"
    for table in (OPERATORS, COMPARATORS, UNARY_OPERATORS, REFLECTED_OPERATORS):
        if attr in table:
            return table[attr]
    if attr in INPLACE_OPERATORS:
        return f"{INPLACE_OPERATORS[attr]}_"
    return attr.removeprefix("__").removesuffix("__")


# --- labels


def _name_objects(events: Sequence[Event]) -> dict[str, str]:
    """Return short names for the ids in a diagram: #1, #2, … in order of appearance."""
    ids = dict.fromkeys(str(id).partition("::")[0] for event in events for id in (*event.objects, *event.results))
    return {id: f"#{number}" for number, id in enumerate(ids, 1)}


def _step(names: dict[str, str], block: Sequence[Event], times: int) -> Step:
    """Return the step for a block of messages: direct repetitions become one arrow, a loop gets a frame."""
    runs = [list(run) for _, run in groupby(block, lambda event: (event.repeat_key(), event.objects))]
    if len(runs) == 1:
        return Step((_arrow(names, block[0], len(block) * times),))
    return Step(tuple([_arrow(names, run[0], len(run)) for run in runs]), times)


def _arrow(names: dict[str, str], event: Event, times: int) -> Arrow:
    details = [event.error, event.form, _bytes(event.bytes) if event.bytes else "", f"{event.seconds * 1e3:.2f} ms"]
    label, title = _label(names, event), " ".join(_cells(event))
    return Arrow(*event.direction, _arrow_kind(event), label, " · ".join(filter(None, details)), title, times)


def _label(names: dict[str, str], event: Event) -> str:
    parts = [[str(id).partition("::") for id in ids] for ids in (event.objects, event.results)]
    objects, results = [", ".join(f"{names[id]}{dots and '.'}{attr}" for id, dots, attr in ids) for ids in parts]
    if event.kind in ("Run", "Call", "RunPlan"):
        label = f"{event.operation}({_shorten(objects)})"
        return f"{label} → {_shorten(results)}" if results else label
    if event.kind == "Forward":
        return f"{event.operation}: {objects} → {results}"
    return f"{event.operation} {_shorten(objects or results)}".strip()


def _arrow_kind(event: Event) -> str:
    if event.error is not None:
        return "failure"
    if event.departs:
        return "departure"
    return {"Run": "compute", "Call": "compute", "Store": "data"}.get(event.kind, "talk")


def _cells(event: Event) -> tuple[str, ...]:
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
