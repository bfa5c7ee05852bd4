"""Summaries: what the owner sees of a value before it leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from syft_core.hook.chain import plain_end
from syft_core.pictures import form_of
from syft_core.values import Json, Table, Tensor
from syft_core.workers.party.store import Stored

MAX_SHOWN = 64
"""How many numbers are shown one by one."""
MAX_READ = 1_000_000
"""How many numbers a summary reads; of larger tensors, some at equal distances."""
BARS = 10
SMALL = 2**24
"""The numbers of a share are uniform in 64 bits: one in 2**39 has a smaller magnitude."""


def summarize(copy: Stored, parties: Sequence[str] = ()) -> Table:
    """Return the numbers of a small tensor, or range, mean, norm and histogram of a larger one.

    If the asker says that it is a share, ``parties`` hold the shares. Nobody can verify that from one of them.
    """
    value = copy.value
    summary: Table = {"form": form_of(value)}
    if parties:
        summary["part_of"] = (
            f"according to the asker, a share of a value: the sum of what {' and '.join(parties)} hold. One share "
            f"looks random; all of them together are the value, so release it only if the value may leave"
        )
    end = plain_end(value)
    if end is None:
        return summary | {"note": "its numbers cannot be shown"}
    size = math.prod(end.shape)
    summary["dtype"], summary["numbers"] = str(end.dtype), size
    if size <= MAX_SHOWN:
        summary["values"] = _to_plain(end.tolist())
    numbers = [number for number in _read(end, size) if type(number) in (int, float, bool)]
    if parties and "int64" in summary["dtype"] and any(abs(number) < SMALL for number in numbers):
        summary["warning"] = "it has numbers that are too small for a share; it may be the value itself"
    if size <= MAX_SHOWN:
        return summary
    finite = [float(number) for number in numbers if math.isfinite(number)]
    if not finite:
        return summary | {"note": "it has no finite real numbers"}
    if len(numbers) < size:
        summary["note"] = f"from {len(numbers):,} of {size:,} numbers, at equal distances"
    low, high = min(finite), max(finite)
    scale = max(-low, high) or 1.0  # So that nothing below overflows, whatever numbers the asker has put there.
    scaled = [number / scale for number in finite]
    mean = math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum([(number - mean) ** 2 for number in scaled]) / len(scaled))
    summary |= {"min": low, "max": high, "mean": mean * scale, "deviation": deviation * scale}
    summary["norm"] = _to_plain(math.hypot(*scaled) * scale)
    summary["zeros"], summary["not_finite"] = finite.count(0.0), len(numbers) - len(finite)
    summary["histogram"] = _count(scaled)
    return summary


def _count(numbers: list[float]) -> list[int]:
    """Return how many numbers are in each of ``BARS`` equal parts of the range."""
    counts, low = [0] * BARS, min(numbers)
    width = (max(numbers) - low) / BARS or 1.0
    for number in numbers:
        counts[min(int((number - low) / width), BARS - 1)] += 1
    return counts


def _read(end: Tensor, size: int) -> list[Json]:
    """Return numbers of a tensor, at equal distances if it has many."""
    return list(end.reshape(-1)[:: max(-(-size // MAX_READ), 1)].tolist())


def _to_plain(nested: Json) -> Json:
    """Return numbers as JSON has them, and others as text."""
    if isinstance(nested, list):
        return [_to_plain(part) for part in nested]
    is_plain = type(nested) in (int, bool, str) or (type(nested) is float and math.isfinite(nested))
    return nested if is_plain else str(nested)
