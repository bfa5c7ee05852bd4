from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syft_sums.contribution import MAX_LISTS, Contribution, StatementError
from syft_sums.keys import MemberKey
from syft_sums.masks import key_of_seal
from syft_sums.roster import find_quorum
from syft_sums.statements import hash_parts
from syft_sums.tally import Tally

from .studies import Study, reveal

LOW_ORDER = bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")


def vectors(count: int, length: int = 5) -> list[Any]:
    return list(np.random.default_rng(count).normal(size=(count, length)))


# --- sums


@pytest.mark.parametrize("count", [3, 4, 7])
def test_the_sum_is_that_of_all_vectors_and_their_number(count: int) -> None:
    given_vectors = vectors(count)

    total = Study(given_vectors).sum()

    np.testing.assert_allclose(total[:-1], sum(given_vectors), atol=1e-8)
    assert total[-1] == count


def test_equal_vectors_give_bit_equal_sums_whoever_drops_out() -> None:
    found = vectors(5)
    sums = []
    for place in range(5):
        study = Study(found)
        sums.append(study.sum(gone=(study.roster.keys[place],)))

    assert all(np.array_equal(sums[0], other) for other in sums)


def test_a_worker_that_goes_before_it_masks_is_left_out_of_a_shorter_list() -> None:
    study = Study(vectors(5))
    first = study.mask(study.ready, gone=(study.roster.keys[0],))
    assert len(first.proofs) == 4

    tally = study.mask(study.ready[1:])
    study.reveal(tally)

    np.testing.assert_allclose(tally.open()[:-1], sum(study.vectors[key] for key in study.roster.keys[1:]), atol=1e-8)


def test_too_few_shares_open_nothing() -> None:
    study = Study(vectors(4))
    tally = study.mask(study.ready)
    gone = study.roster.keys[:2]

    study.reveal(tally, gone)
    tally.rebuild()

    assert tally.unopened == list(gone)


def test_what_a_worker_sends_does_not_depend_on_its_vector() -> None:
    """Each masked number is uniform: over many rounds, every byte of two very different vectors has the same mean."""
    means = []
    for value in (0.0, 1e6):
        sent = [np.frombuffer(mask_one(value), np.uint8) for _ in range(40)]
        means.append(np.concatenate(sent).mean())

    assert abs(means[0] - means[1]) < 3


def mask_one(value: float) -> bytes:
    study = Study([np.full(100, value)] * 3)
    member = study.members[study.roster.keys[0]]
    return member.mask(member.prepare(member.read_list([tuple(each) for each in study.ready]))).values


# --- lists


def refuse(study: Study, statements: list[Any], why: str, place: int = 0) -> None:
    member = study.members[study.roster.keys[place]]
    with pytest.raises(StatementError, match=why):
        member.prepare(member.read_list([tuple(each) for each in statements]))


def test_a_list_of_fewer_than_the_quorum_of_the_roster_is_refused() -> None:
    study = Study(vectors(6))
    refuse(study, study.ready[:3], "the list has 3 workers, and 4 of 6 must take part")


def test_a_worker_outside_the_roster_is_refused() -> None:
    study, other = Study(vectors(3)), Study(vectors(1), colluding=0)
    refuse(study, sorted([*study.ready, *other.ready]), "not in the roster")


def test_a_worker_that_is_named_twice_is_refused() -> None:
    study = Study(vectors(3))
    refuse(study, [*study.ready, study.ready[-1]], "has a worker twice")


def test_a_list_in_another_order_is_refused() -> None:
    study = Study(vectors(3))
    refuse(study, study.ready[::-1], "not in the order of the keys")


@pytest.mark.parametrize(
    "change", [{"public": bytes([1] * 32)}, {"length": 9}, {"task": bytes(32)}, {"masked": 7}, {"noise": "much"}]
)
def test_a_changed_statement_has_a_wrong_signature(change: dict[str, Any]) -> None:
    study = Study(vectors(3))
    refuse(study, [*study.ready[:2], study.ready[2]._replace(**change)], "the signature of ed25519:.* is wrong")


