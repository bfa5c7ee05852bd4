from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from syft_torch import federated as fl  # torch may be missing

from .trainers import make_data, make_trainer  # the same


def accuracy(output: Any, targets: Any) -> Any:
    return (output.argmax(1) == targets).float().mean()


def test_the_report_is_a_page_without_values_of_data(hook: Any, tmp_path: Path) -> None:
    trainer = make_trainer(hook)
    trainer.fit(2)
    trainer.evaluate()

    trainer.report(tmp_path / "run.html")

    page = (tmp_path / "run.html").read_text()
    assert "<svg" in page
    assert "FedAvg()" in page
    assert "Last evaluation" in page


def test_the_report_has_each_metric_by_round_and_what_has_left(hook: Any, tmp_path: Path) -> None:
    trainer = make_trainer(hook, make_data(hook, [40, 40]))
    trainer.fit(2, evaluate_every=1, metrics={"accuracy": accuracy, "confusion": fl.ConfusionMatrix(3)})

    trainer.report(tmp_path / "run.html")

    page = (tmp_path / "run.html").read_text()
    assert "<h2>accuracy</h2><svg" in page
    assert "evaluated confusion" in page
    left = page[page.index("What has left") : page.index("<h2>Rounds")]
    assert ">w0</td>" in left.replace(" ", "")
    assert left.count(">2</td>") == 4


def test_a_report_without_an_evaluation_says_how_to_get_one(hook: Any, tmp_path: Path) -> None:
    trainer = make_trainer(hook)
    trainer.fit(1)

    trainer.report(tmp_path / "run.html")

    assert "not evaluated yet" in (tmp_path / "run.html").read_text()
