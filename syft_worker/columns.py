"""Rules for the columns of a table: the owner's declarations, and how cells become numbers."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from syft_core.exceptions import ConfigurationError
from syft_core.tensors.schema import MAX_NAME, Column, ColumnType
from syft_core.values import Kwargs

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""The cells that count as missing, in small letters."""
_TRUTH = {"true": 1, "false": 0, "1": 1, "0": 0}
_EPOCH = date(1970, 1, 1).toordinal()
_DATES = (date(2000, 1, 1).toordinal() - _EPOCH, date(2020, 1, 1).toordinal() - _EPOCH)
Numeric: TypeAlias = "array[Any]"
"""Integers or floats."""
Missing = Literal["refuse", "drop", "keep"]


@dataclass(frozen=True)
class ColumnRule:
    """The owner's declarations about a column: a table of the TOML file, with these keys."""

    type: ColumnType | None = None
    """By default "integer" if all cells are integers, and "real" otherwise."""
    unit: str | None = None
    categories: tuple[str, ...] | None = None
    """All texts that occur; each becomes its position in this order."""
    format: str | None = None
    """How dates are written, as ``strptime`` reads them; by default 2026-01-31."""
    range: tuple[float | str, ...] | None = None
    """The smallest and the largest value that may occur; a mock is drawn between them."""
    missing: str | float | None = None
    """How to handle missing values: "refuse", "drop" the row, "keep" them as NaN, or a value in their place."""

    @classmethod
    def from_table(cls, name: str, table: object) -> ColumnRule:
        """Read a table of a TOML file."""
        known = [field.name for field in fields(cls)]
        if not isinstance(table, Mapping):
            raise _wrong(name, "it is not a table", 'write e.g. `schema.age = { unit = "years" }`')
        for key in table:
            if key not in known:
                raise _wrong(name, f"there is no option {key!r}", f"choose from {', '.join(known)}")
        options: Kwargs = {
            key: tuple(map(_plain, value)) if type(value) is list else _plain(value) for key, value in table.items()
        }
        rule = cls(**options)
        rule._require_valid(name)
        return rule

    def _require_valid(self, name: str) -> None:
        if self.type is not None and self.type not in get_args(ColumnType):
            raise _wrong(name, f"there is no type {self.type!r}", f"choose from {', '.join(get_args(ColumnType))}")
        if type(self.categories) not in (tuple, type(None)):
            raise _wrong(name, "its categories are not a list", 'list them: `categories = ["no", "yes"]`')
        for text in (self.unit, self.format, *(self.categories or ())):
            if text is not None and (type(text) is not str or len(text) > MAX_NAME):
                raise _wrong(name, "an option is not a text, or too long", "write it as in the example")
        if (self.kind == "category") != (self.categories is not None):
            raise _wrong(name, "categories belong to the type category", 'list them: `categories = ["no", "yes"]`')
        if self.categories is not None and len(set(self.categories)) < max(len(self.categories), 1):
            raise _wrong(name, "a category is listed twice, or there is none", "list each category once")
        if self.format is not None and self.kind != "date":
            raise _wrong(name, "only dates have a format", 'write `type = "date"`, or leave it out')
        if self.range is not None:
            self._require_range(name)
        self.fill(name)

    def _require_range(self, name: str) -> None:
        if self.kind in ("category", "boolean") or type(self.range) is not tuple or len(self.range) != 2:
            raise _wrong(name, "a range has two numbers, or two dates", "write e.g. `range = [0, 120]`")
        low, high = self.limits(name)
        if not low <= high:
            raise _wrong(name, "its range is empty", "write the smaller number first")

    def limits(self, name: str) -> tuple[float, float]:
        """Return the range as numbers."""
        low, high = [self._to_number(name, end) for end in self.range or ()]
        return low, high

    @property
    def kind(self) -> ColumnType | None:
        """The declared type."""
        return "category" if self.type is None and self.categories is not None else self.type

    @property
    def is_nullable(self) -> bool:
        """Whether missing values are kept."""
        return self.missing == "keep"

    def fill(self, name: str) -> float | None:
        """Return the number that takes the place of missing values, if one does."""
        if self.missing is None or self.missing in get_args(Missing):
            return None
        return self._to_number(name, self.missing)

    def _to_number(self, name: str, value: object) -> float:
        if type(value) is str and self.kind in ("category", "date", "boolean"):
            try:
                return self.parser()(value)
            except (KeyError, ValueError):
                pass
        elif isinstance(value, bool):
            if self.kind == "boolean":
                return int(value)
        elif isinstance(value, int | float) and self.kind not in ("category", "date", "boolean"):
            is_usable = math.isfinite(value) and (self.kind != "integer" or value == int(value))
            if is_usable:
                return value
        raise _wrong(name, f"{value!r} is not a value of the column", "write a number, a date or one of its categories")

    def parser(self) -> Callable[[str], float]:
        """Return the function that reads a cell; it raises ``KeyError`` or ``ValueError`` for others."""
        if self.kind == "category":
            places = {text: place for place, text in enumerate(self.categories or ())}
            return lambda cell: places[cell.strip()]
        if self.kind == "date":
            form = self.format
            read = date.fromisoformat if form is None else lambda cell: datetime.strptime(cell, form).date()
            return lambda cell: read(cell.strip()).toordinal() - _EPOCH
        if self.kind == "boolean":
            return lambda cell: _TRUTH[cell.strip().lower()]
        return int if self.kind == "integer" else float


class Cells(NamedTuple):
    """The numbers of a column; those in the rows of ``missing`` do not count."""

    column: Column
    numbers: Numeric
    missing: Sequence[int]


