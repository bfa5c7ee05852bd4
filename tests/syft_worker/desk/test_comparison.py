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
    "half precision": (lambda x: x[1:].half(), "2 of its 2 rows are rows of #patients: it is data"),
    "brain floats": (lambda x: x[1:].bfloat16(), "2 of its 2 rows are rows of #patients: it is data"),
    "columns in another order": (lambda x: x[:, [1, 0]], "all its numbers are in columns 'age', 'dose' of #patients"),
    "some columns": (lambda x: x[:, :1] * 1, "all its numbers are in column 'age' of #patients: it may be data"),
    "columns as rows": (lambda x: x.T * 1, "all its numbers are in columns 'age', 'dose' of #patients"),
    "all in one row": (lambda x: x.reshape(-1) * 1, "all its numbers are in columns 'age', 'dose' of #patients"),
    "one more dimension": (lambda x: x[:2].unsqueeze(0), "all its numbers are in columns 'age', 'dose' of #patients"),
    "a row in a box": (lambda x: x[:1].unsqueeze(0), "1 of its 1 rows are rows of #patients"),
    "data and results": (
        lambda x: torch.cat([x[:, 1], x[:, 1] / 3]),
        "2 of its 4 different numbers are in",
    ),
    "a mask": (lambda x: (x > 65).float(), None),
    "infinity": (lambda x: x[0] / 0, None),
    "nothing": (lambda x: x[:0] * 1, None),
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
    assert shown["data"] == "all its numbers are numbers of #ages: it may be data, and not a result"


def test_images_are_compared_whatever_their_form(bob: Any, me: Any) -> None:
    bob.load_data([torch.randn(5, 4, 4).private_tensor([]).tag("#images")])
    (images,) = bob.search("#images")
    expected = {
        "2 of its 2 rows are rows of #images: it is data, and not a result": images[:2].reshape(2, -1),
        "1 of its 1 rows are rows of #images: it is data, and not a result": images[3],
        "all its numbers are numbers of #images: it may be data, and not a result": images[:, 1:3, 1:3],
    }

    for text, asked in expected.items():
        asked.request("why")
        assert look_at(bob, bob.requests[-1], "noor")[0]["data"] == text


def test_data_without_tags_and_data_of_several_objects_are_named(bob: Any, me: Any) -> None:
    bob.load_data([torch.randn(3).private_tensor([]), torch.randn(3).private_tensor([]).tag("#second")])
    first, second = [entry for entry in bob.object_store.entries() if entry.access is not None]
    pointers = [bob.search(entry.id)[0] for entry in (first, second)]

    torch.cat(pointers).request("why")

    shown = look_at(bob, bob.requests[-1], "noor")[0]["data"]
    assert f"3 of its 6 different numbers are numbers of object {first.id}: it may have data" in shown
    assert "3 of its 6 different numbers are numbers of #second: it may have data" in shown


def test_data_is_found_in_another_precision_of_a_larger_type(bob: Any, me: Any) -> None:
    bob.load_data([torch.randn(6, 2, dtype=torch.float64).private_tensor([]).tag("#table")])

    bob.search("#table")[0].float().request("why")

    assert "6 of its 6 rows" in look_at(bob, bob.requests[-1], "noor")[0]["data"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_numbers_that_are_equal_by_chance_are_no_data(bob: Any, me: Any, dtype: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    bob.load_data([torch.randn(500_000, generator=generator).to(dtype).private_tensor([]).tag("#many")])
    (many,) = bob.search("#many")

    (many[:5000] * 0 + torch.randn(5000, generator=generator).to(dtype).send(bob)).request("why")

    assert "#many" not in look_at(bob, bob.requests[-1], "noor")[0].get("data", "")
