"""Patterns: the forms that a rule of the owner lets leave, parsed; they match the forms of what would leave.

A pattern looks like a form: ``Parameter[10, *] float16, Tensor[]``. A size is a number, ``*`` for any number, or
``...`` for any number of sizes, at most once in a form. A form without a dtype is one of the default floating-point
numbers of its framework, stored densely: any other dtype is named, and so is any other way to store the numbers.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

ANY_SIZE, ANY_SIZES = "*", "..."
MAX_DIGITS = 18
DEFAULT = "default float"
"""What is shown for a form without a dtype."""
LEGEND = (
    "In a form, * stands for one size and ... for any number of sizes. A form without a dtype means the default "
    "floating-point numbers of the framework: float32 for torch, float64 for numpy."
)
_FORM = re.compile(r"([A-Za-z_]\w*(?:>[A-Za-z_]\w*)*)\[([^\[\]]*)\]((?: (?!of\b)\w+){0,2})")
_EXAMPLE = "write it as `syft-core requests` shows it, such as 'Tensor[3, *]' or 'Tensor[3, 4] int64'"


class Pattern(NamedTuple):
    """One form: the types of its chain, its sizes, and the words for its dtype and storage, if it has any."""

    types: str
    sizes: tuple[str, ...]
    words: str

    def covers(self, other: Pattern) -> bool:
        """Return whether an object's form matches."""
        return (self.types, self.words) == (other.types, other.words) and _cover_sizes(self.sizes, other.sizes)

    def describe(self) -> str:
        """Return the form as text, with the default for a missing dtype."""
        return f"{self.types}[{', '.join(self.sizes)}] {self.words or f'({DEFAULT})'}"


@lru_cache(maxsize=1024)
def parse_forms(text: str) -> tuple[Pattern, ...]:
    """Return the forms in a text; raise ``ValueError`` if it is anything else."""
    found: list[Pattern] = []
    place = 0
    while not found or place < len(text):
        if found:
            if not text.startswith(", ", place):
                raise ValueError(_explain_rest(text[place:]))
            place += len(", ")
        matched = _FORM.match(text, place)
        if matched is None:
            raise ValueError(f"{text[place : place + 80]!r} is not a form; {_EXAMPLE}")
        types, sizes, words = matched.groups()
        found.append(Pattern(types, _read_sizes(sizes), words.strip()))
        place = matched.end()
    return tuple(found)


def cover(wanted: str, forms: str) -> bool:
    """Return whether the forms that a rule names cover those of all objects that would leave, in their order."""
    try:
        found = parse_forms.__wrapped__(forms)  # Peers choose them: they must not fill the cache.
    except ValueError:  # It is not a tensor, or one that no rule can name.
        return False
    patterns = parse_forms(wanted)
    return len(patterns) == len(found) and all(map(Pattern.covers, patterns, found))


def describe_forms(text: str) -> str:
    """Return forms as they are shown to owners."""
    return ", ".join([pattern.describe() for pattern in parse_forms(text)])


def count_numbers(forms: str) -> int | None:
    """Return how many numbers objects of these forms have; None if the forms leave it open."""
    try:
        found = parse_forms.__wrapped__(forms)
    except ValueError:
        return None
    sizes = [size for pattern in found for size in pattern.sizes]
    return sum(math.prod(map(int, p.sizes)) for p in found) if all(map(str.isdigit, sizes)) else None


def _read_sizes(text: str) -> tuple[str, ...]:
    sizes = tuple([size.strip() for size in text.split(",")]) if text.strip() else ()
    for size in sizes:
        is_number = size.isascii() and size.isdigit() and len(size) <= MAX_DIGITS
        if not (is_number or size in (ANY_SIZE, ANY_SIZES)):
            raise ValueError(
                f"{size!r} is not a size; write a number, '*' for one size, or '...' for any number of sizes"
            )
    if sizes.count(ANY_SIZES) > 1:
        raise ValueError("'...' stands for any number of sizes; write it once in a form")
    return tuple([str(int(size)) if size.isdigit() else size for size in sizes])


def _cover_sizes(wanted: tuple[str, ...], sizes: tuple[str, ...]) -> bool:
    if ANY_SIZES not in wanted:
        return len(wanted) == len(sizes) and all(map(_cover_size, wanted, sizes))
    first = wanted.index(ANY_SIZES)
    last = len(wanted) - first - 1
    if len(sizes) < first + last:
        return False
    return all(map(_cover_size, wanted[:first], sizes)) and all(
        map(_cover_size, wanted[first + 1 :], sizes[len(sizes) - last :])
    )


def _cover_size(wanted: str, size: str) -> bool:
    return wanted in (ANY_SIZE, size)


def _explain_rest(rest: str) -> str:
    if rest.startswith(" of "):
        return "a rule cannot require a protocol; leave out ' of …', and it covers whatever has this form"
    return f"{rest[:80]!r} is not part of a form; {_EXAMPLE}"
