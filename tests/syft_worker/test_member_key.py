from __future__ import annotations

import json
from pathlib import Path

import pytest

from syft_core.cli import main
from syft_core.files import lock_folder
from syft_sums.keys import KEY_FILE, MemberKey


def test_it_prints_the_fingerprint_of_the_key_in_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "worker.toml").write_text('store = "store"\n')

    assert main(["key", "--config", str(tmp_path / "worker.toml")]) == 0

    key = MemberKey.load(tmp_path / "store" / KEY_FILE)
    assert capsys.readouterr().out.strip() == key.fingerprint


def test_it_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "--store", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fingerprint"] == MemberKey.load(tmp_path / KEY_FILE).fingerprint


def test_a_new_key_replaces_the_old_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = MemberKey.load(tmp_path / KEY_FILE)

    assert main(["key", "new", "--store", str(tmp_path)]) == 0

    after = MemberKey.load(tmp_path / KEY_FILE)
    assert after.public != before.public
    assert capsys.readouterr().out.strip() == after.fingerprint


def test_a_running_worker_keeps_its_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = MemberKey.load(tmp_path / KEY_FILE)
    with lock_folder(tmp_path):
        assert main(["key", "new", "--store", str(tmp_path)]) == 1

    assert "the worker is running; stop it first" in capsys.readouterr().err
    assert MemberKey.load(tmp_path / KEY_FILE).public == before.public


def test_a_worker_without_a_store_has_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "worker.toml").write_text('id = "north"\n')
    assert main(["key", "--config", str(tmp_path / "worker.toml")]) == 1
    assert "the worker has no store; give `store`" in capsys.readouterr().err
