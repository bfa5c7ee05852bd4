"""Tables of numbers from CSV and Parquet files, column by column."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from syft_core.exceptions import ConfigurationError


def read_csv(path: Path, chosen: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a CSV file with a header: integers, or else floats. No error quotes a cell."""
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
    names = _choose(path, header, chosen)
    places = {name: header.index(name) for name in names}
    return {name: _parse(path, name, [row[place] for row in lines]) for name, place in places.items()}


def read_parquet(path: Path, chosen: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a Parquet file."""
    from pyarrow import parquet, types  # noqa: PLC0415  # an extra

    names = _choose(path, parquet.read_schema(path).names, chosen)
    table = parquet.read_table(path, columns=list(names))
    for name in names:
        column, kind = table.column(name), table.column(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise _not_numeric(path, name)
        if column.null_count:
            raise ConfigurationError(
                f"cannot load {path}: column {name!r} has missing values; fill them, or leave the column out"
            )
    return {name: table.column(name).to_numpy() for name in names}


def _choose(path: Path, header: Sequence[str], chosen: Sequence[str] | None) -> Sequence[str]:
    if len(set(header)) != len(header):
        raise ConfigurationError(f"cannot load {path}: two columns have the same name; rename one")
    missing = [name for name in chosen or () if name not in header]
    if missing:
        raise ConfigurationError(
            f"cannot load column {missing[0]!r} of {path}: there is none; choose from {', '.join(header)}"
        )
    return header if chosen is None else chosen


def _parse(path: Path, name: str, cells: list[str]) -> array[Any]:
    for kind, convert in (("q", int), ("d", float)):
        try:
            return array(kind, map(convert, cells))
        except (ValueError, OverflowError):  # noqa: PERF203  # two attempts
            continue
    raise _not_numeric(path, name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _not_numeric(path: Path, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"cannot load {path}: column {name!r} is not numeric, or has empty cells; "
        f"encode it as numbers, or name the columns to load: `columns = [...]`"
    )
