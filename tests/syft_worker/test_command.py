from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syft_core.cli import main
from syft_core.network.identity import Identity
from syft_core.workers.seeing.ledger import Ledger
from syft_worker.tokens import TokenFile

GOOD = 'host = "127.0.0.1"\ndata = ["ages.csv#ages"]\nledger = "ledger"\nstore = "deep/store"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ages.csv").write_text("age\n30\n")
    (tmp_path / "worker.toml").write_text(GOOD)
    return tmp_path


def test_commands_suggest_what_was_meant_with_their_own_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words, usage, meant in (
        (["worker", "--chek"], "usage: syft-core worker", "--check"),
        (["tokn"], "usage: syft-core ", "token"),
        (["token", "revok"], "usage: syft-core token", "revoke"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        error = capsys.readouterr().err
        assert error.startswith(usage)
        assert f"did you mean {meant!r}?" in error


def test_the_package_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "syft_core", "--version"], capture_output=True, text=True, timeout=120, check=True
    )

    assert done.stdout.startswith("syft-core ")


def test_scripts_get_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger("north", path=folder / "ledger").close()
    (folder / "ages.csv").unlink()

    def read(*words: str) -> tuple[int, Any]:
        code = main([*words, "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, problems = read("worker", "--check", str(folder / "worker.toml"))
    assert code == 1
    assert [("ages.csv" in problem) for problem in problems] == [True]
    assert read("ledger", "verify", str(folder / "ledger"))[1]["lines"] == 1
    assert {plugin["state"] for plugin in read("plugins")[1]} <= {"ready", "not installed"}
    added = read("token", "add", str(folder / "tokens.json"), "--user", "ana")[1]
    assert TokenFile(folder / "tokens.json").authenticate(added["secret"]) == Identity("ana", name="ana-1")
