from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from syft_worker.logs import configure_logs

from ..network.served import Served, serve
from .browsing import Browser, ask_for_release, path_of


@pytest.fixture
def served(hook: Any) -> Iterator[Served]:
    with serve(hook) as served:
        yield served


@pytest.fixture
def _root_logger() -> Iterator[None]:
    """Restore the configuration of logs."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_root_logger")
def test_logs_are_lines_of_json_and_contain_no_token(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    pointer = ask_for_release(served)
    browser = Browser(served.page)
    browser.sign_in("guess")
    browser.sign_in()
    browser.post(f"{path_of(served)}/approve", **browser.review(path_of(served)))

    written = capsys.readouterr().err
    lines = {line["event"]: line for line in map(json.loads, written.splitlines())}
    assert {"refused a token", "signed in", "request approved"} <= set(lines)
    assert (lines["request approved"]["id"], lines["request approved"]["by"]) == (path_of(served)[-16:], "Dr. Noor")
    assert lines["signed in"]["address"] == "127.0.0.1"
    assert "secret" not in written
    assert "guess" not in written
    del pointer
