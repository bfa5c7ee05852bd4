from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syft_sums.statements import MaskedVector, Proof
from syft_sums.tally import FalseStatementError, Tally

from .studies import Study


def answer(study: Study, place: int = 0) -> tuple[bytes, MaskedVector]:
    member = study.members[study.roster.keys[place]]
    return member.ready.key, member.mask(member.prepare(member.read_list([tuple(each) for each in study.ready])))


@pytest.mark.parametrize("received", [None, (), (1, 2, 3), ((), b"", ())])
def test_a_malformed_answer_is_named(received: Any) -> None:
    study = Study([[1.0]] * 3)
    with pytest.raises(FalseStatementError) as caught:
        Tally(study.roster, study.ready).add_masked(study.roster.keys[1], received)
    assert caught.value.key == study.roster.keys[1]


def test_an_answer_of_another_worker_or_list_is_refused() -> None:
    study = Study([[1.0]] * 4)
    _, masked = answer(study)
    with pytest.raises(FalseStatementError, match="its signature is wrong, or for another list"):
        Tally(study.roster, study.ready).add_masked(study.roster.keys[1], masked.to_wire())
    with pytest.raises(FalseStatementError, match="or for another list"):
        Tally(study.roster, study.ready[:3]).add_masked(study.roster.keys[0], masked.to_wire())


def test_a_vector_of_another_length_is_refused() -> None:
    study = Study([[1.0]] * 3)
    key, masked = answer(study)
    tally = Tally(study.roster, study.ready)
    tally._total = np.zeros(9, np.uint64)
    with pytest.raises(FalseStatementError, match="it has another length"):
        tally.add_masked(key, masked.to_wire())


def test_an_answer_that_comes_twice_counts_once() -> None:
    study = Study([[1.0]] * 3)
    key, masked = answer(study)
    tally = study.mask(study.ready)
    tally.add_masked(key, masked.to_wire())
    study.reveal(tally)

    np.testing.assert_allclose(tally.open(), [3.0, 3.0])


def test_a_seed_that_was_not_masked_with_is_refused() -> None:
    study = Study([[1.0]] * 3)
    tally = study.mask(study.ready)
    with pytest.raises(FalseStatementError, match="its seed is not the one that it has masked with"):
        tally.add_revealed(study.roster.keys[0], (), (bytes(32), ()))
    with pytest.raises(FalseStatementError, match="it has not given the shares"):
        tally.add_revealed(study.roster.keys[0], (study.roster.keys[1],), (bytes(32), ()))


def test_shares_that_do_not_give_the_seed_name_its_worker() -> None:
    study = Study([[1.0]] * 4)
    tally = study.mask(study.ready)
    gone = study.roster.keys[3]
    study.reveal(tally, (gone,))
    tally._shares[gone][1] = bytes(33)

    with pytest.raises(FalseStatementError, match="its seed cannot be rebuilt") as caught:
        tally.rebuild()
    assert caught.value.key == gone


def test_the_proofs_are_in_the_order_of_the_list() -> None:
    study = Study([[1.0]] * 3)
    tally = study.mask(study.ready)
    assert [proof.key for proof in tally.proofs] == list(study.roster.keys)
    assert all(isinstance(proof, Proof) and proof.is_signed for proof in tally.proofs)
