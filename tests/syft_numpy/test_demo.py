from __future__ import annotations

import pytest

from syft_core.demo import Screen, run_demo
from syft_numpy.plugin import BACKEND


def test_the_demo_runs_without_torch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    run_demo(Screen(0), BACKEND)

    shown = capsys.readouterr().out
    far, near = (
        next(line.split()[-2:] for line in shown.splitlines() if words in line)
        for words in ("data never moved", "all data in one place  ")
    )
    assert far == near
    assert "Raw data: 0 of 160 departures." in shown
    assert "cannot run 'numpy.add': its arguments live on" in shown
    assert max(map(len, shown.splitlines())) <= 80
