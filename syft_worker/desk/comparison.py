"""Compare what would leave with the data it was computed from: its columns, and whether it is rows of that data."""

from __future__ import annotations

import math
import re
import struct
from array import array
from collections.abc import Iterator
from typing import TypeAlias

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.values import Json, Table, Tensor
from syft_core.workers.party.store import Source, Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.ledger import split_failures, tags_of

MAX_ROWS = 1000
"""Maximum rows of a departing value that are looked up in the data."""
MAX_WANTED = 10_000
"""Maximum numbers of a departing value that are looked up in the data, sampled at equal distances."""
MAX_SEARCHED = 2_000_000
"""Maximum numbers of the data that are searched."""
CHUNK = 65_536
MAX_NAMED = 20
_SHIFTS = {8: 2**-5, 11: 2**-7, 24: 2**-18, 53: 2**-40}
"""The relative change that makes a number another one that the data could just as well contain, by precision in
bits: the coarsest floating-point numbers have 8, those of Python 53."""
_EXACT = 53
_Row: TypeAlias = tuple[Json, ...]


def compare(worker: Worker, copy: Stored) -> Table:
    """Return which columns something has, and how much of it is in the data that it was computed from."""
    value = _find_numbers(copy.value)
    if value is None or copy.failures:
        return {}
    columns, texts = [], []
    for source in split_failures(copy.sources)[0]:
        if type(source) is not Source or not (source.tags or source.private or source.giver is None):
            continue
        entry = worker.object_store.get(source.id)
        if entry is None or entry.source is not source:
            continue
        data = _find_numbers(entry.value)
        if data is None or not data.shape:
            continue
        name = tags_of(source) or f"object {source.id}"
        names = entry.schema.names if entry.schema is not None else []
        if names and value.shape[-1:] == (len(names),):
            columns.append(f"as many as {name} has: {_list(names)}")
        compared = _Compared(value, data, name, names)
        texts.append(compared.describe_rows() or compared.describe_numbers())
    found = {"columns": "; ".join(columns), "data": "; ".join(filter(None, texts))}
    return {key: text for key, text in found.items() if text}


def _find_numbers(value: object) -> Tensor | None:
    """Return the dense tensor at the end of a value, if it has numbers that can be compared."""
    end = plain_end(value)
    if end is None:
        return None
    numbers, note = framework_of(end).read_numbers(end)
    return None if numbers is None or note else numbers


