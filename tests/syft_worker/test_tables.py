from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import (
    ColumnError,
)
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.data import DataSource, load
from syft_worker.views import _objects

from .patients import CELLS, SCHEMA


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_text(CELLS)
    return path


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def bob(any_hook: Any, request: pytest.FixtureRequest) -> VirtualWorker:
    return VirtualWorker(any_hook, id="bob", serialize=request.param)


def read(file: Path, hook: Any, **options: Any) -> Any:
    (tensor,) = load([DataSource.from_table({"file": str(file), **options})], hook)
    return tensor


def test_a_parquet_file_follows_the_same_rules(tmp_path: Path, any_hook: Any) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "age": [63, None, 50],
        "sex": pyarrow.array(["f", "m", "f"]).dictionary_encode(),
        "admitted": [date(2026, 1, 31), date(2025, 12, 1), date(1970, 1, 2)],
        "bmi": [22.5, float("nan"), 31.0],
        "ill": [True, False, True],
    }
    parquet.write_table(pyarrow.table(columns), path := tmp_path / "p.parquet")
    schema = {**SCHEMA, "age": {"missing": 40}}

    table = read(path, any_hook, schema=schema)

    assert table[:, 0].tolist() == [63, 40, 50]
    assert table[:, 1].tolist() == [1, 0, 1]
    assert table[:, 2].tolist() == [20484, 20423, 1]
    assert [math.isnan(value) for value in table[:, 3].tolist()] == [False, True, False]
    assert [column.type for column in table.schema.columns] == ["integer", "category", "date", "real", "boolean"]


def test_a_drawn_mock_does_not_depend_on_values(tmp_path: Path, any_hook: Any) -> None:
    made = []
    for ages, illness in (((20, 30), "0.5"), ((90, 91, 92, 93), "1e9")):
        path = tmp_path / f"{len(ages)}" / "p.csv"
        path.parent.mkdir()
        path.write_text("age,ill\n" + "".join(f"{age},{illness}\n" for age in ages))
        *_, mock = load([DataSource.from_table({"file": str(path), "mock": "draw"})], any_hook)
        made.append(mock.tolist())

    assert made[0] == made[1]


@pytest.mark.slow
def test_a_table_may_have_a_hundred_thousand_columns(any_hook: Any, tmp_path: Path) -> None:
    names = [f"gene{number}" for number in range(100_000)]
    (tmp_path / "p.csv").write_text("\n".join([",".join(names), ",".join(["1"] * len(names))]))
    bob = VirtualWorker(any_hook, id="bob", serialize=True)
    bob.load_data(load([DataSource(tmp_path / "p.csv", mock="draw", mock_rows=2)], any_hook))
    (found,) = bob.search("#p")

    assert found.columns == names
    assert found["gene99999"].get().tolist() == [1]
    assert found[names[:-1000:-1]].columns[0] == "gene99999"
    assert tuple(found.mock.shape) == (2, 100_000)
    assert len(str(_objects(bob.object_store.entries(), {}))) < 10_000
    with pytest.raises(ColumnError) as caught:
        found["protein"]
    assert len(str(caught.value)) < 1000
