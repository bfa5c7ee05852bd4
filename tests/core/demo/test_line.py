from __future__ import annotations

from typing import Any

import pytest
from syft_toy.plugin import BACKEND

from syft_core.demo import DemoOptions, Screen, run_demo
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


def test_another_seed_makes_other_patients(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for seed in (1, 2):
        run_demo(screen, BACKEND, DemoOptions(seed))
        shown.append(next(line for line in capsys.readouterr().out.splitlines() if "data never moved" in line))

    assert shown[0] != shown[1]