class _Compared:
    """A value next to data; both are rounded to the coarser of their types."""

    def __init__(self, value: Tensor, data: Tensor, name: str, names: list[str]) -> None:
        self._value, self._data, self._name, self._names = value, data, name, names
        self._bits = min(_count_bits(value), _count_bits(data))

    def describe_rows(self) -> str:
        """Return a text with how many rows of the value are in the data; "" if none is, or if row sizes differ."""
        count, size = math.prod(self._value.shape), math.prod(self._data.shape[1:])
        if not count or size < 2 or (math.prod(tuple(self._value.shape)[1:]) != size and count != size):
            return ""
        wanted = list(self._read_rows(self._value.reshape(-1, size)[:MAX_ROWS]))
        missing = set(wanted)
        for row in self._iter_rows(size):
            missing.discard(row)
            if not missing:
                break
        found = sum(row not in missing for row in wanted)
        text = f"{found} of its {len(wanted)} rows are rows of {self._name}: it is data, and not a result"
        return text if found else ""

    def describe_numbers(self) -> str:
        """Return a text with how many numbers of the value the data has, in any order; "" if that may be by chance."""
        flat = self._value.reshape(-1)
        if not flat.shape[0]:
            return ""
        (read,) = self._read_rows(flat[:: max(-(-flat.shape[0] // MAX_WANTED), 1)].reshape(1, -1))
        wanted = set(read) - {None}
        found = self._find(wanted)
        numbers = set().union(*found.values())
        is_flag = len(self._value.shape) > 1 and not wanted - {0, 1}
        if not numbers or is_flag:
            return ""
        if numbers == wanted:
            place = next((place for place, part in found.items() if part == wanted), None)
            where = self._name_columns(list(found) if place is None else [place])
            return f"all its numbers are {where}: it may be data, and not a result"
        where = self._name_columns([place for place, part in found.items() if any(map(_is_real, part))])
        count = sum(map(_is_real, numbers))  # Whole numbers may occur by chance.
        text = f"{count} of its {len(wanted)} different numbers are {where}: it may have data"
        return text if count else ""

    def _find(self, wanted: set[Json]) -> dict[int, set[Json]]:
        """Return which numbers each column has; of those that are not whole, none if others are as frequent."""
        real = set(filter(_is_real, wanted))
        others = _make_others(real)
        found: dict[int, set[Json]] = {}
        by_chance: set[Json] = set()
        for place, numbers in self._iter_columns():
            if both := wanted & numbers:
                found.setdefault(place, set()).update(both)
            by_chance |= others & numbers
        same = set().union(*found.values()) & real
        if others and 2 * len(by_chance) / len(others) > len(same) / len(real):
            found = {place: whole for place, part in found.items() if (whole := part - real)}
        return found

    def _name_columns(self, places: list[int]) -> str:
        if len(self._data.shape) != 2:
            return f"numbers of {self._name}"
        known = [repr(self._names[place]) if place < len(self._names) else str(place) for place in places]
        return f"in column{'s' * (len(known) > 1)} {_list(known)} of {self._name}"

    def _iter_columns(self) -> Iterator[tuple[int, set[Json]]]:
        """Yield the numbers of each column; of data without columns, all numbers in parts."""
        if len(self._data.shape) == 2 and self._data.shape[1] <= MAX_ROWS:
            rows = max(MAX_SEARCHED // max(self._data.shape[1], 1), 1)
            for place in range(self._data.shape[1]):
                (numbers,) = self._read_rows(self._data[:rows, place].reshape(1, -1))
                yield place, set(numbers)
            return
        size = math.prod(self._data.shape[1:])
        for row in self._iter_rows(size):
            yield 0, set(row)

    def _iter_rows(self, size: int) -> Iterator[_Row]:
        step = max(CHUNK // max(size, 1), 1)
        for start in range(0, min(len(self._data), max(MAX_SEARCHED // max(size, 1), 1)), step):
            part = self._data[start : start + step]
            yield from self._read_rows(part.reshape(len(part), -1))

    def _read_rows(self, rows: Tensor) -> Iterator[_Row]:
        """Yield rows of numbers, in which those that are missing are equal."""
        width = rows.shape[1]
        numbers = _round(rows.reshape(-1).tolist(), self._bits)
        for start in range(0, rows.shape[0] * width, max(width, 1)):
            yield tuple(numbers[start : start + width])


def _make_others(numbers: set[float]) -> set[float]:
    """Return other numbers that might as well have been in the data: close ones, with as many digits."""
    bits = next(bits for bits in _SHIFTS if set(_round(list(numbers), bits)) == numbers)
    return set(_round([number * (1 + _SHIFTS[bits]) for number in numbers], bits))


def _count_bits(tensor: Tensor) -> int:
    """Return how many digits the floating-point numbers of a tensor have, in bits."""
    numbers = tensor.reshape(-1)[:MAX_ROWS].tolist()
    size = re.search(r"(16|32)$", str(tensor.dtype))
    if size is None or not all(type(number) is float for number in numbers):
        return _EXACT
    if size[1] == "32":
        return 24
    return 8 if _round(numbers, 8) == _round(numbers, _EXACT) else 11


def _is_real(number: object) -> bool:
    return type(number) is float and not number.is_integer()


def _round(numbers: list[Json], bits: int) -> list[Json]:
    """Return numbers with so many digits, and None for those that are missing."""
    if bits < _EXACT and all(type(number) in (float, int, bool) for number in numbers):
        numbers = _to_single(numbers)
        if bits < 24:
            numbers = list(map(_to_8_bits if bits == 8 else _to_11_bits, numbers))
    return [None if number != number else number for number in numbers]  # noqa: PLR0124  # NaN is not equal to itself


def _to_single(numbers: list[Json]) -> list[Json]:
    try:
        return array("f", numbers).tolist()
    except OverflowError:  # A whole number of more than 1,000 bits.
        return [math.nan] * len(numbers)


def _to_11_bits(number: float) -> float:
    try:
        (rounded,) = struct.unpack("<e", struct.pack("<e", number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def _to_8_bits(number: float) -> float:
    if not math.isfinite(number):
        return number
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    (rounded,) = struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))
    return float(rounded)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