def test_a_statement_of_another_round_is_refused() -> None:
    study = Study(vectors(3))
    later = study.join(study.keys[2], round=2)
    refuse(study, [*study.ready[:2], later.ready], "of another study or round")


def test_a_worker_with_another_model_is_refused() -> None:
    study = Study(vectors(3))
    other = study.join(study.keys[2], task=hash_parts(b"another model"))
    refuse(study, [*study.ready[:2], other.ready], "has another task")


def test_an_old_statement_is_refused() -> None:
    study = Study(vectors(3))
    statements = study.ready
    study.members[study.roster.keys[0]] = study.join(study.keys[0])
    refuse(study, statements, "does not have the last statement of this worker")


@pytest.mark.parametrize("received", [(), [()], [(1, 2)], [None], ["x" * 11]])
def test_a_malformed_list_is_refused(received: Any) -> None:
    study = Study(vectors(3))
    with pytest.raises(StatementError):
        study.members[study.roster.keys[0]].read_list(received)


def test_the_same_list_gets_the_same_bytes() -> None:
    study = Study(vectors(3))
    member = study.members[study.roster.keys[0]]
    statements = member.read_list([tuple(each) for each in study.ready])

    assert member.mask(member.prepare(statements)) == member.mask(member.prepare(statements))


def test_a_round_has_a_limited_number_of_lists() -> None:
    study = Study(vectors(9), colluding=0)
    keys = study.roster.keys
    member = study.members[keys[0]]
    shorter = [
        list(each) for size in (9, 8) for each in itertools.combinations(study.ready, size) if member.ready in each
    ]
    for statements in shorter[:MAX_LISTS]:
        member.prepare(member.read_list([tuple(each) for each in statements]))

    refuse(
        study, list([each for each in shorter if member.ready in each][MAX_LISTS]), f"the limit is {MAX_LISTS} lists"
    )


# --- revealing


def test_nothing_is_revealed_while_a_signature_is_missing() -> None:
    study = Study(vectors(3))
    tally = study.mask(study.ready, gone=study.roster.keys[2:])
    with pytest.raises(StatementError, match="signatures of all workers of the list are needed"):
        reveal(study.members[study.roster.keys[0]], tally)


def test_signatures_for_different_lists_reveal_nothing() -> None:
    study = Study(vectors(4))
    whole, shorter = study.mask(study.ready), study.mask(study.ready[:3])
    proofs = [*whole.proofs[:2], *shorter.proofs[2:], whole.proofs[3]]
    with pytest.raises(StatementError, match="a signature is wrong, or for another list"):
        study.members[study.roster.keys[0]].require_masked(whole.digest, [tuple(proof) for proof in proofs])


def test_one_list_of_a_round_is_revealed() -> None:
    study = Study(vectors(4))
    whole, shorter = study.mask(study.ready), study.mask(study.ready[:3])
    study.reveal(whole)

    with pytest.raises(StatementError, match="another sum of this round has left"):
        reveal(study.members[study.roster.keys[0]], shorter)
    refuse(study, study.ready, "a sum of this round has left")


def test_the_same_list_is_revealed_again_with_others_gone() -> None:
    study = Study(vectors(4))
    tally = study.mask(study.ready)
    study.reveal(tally, by=list(study.roster.keys[:3]))
    study.reveal(tally, gone=study.roster.keys[3:])
    tally.rebuild()

    assert tally.unopened == []


def test_a_share_that_was_sealed_for_somebody_else_is_refused() -> None:
    study = Study(vectors(4))
    tally = study.mask(study.ready)
    gone, member = study.roster.keys[3:], study.members[study.roster.keys[0]]
    sealed = tally.sealed_for(study.roster.keys[1], gone)
    member.require_masked(tally.digest, [tuple(proof) for proof in tally.proofs])
    with pytest.raises(StatementError, match="not sealed for this worker"):
        member.open_shares(tally.digest, gone, sealed)


# --- the property that everything rests on


@given(st.integers(1, 9), st.integers(0, 2), st.data())
def test_no_two_lists_of_a_round_can_both_be_opened(size: int, colluding: int, data: st.DataObject) -> None:
    quorum = find_quorum(size, colluding)
    choice = data.draw(st.lists(st.sampled_from("AB-"), min_size=size, max_size=size))
    spies = set(data.draw(st.permutations(range(size)))[:colluding])

    opened = [sum(place in spies or each == name for place, each in enumerate(choice)) for name in "AB"]

    assert min(opened) < quorum


