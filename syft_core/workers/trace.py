"""Trace: the messages between workers, as a table and as a sequence diagram; names and forms, never values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from syft_core.hook.attributes import COMPARATORS, INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS, UNARY_OPERATORS
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves
from syft_core.location import Location
from syft_core.messages import (
    AskRelease,
    Call,
    Describe,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    Lease,
    Message,
    Placed,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.pictures import Arrow, Step, end_of, fold, form_of, html_table, sequence_svg, text_table
from syft_core.pointers.object_pointer import Here, ObjectPointer

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

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def table(self, rows: int | None = MAX_ROWS) -> str:
        """Return the first ``rows`` lines of the message table as text; None means all."""
        if not self.events:
            return NOTHING
        lines, more = self._lines(rows)
        return "\n".join([text_table(self.HEADER, lines), *([more] if more else []), self.summary()])

    def svg(self, rows: int | None = MAX_ROWS) -> str:
        """Return a sequence diagram of the first ``rows`` arrows; None means all."""
        blocks, more = self._blocks(rows)
        names = _Names(self.events)
        steps = [_step(names, block, times) for block, times in blocks]
        drawn = [name for step in steps for arrow in step.arrows for name in (arrow.start, arrow.end)]
        first = [self.events[0].sender] if self.events else []
        return sequence_svg(
            list(dict.fromkeys([*first, *drawn])), steps, "; ".join(filter(None, [self.summary(), more]))
        )

    def save(self, path: str | Path, rows: int | None = MAX_ROWS) -> Path:
        """Write the sequence diagram to a file and return its path."""
        path = Path(path)
        path.write_text(self.svg(rows), encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        if not self.events:
            return f"<div>{NOTHING}</div>"
        lines, more = self._lines(MAX_ROWS)
        caption = "; ".join(filter(None, [self.summary(), more]))
        table = html_table(caption, self.HEADER, lines)
        return f"<div>{self.svg()}<details><summary>table</summary>{table}</details></div>"

    def _lines(self, rows: int | None) -> tuple[list[tuple[str, ...]], str]:
        blocks, more = self._blocks(rows)
        lines = []
        for block, times in blocks:
            for number, event in enumerate(block):
                lines.append((_bracket(number, len(block), times), *_cells(event)))
        return lines, more

    def _blocks(self, rows: int | None) -> tuple[list[tuple[list[Event], int]], str]:
        """Return the messages with repetitions folded, and a note about those not shown."""
        shown, left, drawn = [], rows, 0
        for block, times in fold(self.events, Event.repeat_key):
            if left is not None and left <= 0:
                break
            kept = block if left is None else block[:left]
            shown.append((kept, times))
            drawn += len(block) * times if len(kept) == len(block) else len(kept)
            left = None if left is None else left - len(kept)
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
    elif isinstance(message, Run | Call):
        event.results = tuple([placed.id for placed in _placed(reply)]) or tuple(message.expected)
        changed = reply is None and not event.results
        event.form = _form_there(location, event.objects[:1] if changed else event.results)
    return reply


def summary(message: Message) -> str:
    """Return the operation and the ids of a message in one line; never a value."""
    operation, objects, results = _ABOUT[type(message)](message)
    return " ".join([operation, *map(str, objects), *map(str, results)])


def _placed(reply: Any) -> Iterator[Placed]:
    """Yield the placeholders in a reply."""
    return (leaf for leaf in leaves(reply) if isinstance(leaf, Placed))


def _event(location: Location, message: Message) -> Event:
    """Describe a message before it is sent, without keeping its objects alive."""
    operation, objects, results = _ABOUT[type(message)](message)
    event = Event(
        type(message).__name__,
        operation,
        str(location.client.id),
        str(location.id),
        tuple(objects),
        tuple(results),
    )
    if isinstance(message, Store):
        event.form = form_of(message.value)
    # A client sends its own data; another worker sends data that it holds for others.
    event.departs = isinstance(message, Fetch | FetchAll) or (
        _carries_data(message) and not location.client.is_client_worker
    )
    return event


def _carries_data(message: Message) -> bool:
    """Return whether a message contains tensors, and not only pointers."""
    carried = message.value if isinstance(message, Store) else getattr(message, "args", ())
    return any(is_framework_tensor(type(end_of(leaf))) for leaf in leaves(carried))


def _form_there(location: Location, ids: Sequence[int | str]) -> str:
    """Return the forms of objects on a worker, if it is in this process."""
    store: Any = getattr(location.face, "object_store", ())
    return _forms([store.entry(id).value for id in ids if id in store])


def _forms(values: Sequence[Any]) -> str:
    forms = Counter(map(form_of, values))
    return ", ".join([form if times == 1 else f"{times} x {form}" for form, times in forms.items()])


_About = tuple[str, Sequence[Any], Sequence[Any]]


def _about_run(message: Run) -> _About:
    return operation_name(message.op), _find_pointers((message.args, message.kwargs)), ()


def _about_call(message: Call) -> _About:
    return "call", [message.id, *_find_pointers((message.args, message.kwargs))], ()


def _about_forward(message: Forward) -> _About:
    name = "copy" if message.keep else "move"
    return f"{name} to {message.destination}", [_place(message.id, message.attr)], [message.new_id]


_ABOUT: dict[type[Message], Callable[[Any], _About]] = {
    Store: lambda message: ("publish" if message.publish else "send", (), (message.id,)),
    Run: _about_run,
    Call: _about_call,
    Fetch: lambda message: ("get a copy" if message.keep else "get", (_place(message.id, message.attr),), ()),
    FetchAll: lambda message: ("get", message.ids, ()),
    AskRelease: lambda message: ("ask for release", message.ids, ()),
    Forward: _about_forward,
    Lease: lambda message: ("lease", message.ids, ()),
    Release: lambda message: ("release", message.ids, ()),
    Describe: lambda message: ("ask the form", [_place(id, message.attr) for id in message.ids], ()),
    Tag: lambda message: ("tag", (message.id,), ()),
    SendOn: lambda message: (f"send on to {message.destination}", (message.id,), ()),
    GetBack: lambda message: ("get back", (message.id,), ()),
    Search: lambda message: (f"search {' '.join(map(str, message.query))}".strip(), (), ()),
}


def _find_pointers(args: Any) -> list[Any]:
    found = [leaf for leaf in leaves(args) if isinstance(leaf, ObjectPointer | Here)]
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


class _Names:
    """Short names for ids in a diagram: #1, #2, … in order of appearance."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._names: dict[str, str] = {}
        for event in events:
            for id in (*event.objects, *event.results):
                self._names.setdefault(str(id).partition("::")[0], f"#{len(self._names) + 1}")

    def of(self, id: int | str) -> str:
        """Return the short name of an id, with its attribute if it has one."""
        plain, _, attr = str(id).partition("::")
        return self._names[plain] + (f".{attr}" if attr else "")

    def arrow(self, event: Event) -> Arrow:
        """Return the arrow for a message."""
        start, end = event.direction
        details = [event.error, event.form, _bytes(event.bytes) if event.bytes else "", f"{event.seconds * 1e3:.2f} ms"]
        return Arrow(
            start,
            end,
            _arrow_kind(event),
            self._label(event),
            " · ".join(filter(None, details)),
            " ".join(_cells(event)),
        )

    def _label(self, event: Event) -> str:
        objects, results = ", ".join(map(self.of, event.objects)), ", ".join(map(self.of, event.results))
        if event.kind in ("Run", "Call"):
            label = f"{event.operation}({_shorten(objects)})"
            return f"{label} → {_shorten(results)}" if results else label
        if event.kind == "Forward":
            return f"{event.operation}: {objects} → {results}"
        return f"{event.operation} {_shorten(objects or results)}".strip()


def _step(names: _Names, block: Sequence[Event], times: int) -> Step:
    """Return the step for a block of messages: direct repetitions become one arrow, a loop gets a frame."""
    runs = [list(run) for _, run in groupby(block, lambda event: (event.repeat_key(), event.objects))]
    arrows = [(names.arrow(run[0]), len(run)) for run in runs]
    if len(arrows) == 1:
        return Step((arrows[0][0]._replace(times=arrows[0][1] * times),))
    return Step(tuple([arrow._replace(times=n) for arrow, n in arrows]), times)


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
