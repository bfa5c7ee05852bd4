"""Trace: record the messages between workers; names and forms, never values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from syft_core.hook.chain import plain_end
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.location import Location
from syft_core.messages import Message, MessageFacts, Placed
from syft_core.peer import Id
from syft_core.pictures.boxes import form_of
from syft_core.pictures.events import EventList, TraceEvent
from syft_core.pointers.object_pointer import Here, ObjectPointer
from syft_core.values import Nested, Tensor
from syft_core.workers.seeing.tracing import traces

MAX_EVENTS = 20_000
"""The maximum number of messages in a trace; the rest is only counted."""


class Trace(EventList):
    """The messages between workers while a ``with`` block runs; it prints as a table, and renders in a notebook."""

    def __init__(self, limit: int = MAX_EVENTS) -> None:
        super().__init__()
        self.limit = limit

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
    if event.role == "fetch" and not message.facts.returns_masked:
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
    """Return a copy of a message for a log, with pointers without leases, and forms in place of tensors."""

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
    carried = getattr(message, facts.gives) if facts.gives else message.operands
    if role == "data":
        event.form = form_of(carried)
    has_data = any(plain_end(leaf) is not None for leaf in leaves(carried))
    # A client sends its own data; another worker sends data that it holds for others.
    event.departs = role == "fetch" or (has_data and not location.client.is_client_worker)
    return event


def _find_role(facts: MessageFacts) -> str:
    if facts.stores_results:
        return "compute"
    if facts.gives:
        return "data"
    return "fetch" if facts.returns_objects or facts.returns_masked else "talk"


def _form_there(location: Location, ids: Sequence[int | str]) -> str:
    store: Any = getattr(location.face, "object_store", ())
    return _forms([store.entry(id).value for id in ids if id in store])


def _forms(values: Sequence[object]) -> str:
    forms = Counter(map(form_of, values))
    return ", ".join([form if times == 1 else f"{times} x {form}" for form, times in forms.items()])


def _objects(message: Message) -> tuple[Id, ...]:
    pointers = [leaf for leaf in leaves(message.operands) if isinstance(leaf, ObjectPointer | Here)]
    named = [_place(id, getattr(message, "attr", None)) for id in message.facts.uses(message, "")]
    return (*named, *[_place(leaf._id_at_location, leaf.point_to_attr) for leaf in pointers])


def _results(message: Message) -> tuple[Id, ...]:
    if message.facts.stores_results:
        return ()
    return tuple(message.expected) or message.facts.creates(message, "")


def _place(id: int | str, attr: str | None) -> int | str:
    return f"{id}::{attr}" if attr else id
