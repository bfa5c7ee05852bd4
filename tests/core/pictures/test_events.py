from __future__ import annotations

from syft_core.pictures.events import EventList, TraceEvent
from syft_core.workers.seeing.trace import Trace


def events_of(*events: TraceEvent) -> EventList:
    found = EventList()
    found.events.extend(events)
    return found


def test_a_fetched_object_is_drawn_from_the_worker_to_the_client() -> None:
    fetched = TraceEvent("Fetch", "get", "me", "bob", "fetch", (1,))
    failed = TraceEvent("Fetch", "get", "me", "bob", "fetch", (1,), error="GetNotPermittedError")

    assert fetched.direction == ("bob", "me")
    assert failed.direction == ("me", "bob")


def test_departures_and_bytes_are_counted() -> None:
    run = TraceEvent("Run", "add", "me", "bob", "compute", (1, 2), (3,), seconds=0.002)
    fetched = TraceEvent("Fetch", "get", "me", "bob", "fetch", (3,), bytes=1500, seconds=0.001, departs=True)

    seen = events_of(run, fetched)

    assert seen.departures == [fetched]
    assert seen.summary() == "2 messages, 1 departure, 1.5 kB, 3.0 ms"


def test_no_messages_are_said_in_words() -> None:
    assert str(events_of()) == "no messages"
    assert events_of()._repr_html_() == "<div>no messages</div>"


def test_the_names_of_workers_and_operations_are_escaped() -> None:
    page = events_of(TraceEvent("Search", "<script>", "<me>", "bob", "talk", ()))._repr_html_()

    assert "<script>" not in page
    assert "<me>" not in page


def test_a_long_trace_is_truncated_with_a_note() -> None:
    seen = Trace(limit=150)
    for number in range(160):
        seen.note(TraceEvent("Search", f"search #{number * number}", "me", "bob", "talk", ()))

    assert len(seen) == 150
    assert "100 later messages not shown" in seen.svg()
    assert "100 later messages not shown" in str(seen)
    assert seen.svg(rows=None).count("<g>") == 150
    assert "10 later messages not shown" in seen.table(rows=None)
