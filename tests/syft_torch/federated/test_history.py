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
