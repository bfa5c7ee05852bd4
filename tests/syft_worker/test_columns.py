from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import (
    ConfigurationError,
)
from syft_worker.config import parse_config, read_config
from syft_worker.data import DataSource, load

from .patients import CELLS, SCHEMA


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_text(CELLS)
    return path


def read(file: Path, hook: Any, **options: Any) -> Any:
    (tensor,) = load([DataSource.from_table({"file": str(file), **options})], hook)
    return tensor


def test_categories_dates_and_missing_values_follow_the_rules(file: Path, any_hook: Any) -> None:
    table = read(file, any_hook, schema=SCHEMA).tolist()

    assert [row[1] for row in table] == [1, 0, 1]
    assert [row[2] for row in table] == [20484, 20423, 1]
    assert [math.isnan(row[3]) for row in table] == [False, True, False]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("drop", [22.5, 31.0]), (25, [22.5, 25.0, 31.0]), ("keep", [22.5, None, 31.0])],
)
def test_missing_values_are_dropped_replaced_or_kept(
    file: Path, any_hook: Any, missing: object, expected: list[float | None]
) -> None:
    for options in ({"schema": {"bmi": {"missing": missing}}}, {"missing": missing}):
        found = read(file, any_hook, columns=["bmi"], **options).tolist()

        assert [None if math.isnan(value) else value for (value,) in found] == expected


SECRET = b"name,code\nzoe,7\nzoe,8\nadam,9\n"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (SECRET, {}, "3 rows of column 'name' are not numbers; declare `schema.name` with categories"),
        (SECRET, {"schema": {"name": {"categories": ["adam"]}}}, "2 rows of column 'name' are none of its categories"),
        (SECRET, {"schema": {"name": {"type": "date"}}}, "3 rows of column 'name' are not dates of its format"),
        (SECRET, {"schema": {"name": {"type": "boolean"}}}, "3 rows of column 'name' are not true or false"),
        (SECRET, {"schema": {"name": {"type": "integer"}}}, "3 rows of column 'name' are not integers"),
        (b"x\n1\n\n2.5\n", {"schema": {"x": {"type": "integer"}}}, "1 rows of column 'x' are not integers"),
        (b"x,y\n,1\nNA,2\n3,4\n", {}, "2 rows of column 'x' have no value; say what becomes of them"),
        (b"x\n1\n700\n", {"schema": {"x": {"range": [0, 9]}}}, "1 rows of column 'x' are outside of its range"),
        (b"x,y\n1,2\n,3\n", {"missing": 0.5}, "0.5 is not an integer; write one, or declare `type"),
        (b"x\n1\n", {"schema": {"y": {}}}, "cannot load column 'y' of .*: there is none"),
        (b"x,\n1,2\n", {}, "a column has no name"),
    ],
)
def test_what_no_rule_covers_is_refused_with_the_number_of_rows(
    tmp_path: Path, any_hook: Any, content: bytes, options: Any, message: str
) -> None:
    (tmp_path / "a.csv").write_bytes(content)

    with pytest.raises(ConfigurationError, match=message) as caught:
        read(tmp_path / "a.csv", any_hook, **options)
    assert "zoe" not in str(caught.value)
    assert "700" not in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (3, "it is not a table"),
        ({"units": "mm"}, "there is no option 'units'; choose from type, unit"),
        ({"type": "text"}, "there is no type 'text'; choose from integer"),
        ({"unit": 3}, "an option is not a text"),
        ({"type": "category"}, "categories belong to the type category"),
        ({"type": "real", "categories": ["a"]}, "categories belong to the type category"),
        ({"categories": "ab"}, "its categories are not a list"),
        ({"categories": ["a", "a"]}, "a category is listed twice"),
        ({"categories": []}, "a category is listed twice, or there is none"),
        ({"format": "%d"}, "only dates have a format"),
        ({"range": [3]}, "a range has two numbers"),
        ({"range": [3, 1]}, "its range is empty"),
        ({"range": ["a", "b"]}, "'a' is not a value of the column"),
        ({"categories": ["a"], "missing": "b"}, "'b' is not a value of the column"),
        ({"missing": "guess"}, "'guess' is not a value of the column"),
        ({"missing": math.nan}, "nan is not a value of the column"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused(rule: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"`schema` says about column 'x': {message}"):
        DataSource.from_table({"file": "a.csv", "schema": {"x": rule}})


def test_rules_are_read_from_the_toml_file_and_survive_being_passed_on(tmp_path: Path, file: Path) -> None:
    (tmp_path / "worker.toml").write_text(
        '[[data]]\nfile = "patients.csv"\nmock = "draw"\nmock_rows = 7\nmissing = "drop"\n'
        '[data.schema.admitted]\ntype = "date"\nrange = [1960-01-01, 2030-01-01]\n'
        '[data.schema.sex]\ncategories = ["m", "f"]\n'
    )

    config = read_config(tmp_path / "worker.toml")

    (found,) = config.data
    assert found.schema is not None
    assert found.schema["admitted"].limits("admitted") == (-3653, 21915)
    assert parse_config(config.to_table()) == config
