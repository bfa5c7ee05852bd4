from __future__ import annotations

from collections import deque

from syft_core.workers.party.store import MAX_SOURCES, MORE, FailedSource, ObjectStore, Source, Stored, lineage_of


def make_stored(*sources: object) -> Stored:
    entry = Stored(None, "me")
    entry.sources = frozenset(sources)
    return entry


def test_the_lineage_of_a_long_loop_keeps_the_data_that_recurs_in_it() -> None:
    state = make_stored("data", "labels")
    for number in range(10 * MAX_SOURCES):
        gradient = make_stored("data", "labels", number)
        state.lineage = lineage_of([state, gradient])

    assert {"data", "labels", MORE} <= state.sources
    assert len(state.sources) == MAX_SOURCES


def test_a_full_lineage_stays_the_same_object_until_something_lasting_joins_it() -> None:
    state = make_stored(*range(2 * MAX_SOURCES))
    state.lineage = lineage_of([make_stored("data"), state])
    full = state.sources
    published = Source(7)
    published.published = True

    assert lineage_of([state, make_stored(-1)])[1] is full
    assert lineage_of([make_stored(-1), state])[1] is full
    assert {published, MORE} <= lineage_of([state, make_stored(published)])[1]


def test_a_source_that_is_not_stored_here_is_not_displaced_by_failures() -> None:
    state = make_stored("a command's argument", *range(MAX_SOURCES - 3))
    failed = [FailedSource("torch.bernoulli", str(number)) for number in range(MAX_SOURCES)]

    assert "a command's argument" in lineage_of([make_stored(*failed), state])[1]
    assert "a command's argument" in lineage_of([state, make_stored(*failed)])[1]


def test_a_short_lineage_is_complete() -> None:
    assert lineage_of([make_stored(1, 2), make_stored(2, 3), make_stored()])[1] == {1, 2, 3}


def test_objects_are_counted_until_they_are_removed() -> None:
    store, value = ObjectStore("bob"), object()
    for id in (1, 2, 3):
        store.put(id, Stored(value, "me"))
    assert set(map(len, store.alike.values())) == {3}
    store.replace(store.entry(1), object())
    assert sorted(map(len, store.alike.values())) == [1, 2]
    store.release(deque([(1, "me"), (2, "me")]))
    store.remove(3, "a test")
    assert not store.alike


def test_held_objects_are_counted_until_the_last_command_drops_them() -> None:
    store, entry = ObjectStore("bob"), Stored(object(), "me")
    store.put(1, entry)
    store.hold(entry)
    store.hold(entry)
    assert list(store.iter_all()) == [entry]

    store.remove(1, "a test")
    store.drop(entry)
    assert list(store.iter_all()) == store.alike[entry.key] == [entry]

    store.drop(entry)
    assert not store.alike
    assert not list(store.iter_all())


def test_objects_that_are_stored_outlast_their_commands() -> None:
    store, entry = ObjectStore("bob"), Stored(object(), "me")
    store.put(1, entry)
    store.hold(entry)

    store.drop(entry)

    assert store.alike[entry.key] == [entry]
    store.release(deque([(1, "me")]))
    assert not store.alike
