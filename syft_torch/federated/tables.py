"""Tables on workers: check that all have the same columns, and select inputs and targets from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch

from syft_core.peer import Id
from syft_core.tensors.schema import Column, Schema
from syft_core.values import Tensor
from syft_torch.federated.errors import FederatedError

Missing: TypeAlias = "float | Mapping[str, float] | str | None"
"""What takes the place of missing inputs: a number, a number for each column, or "mean"."""
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
    """Return who differs from what most workers have."""
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
    found: Sequence[tuple[Id, Schema]], names: Sequence[str], label: str, missing: Missing
) -> list[float] | None:
    """Return a number for each input column in place of missing values; None if there are none, or for the mean."""
    gaps: dict[str, Id] = {}
    for worker, schema in found:
        for column in schema.choose([*names, label]).columns:
            if column.nullable:
                gaps.setdefault(column.name, worker)
    if label in gaps:
        raise FederatedError.missing(gaps[label], label, "ask its owner to drop those rows")
    if isinstance(missing, str) and missing != MEAN:
        raise FederatedError.rule(missing)
    if not gaps or missing == MEAN:
        return None
    numbers = missing if isinstance(missing, Mapping) else dict.fromkeys(gaps, missing)
    for name, worker in gaps.items():
        if type(numbers.get(name)) not in (int, float):
            raise FederatedError.missing(worker, name, 'say what takes their place, e.g. `missing="mean"`, or a number')
    return [float(numbers.get(name) or 0.0) for name in names]


def select(table: Tensor, names: Sequence[str], label: str, fill: Sequence[float] | None) -> list[Tensor]:
    """Return the inputs and the targets of a table: floats, and class numbers unless the label is real."""
    dtype = torch.get_default_dtype()
    inputs = table[list(names)].to(dtype)
    (label_column,) = table.schema.choose([label]).columns
    targets = table[label].to(dtype if label_column.type == "real" else torch.int64)
    return [inputs if fill is None else fill_in(inputs, torch.tensor(fill, dtype=dtype)), targets]


def fill_in(inputs: Tensor, numbers: Tensor) -> Tensor:
    """Put a number for each column in place of missing values, on the worker."""
    return torch.where(inputs.isnan(), numbers.send(inputs.location), inputs)
