from __future__ import annotations

import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toy
from syft_toy.plugin import BACKEND

from syft_core.demo import DemoOptions, Screen, finish_demo, run_demo
from syft_core.demo import screen as screens
from syft_core.hook.hook import current_hook
from syft_core.plugins.backend import find_installed


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Screen:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(screens, "MAX_WIDTH", 300)
    return Screen(0)


def test_the_demo_runs_and_unhooks_the_framework(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(vars(toy))

    run_demo(screen, BACKEND)

    shown = capsys.readouterr().out
    for text in (
        "Data you never see, on toy 1.2",
        "#ages",
        "private: no user may fetch it",
        "ValueRefusedError: cannot run 'toy.Vector.__float__' on a pointer",
        "GetNotPermittedError: cannot get object",
        "it is raw data, which the policy of this worker does not release",
        "it is private, or was computed from something private",
        "NotCollocatedError: cannot run 'toy.Vector.__add__': its arguments live on 'north' and 'south'",
        "round 40",
        "#ages, #pressures",
        "Raw data: 0 of 160 departures.",
        "(Wrapper)>LoggingTensor>Vector([2.0, -4.0, 6.0])",
        "Vector([0.0, -3.0, 2.0])",
        "-0.995133",
        "The framework is unhooked: toy is exactly as it was before.",
    ):
        assert text in shown
    assert dict(vars(toy)) == before
    assert current_hook() is None


def test_a_backend_may_have_its_own_demo(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = types.ModuleType("toy_acts")
    acts.juggle = lambda screen, hook, options: screen.text(f"now juggling on {hook.name} with {options.seed}")
    monkeypatch.setitem(sys.modules, "toy_acts", acts)

    run_demo(screen, replace(BACKEND, demo="toy_acts:juggle"), DemoOptions(seed=3))

    shown = capsys.readouterr().out
    assert "now juggling on toy with 3" in shown
    assert "#ages" not in shown


def test_backends_with_their_own_demo_come_first() -> None:
    own = replace(BACKEND, name="own", demo="somewhere:tell")
    absent = replace(BACKEND, name="absent", framework="not_installed_anywhere")

    assert [backend.name for backend in find_installed([BACKEND, absent, own])] == ["own", "toy"]


def test_finishing_writes_the_page_and_names_the_other_frameworks(
    screen: Screen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.page.add("A title", "Some words", "<svg/>")

    finish_demo(screen, ["toy", "abacus"], tmp_path / "page.html")

    shown = capsys.readouterr().out
    assert (tmp_path / "page.html").as_uri() in shown
    assert "The same on toy and on abacus: `syft-core demo toy`, `syft-core demo abacus`" in shown


def test_the_page_goes_to_a_temporary_folder_by_default(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    screen.page.add("A title", "Some words", "<svg/>")

    finish_demo(screen, [])

    (page,) = tmp_path.glob("syft-core-*/demo.html")
    assert page.as_uri() in capsys.readouterr().out
