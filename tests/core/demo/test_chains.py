from __future__ import annotations

import logging
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
