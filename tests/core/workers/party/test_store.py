from __future__ import annotations

from collections import deque

from syft_core.workers.party.store import MAX_SOURCES, MORE, ObjectStore, Source, Stored, lineage_of


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

    assert lineage_of([state, make_stored("temporary")])[1] is full
    assert lineage_of([make_stored("temporary"), state])[1] is full
    assert {published, MORE} <= lineage_of([state, make_stored(published)])[1]


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
