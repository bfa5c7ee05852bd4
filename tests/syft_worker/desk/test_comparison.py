"""Compare what would leave with the data it was computed from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.tensors.schema import Column, Schema
from syft_worker.desk.handlers import look_at

PATIENTS = [[60.0, 1.5], [71.0, float("nan")], [80.0, 3.5]]


@pytest.fixture
def patients(bob: Any, me: Any) -> Any:
    """A pointer of eve's to a private table with two columns."""
    me.user = "eve"
    bob.load_data([torch.tensor(PATIENTS).private_tensor([]).tag("#patients")])
    (found,) = bob.search("#patients")
    bob.object_store.entry(found.child.id_at_location).schema = Schema((Column("age"), Column("dose")))
    return found


SEEN: dict[str, tuple[Callable[[Any], Any], str | None]] = {
    "rows": (lambda x: x[1:] * 1, "2 of its 2 rows are rows of #patients: it is data, and not a result"),
    "a row": (lambda x: x[0] * 1, "1 of its 1 rows are rows of #patients: it is data, and not a result"),
    "some rows": (lambda x: torch.stack([x[0], x[0] * 2]), "1 of its 2 rows are rows of #patients"),
    "the data": (lambda x: x, "3 of its 3 rows are rows of #patients"),
    "sorted rows": (lambda x: x.flip(0), "3 of its 3 rows are rows of #patients"),
    "a column": (lambda x: x[:, 0] * 1, "all its numbers are in column 'age' of #patients: it may be data"),
    "a number": (lambda x: x[2, 1] * 1, "all its numbers are in column 'dose' of #patients: it may be data"),
    "other precision": (lambda x: x[2].double(), "1 of its 1 rows are rows of #patients"),
    "a mean": (lambda x: x.mean(), None),
    "means": (lambda x: x.mean(0), None),
    "a failure": (lambda x: torch.bernoulli(x), None),
}


@pytest.mark.parametrize("kind", SEEN)
def test_an_owner_is_told_when_an_object_is_rows_of_the_data(bob: Any, patients: Any, kind: str) -> None:
    make, warning = SEEN[kind]
    make(patients).request("why")

    (shown,) = look_at(bob, bob.requests[-1], "noor")

    assert shown.get("data", "").startswith(warning or "")
    assert ("data" in shown) == (warning is not None)


def test_the_columns_of_a_table_are_named(bob: Any, patients: Any) -> None:
    (patients * 2).request("why")
    patients.nansum().request("why")

    (table,), (number,) = [look_at(bob, request, "noor") for request in bob.requests]

    assert table["columns"] == "as many as #patients has: age, dose"
    assert "columns" not in number


def test_flat_data_is_compared_number_by_number(bob: Any, me: Any) -> None:
    bob.load_data([torch.arange(100_000.0).private_tensor([]).tag("#ages")])

    (bob.search("#ages")[0][-3:] * 1).request("why")

    (shown,) = look_at(bob, bob.requests[-1], "noor")
    assert shown["data"] == "3 of its 3 numbers are numbers of #ages: it is data, and not a result"
