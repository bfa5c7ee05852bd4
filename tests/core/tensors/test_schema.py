from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import ColumnError, SerdeError
from syft_core.serde import Context, deserialize, serialize
from syft_core.tensors import schema as schemas
from syft_core.tensors.schema import MAX_NAME, Column, Schema

AGE = Column("age", "integer", "years")
SEX = Column("sex", "category", categories=("f", "m"), nullable=True)
PATIENTS = Schema((AGE, SEX, Column("weight")), mock="#mock")


def test_columns_are_found_by_name_in_the_order_asked_for() -> None:
    assert PATIENTS.names == ["age", "sex", "weight"]
    assert PATIENTS.find(["weight", "age"]) == [2, 0]
    assert PATIENTS.find([]) == []


def test_the_schema_of_some_columns_has_no_mock() -> None:
    assert PATIENTS.choose(["sex", "age"]) == Schema((SEX, AGE))


def test_an_unknown_column_is_refused_with_the_nearest() -> None:
    with pytest.raises(ColumnError, match="cannot select column 'wieght': there is none; did you mean 'weight'?"):
        PATIENTS.find(["age", "wieght"])
    with pytest.raises(ColumnError, match="choose from age, sex, weight"):
        PATIENTS.choose(["zip code"])


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ColumnError, match="two of its columns have the same name"):
        Schema((AGE, Column("age")))


def test_a_schema_is_shown_as_a_table() -> None:
    lines = str(PATIENTS).splitlines()

    assert lines[0].split("  ")[0] == "column"
    assert any(line.startswith("age") and "integer" in line and "years" in line for line in lines)
    assert any(line.startswith("sex") and "f, m" in line and "possible" in line for line in lines)


def test_names_of_columns_are_escaped_in_html() -> None:
    shown = Schema((Column("<script>"),))._repr_html_()

    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_schema_arrives_as_it_was_sent() -> None:
    assert deserialize(serialize(PATIENTS)) == PATIENTS
    assert deserialize(serialize(Schema())) == Schema()


COLUMN: tuple[Any, ...] = ("age", "integer", None, None, False)


@pytest.mark.parametrize(
    "payload",
    [
        (None, [COLUMN]),
        (None, (list(COLUMN),)),
        (1.5, (COLUMN,)),
        (None, (COLUMN, COLUMN)),
        (None, (COLUMN[:4],)),
        (None, ((1, *COLUMN[1:]),)),
        (None, (("x" * (MAX_NAME + 1), *COLUMN[1:]),)),
        (None, (("age", "secret", None, None, False),)),
        (None, (("age", ["integer"], None, None, False),)),
        (None, (("age", "integer", 3, None, False),)),
        (None, (("age", "category", None, ["f"], False),)),
        (None, (("age", "category", None, (1,), False),)),
        (None, (("age", "integer", None, None, 1),)),
    ],
)
def test_a_malformed_schema_is_refused(payload: tuple[Any, ...]) -> None:
    with pytest.raises(SerdeError, match=r"cannot rebuild a (schema|column): .* \(malformed message\)"):
        schemas._detail(payload, Context())
