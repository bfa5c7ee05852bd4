from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from .trainers import make_trainer  # torch may be missing


def test_the_report_is_a_page_without_values_of_data(hook: Any, tmp_path: Path) -> None:
    trainer = make_trainer(hook)
    trainer.fit(2)
    trainer.evaluate()

    trainer.report(tmp_path / "run.html")

    page = (tmp_path / "run.html").read_text()
    assert "<svg" in page
    assert "FedAvg()" in page
    assert "Evaluation" in page


def test_progress_is_shown_on_one_line(hook: Any, capsys: pytest.CaptureFixture[str]) -> None:
    make_trainer(hook).fit(2, progress=True)

    shown = capsys.readouterr().err
    assert "round 2/2" in shown
    assert shown.count("\n") == 1
    make_trainer(hook).fit(1)
    assert capsys.readouterr().err == ""
