from __future__ import annotations

import importlib.util
import logging
import sys
import types
from dataclasses import replace
from typing import Any

import pytest
import toy
from syft_toy.plugin import BACKEND

from syft_core import demo
from syft_core.demo import RichStage, Stage, farewell, make_stage, perform
from syft_core.hook.hook import current_hook

needs_rich = pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="rich is not installed")


@pytest.fixture(params=["plain", pytest.param("rich", marks=needs_rich)])
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Stage:
    monkeypatch.setenv("COLUMNS", "300")
    return Stage(0) if request.param == "plain" else make_stage(0)


def test_a_performance_shows_every_act_and_leaves_the_framework_as_it_was(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(vars(toy))

    perform(stage, BACKEND)

    shown = capsys.readouterr().out
    for text in (
        "A chain at work on toy 1.2",
        "LoggingTensor",
        "Log method __add__",
        "(Wrapper)>LoggingTensor>Vector([2.0, -4.0, 6.0])",
        "Log method sum",
        "Log method __getitem__",
        "(Wrapper)>PlusIsMinusTensor>Vector([0.0, -3.0, 2.0])",
        "-0.995133",
        "it mixes a PlusIsMinusTensor with a PolynomialTensor",
        "a value lies outside [-10, 10]",
        "The hook is off again: toy is exactly as it was.",
    ):
        assert text in shown
    assert dict(vars(toy)) == before
    assert current_hook() is None


def test_a_performance_leaves_the_logger_as_it_was(stage: Stage) -> None:
    log = logging.getLogger("syft_core.tensors.logging")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        perform(stage, BACKEND)

        assert (log.level, log.propagate, log.handlers) == (logging.ERROR, True, [])
        assert not log.isEnabledFor(logging.INFO)
    finally:
        log.setLevel(before)


def test_a_backend_may_have_acts_of_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = types.ModuleType("toy_acts")
    acts.juggle = lambda stage, hook: stage.say(f"now juggling on {hook.name}")
    monkeypatch.setitem(sys.modules, "toy_acts", acts)

    perform(stage, replace(BACKEND, demo="toy_acts:juggle"))

    assert "now juggling on toy" in capsys.readouterr().out


def test_the_farewell_names_the_frameworks(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    farewell(stage, ["toy", "abacus"])

    assert "worked on toy and on abacus" in capsys.readouterr().out


def test_text_is_shown_as_it_is_written(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.code("x[0]", "[red]not a colour[/red]")
    stage.show("[bold]")
    stage.passing("[dim]")
    stage.refused("y[1]", "[/]")
    stage.table(("[a]",), [("[b]",)])
    stage.chain(["[link]"])

    shown = capsys.readouterr().out
    for text in ("x[0]", "[red]not a colour[/red]", "[bold]", "[dim]", "y[1]", "[/]", "[a]", "[b]", "[link]"):
        assert text in shown


def test_a_plain_stage_pauses_as_long_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(demo.time, "sleep", pauses.append)
    stage = Stage(0.25)

    stage.say("one")
    stage.code("two", "2")
    stage.show("three")

    assert pauses == [0.25, 0.25]


def test_without_rich_the_stage_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    for name in [name for name in sys.modules if name.startswith("rich.")]:
        monkeypatch.setitem(sys.modules, name, None)

    assert type(make_stage(0)) is Stage


@needs_rich
def test_with_rich_the_stage_has_colours() -> None:
    assert type(make_stage(0)) is RichStage


def test_a_refusal_that_does_not_happen_is_a_failure_of_the_demo() -> None:
    with pytest.raises(AssertionError, match="a refusal that did not happen"):
        demo._reason(lambda: None)