def read_cells(where: str, name: str, cells: Sequence[str], rule: ColumnRule) -> Cells:
    """Convert the cells of a column; the error for cells of another type has their number."""
    named = frozenset(rule.categories or ())
    missing = [row for row, cell in enumerate(cells) if cell.strip().lower() in MISSING and cell.strip() not in named]
    gaps = frozenset(missing)
    kinds: list[ColumnType] = ["integer", "real"] if rule.kind is None else [rule.kind]
    for kind in kinds:
        parse = replace(rule, type=kind).parser()
        try:
            numbers = [0 if row in gaps else parse(cell) for row, cell in enumerate(cells)]
            return Cells(_describe(name, kind, rule), array("d" if kind == "real" else "q", numbers), missing)
        except (KeyError, ValueError, OverflowError):
            continue
    failures = sum(not _is_readable(parse, cell) for row, cell in enumerate(cells) if row not in gaps)
    raise refuse_cells(where, name, failures, rule)


def _is_readable(parse: Callable[[str], float], cell: str) -> bool:
    try:
        array("d", [parse(cell)])
    except (KeyError, ValueError, OverflowError):
        return False
    return True


def take_numbers(name: str, numbers: Numeric, missing: Sequence[int], rule: ColumnRule, is_boolean: bool) -> Cells:
    """Return a column that has numbers already; a declared type may be more general."""
    found: ColumnType = "real" if numbers.typecode == "d" else "boolean" if is_boolean else "integer"
    kind = rule.kind or found
    if kind == "real" and numbers.typecode == "q":
        numbers = array("d", numbers)
    return Cells(_describe(name, kind, rule), numbers, missing)


def refuse_cells(where: str, name: str, count: int, rule: ColumnRule) -> ConfigurationError:
    """Return the error for cells that do not have the type of their column."""
    expected = {
        "category": ("are none of its categories", "add them to `categories`, or correct the rows"),
        "date": ("are not dates of its format", 'write its `format`, e.g. "%d.%m.%Y"'),
        "boolean": ("are not true or false", "correct them, or declare categories"),
        "integer": ("are not integers", 'correct them, or declare `type = "real"`'),
        "real": ("are not numbers", "correct them"),
        None: (
            "are not numbers",
            f"declare `schema.{name}` with categories or a date type, or name the columns to load: `columns = [...]`",
        ),
    }
    what, advice = expected[rule.kind]
    return ConfigurationError(f"cannot load {where}: {count} rows of column {name!r} {what}; {advice}")


def _describe(name: str, kind: ColumnType, rule: ColumnRule) -> Column:
    return Column(name, kind, rule.unit, rule.categories, rule.is_nullable)


# --- missing values


def apply_rules(where: str, found: Sequence[Cells], rules: Sequence[ColumnRule]) -> list[Numeric]:
    """Return the numbers of columns after missing values were dropped, kept or replaced, as the rules say."""
    dropped: set[int] = set()
    kept: list[Numeric] = []
    for (column, given, missing), rule in zip(found, rules, strict=True):
        numbers = array("d", given) if rule.is_nullable and given.typecode == "q" else given
        fill = math.nan if rule.is_nullable else rule.fill(column.name)
        if missing and fill is None and rule.missing != "drop":
            raise ConfigurationError(
                f"cannot load {where}: {len(missing)} rows of column {column.name!r} have no value; say what becomes "
                f'of them: `missing = "drop"`, "keep", or a value in their place'
            )
        if rule.missing == "drop":
            dropped.update(missing)
        elif missing and fill is not None:
            if numbers.typecode == "q" and fill != int(fill):
                raise _wrong(column.name, f"{fill!r} is not an integer", 'write one, or declare `type = "real"`')
            numbers = array(numbers.typecode, numbers)
            for row in missing:
                numbers[row] = fill if numbers.typecode == "d" else int(fill)
        if rule.range is not None:
            _require_range(where, column, numbers, rule, set(missing))
        kept.append(numbers)
    if not dropped:
        return kept
    return [array(n.typecode, [value for row, value in enumerate(n) if row not in dropped]) for n in kept]


def _require_range(where: str, column: Column, numbers: Numeric, rule: ColumnRule, missing: set[int]) -> None:
    low, high = rule.limits(column.name)
    outside = sum(not low <= number <= high for row, number in enumerate(numbers) if row not in missing)
    if outside:
        raise ConfigurationError(
            f"cannot load {where}: {outside} rows of column {column.name!r} are outside of its range; "
            f"correct them, or its `range`"
        )


# --- mocks


def draw(column: Column, rule: ColumnRule, rows: int, source: random.Random) -> Numeric:
    """Return numbers for a mock, which depend only on the declarations, and on the type of the column."""
    is_real = column.type == "real"
    if rule.range is not None:
        low, high = rule.limits(column.name)
    elif column.type == "date":
        low, high = _DATES
    else:
        low, high = 0, {"category": len(column.categories or ()) - 1, "boolean": 1}.get(column.type, 9)
    if is_real and rule.range is None:
        numbers = [source.gauss(0, 1) for _ in range(rows)]
    elif is_real:
        numbers = [source.uniform(low, high) for _ in range(rows)]
    else:
        least = math.ceil(low)
        numbers = [source.randint(least, max(least, math.floor(high))) for _ in range(rows)]
    if not column.nullable:
        return array("d" if is_real else "q", numbers)
    return array("d", [math.nan if source.random() < 0.1 else number for number in numbers])


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


def _wrong(name: str, why: str, advice: str) -> ConfigurationError:
    return ConfigurationError(f"cannot use what `schema` says about column {name!r}: {why}; {advice}")
