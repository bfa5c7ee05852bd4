"""One line that says for whose decisions a program waits."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_worker.desk.errors import ReleasePendingError  # noqa: E402  # torch may be missing
from syft_worker.desk.waiting import WaitingLine  # noqa: E402  # the same


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


def test_a_program_without_a_terminal_says_at_once_for_whom_it_waits(bob: Any, me: Any, caplog: Any) -> None:
    """Python shows warnings unless a program configures its log."""
    bob.load_data([torch.zeros(2).private_tensor(["eve"]).tag("#ages")])

    with caplog.at_level(logging.WARNING), pytest.raises(ReleasePendingError):
        me.get_worker("bob").search("#ages")[0].request("a study").wait(0.3)

    assert "waiting for the owner of bob to decide on request" in caplog.text
