"""Backup, restore and upgrade: the commands of the page, and files of other releases."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from syft_core.cli import main
from syft_core.exceptions import LedgerError
from syft_core.ledgers import journal
from syft_core.plugins.manager import load_backend
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger
from syft_worker.desk.client import Desk

from .supervised import ROOT, SupervisedWorker, supervise

np = pytest.importorskip("numpy")
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
BLOCKS = re.findall("```sh\n(.*?)```", PAGE.partition("## Backup")[2].partition("## The ledger")[0], re.DOTALL)


def write_worker(folder: Path, capsys: Any) -> dict[str, str]:
    """Write a configuration, its data and tokens; return the tokens by user."""
    (folder / "data").mkdir()
    np.save(folder / "data" / "ages.npy", np.array([30.0, 40.0]))
    (folder / "worker.toml").write_text(
        'id = "north"\nframework = "numpy"\ntoken_file = "tokens.json"\nledger = "ledger.jsonl"\nledger_bytes = 600\n'
        'store = "store"\ndata = ["data/ages.npy#ages:private="]\n'
    )
    tokens = {}
    for user, *more in (("ana",), ("noor", "--admin")):
        capsys.readouterr()
        assert main(["token", "add", str(folder / "tokens.json"), "--user", user, *more, "--json"]) == 0
        tokens[user] = json.loads(capsys.readouterr().out)["secret"]
    return tokens


def run(commands: str, folder: Path) -> None:
    """Run commands in a shell, in which ``syft-core`` is this version."""
    program = folder / "bin" / "syft-core"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m syft_core "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    subprocess.run(["sh", "-euc", commands], cwd=folder, env=env, check=True, timeout=120)


def test_what_was_backed_up_is_there_after_the_commands_of_the_page(tmp_path: Path, capsys: Any) -> None:
    tokens = write_worker(tmp_path, capsys)
    backup, restore, upgrade = BLOCKS
    with load_backend("numpy")(np) as hook:
        with supervise(str(tmp_path / "worker.toml")) as worker:
            request = worker.connect(hook, tokens["ana"]).search("#ages")[0].mean().request("table 1")
            with open_desk(worker, hook, tokens["noor"]) as desk:
                desk.allow("study", request, count=3)
            close(hook)
        assert list(tmp_path.glob("ledger.jsonl.*"))  # The ledger has more than one file.

        run(backup + restore, tmp_path)
        run(upgrade.partition("\n")[2], tmp_path / "restored")

        with supervise(str(tmp_path / "restored" / "worker.toml")) as worker:
            (found,) = worker.connect(hook, tokens["ana"]).requests()
            assert found == request
            with open_desk(worker, hook, tokens["noor"]) as desk:
                assert [rule["name"] for rule in desk.rules()] == ["study"]
            assert float(found.get()) == 35.0
            close(hook)


@contextmanager
def open_desk(worker: SupervisedWorker, hook: Any, token: str) -> Iterator[Desk]:
    with closing(worker.connect(hook, token, client=VirtualWorker(hook, id="desk", auto_add=False))) as location:
        yield Desk(location)


def close(hook: Any) -> None:
    """Close the connection of the local worker, and forget the worker."""
    hook.local_worker.get_worker("north").close()
    hook.local_worker.remove_worker_from_registry("north")


@pytest.mark.parametrize("name", ["store/approvals.json", "tokens.json"])
def test_a_file_of_a_later_release_is_refused_by_name_and_not_changed(tmp_path: Path, capsys: Any, name: str) -> None:
    write_worker(tmp_path, capsys)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"format": 99, "approvals": [], "revoked": [], "tokens": []}')
    path.chmod(0o600)
    before = path.read_bytes()

    worker = SupervisedWorker(str(tmp_path / "worker.toml"))
    code = worker.process.wait(120)
    worker.stop()

    assert code != 0
    assert path.name in "".join(worker.lines)
    assert path.read_bytes() == before


def test_a_ledger_of_a_later_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    monkeypatch.setattr(journal, "FORMAT", 2)
    Ledger("north", path=path).close()
    monkeypatch.undo()
    before = path.read_bytes()

    with pytest.raises(LedgerError, match="it has format 2, of a later release"):
        Ledger("north", path=path)

    assert main(["ledger", "verify", str(path)]) == 1
    assert path.read_bytes() == before
