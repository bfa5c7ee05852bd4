"""Schema: the owner's description of a table: names, types, units and categories of its columns, and a mock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from syft_core.exceptions import ColumnError
from syft_core.pictures.tables import html_table, text_table
from syft_core.serde import Codec, Context, codecs
from syft_core.serde.received import require
from syft_core.values import Payload

ColumnType: TypeAlias = Literal["integer", "real", "boolean", "category", "date"]
"""Categories are stored as their positions in the list, dates as days since 1970-01-01."""
MAX_NAME = 1024
"""The maximum length of a name, a unit or a category."""
_HEADER = ("column", "type", "unit", "categories", "missing values")
_MAX_ROWS = 1000


@dataclass(frozen=True)
class Column:
    """A column; it does not depend on values, except that an undeclared type is inferred."""

    name: str
    type: ColumnType = "real"
    unit: str | None = None
    categories: tuple[str, ...] | None = None
    nullable: bool = False
    """Whether values may be missing, which are stored as NaN."""


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, and the id of its mock on the same worker."""

    columns: tuple[Column, ...] = ()
    mock: int | str | None = None

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.columns):
            raise ColumnError.repeated()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def find(self, names: Iterable[str]) -> list[int]:
        """Return the positions of columns."""
        places = {column.name: place for place, column in enumerate(self.columns)}
        wanted = list(names)
        missing = [name for name in wanted if name not in places]
        if missing:
            raise ColumnError.unknown(missing[0], self.names)
        return [places[name] for name in wanted]

    def choose(self, names: Iterable[str]) -> Schema:
        """Return the schema of the named columns."""
        return Schema(tuple([self.columns[place] for place in self.find(names)]))

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for column in self.columns[:_MAX_ROWS]:
            categories = ", ".join(column.categories or ())
            yield column.name, column.type, column.unit or "", categories, "possible" if column.nullable else ""

    def __str__(self) -> str:
        return text_table(_HEADER, list(self._cells()))

    def _repr_html_(self) -> str:
        return html_table("columns", _HEADER, list(self._cells()), limit=_MAX_ROWS)


def _simplify(schema: Schema, _context: Context) -> tuple[object, ...]:
    parts = [(c.name, c.type, c.unit, c.categories, c.nullable) for c in schema.columns]
    return schema.mock, tuple(parts)


def _detail(payload: Payload, _context: Context) -> Schema:
    mock, columns = payload
    are_tuples = type(columns) is tuple and {tuple}.issuperset(map(type, columns))
    require(are_tuples and type(mock) in (int, str, type(None)), "a schema: its parts have wrong types")
    found = tuple([_detail_column(column) for column in columns])
    require(len({column.name for column in found}) == len(found), "a schema: two columns have the same name")
    return Schema(found, mock)


def _detail_column(payload: Payload) -> Column:
    require(len(payload) == 5, "a column: it has another number of parts")
    name, kind, unit, categories, nullable = payload
    are_texts = type(categories) is tuple and all(map(_is_text, categories))
    is_valid = _is_text(name) and (unit is None or _is_text(unit)) and (categories is None or are_texts)
    require(is_valid and type(nullable) is bool, "a column: one of its parts has a wrong type or is too long")
    require(type(kind) is str and kind in get_args(ColumnType), "a column: its type is unknown")
    return Column(name, kind, unit, categories, nullable)


def _is_text(part: object) -> bool:
    return type(part) is str and len(part) <= MAX_NAME


codecs.register(Codec(Schema, 345, _simplify, _detail))
