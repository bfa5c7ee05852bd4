from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")


from .trainers import make_trainer  # torch may be missing


def test_progress_is_shown_on_one_line(hook: Any, capsys: pytest.CaptureFixture[str]) -> None:
    make_trainer(hook).fit(2, progress=True, evaluate_every=2)

    shown = capsys.readouterr().err
    assert "round 2/2" in shown
    assert "accuracy 0." in shown
    assert shown.count("\n") == 1


def test_without_a_terminal_nothing_is_shown_unless_it_is_wanted(hook: Any, capsys: pytest.CaptureFixture[str]) -> None:
    make_trainer(hook).fit(1)
    make_trainer(hook).fit(1, progress=False)
    make_trainer(hook).fit(0, progress=True)

    assert capsys.readouterr().err == ""
