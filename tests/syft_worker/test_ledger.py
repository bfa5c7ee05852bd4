from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from syft_core import cli
from syft_core.exceptions import LedgerError
from syft_core.workers.seeing.ledger import Entry, Ledger, read_ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bob.ledger"


def fill(path: Path, lines: int) -> None:
    ledger = Ledger("bob", path)
    for number in range(lines):
        ledger.record(Entry(1.5e9 + number, "ana", number, "Tensor[2]", (1, "x"), "me", "why\n", ("#a", "")))
    ledger.close()


def test_verify_names_the_line_of_any_flipped_bit(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(path, 4)
    whole = path.read_bytes()
    source = random.Random(11)
    places = {0, len(whole) - 1, *source.sample(range(len(whole)), 200)}
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << source.randrange(8)
        path.write_bytes(changed)

        code = cli.main(["ledger", "verify", str(path)])

        line = whole[:place].count(b"\n") + 1
        assert code == 1
        assert f"cannot verify line {line} of" in capsys.readouterr().err


def test_verify_notices_missing_and_exchanged_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    assert cli.main(["ledger", "verify", str(path)]) == 0
    head = capsys.readouterr().out.split()[-1]

    for changed in ([lines[0], *lines[2:]], [lines[0], lines[2], lines[1], lines[3]]):
        path.write_bytes(b"".join(changed))
        assert cli.main(["ledger", "verify", str(path)]) == 1
        assert "cannot verify line 2" in capsys.readouterr().err
    path.write_bytes(b"".join(lines[:-1]))
    assert cli.main(["ledger", "verify", str(path)]) == 0
    assert cli.main(["ledger", "verify", str(path), "--head", head]) == 1
    assert f"cannot find the hash {head}" in capsys.readouterr().err


def test_show_prints_a_table_or_json_of_one_user_and_what_precedes_a_changed_line(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, 1)
    ledger = Ledger("bob", path)
    ledger.record(Entry(1.5e9, "bo\nb through ana", 5, "Tensor[]", (), "me"))
    ledger.record(Entry(1.5e9, "carol", 6, "Tensor[]", (), "me"))
    ledger.close()

    assert cli.main(["ledger", "show", str(path), "--user", "ana"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["line", "2", "3"]
    assert r"bo\nb through ana" in rows[2]
    cli.main(["ledger", "show", str(path), "--json"])
    assert [json.loads(row)["event"] for row in capsys.readouterr().out.splitlines()] == ["opened", *["departed"] * 3]
    path.write_bytes(path.read_bytes().replace(b"carol", b"clara"))
    assert cli.main(["ledger", "show", str(path)]) == 1
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 4
    assert shown.err.startswith("syft-core: cannot verify line 4")


@pytest.mark.parametrize("verb", ["show", "verify"])
@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text"])
def test_what_is_not_a_ledger_is_an_error_of_one_line(
    path: Path, verb: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("" if kind == "empty" else "root:x:0:0\n")

    assert cli.main(["ledger", verb, str(path)]) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("syft-core: cannot ")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        "token add {0}/none/tokens --user ana",
        "certs {0}/file --host x",
        "certs {0}/file/x --host x",
        "token list {0}/file",
    ],
)
def test_a_bad_path_is_an_error_of_one_line(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o600)

    assert cli.main(command.format(tmp_path).split()) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("syft-core: cannot ")
    assert shown.err.count("\n") == 1


def test_a_new_file_continues_a_large_one_without_a_stop(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for start in (0, 10):  # The second ledger continues after a restart.
        ledger = Ledger("bob", path, limit=1000)
        for number in range(start, start + 10):
            ledger.record(Entry(1.5e9, "ana", number, "Tensor[2]", (), "me"))
        ledger.close()

    files = sorted(path.parent.glob("bob.ledger*"))
    assert len(files) > 3
    assert [entry.id for entry in read_ledger(path) if entry.event == "departed"] == [str(n) for n in range(20)]
    assert cli.main(["ledger", "verify", str(path)]) == 0
    assert f": {sum(len(file.read_text().splitlines()) for file in files)} lines, all intact" in capsys.readouterr().out
    ledger = Ledger("bob", path)
    assert ledger.file is not None
    assert ledger.file.total_size == sum(file.stat().st_size for file in files)
    ledger.close()
    changed = path.with_name("bob.ledger.2")
    changed.write_bytes(changed.read_bytes().replace(b'"ana"', b'"eve"', 1))
    assert cli.main(["ledger", "verify", str(path)]) == 1
    assert "bob.ledger.2" in capsys.readouterr().err
    with pytest.raises(LedgerError, match="bob.ledger.2"):
        Ledger("bob", path)
    changed.unlink()
    with pytest.raises(LedgerError, match="bob.ledger.2"):
        Ledger("bob", path)
