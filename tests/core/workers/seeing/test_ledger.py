from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import LedgerError
from syft_core.ledgers.entry import Entry
from syft_core.ledgers.reading import read_ledger
from syft_core.messages import Fetch
from syft_core.peer import Peer
from syft_core.workers.seeing.ledger import MAX_REFUSALS, Ledger

LEFT = Entry(0.0, "me", 5, "Tensor[3]", (1,), "me")
EVE = Peer("laptop", "eve")


def events(path: Path) -> list[str]:
    return [entry.event for entry in read_ledger(path)]


def test_what_leaves_with_an_answer_is_recorded_when_the_answer_is_ready() -> None:
    ledger, message = Ledger("north"), Fetch(5)
    ledger.hold(message, [LEFT])
    assert len(ledger) == 0

    ledger.commit(message)
    ledger.commit(message)

    assert list(ledger) == [LEFT]


def test_what_did_not_leave_is_forgotten() -> None:
    ledger, message = Ledger("north"), Fetch(5)
    ledger.hold(message, [LEFT])

    ledger.forget([message])
    ledger.commit(message)

    assert len(ledger) == ledger.departures == 0


def test_a_departure_that_failed_is_withdrawn_and_the_file_says_so(tmp_path: Path) -> None:
    ledger = Ledger("north", tmp_path / "ledger")
    ledger.record(LEFT)

    ledger.withdraw([ledger[0]], "ConnectionLostError")
    ledger.close()

    assert len(ledger) == ledger.departures == 0
    assert events(tmp_path / "ledger")[-2:] == ["departed", "undelivered"]


def test_a_peer_that_is_refused_often_gets_one_line_for_all_but_the_first_refusals(tmp_path: Path) -> None:
    ledger = Ledger("north", tmp_path / "ledger")

    admitted = [ledger.admit_refusal(EVE, "Fetch") for _ in range(MAX_REFUSALS + 5)]
    ledger.close()

    assert admitted == [True] * MAX_REFUSALS + [False] * 5
    *_, last = read_ledger(tmp_path / "ledger")
    assert last.event == "refused"
    assert last.reason.startswith("5 more refusals in 0 seconds")


def test_nothing_is_recorded_after_the_file_was_closed(tmp_path: Path, caplog: Any) -> None:
    ledger = Ledger("north", tmp_path / "ledger")
    ledger.close()

    with pytest.raises(LedgerError):
        ledger.record(LEFT)
    assert len(ledger) == 0
