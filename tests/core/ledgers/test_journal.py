from __future__ import annotations

from pathlib import Path

import pytest

from syft_core.exceptions import LedgerError
from syft_core.ledgers.journal import MAX_TEXT, Journal
from syft_core.workers.seeing.ledger import Entry, Ledger, read_ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bob.ledger"


def events(path: Path) -> list[str]:
    return [entry.event for entry in read_ledger(path)]


def fill(path: Path, lines: int) -> None:
    ledger = Ledger("bob", path)
    for number in range(lines):
        ledger.record(Entry(1.5e9 + number, "ana", number, "Tensor[2]", (1, "x"), "me", "why\n", ("#a", "")))
    ledger.close()


def test_the_chain_continues_after_a_restart(path: Path) -> None:
    fill(path, 2)
    fill(path, 1)

    assert [entry.id for entry in read_ledger(path)] == ["", "0", "1", "0"]
    last = list(read_ledger(path))[-1]
    assert last == Entry(1.5e9, "ana", "0", "Tensor[2]", ("1", "x"), "me", "why\n", ("#a", ""))


def test_an_incomplete_last_line_is_set_aside_and_reported(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    torn = whole[:-10].rpartition(b"\n")[2]
    with pytest.raises(LedgerError, match="cannot verify line 3 of .*: it is incomplete"):
        events(path)

    fill(path, 1)

    assert events(path) == ["opened", "departed", "recovered", "departed"]
    (aside,) = path.parent.glob("bob.ledger.torn-3-*")
    assert aside.read_bytes() == torn
    assert (
        list(read_ledger(path))[2].reason == f"line 3 was incomplete ({len(torn)} bytes) and was moved to {aside.name}"
    )
    assert "line 3 was incomplete" in caplog.text


def test_two_processes_cannot_write_to_one_ledger(path: Path) -> None:
    first = Journal(path, "bob")
    with pytest.raises(LedgerError, match="cannot open the ledger .*: another process writes to it"):
        Journal(path, "bob")
    first.close()
    Journal(path, "bob").close()


def test_a_changed_ledger_is_not_continued(path: Path) -> None:
    fill(path, 3)
    path.write_bytes(path.read_bytes().replace(b'"id":"1"', b'"id":"7"'))

    with pytest.raises(LedgerError, match="cannot verify line 3"):
        Ledger("bob", path)


def test_a_long_text_of_a_peer_takes_little_room(path: Path) -> None:
    ledger = Ledger("bob", path)
    ledger.record(Entry(1.5e9, "ana", 1, "Tensor[]", (), "me", "x" * 1_000_000))
    ledger.close()

    assert path.stat().st_size < 2 * MAX_TEXT
    assert list(read_ledger(path))[-1].reason.endswith("… (995904 more characters)")


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot open the ledger .*: Is a directory"):
        Ledger("bob", tmp_path)
    with pytest.raises(LedgerError, match="cannot open the ledger .*: No such file or directory"):
        Ledger("bob", tmp_path / "missing" / "ledger")


def test_only_the_owner_can_read_the_file(path: Path) -> None:
    fill(path, 1)

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_crash_between_renaming_a_ledger_and_the_next_breaks_no_chain(path: Path) -> None:
    fill(path, 2)
    path.rename(path.with_name("bob.ledger.1"))

    fill(path, 1)

    assert events(path) == ["opened", "departed", "departed", "continued", "departed"]


def test_a_file_that_was_cut_before_it_was_continued_is_noticed(path: Path) -> None:
    ledger = Ledger("bob", path)
    for number in range(3):
        ledger.record(Entry(1.5e9, "ana", number, "Tensor[2]", (), "me"))
    assert ledger.file is not None
    aside = ledger.file.rotate()
    ledger.record(Entry(1.5e9, "ana", 3, "Tensor[2]", (), "me"))
    ledger.close()
    aside.write_bytes(b"".join(aside.read_bytes().splitlines(keepends=True)[:-1]))

    with pytest.raises(LedgerError, match="cannot find the hash"):
        events(path)


@pytest.mark.parametrize("more", ["", ',"file":""', r',"file":"a\u0000"'])
def test_a_changed_first_line_is_noticed(path: Path, more: str) -> None:
    path.write_text(f'{{"event":"continued"{more}}}\n')

    with pytest.raises(LedgerError, match="cannot verify line 1"):
        events(path)
    with pytest.raises(LedgerError, match="cannot verify line 1"):
        Journal(path, "bob")
