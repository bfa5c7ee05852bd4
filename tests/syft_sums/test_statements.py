from __future__ import annotations

import hashlib
from typing import Any

import pytest

from syft_sums.statements import MaskedVector, Proof, Ready, Revealed, hash_list, hash_parts, write_text

from .studies import Study


def test_parts_are_hashed_with_their_lengths() -> None:
    assert hash_parts(b"ab", b"c") != hash_parts(b"a", b"bc")
    assert hash_parts(b"a") != hash_parts(b"a", b"")


def test_a_text_names_the_kind_of_statement() -> None:
    assert write_text("ready", 1) != write_text("masked", 1)


def test_the_digest_of_a_list_depends_on_every_statement() -> None:
    study = Study([[1.0]] * 3)
    changed = [*study.ready[:2], study.ready[2]._replace(masked=5)]
    assert hash_list(study.ready) != hash_list(changed)
    assert hash_list(study.ready) != hash_list(study.ready[::-1])


@pytest.mark.parametrize("field", [name for name in Ready._fields if name != "signature"])
def test_every_field_of_a_statement_is_signed(field: str) -> None:
    ready = Study([[1.0]] * 3).ready[0]
    value = getattr(ready, field)
    other: Any = value + 1 if type(value) is int else "other" if type(value) is str else bytes([255] * len(value))
    assert ready.is_signed
    assert not ready._replace(**{field: other}).is_signed


@pytest.mark.parametrize("field", Ready._fields)
@pytest.mark.parametrize("bad", [None, 1.5, -1, b"x", [], "x" * 300])
def test_a_statement_with_a_wrong_type_is_malformed(field: str, bad: Any) -> None:
    ready = Study([[1.0]] * 3).ready[0]
    with pytest.raises((ValueError, TypeError)):
        Ready.read(tuple(ready._replace(**{field: bad})))


def test_an_answer_whose_digests_are_others_is_malformed() -> None:
    proof = Proof(bytes(32), bytes(32), hashlib.sha256(b"1").digest(), bytes(32), hash_parts(b""), bytes(64))
    assert MaskedVector.read((tuple(proof), b"1", (b"",))).values == b"1"
    for changed in ((b"2", (b"",)), (b"1", (b"x",))):
        with pytest.raises(ValueError, match="malformed"):
            MaskedVector.read((tuple(proof), *changed))


@pytest.mark.parametrize("received", [(), (bytes(31), ()), (bytes(32), (bytes(32),)), (bytes(32), [bytes(33)]), None])
def test_a_reveal_with_other_lengths_is_malformed(received: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Revealed.read(received)
