"""ObjectStore: what a worker holds, who may have it, and what it was computed from."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError

MOST_SOURCES = 64
"""How many sources the lineage of one object names; beyond that it says that there are more."""
MOST_REMEMBERED = 1024
"""How many ends of objects are remembered, for the error that says what became of one."""

NOTHING: frozenset[Any] = frozenset()
MORE = "…"


class Stored:
    """One object with what its worker knows of it."""

    __slots__ = ("access", "description", "graph", "leases", "published", "sources", "tags", "value")

    def __init__(self, value: Any, published: bool = False) -> None:
        self.value = value
        self.leases = 1
        self.published = published
        self.access: frozenset[str] | None = None
        """The users who may have it; None when nothing restricts it."""
        self.sources: frozenset[Any] = NOTHING
        """The ids of the objects it was computed from, itself when it came from outside."""
        self.graph: frozenset[Any] = NOTHING
        """The ids of the objects that a backward pass from here would give gradients to."""
        self.tags: frozenset[str] = NOTHING
        self.description: str | None = None


class ObjectStore:
    """Objects by id, with an index of their tags."""

    def __init__(self, owner_id: Any) -> None:
        self._owner_id = owner_id
        self._entries: dict[int | str, Stored] = {}
        self._tagged: dict[str, set[int | str]] = {}
        self._ended: OrderedDict[int | str, str] = OrderedDict()

    def put(self, id: int | str, entry: Stored) -> None:
        """Keep ``entry`` under an id that is free."""
        if id in self._entries:
            raise IdNotUniqueError.of(id)
        self._entries[id] = entry
        if entry.tags:
            self._index(id, entry.tags)

    def entry(self, id: int | str) -> Stored:
        """Return what is kept under ``id``, or say what became of it."""
        entry = self._entries.get(id)
        if entry is None:
            history = self._ended.get(id)
            if history is None:
                raise ObjectNotFoundError.on(id, self._owner_id)
            raise ObjectNotFoundError.on(id, self._owner_id, history)
        return entry

    def remove(self, id: int | str, why: str) -> Stored:
        """Drop an object and remember why."""
        entry = self.entry(id)
        del self._entries[id]
        for tag in entry.tags:
            self._tagged.get(tag, set()).discard(id)
        self._ended[id] = f"{why} at {time.strftime('%H:%M:%S')}"
        if len(self._ended) > MOST_REMEMBERED:
            self._ended.popitem(last=False)
        return entry

    def release(self, ids: Iterable[int | str]) -> None:
        """Count one lease less for each; drop what has none left and is not published."""
        entries = self._entries
        for id in ids:
            entry = entries.get(id)
            if entry is not None:
                entry.leases -= 1
                if entry.leases <= 0 and not entry.published:
                    del entries[id]
                    for tag in entry.tags:
                        self._tagged.get(tag, set()).discard(id)

    def tag(self, id: int | str, tags: Iterable[str], description: str | None = None) -> None:
        """Add tags and a description to an object."""
        entry = self.entry(id)
        entry.tags = entry.tags.union(tags)
        self._index(id, tags)
        if description is not None:
            entry.description = description

    def search(self, query: Iterable[Any]) -> list[int | str]:
        """Return the ids of all objects that match every part of ``query``; without parts, of all tagged ones."""
        parts = list(query)
        if not parts:
            return [id for id, entry in self._entries.items() if entry.tags]
        matches = [self._matching(part) for part in parts]
        return [id for id in self._entries if all(id in found for found in matches)]

    def clear(self, why: str) -> None:
        """Drop everything."""
        for id in list(self._entries):
            self.remove(id, why)

    def values(self) -> dict[int | str, Any]:
        """Return the objects by id."""
        return {id: entry.value for id, entry in self._entries.items()}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[int | str]:
        return iter(list(self._entries))

    def __contains__(self, id: object) -> bool:
        return id in self._entries

    def _index(self, id: int | str, tags: Iterable[str]) -> None:
        for tag in tags:
            self._tagged.setdefault(tag, set()).add(id)

    def _matching(self, part: Any) -> set[int | str]:
        found = set(self._tagged.get(part, ()))
        found |= {id for id in self._entries if id == part or str(id) == str(part)}
        found |= {id for id, entry in self._entries.items() if entry.description and str(part) in entry.description}
        return found


def derive(results: Iterable[Stored], parents: list[Stored]) -> None:
    """Let ``results`` take over what restricts their parents and what those were computed from."""
    access, sources, graph = _combined(parents)
    for result in results:
        result.access, result.sources, result.graph = access, sources, graph


def _combined(parents: list[Stored]) -> tuple[frozenset[str] | None, frozenset[Any], frozenset[Any]]:
    if not parents:
        return None, NOTHING, NOTHING
    first = parents[0]
    if len(parents) == 1:
        return first.access, first.sources, first.graph
    access, sources, graph = first.access, first.sources, first.graph
    for parent in parents[1:]:
        if parent.access is not access and parent.access is not None:
            access = parent.access if access is None else access & parent.access
        if parent.sources is not sources:
            sources = _bounded(sources | parent.sources)
        if parent.graph is not graph:
            graph = graph | parent.graph
    return access, sources, graph


def _bounded(sources: frozenset[Any]) -> frozenset[Any]:
    if len(sources) <= MOST_SOURCES:
        return sources
    return frozenset([*[s for s in sources if s != MORE][: MOST_SOURCES - 1], MORE])
