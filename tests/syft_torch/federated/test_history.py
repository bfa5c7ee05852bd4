from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from .trainers import make_trainer  # noqa: E402


def test_the_history_is_a_table_and_a_picture(hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    history = make_trainer(hook).fit(3)

    assert str(history).splitlines()[0].split() == "round loss samples seconds took part left out".split()
    assert len(str(history).splitlines()) == 4
    assert "<table" in history._repr_html_()
    picture = history.plot(tmp_path / "loss.svg")
    assert (tmp_path / "loss.svg").read_text() == picture
    assert picture.startswith("<svg")
    assert "polyline" in picture._repr_svg_()


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
