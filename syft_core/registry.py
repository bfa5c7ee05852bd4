"""A write-once registry with helpful errors for missing keys."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from syft_core.exceptions import AlreadyRegisteredError, NotRegisteredError

K = TypeVar("K")
V = TypeVar("V")


class Registry(Mapping[K, V]):
    """Map keys to values; each key can be set once, and the error for a missing key suggests similar ones.

    >>> colours = Registry("colours", advice="add it with `colours.register(name, value)`")
    >>> colours.register("red", 1)
    >>> colours["red"]
    1
    >>> colours["rad"]
    Traceback (most recent call last):
    ...
    syft_core.exceptions.NotRegisteredError: cannot find 'rad' in 'colours': it is not registered; did you mean \
'red'? otherwise add it with `colours.register(name, value)`
    """

    def __init__(
        self,
        name: str,
        *,
        advice: str = "register it first",
        show: Callable[[K], str] | None = None,
        load: Callable[[K], bool] | None = None,
    ) -> None:
        self.name = name
        self._load = load
        """Loads the feature with a missing key; returns whether there is a reason to look again. See ``Features``."""
        self._advice = advice
        self._show: Callable[[K], str] = show or _describe
        self._entries: dict[K, V] = {}

    def register(self, key: K, value: V) -> None:
        """Register ``value`` under ``key``; registering the same object again has no effect."""
        self.update({key: value})

    def update(self, entries: Mapping[K, V]) -> None:
        """Register all of ``entries``, or none if a key is taken."""
        self.require_free(entries)
        self._entries.update(entries)

    def require_free(self, entries: Mapping[K, V]) -> None:
        """Raise if a key of ``entries`` already has another value."""
        for key, value in entries.items():
            if key in self._entries and self._entries[key] is not value:
                raise AlreadyRegisteredError.of(self.name, self._show(key))

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def __getitem__(self, key: K) -> V:
        try:
            return self._entries[key]
        except KeyError:
            if self._load is not None and self._load(key) and key in self._entries:
                return self._entries[key]
            raise self.missing_error(key) from None

    def missing_error(self, key: K) -> NotRegisteredError:
        """Return the error for a missing ``key``."""
        shown = self._show(key)
        names = {self._show(k): None for k in self._entries}
        near = difflib.get_close_matches(shown, list(names), n=2)
        return NotRegisteredError.of(self.name, shown, near, self._advice)

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]  # no sentinel types
        """Return the value under ``key``, or ``default``."""
        found = self._entries.get(key)
        if found is None and self._load is not None and self._load(key):
            found = self._entries.get(key)
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<Registry {self.name}: {len(self)} entries>"


def _describe(key: object) -> str:
    return f"{key.__module__}.{key.__qualname__}" if isinstance(key, type) else repr(key)


def takes(function: object, count: int) -> bool:
    """Return whether a function can be called with ``count`` positional arguments.

    >>> takes(len, 1), takes(len, 2), takes("len", 1)
    (True, False, False)
    """
    try:
        inspect.signature(function).bind(*[None] * count)  # type: ignore[arg-type]  # raises if it is not a function
    except TypeError:
        return False
    except ValueError:  # It has no signature, like a function that is imported when it is first called.
        return callable(function)
    return True
