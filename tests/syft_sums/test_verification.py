from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from syft_core.cli import main
from syft_sums.evidence import write_evidence

from .studies import Study
from .test_evidence import rounds_of


@pytest.fixture
def study() -> Study:
    return Study([[1.0]] * 4)


@pytest.fixture
def path(study: Study, tmp_path: Path) -> Path:
    found = tmp_path / "study.syft"
    write_evidence(found, [rounds_of(study)])
    return found


def members_of(study: Study) -> list[str]:
    names = zip(("north", "south", "east", "west"), study.keys, strict=True)
    return [option for name, key in names for option in ("--member", f"{name}={key.fingerprint}")]


def test_it_prints_who_took_part_by_name(study: Study, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(path), *members_of(study)]) == 0

    text = capsys.readouterr().out
    assert "4 of 4: north, south, east, west" in text
    assert "1 rounds: every signature is valid, and no sum had fewer workers than its quorum" in text


def test_a_worker_that_is_not_a_member_is_refused(study: Study, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(path), *members_of(study)[:6]]) == 1
    assert "is not one of the members given" in capsys.readouterr().err


def test_fewer_workers_than_demanded_are_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(path), "--at-least", "5"]) == 1
    assert "round 1 has 4 workers, and 5 were demanded" in capsys.readouterr().err


def test_a_malformed_member_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(path), "--member", "north=7"]) == 1
    assert "64 hexadecimal digits" in capsys.readouterr().err


def test_it_prints_json(study: Study, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["signers"] == [key.fingerprint for key in study.keys]


def test_it_needs_no_framework(path: Path) -> None:
    program = (
        "import sys; from syft_core.cli import main; main(['verify', sys.argv[1]]); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
