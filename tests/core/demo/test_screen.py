from __future__ import annotations

import re
import sys
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
