"""One line that is replaced while a program works or waits."""

from __future__ import annotations

import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from syft_core.display import Log, Notebook, Terminal, find_display


def test_a_terminal_shows_a_line_in_place_of_the_one_before(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    display = find_display()
    assert isinstance(display, Terminal)

    display.show("one")
    display.show("two")
    display.end()

    assert [text.strip() for text in capsys.readouterr().err.split("\r")] == ["", "one", "two"]


def test_a_terminal_has_no_empty_line_if_nothing_was_shown(capsys: Any) -> None:
    Terminal().end()

    assert capsys.readouterr().err == ""


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


def test_a_log_has_a_line_at_once_and_then_one_a_minute(monkeypatch: Any, caplog: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    log = Log(logging.getLogger("test"))

    for seconds in range(130):
        now[0] = 1000.0 + seconds
        log.show(f"for {seconds} s")

    assert [record.getMessage() for record in caplog.records] == ["for 0 s", "for 60 s", "for 120 s"]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_program_that_shows_nothing_has_no_place(monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    assert find_display() is None
