"""Tables from CSV and Parquet files, column by column, with a schema."""

from __future__ import annotations

import csv
import hashlib
import random
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path

from syft_core.exceptions import ConfigurationError
from syft_core.tensors.schema import MAX_NAME, Column
from syft_core.values import Nested
from syft_worker.columns import Cells, ColumnRule, Numeric, apply_rules, draw, read_cells, take_numbers

_NO_RULE = ColumnRule()


@dataclass(frozen=True)
class TableRules:
    """The columns of a file to load, and the owner's declarations about them."""

    chosen: Sequence[str] | None = None
    """None for all columns."""
    columns: Mapping[str, ColumnRule] | None = None
    missing: str | float | None = None
    """Default rule for missing values, used by columns without a rule of their own."""

    def of(self, name: str) -> ColumnRule:
        """Return the rule of a column."""
        rule = (self.columns or {}).get(name, _NO_RULE)
        return rule if self.missing is None or rule.missing is not None else replace(rule, missing=self.missing)

    def choose(self, path: Path, header: Sequence[str]) -> list[str]:
        """Return the names of the columns to load; raise unless all that are named exist."""
        known = set(header)
        if len(known) != len(header):
            raise ConfigurationError(f"cannot load {path}: two columns have the same name; rename one")
        if "" in known or any(len(name) > MAX_NAME for name in header):
            raise ConfigurationError(f"cannot load {path}: a column has no name, or one that is too long; rename it")
        for name in (*(self.chosen or ()), *(self.columns or ())):
            if name not in known:
                listed = ", ".join(header[:20]) + (" …" if len(header) > 20 else "")
                raise ConfigurationError(f"cannot load column {name!r} of {path}: there is none; choose from {listed}")
        return list(header if self.chosen is None else self.chosen)


@dataclass(frozen=True)
class TableFile:
    """The columns of a file, and their numbers: integers or floats."""

    columns: tuple[Column, ...]
    numbers: Sequence[Numeric]


def read_csv(path: Path, rules: TableRules) -> TableFile:
    """Read a CSV file with a header. No error quotes a cell."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        lines = [row for row in rows if row]
    if not header or any(_is_number(name) for name in header):
        raise ConfigurationError(f"cannot load {path}: its first line is not a header; add the names of the columns")
    for number, row in enumerate(lines, 1):
        if len(row) != len(header):
            raise ConfigurationError(
                f"cannot load {path}: row {number} has {len(row)} cells, and the header has {len(header)}; fix it"
            )
    names = rules.choose(path, header)
    places = {name: place for place, name in enumerate(header)}
    return _build(
        path, names, rules, lambda name, rule: read_cells(str(path), name, [r[places[name]] for r in lines], rule)
    )


def read_parquet(path: Path, rules: TableRules) -> TableFile:
    """Read a Parquet file. No error quotes a cell."""
    from pyarrow import parquet, types  # noqa: PLC0415  # an extra

    names = rules.choose(path, parquet.read_schema(path).names)
    table = parquet.read_table(path, columns=names)

    def read(name: str, rule: ColumnRule) -> Cells:
        column = table.column(name)
        kind = column.type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        # A declared type is checked cell by cell, unless it follows from that of the file.
        if not is_number or rule.kind in ("category", "date") or (rule.kind == "integer" and types.is_floating(kind)):
            form = rule.format or "%Y-%m-%d"
            cells = [_write(value, form) for value in column.to_pylist()]
            return read_cells(str(path), name, cells, rule)
        nulls = column.is_null().to_pylist() if column.null_count else ()
        missing = [row for row, is_null in enumerate(nulls) if is_null]
        is_real = types.is_floating(kind)
        numbers = array("d" if is_real else "q")
        numbers.frombytes(column.cast("float64" if is_real else "int64").fill_null(0).to_numpy().tobytes())
        if is_real:
            missing = sorted({*missing, *[row for row, number in enumerate(numbers) if isnan(number)]})
        return take_numbers(name, numbers, missing, rule, types.is_boolean(kind))

    return _build(path, names, rules, read)


def draw_table(columns: Sequence[Column], rules: TableRules, rows: int) -> TableFile:
    """Make up a table with these columns. It is the same each time, and does not depend on the data."""
    seed = hashlib.sha256(repr((columns, rules, rows)).encode()).digest()
    source = random.Random(seed)  # noqa: S311  # not a secret
    return TableFile(tuple(columns), [draw(column, rules.of(column.name), rows, source) for column in columns])


def _build(path: Path, names: Sequence[str], rules: TableRules, read: Callable[[str, ColumnRule], Cells]) -> TableFile:
    found = [read(name, rules.of(name)) for name in names]
    numbers = apply_rules(str(path), found, [rules.of(name) for name in names])
    return TableFile(tuple([cells.column for cells in found]), numbers)


def _write(value: Nested, form: str) -> str:
    """Return a cell of a Parquet file as a CSV file would have it."""
    if value is None:
        return ""
    return value.strftime(form) if hasattr(value, "strftime") else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
