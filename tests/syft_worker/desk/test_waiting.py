"""One line that says for whose decisions a program waits."""

from __future__ import annotations

import logging
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from syft_worker.desk.waiting import Notebook, Terminal, WaitingLine, find_display


class Recorder:
    """A place for a line that remembers what it showed."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.ended = 0

    def show(self, text: str) -> None:
        self.shown.append(re.sub(r"\d+ s$", "0 s", text))

    def end(self) -> None:
        self.ended += 1


def test_one_line_tells_of_all_requests_that_wait_and_ends_with_the_last() -> None:
    place = Recorder()
    line = WaitingLine(lambda: place)

    line.begin("a1", "north")
    line.begin("b2", "south")
    line.end("a1")
    line.update()
    assert place.ended == 0
    line.end("b2")
    line.update()

    assert place.shown == [
        "waiting for the owner of north to decide on request a1, for 0 s",
        "waiting for the owner of north, south to decide on 2 requests, for 0 s",
        "waiting for the owner of south to decide on request b2, for 0 s",
    ]
    assert place.ended == 1


def test_names_of_workers_are_escaped_and_not_all_are_named() -> None:
    place = Recorder()
    line = WaitingLine(lambda: place)

    for number in range(5):
        line.begin(str(number), f"w{number}\x1b[2J")

    assert "\x1b" not in "".join(place.shown)
    assert r"w0\x1b[2J" in place.shown[0]
    assert place.shown[-1].endswith("and 2 more to decide on 5 requests, for 0 s")


def test_without_a_terminal_the_log_says_it(caplog: Any) -> None:
    line = WaitingLine(lambda: None)
    with caplog.at_level(logging.INFO):
        line.begin("a1", "north")
        line.end("a1")

    assert "waiting for the owner of north to decide on request a1" in caplog.text


def test_a_terminal_shows_a_line_in_place_of_the_one_before(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    display = find_display()
    assert isinstance(display, Terminal)

    display.show("one")
    display.show("two")
    display.end()

    assert [text.strip() for text in capsys.readouterr().err.split("\r")] == ["", "one", "two"]


def test_a_notebook_shows_it_below_the_cell(monkeypatch: Any) -> None:
    shown: list[Any] = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data))
    module, display = ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: SimpleNamespace(kernel=1)  # type: ignore[attr-defined]  # as IPython has it
    display.display = lambda data, raw, display_id: handle  # type: ignore[attr-defined]  # the same
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)

    found = find_display()
    assert isinstance(found, Notebook)
    found.show("waiting")

    assert shown == [{"text/plain": "waiting"}]


def test_a_program_that_shows_nothing_has_no_place(monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    assert find_display() is None
