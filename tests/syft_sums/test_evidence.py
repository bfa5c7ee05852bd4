from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from syft_sums.errors import SumError
from syft_sums.evidence import describe_round, find_gaps, read_evidence, write_evidence

from .studies import Study


def rounds_of(study: Study) -> dict[str, Any]:
    tally = study.mask(study.ready)
    return describe_round(study.roster, tally.statements, tally.proofs)


@pytest.fixture
def study() -> Study:
    return Study([[1.0]] * 4)


def test_who_took_part_is_read_back(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "study.syft"
    write_evidence(path, [rounds_of(study)])

    (found,) = read_evidence(path)

    assert (found.study, found.round, found.quorum) == ("icu", 1, 3)
    assert list(found.signers) == list(found.roster) == [key.fingerprint for key in study.keys]
    assert set(found.noise) == {"none"}


def test_the_evidence_has_no_numbers_of_anybody(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "study.syft"
    write_evidence(path, [rounds_of(study)])
    assert path.stat().st_size < 6000
    assert "values" in json.loads(path.read_text().splitlines()[1])["proofs"][0]  # a digest


def change(path: Path, edit: Any) -> None:
    first, line = path.read_text().splitlines()
    table = json.loads(line)
    edit(table)
    path.write_text(f"{first}\n{json.dumps(table)}\n")


EDITS = {
    "the study": (lambda t: t.update(study="other"), "a statement is of another study"),
    "the roster": (lambda t: t["roster"].pop(), "a worker is not in the roster"),
    "a smaller roster": (lambda t: t.update(roster=t["roster"][:3]), "a worker is not in the roster"),
    "who may collude": (lambda t: t.update(colluding=0), "a statement is of another study"),
    "a worker": (lambda t: (t["statements"].pop(), t["proofs"].pop()), "the signature of a proof is wrong"),
    "the round": (lambda t: t["statements"][0].update(round=2), "the signature of a statement is wrong"),
    "the noise": (lambda t: t["statements"][0].update(noise="much"), "the signature of a statement is wrong"),
    "the head": (lambda t: t["statements"][0].update(head="11" * 32), "the signature of a statement is wrong"),
    "a proof": (lambda t: t["proofs"][0].update(values="11" * 32), "the signature of a proof is wrong"),
    "no proof": (lambda t: t["proofs"].pop(), "has not signed that it masked"),
    "a repeated worker": (lambda t: t["statements"].append(t["statements"][-1]), "or twice"),
    "a field": (lambda t: t["proofs"][0].update(more=1), "malformed"),
    "nothing": (lambda t: t.clear(), "malformed"),
    "too few": (lambda t: t.update(statements=t["statements"][:2], proofs=t["proofs"][:2]), "and 3 are needed"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_line_that_was_changed_is_found(study: Study, tmp_path: Path, name: str) -> None:
    path = tmp_path / "study.syft"
    write_evidence(path, [rounds_of(study)])
    edit, why = EDITS[name]
    change(path, edit)

    with pytest.raises(SumError, match=why):
        read_evidence(path)


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"format":2}\n', b"\xff\xfe", b"[" * 100])
def test_a_file_that_is_no_evidence_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "study.syft"
    path.write_bytes(content)
    with pytest.raises(SumError, match="cannot verify"):
        read_evidence(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SumError, match="No such file"):
        read_evidence(tmp_path / "none.syft")


def test_rounds_that_are_missing_in_between_are_named(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "study.syft"
    found = []
    for number in (1, 2, 5):
        study.members = {key.public: study.join(key, number) for key in study.keys}
        found.append(rounds_of(study))
    write_evidence(path, found)

    assert find_gaps(read_evidence(path)) == [3, 4]
    assert find_gaps([]) == []
