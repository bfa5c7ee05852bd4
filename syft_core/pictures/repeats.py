"""Find repeated sequences, so that pictures show each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

MAX_BLOCK = 120
"""The longest sequence that is recognised as repeated."""
MAX_ITEMS = 2_000
"""How many items are searched for repetitions; pictures only show the beginning."""


def fold(items: Sequence[T], key: Callable[[T], object]) -> list[tuple[list[T], int]]:
    """Replace consecutive repetitions of a sequence by the sequence and its count; items are compared by ``key``.

    >>> fold("xababab!", str)
    [(['x'], 1), (['a', 'b'], 3), (['!'], 1)]
    """
    keys = [key(item) for item in items]
    folded: list[tuple[list[T], int]] = []
    position = 0
    while position < len(items):
        length, times = _best_loop(keys, position)
        block = list(items[position : position + length])
        if times == 1 and folded and folded[-1][1] == 1:
            folded[-1][0].extend(block)
        else:
            folded.append((block, times))
        position += length * times
    return folded


def _best_loop(keys: list[object], start: int) -> tuple[int, int]:
    """Return the length and count of the repetition at ``start`` that saves the most lines."""
    best, saved = (1, 1), 0
    rest = len(keys) - start
    if start > MAX_ITEMS:
        return best
    for length in range(1, min(MAX_BLOCK, rest // 2) + 1):
        times = 1
        pattern = keys[start : start + length]
        while keys[start + times * length : start + (times + 1) * length] == pattern:
            times += 1
        if length * (times - 1) > saved:
            best, saved = (length, times), length * (times - 1)
    return best