def test_no_split_of_any_roster_opens_two_lists() -> None:
    for size, colluding in itertools.product(range(1, 10), range(3)):
        honest, quorum = max(size - colluding, 0), find_quorum(size, colluding)
        for first in range(honest + 1):
            spies = min(colluding, size)
            assert min(first + spies, honest - first + spies) < quorum


@pytest.mark.parametrize(("size", "less"), [(5, 1), (6, 2), (8, 2), (9, 3)])
def test_two_quorums_with_one_spy_do_not_open_two_lists(size: int, less: int) -> None:
    study = Study(vectors(size))
    spy = study.roster.keys[0]
    whole, shorter = study.mask(study.ready), study.mask(study.ready[: size - less])
    half = study.roster.quorum
    for tally, own in ((shorter, study.roster.keys[1:half]), (whole, study.roster.keys[half:])):
        for key in (spy, *own):
            member = study.members[key]
            if key == spy:
                member.revealed = None
            attempts = dict(member._attempts)
            gone = tuple([each for each in tally._places if each not in (spy, *own)])
            if tally.digest in attempts and key in tally._places:
                reveal(member, tally, gone)
            member._attempts = attempts if key == spy else member._attempts
        tally.rebuild()

    assert whole.unopened or shorter.unopened


# --- a member that works together with the client


class Spy(Contribution):
    """A member that signs an X25519 key of its choice."""

    def __init__(self, other: Contribution, key: MemberKey, public: bytes) -> None:
        super().__init__(key, other.roster, other.ready.round, other.ready.task, other._vector)  # type: ignore[arg-type]
        self.ready = self.ready._replace(public=public).sign(key)


def add_low_order(public: bytes) -> bytes:
    """Return other bytes that stand for the same secret: the highest bit is ignored."""
    return public[:31] + bytes([public[31] ^ 0x80])


@pytest.mark.parametrize("trick", [lambda public: public, add_low_order])
@pytest.mark.parametrize(("victim", "honest", "spy"), list(itertools.permutations(range(3))))
def test_copying_the_key_of_another_member_cancels_no_mask(trick: Any, victim: int, honest: int, spy: int) -> None:
    study = Study([np.full(4, 3.0), np.full(4, 5.0), np.full(4, 7.0)])
    keys = study.roster.keys
    copied = trick(study.members[keys[honest]].ready.public)
    study.members[keys[spy]] = Spy(study.members[keys[spy]], study.keys[spy], copied)
    tally = Tally(study.roster, study.ready)
    member = study.members[keys[victim]]

    masked = member.mask(member.prepare(member.read_list([tuple(each) for each in tally.statements])))
    tally.add_masked(keys[victim], masked.to_wire())
    tally._seeds[keys[victim]] = member._own_seed(member._attempts[tally.digest])

    assert not np.allclose(tally.open()[:-1], study.vectors[keys[victim]])


@pytest.mark.parametrize("public", [bytes(32), LOW_ORDER])
def test_a_key_that_gives_a_secret_of_zeros_is_refused(public: bytes) -> None:
    study = Study(vectors(3))
    study.members[study.roster.keys[2]] = Spy(study.members[study.roster.keys[2]], study.keys[2], public)
    refuse(study, study.ready, "the X25519 key of ed25519:.* is not valid")


def test_each_direction_has_a_sealing_key_of_its_own() -> None:
    study = Study(vectors(3))
    tally = study.mask(study.ready)
    one, other = (study.members[key]._attempts[tally.digest] for key in study.roster.keys[:2])

    first, second = study.roster.keys[:2]
    assert one.secrets[second] == other.secrets[first]
    keys = [key_of_seal(one.secrets[second], tally.digest, *pair) for pair in ((first, second), (second, first))]
    assert keys[0] != keys[1]


def test_a_round_has_a_new_x25519_key() -> None:
    study = Study(vectors(3))
    assert study.join(study.keys[0]).ready.public != study.join(study.keys[0]).ready.public
