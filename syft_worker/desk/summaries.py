"""Summaries: what the owner sees of a value before it leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.ledgers.entry import describe_failed
from syft_core.values import Json, Table, Tensor
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.ledger import describe_value

MAX_SHOWN = 64
"""How many numbers are shown one by one."""
MAX_READ = 1_000_000
"""Maximum numbers that a summary reads; larger tensors are sampled at equal distances."""
BARS = 10
SMALL = 2**24
"""The numbers of a share are uniform in 64 bits: one in 2**39 has a smaller magnitude."""


def summarize(copy: Stored, parties: Sequence[str] = ()) -> Table:
    """Return the numbers of a small tensor, or range, mean, norm and histogram of a larger one.

    If the asker says that it is a share, ``parties`` hold the shares. Nobody can verify that from one of them.
    """
    value = copy.value
    summary: Table = {"form": describe_value(value)}
    if parties:
        summary["part_of"] = (
            f"according to the asker, a share of a value: the sum of what {' and '.join(parties)} hold. One share "
            f"looks random; all of them together are the value, so release it only if the value may leave"
        )
    if copy.failures:
        summary["failed"] = f"{describe_failed(len(copy.failures))[1:-1]}: it is a stand-in, and not a result"
    end = plain_end(value)
    if end is None:
        return summary | {"note": "its numbers cannot be shown"}
    summary["dtype"] = str(end.dtype)
    try:
        return _summarize_numbers(summary, end, is_share=bool(parties))
    except (RuntimeError, TypeError, ValueError):  # A framework does not convert numbers of every dtype.
        return summary | {"note": "its numbers cannot be shown"}


def _summarize_numbers(summary: Table, end: Tensor, is_share: bool) -> Table:
    """Add the numbers of a tensor to a summary, or their range, mean, norm and histogram."""
    end, note = framework_of(end).read_numbers(end)
    notes = [note] if note else []
    if end is None:
        return summary | {"note": note}
    size = summary["numbers"] = math.prod(end.shape)
    read = _read(end, size)
    numbers = [number for number in read if type(number) in (int, float, bool)]
    if complex in map(type, read):
        notes.append("their real and imaginary parts")
        numbers = [part for number in read for part in (number.real, number.imag)]
    if is_share and "int64" in summary["dtype"] and any(abs(number) < SMALL for number in numbers):
        summary["warning"] = "it has numbers that are too small for a share; it may be the value itself"
    if size <= MAX_SHOWN:
        summary["values"] = _to_plain(end.tolist())
        return summary | ({"note": note} if note else {})
    if len(read) < size:
        notes.append(f"from {len(read):,} of {size:,} numbers, at equal distances")
    finite = [float(number) for number in numbers if math.isfinite(number)]
    if not finite:
        notes.append("it has no finite real numbers")
    if notes:
        summary["note"] = "; ".join(notes)
    return summary | (_describe_range(finite, len(numbers)) if finite else {})


def _describe_range(finite: list[float], count: int) -> Table:
    """Return range, mean, norm and histogram of numbers, of which ``count`` were read."""
    low, high = min(finite), max(finite)
    scale = max(-low, high) or 1.0  # So that nothing below overflows, whatever numbers the asker has put there.
    scaled = [number / scale for number in finite]
    mean = math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum([(number - mean) ** 2 for number in scaled]) / len(scaled))
    return {
        "min": low,
        "max": high,
        "mean": mean * scale,
        "deviation": deviation * scale,
        "norm": _to_plain(math.hypot(*scaled) * scale),
        "zeros": finite.count(0.0),
        "not_finite": count - len(finite),
        "histogram": _count(scaled),
    }


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
