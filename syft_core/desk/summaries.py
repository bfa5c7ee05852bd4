"""Summaries: what the owner sees of a value before it leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator

from syft_core.hook.chain import plain_end
from syft_core.pictures import form_of
from syft_core.values import Json, Table, Tensor
from syft_core.workers.party.store import Stored

MAX_SHOWN = 64
"""How many numbers are shown one by one."""
MAX_READ = 1_000_000
"""How many numbers a summary reads; of larger tensors, rows at equal distances."""
BARS = 10


def summarize(copy: Stored) -> Table:
    """Return the numbers of a small tensor, or range, mean, norm and histogram of a larger one."""
    value = copy.value
    summary: Table = {"form": form_of(value)}
    end = plain_end(value)
    if end is None:
        return summary | {"note": "its numbers cannot be shown"}
    size = math.prod(end.shape)
    summary["dtype"], summary["numbers"] = str(end.dtype), size
    if size <= MAX_SHOWN:
        summary["values"] = _to_plain(end.tolist())
        return summary
    numbers = [number for number in _read(end, size) if type(number) in (int, float, bool)]
    finite = [float(number) for number in numbers if math.isfinite(number)]
    if not finite:
        return summary | {"note": "it has no finite real numbers"}
    if len(numbers) < size:
        summary["note"] = f"from {len(numbers):,} of {size:,} numbers, in rows at equal distances"
    low, high, mean = min(finite), max(finite), math.fsum(finite) / len(finite)
    deviation = math.sqrt(math.fsum([(number - mean) ** 2 for number in finite]) / len(finite))
    summary |= {"min": low, "max": high, "mean": mean, "deviation": deviation, "norm": math.hypot(*finite)}
    summary["zeros"], summary["not_finite"] = finite.count(0.0), len(numbers) - len(finite)
    summary["histogram"] = _count(finite, low, high)
    return summary


def _count(numbers: list[float], low: float, high: float) -> list[int]:
    """Return how many numbers are in each of ``BARS`` equal parts of the range."""
    counts = [0] * BARS
    width = (high - low) / BARS or 1.0
    for number in numbers:
        counts[min(int((number - low) / width), BARS - 1)] += 1
    return counts


def _read(end: Tensor, size: int) -> Iterator[Json]:
    rows = len(end)
    step = max(-(-size // MAX_READ), 1)
    if step == 1:
        yield from _flatten(end.tolist())
        return
    for row in range(0, rows, min(step, rows)):
        yield from _flatten(end[row].tolist())


def _flatten(nested: Json) -> Iterator[Json]:
    if isinstance(nested, list):
        for part in nested:
            yield from _flatten(part)
    else:
        yield nested


def _to_plain(nested: Json) -> Json:
    if isinstance(nested, list):
        return [_to_plain(part) for part in nested]
    return nested if type(nested) in (int, float, bool, str) else str(nested)
