from __future__ import annotations

import logging
import re
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toy
from syft_toy.plugin import BACKEND

from syft_core.demo import Screen, finish_demo, run_demo
from syft_core.demo import screen as screens
from syft_core.demo.hospitals import get_refusal
from syft_core.demo.screen import DemoPage
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


def test_federated_training_matches_centralized_training(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    run_demo(screen, BACKEND)

    lines = capsys.readouterr().out.splitlines()
    far, near = (
        next(line.split()[-2:] for line in lines if words in line)
        for words in ("data never moved", "all data in one place  ")
    )
    assert far == near


def test_the_demo_restores_the_logger(screen: Screen) -> None:
    log = logging.getLogger("syft_core.tensors.logging")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        run_demo(screen, BACKEND)

        assert (log.level, log.propagate, log.handlers) == (logging.ERROR, True, [])
        assert not log.isEnabledFor(logging.INFO)
    finally:
        log.setLevel(before)


def test_a_backend_may_have_its_own_demo(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = types.ModuleType("toy_acts")
    acts.juggle = lambda screen, hook: screen.text(f"now juggling on {hook.name}")
    monkeypatch.setitem(sys.modules, "toy_acts", acts)

    run_demo(screen, replace(BACKEND, demo="toy_acts:juggle"))

    shown = capsys.readouterr().out
    assert "now juggling on toy" in shown
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


def test_the_page_loads_nothing_and_escapes_text() -> None:
    page = DemoPage()
    page.add("a < b", "c & d", "<svg/>")

    html = page.html()

    assert "a &lt; b" in html
    assert "c &amp; d" in html
    assert "<figure><svg/></figure>" in html
    assert not re.search(r"https?:|<script|<link|@import|url\(", html)


def test_text_is_shown_unchanged(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.code("x[0]", "[red]not a colour[/red]")
    screen.source("for [i] in x:\n    pass")
    screen.show("[bold]")
    screen.log_line("[dim]")
    screen.refusal("y[1]", "[/]")
    screen.table(("[a]",), [("[b]",)])
    screen.chain(["[link]"])
    screen.progress("[c]", 0.5, "[d]")

    shown = capsys.readouterr().out
    for text in (
        "x[0]", "[red]not a colour[/red]", "for [i] in x:", "[bold]", "[dim]", "y[1]", "[/]", "[a]", "[b]", "[link]",
        "[c]", "██████████░░░░░░░░░░", "[d]",
    ):  # fmt: skip
        assert text in shown


@pytest.mark.parametrize("columns", [80, 120])
def test_the_demo_fits_the_terminal_and_writes_no_control_characters_to_a_file(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = Screen(0)

    run_demo(screen, BACKEND)

    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown)


def test_a_screen_pauses_for_the_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(screens.time, "sleep", pauses.append)
    screen = Screen(0.25)

    screen.text("one")
    screen.code("two", "2")
    screen.show("three")

    assert pauses == [0.25, 0.25]


@pytest.mark.parametrize(("no_color", "shown"), [(None, "\x1b[1;36m\n== One ==\x1b[0m\n"), ("1", "\n== One ==\n")])
def test_a_terminal_shows_colours_unless_the_user_does_not_want_them(
    no_color: str | None, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    Screen(0).title("One")

    assert capsys.readouterr().out == shown


def test_an_expected_refusal_that_does_not_happen_fails_the_demo() -> None:
    with pytest.raises(AssertionError, match="the call succeeded"):
        get_refusal(lambda: None)
