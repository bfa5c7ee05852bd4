"""Compare what would leave with the data it was computed from: its columns, and whether it is rows of that data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.values import Json, Table, Tensor
from syft_core.workers.party.store import Source, Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.ledger import split_failures, tags_of

MAX_ROWS = 1000
"""How many rows of what would leave are looked for."""
MAX_SEARCHED = 4_000_000
"""In how many numbers of the data they are looked for."""
CHUNK = 65_536
MAX_NAMED = 20


def compare(worker: Worker, copy: Stored) -> Table:
    """Return which columns something has, and how many of its rows are rows of the data it was computed from."""
    value = _find_numbers(copy.value)
    found: Table = {}
    if value is None or copy.failures:
        return found
    for source in split_failures(copy.sources)[0]:
        if type(source) is not Source or not source.tags:
            continue
        entry = worker.object_store.get(source.id)
        if entry is None or entry.source is not source:
            continue
        data = _find_numbers(entry.value)
        if data is None or not data.shape:
            continue
        name, names = tags_of(source), entry.schema.names if entry.schema is not None else []
        if names and value.shape[-1:] == (len(names),):
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            found["columns"] = f"as many as {name} has: {', '.join(names[:MAX_NAMED])}{more}"
        if text := _describe_rows(value, data, name) or _describe_column(value, data, names, name):
            found["data"] = text
    return found


def _find_numbers(value: object) -> Tensor | None:
    """Return the dense tensor at the end of a value, if it has numbers that can be compared."""
    end = plain_end(value)
    if end is None:
        return None
    numbers, note = framework_of(end).read_numbers(end)
    return None if numbers is None or note else numbers


def _describe_rows(value: Tensor, data: Tensor, name: str) -> str:
    """Say how many rows of a value are rows of the data; "" if none is, or it has rows of another form."""
    shape, form = tuple(value.shape), tuple(data.shape[1:])
    if shape == form:
        wanted = [_freeze(value.tolist())]
    elif shape[1:] == form and shape:
        wanted = [_freeze(row) for row in value[:MAX_ROWS].tolist()]
    else:
        return ""
    missing = set(wanted)
    for row in _iter_rows(data):
        missing.discard(row)
        if not missing:
            break
    count = sum(row not in missing for row in wanted)
    what = "numbers" if not form else "rows"
    return f"{count} of its {len(wanted)} {what} are {what} of {name}: it is data, and not a result" if count else ""


def _describe_column(value: Tensor, data: Tensor, names: list[str], name: str) -> str:
    """Say which column of the data has all numbers of a flat value; "" if none has."""
    if len(value.shape) > 1 or len(data.shape) != 2 or not math.prod(value.shape):
        return ""
    numbers = set(_flatten(value.reshape(-1)[:MAX_ROWS].tolist())) - {None}
    if not numbers:
        return ""
    for place in range(min(data.shape[1], MAX_ROWS)):
        if numbers.issubset(_flatten(data[:, place][: MAX_SEARCHED // data.shape[1]].tolist())):
            column = repr(names[place]) if place < len(names) else str(place)
            return f"all its numbers are in column {column} of {name}: it may be data, and not a result"
    return ""


def _iter_rows(data: Tensor) -> Iterator[Json]:
    size = max(math.prod(data.shape[1:]), 1)
    step = max(CHUNK // size, 1)
    for start in range(0, min(len(data), max(MAX_SEARCHED // size, 1)), step):
        yield from map(_freeze, data[start : start + step].tolist())


def _freeze(nested: Any) -> Any:
    """Return nested lists as tuples, in which numbers that are missing are equal."""
    if isinstance(nested, list):
        return tuple(map(_freeze, nested))
    return None if nested != nested else nested  # noqa: PLR0124  # NaN is not equal to itself


def _flatten(numbers: list[Any]) -> list[Any]:
    return list(map(_freeze, numbers))
