"""Remove what a recorded function has left in variables, attributes and caches: its tensors end with the recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import CellType, FunctionType, ModuleType
from typing import Any
from weakref import ReferenceType

from syft_core.location import Location
from syft_core.plans.capture import (
    MAX_OBJECTS,
    find_captured,
    find_globals,
    find_own_classes,
    is_of_library,
    is_part_of_library,
    is_tensor_like,
)


class Leftovers:
    """What is in the variables, attributes and caches of a function before it is recorded."""

    def __init__(self, objects: Sequence[object]) -> None:
        self._owners = [[(place, place.read()) for place in places] for places in _find_places(objects)]
        self._caches = [(cache, cache.cache_info().currsize) for cache in _find_caches(objects)]

    def remove(self, location: Location) -> None:
        """Restore each object that refers to tensors of a location now, and clear caches that have grown."""
        for places in self._owners:
            changes = [value for place, before in places for value in place.find_changed(before)]
            if any(_refers_to(value, location) for value in changes):
                for place, before in places:
                    place.write(before)
        for cache, size in self._caches:
            if cache.cache_info().currsize != size:
                cache.cache_clear()


@dataclass(frozen=True)
class _Place:
    """A dict, a list or a closure variable, as values by key."""

    held: Any
    names: frozenset[str] | None = None
    """The keys of a dict that count; None for all."""

    def read(self) -> dict[Any, Any]:
        if isinstance(self.held, dict):
            return {key: value for key, value in self.held.items() if self.names is None or key in self.names}
        if isinstance(self.held, CellType):
            with suppress(ValueError):  # It has no value yet.
                return {None: self.held.cell_contents}
            return {}
        return dict(enumerate(self.held))

    def find_changed(self, before: dict[Any, Any]) -> list[Any]:
        """Return the values that are new."""
        now = self.read()
        return [value for key, value in now.items() if key not in before or before[key] is not value]

    def write(self, before: dict[Any, Any]) -> None:
        if isinstance(self.held, CellType):
            if before:
                self.held.cell_contents = before[None]
        elif isinstance(self.held, dict):
            for key in self.read().keys() - before.keys():
                del self.held[key]
            self.held.update(before)
        else:
            self.held.clear()
            self.held.extend(before.values())


def _refers_to(value: object, location: Location) -> bool:
    ends = [getattr(found, "child", None) for found in find_captured(value)]  # type: ignore[arg-type]  # any object
    return any(getattr(end, "_location", None) is location for end in ends)


def _find_places(objects: Sequence[object]) -> list[list[_Place]]:
    """Return the places that belong to each object: variables of functions, attributes, and containers in them."""
    seen: set[tuple[int, frozenset[str] | None]] = set()
    return [_follow(thing, seen) for thing in objects]


def _follow(thing: object, seen: set[tuple[int, frozenset[str] | None]]) -> list[_Place]:
    waiting, found = _find_own_places(thing), []
    while waiting and len(seen) < MAX_OBJECTS:
        place = waiting.pop()
        values = place.read().values()
        key = id(place.held), place.names
        if key not in seen and not any(isinstance(value, ReferenceType) for value in values):
            seen.add(key)
            found.append(place)
            waiting += [_Place(value) for value in values if isinstance(value, dict | list | deque)]
    return found


def _find_own_places(thing: object) -> list[_Place]:
    if isinstance(thing, FunctionType):
        if is_of_library(thing):
            return []
        read = _Place(thing.__globals__, frozenset(find_globals(thing.__code__)))
        return [read, _Place(list(thing.__defaults__ or ())), *map(_Place, thing.__closure__ or ())]
    if isinstance(thing, ModuleType) or is_tensor_like(thing) or is_part_of_library(thing):
        return []
    return [_Place(getattr(thing, "__dict__", {}))]


def _find_caches(objects: Sequence[object]) -> list[Any]:
    classes = dict.fromkeys([cls for thing in objects for cls in find_own_classes(thing)])
    own = [value for cls in classes for value in vars(cls).values()]
    return [thing for thing in (*objects, *own) if hasattr(type(thing), "cache_clear")]
