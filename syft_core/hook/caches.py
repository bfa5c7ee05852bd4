"""Caches of bounded size, because some keys contain arguments that a peer has sent."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

LIMIT = 8192
"""The maximum number of entries in a cache; programs have a few hundred signatures."""
MAX_WEIGHT = 1 << 19
"""The maximum number of parts in the keys of a cache, about 100 bytes each."""

_weights: dict[int, int] = {}
"""The number of key parts added to a cache since it was last cleared, by identity of the cache."""


def remember(cache: dict[K, V], key: K, value: V) -> V:
    """Add a value to a cache, clearing a full one first; return the value.

    >>> cache = dict.fromkeys(range(LIMIT))
    >>> remember(cache, "a", 1), cache
    (1, {'a': 1})
    """
    weight = _weigh(key)
    total = _weights.get(id(cache), 0) + weight
    if len(cache) >= LIMIT or total > MAX_WEIGHT:
        cache.clear()
        total = weight
    _weights[id(cache)] = total
    cache[key] = value
    return value


def _weigh(part: object) -> int:
    """Return the number of parts of a key.

    >>> _weigh(("add", (int, (float, 1))))
    7
    """
    if isinstance(part, tuple):
        return 1 + sum(map(_weigh, part))
    return 1 + len(part) // 64 if type(part) is str else 1
