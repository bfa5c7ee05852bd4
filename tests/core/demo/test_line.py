from __future__ import annotations

from typing import Any

import pytest
from syft_toy.plugin import BACKEND

from syft_core.demo import Screen, run_demo
from syft_core.demo import screen as screens


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Screen:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(screens, "MAX_WIDTH", 300)
    return Screen(0)


def test_federated_training_matches_centralized_training(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    run_demo(screen, BACKEND)

    lines = capsys.readouterr().out.splitlines()
    far, near = (
        next(line.split()[-2:] for line in lines if words in line)
        for words in ("data never moved", "all data in one place  ")
    )
    assert far == near
