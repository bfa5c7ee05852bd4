from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.demo.patients import COLUMNS, compute_accuracy, make_model, make_patients, write_patients  # noqa: E402
from syft_worker.data import DataSource, load  # noqa: E402  # torch may be missing


def test_patients_of_a_clinic_hardly_differ_in_what_the_others_study() -> None:
    rows, ill = make_patients(300, 1, torch.Generator().manual_seed(1))

    spread = rows.std(0)
    assert spread[2:4].min() > 0.8
    assert max(spread[:2].max(), spread[4:].max()) < 0.1
    assert 0.3 < ill.float().mean() < 0.7


def test_a_hospital_loads_the_file_of_its_patients(hook: Any, tmp_path: Path) -> None:
    rows, ill = make_patients(20, None, torch.Generator().manual_seed(1))
    write_patients(tmp_path / "patients.csv", (rows, ill))

    schema = {"outcome": {"categories": ["well", "ill"]}}
    source = DataSource.from_table({"file": "patients.csv", "tags": ["#patients"], "schema": schema}, tmp_path)
    (loaded,) = load([source], hook)

    assert torch.allclose(loaded[:, : len(COLUMNS)], rows, atol=1e-6)
    assert torch.equal(loaded[:, -1].long(), ill)


def test_the_same_seed_gives_the_same_model() -> None:
    test = make_patients(50, None, torch.Generator().manual_seed(1))

    assert compute_accuracy(make_model(4), test) == compute_accuracy(make_model(4), test)
