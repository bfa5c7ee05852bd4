"""Tables on workers: check that all have the same columns, and find what takes the place of missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from syft_core.peer import Id
from syft_core.tensors.schema import Column, Schema
from syft_core.values import Nested
from syft_torch.federated.arranging import Columns
from syft_torch.federated.errors import FederatedError

Missing: TypeAlias = "float | Mapping[str, float] | str | None"
"""The replacement of missing inputs: a number, a number for each column, or "mean"."""
MEAN = "mean"
_MAX_PROBLEMS = 5
_FACTS = {"type": "the type", "unit": "the unit", "categories": "the categories"}


def require_agreement(found: Sequence[tuple[Id, Schema]], names: Sequence[str]) -> None:
    """Raise unless all workers have these columns, with the same types, units and categories; say who differs."""
    problems = [f"worker {worker!r} has no column names" for worker, schema in found if not schema.columns]
    if not problems:
        known = [(worker, {column.name: column for column in schema.columns}) for worker, schema in found]
        for name in names:
            problems += _compare(name, [(worker, columns.get(name)) for worker, columns in known])
    if problems:
        more = f" and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
        raise FederatedError.columns("; ".join(problems[:_MAX_PROBLEMS]) + more)


def _compare(name: str, found: Sequence[tuple[Id, Column | None]]) -> list[str]:
    """Describe which workers differ from the majority, and how."""
    if all(column is None for _, column in found):
        return [f"no worker has a column {name!r}"]
    problems = [f"worker {worker!r} has no column {name!r}" for worker, column in found if column is None]
    for fact, words in _FACTS.items():
        values = [(worker, getattr(column, fact)) for worker, column in found if column is not None]
        usual = Counter([value for _, value in values]).most_common(1)[0][0]
        problems += [
            f"worker {worker!r} has {words} {_write(value)} for column {name!r}, and others have {_write(usual)}"
            for worker, value in values
            if value != usual
        ]
    return problems


def _write(value: str | tuple[str, ...] | None) -> str:
    if isinstance(value, tuple):
        return f"{', '.join(value[:10])}{' …' if len(value) > 10 else ''}"
    return "none" if value is None else repr(value)


def find_fill(
    found: Sequence[tuple[Id, Schema]], names: Sequence[str], label: str, missing: Missing, one_hot: bool = False
) -> list[float] | None:
    """Return a number for each input column in place of missing values; None if there are none, or for the mean.

    With ``one_hot``, a category that is missing needs no number: it is none of the categories.
    """
    gaps, categories = _find_gaps(found, [*names, label])
    if label in gaps:
        raise FederatedError.missing(gaps[label], label, "ask its owner to drop those rows")
    if isinstance(missing, str) and missing != MEAN:
        raise FederatedError.rule(missing)
    needed = {name: worker for name, worker in gaps.items() if not (one_hot and name in categories)}
    if missing == MEAN:
        for name in needed.keys() & categories:
            raise FederatedError.missing(gaps[name], name, "categories have no mean: pass `one_hot=True`, or a number")
        return None
    numbers: Mapping[str, Nested] = missing if isinstance(missing, Mapping) else dict.fromkeys(needed, missing)
    for name, worker in needed.items():
        if type(numbers.get(name)) not in (int, float):
            raise FederatedError.missing(worker, name, 'say what takes their place, e.g. `missing="mean"`, or a number')
    unset = {name: float("nan") if one_hot and name in categories else 0.0 for name in names}
    return [float(numbers.get(name, unset[name])) for name in names] if gaps else None


def _find_gaps(found: Sequence[tuple[Id, Schema]], names: Sequence[str]) -> tuple[dict[str, Id], set[str]]:
    """Return which columns may miss values, with a worker of each, and which are categories."""
    columns = [(worker, column) for worker, schema in found for column in schema.choose(names).columns]
    gaps: dict[str, Id] = {}
    for worker, column in columns:
        if column.nullable:
            gaps.setdefault(column.name, worker)
    return gaps, {column.name for _, column in columns if column.type == "category"}


def name_inputs(step: Columns, schema: Schema) -> list[str]:
    """Return the names of the inputs that a worker makes of a table."""
    return [name for column in schema.choose(step.inputs).columns for name in _name(step, column)]


def _name(step: Columns, column: Column) -> list[str]:
    values = step.list_values(column)
    return [column.name] if values is None else [f"{column.name}={value}" for value in values]
