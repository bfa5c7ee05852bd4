"""Attacks of a client on workers that follow the protocol: each is refused, for the stated reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import numpy as np
import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError
from syft_core.messages import Run
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.workers.party.status import add_bit
from syft_core.workers.party.store import FailedSource
from syft_core.workers.road import procedure
from syft_core.workers.road.procedure import add_stage
from syft_sums.client import SumStudy
from syft_sums.errors import SumError, SumRefusedError, SumRuleError
from syft_sums.messages import JoinSum, MaskSum, RevealSum
from syft_sums.statements import Ready
from syft_sums.studies import release_only_aggregates, studies_of
from syft_sums.tally import Tally

from .workers import Hospitals, Make


class Client:
    """A client that sends any message it likes."""

    def __init__(self, hospitals: Hospitals, study: SumStudy | None = None) -> None:
        self.hospitals, self.study = hospitals, study or hospitals.study()

    def join(self, worker: str, round: int = 1, value: Any = (1.0, 2.0), ids: Any = None, **changes: Any) -> Ready:
        found = self.hospitals.hook.local_worker.get_worker(worker)
        results = self.hospitals.put(found, list(value), **changes) if ids is None else ids
        roster = self.study.roster
        message = JoinSum(roster.name, roster.keys, roster.colluding, round, tuple(results), "samples")
        return Ready.read(self.study.locations[worker].ask(message))

    def join_all(self, round: int = 1, **changes: Any) -> list[Ready]:
        return sorted(self.join(id, round, **changes) for id in self.study.locations)

    def mask(self, worker: str, statements: Sequence[Ready], round: int = 1) -> Any:
        study = self.study.roster.study
        message = MaskSum(study, round, tuple(map(tuple, statements)))
        return self.study.locations[worker].ask(message)

    def mask_all(self, statements: Sequence[Ready], round: int = 1) -> Tally:
        tally = Tally(self.study.roster, statements)
        for id, key in self.study._keys.items():
            if key in [each.key for each in statements]:
                tally.add_masked(key, self.mask(id, statements, round))
        return tally

    def reveal(self, worker: str, tally: Tally, gone: tuple[bytes, ...] = (), round: int = 1) -> Any:
        key = self.study._keys[worker]
        proofs = tuple(map(tuple, tally.proofs))
        sealed = tally.sealed_for(key, gone)
        message = RevealSum(self.study.roster.study, round, tally.digest, proofs, gone, sealed)
        return self.study.locations[worker].ask(message)


@pytest.fixture
def client(hospitals: Hospitals) -> Client:
    return Client(hospitals)


def events(worker: Any) -> list[str]:
    return [entry.event for entry in worker.ledger.read_last() if entry.sum is not None]


# --- the list and the roster


def test_a_list_of_fewer_workers_than_the_rule_wants_is_refused(make: Make) -> None:
    client = Client(make(5, at_least=5, colluding=1))
    statements = client.join_all()
    own = statements[0]
    north = next(id for id, key in client.study._keys.items() if key == own.key)

    with pytest.raises(SumRefusedError, match="the list has 4 workers, and the rule wants at least 5"):
        client.mask(north, statements[:4])


def test_a_study_of_fewer_workers_than_the_rule_wants_is_refused(make: Make) -> None:
    hospitals = make(5, at_least=5)
    results = {worker.id: hospitals.put(worker, [1.0]) for worker in hospitals.workers[:3]}
    with pytest.raises(SumError, match="the study has 3 workers, and the rule wants at least 5"):
        hospitals.study(hospitals.workers[:3]).sum(1, results)


def test_a_worker_that_no_owner_lists_is_refused(hospitals: Hospitals) -> None:
    stranger = hospitals.start("mine")
    study = hospitals.study([*hospitals.workers, stranger])
    with pytest.raises(SumError, match="of the roster is not a member whom its owner counts"):
        study.sum(1, hospitals.put_all([[1.0]] * 3))


def test_two_workers_of_one_member_are_refused(hospitals: Hospitals) -> None:
    one, two, three = hospitals.fingerprints.values()
    studies_of(hospitals.workers[0]).set_members({"group": [one, two], "east": three})
    with pytest.raises(SumRefusedError, match="the member 'group' is in the roster with several workers"):
        Client(hospitals).join("north")


def test_a_roster_with_a_key_twice_is_refused(client: Client) -> None:
    roster = client.study.roster
    message = JoinSum("icu", (*roster.keys, roster.keys[-1]), 1, 1, (1,), "samples")
    with pytest.raises(SumRefusedError, match="or one is named twice"):
        client.study.locations["north"].ask(message)


def test_a_roster_without_the_worker_is_refused(hospitals: Hospitals) -> None:
    client = Client(hospitals, hospitals.study(hospitals.workers[1:], colluding=0))
    roster = client.study.roster
    location = hospitals.study().locations["north"]
    with pytest.raises(SumRefusedError, match="its key is not in the roster"):
        location.ask(JoinSum("icu", roster.keys, 0, 1, (1,), "samples"))


def test_a_study_that_assumes_fewer_colluding_workers_is_refused(hospitals: Hospitals) -> None:
    with pytest.raises(SumError, match="assumes that 0 workers may collude, and the rule 1"):
        hospitals.study(colluding=0).sum(1, hospitals.put_all([[1.0]] * 3))


def test_a_worker_without_a_rule_takes_no_part(hospitals: Hospitals) -> None:
    studies_of(hospitals.workers[0]).revoke()
    with pytest.raises(SumError, match="this worker's owner has no rule for sums"):
        hospitals.study().sum(1, hospitals.put_all([[1.0]] * 3))


def test_a_rule_that_is_withdrawn_stops_the_round_before_it_is_masked(client: Client) -> None:
    statements = client.join_all()
    studies_of(client.hospitals.workers[0]).revoke()

    with pytest.raises(SumRefusedError, match="has no rule for sums"):
        client.mask("north", statements)
    assert events(client.hospitals.workers[0]) == []


def test_another_user_has_no_sums(hospitals: Hospitals) -> None:
    hospitals.hook.local_worker.user = "eve"
    with pytest.raises(SumError, match="it is for 'dana'"):
        hospitals.study().sum(1, hospitals.put_all([[1.0]] * 3))


# --- statements


def test_a_key_of_the_client_in_a_statement_has_a_wrong_signature(client: Client) -> None:
    statements = client.join_all()
    forged = [*statements[:2], statements[2]._replace(public=bytes([9] * 32))]
    with pytest.raises(SumRefusedError, match="the signature of ed25519:.* is wrong"):
        client.mask(first(client, statements), forged)
    assert events(client.hospitals.hook.local_worker.get_worker(first(client, statements))) == []


def first(client: Client, statements: Sequence[Ready]) -> str:
    return str(next(id for id, key in client.study._keys.items() if key == statements[0].key))


@pytest.mark.parametrize("change", [{"supplied": "11" * 32}, {"program": "cd" * 32}, {"arrangement": "ef"}])
def test_a_worker_that_was_given_another_model_is_refused(client: Client, change: dict[str, Any]) -> None:
    statements = sorted([client.join("north"), client.join("south"), client.join("east", **change)])
    with pytest.raises(SumRefusedError, match="has another task"):
        client.mask("north", statements)


def test_different_lists_for_different_workers_open_nothing(make: Make) -> None:
    client = Client(make(4, changes=9))
    statements = client.join_all()
    whole, shorter = Tally(client.study.roster, statements), Tally(client.study.roster, statements[:3])
    ids = {key: id for id, key in client.study._keys.items()}
    for place, statement in enumerate(statements):
        tally = whole if place < 2 else shorter
        if place < 3:
            tally.add_masked(statement.key, client.mask(ids[statement.key], tally.statements))

    with pytest.raises(SumRefusedError, match="the signatures of all workers of the list are needed"):
        client.reveal(ids[statements[0].key], whole)


def test_two_lists_of_a_round_are_not_both_revealed(make: Make) -> None:
    client = Client(make(4, changes=9))
    statements = client.join_all()
    whole, shorter = client.mask_all(statements), client.mask_all(statements[:3])
    name = first(client, statements)
    client.reveal(name, whole)

    with pytest.raises(SumRefusedError, match="another sum of this round has left"):
        client.reveal(name, shorter)
    with pytest.raises(SumRefusedError, match="a sum of this round has left"):
        client.mask(name, statements[:3])


def test_claiming_that_somebody_has_gone_gains_nothing(client: Client) -> None:
    tally = client.mask_all(client.join_all())
    for name in ("north", "south", "east"):
        own = client.study._keys[name]
        gone = tuple(key for key in client.study.roster.keys if key != own)
        tally.add_revealed(own, gone, client.reveal(name, tally, gone))
    tally.rebuild()

    np.testing.assert_allclose(tally.open(), [180.0, 360.0, 180.0])


def test_a_worker_that_is_said_to_have_gone_has_a_line_in_its_ledger(make: Make) -> None:
    client = Client(make(4))
    tally = client.mask_all(client.join_all())
    gone = client.study._keys["north"]
    for name in ("south", "east", "west"):
        tally.add_revealed(client.study._keys[name], (gone,), client.reveal(name, tally, (gone,)))
    tally.rebuild()

    assert not tally.unopened
    assert events(client.hospitals.workers[0]) == ["released"]


def test_the_same_list_gets_the_same_bytes_and_one_line(client: Client) -> None:
    statements = client.join_all()
    assert client.mask("north", statements) == client.mask("north", statements)
    assert events(client.hospitals.workers[0]) == ["released"]


# --- rounds


def test_a_round_is_not_repeated(client: Client) -> None:
    client.mask_all(client.join_all())
    with pytest.raises(SumRefusedError, match="it has masked for round 1, or a later one"):
        client.join("north")


def test_a_lower_round_is_refused(client: Client) -> None:
    client.mask_all(client.join_all(5), 5)
    with pytest.raises(SumRefusedError, match="it has masked for round 4, or a later one"):
        client.join("north", 4)


def test_an_old_statement_is_refused(client: Client) -> None:
    statements = client.join_all()
    client.join("north")
    with pytest.raises(SumRefusedError, match="does not have the last statement of this worker"):
        client.mask("north", statements)


def test_a_round_after_a_restart_needs_a_higher_number(client: Client) -> None:
    statements = client.join_all()
    client.mask_all(statements)
    client.hospitals.restart("north")
    again = Client(client.hospitals)

    with pytest.raises(SumRefusedError, match="it has no result for round 1: it was restarted"):
        again.mask("north", statements)
    with pytest.raises(SumRefusedError, match="it has masked for round 1"):
        again.join("north")
    assert again.study.next_round == 2


def test_a_round_that_another_user_has_used_is_free(hospitals: Hospitals) -> None:
    client = Client(hospitals)
    client.mask_all(client.join_all())
    for worker in hospitals.workers:
        studies_of(worker).revoke()
        release_only_aggregates(worker, computed_from=["#x"], user="eve", any_program=True)
    hospitals.hook.local_worker.user = "eve"

    assert Client(hospitals).join("north", supplied="33" * 32).round == 1


def test_at_most_four_rounds_of_a_user_are_open_and_a_new_one_ends_the_oldest(client: Client) -> None:
    statements = client.join_all()
    for round in range(2, 6):
        client.join("north", round)

    rounds = studies_of(client.hospitals.workers[0]).rounds
    assert sorted(round for _, _, round in rounds) == [2, 3, 4, 5]
    with pytest.raises(SumRefusedError, match="it has no result for round 1"):
        client.mask("north", statements)


def test_a_round_with_a_sum_ends_before_one_that_still_waits(client: Client) -> None:
    client.join("north", 9, supplied="99" * 32)
    for round in range(1, 5):
        tally = client.mask_all(client.join_all(round), round)
        client.reveal("north", tally, round=round)

    rounds = studies_of(client.hospitals.workers[0]).rounds
    assert sorted(round for _, _, round in rounds) == [2, 3, 4, 9]


def test_a_round_ends_after_its_time(client: Client) -> None:
    statements = client.join_all()
    for found in studies_of(client.hospitals.workers[0]).rounds.values():
        found.ends = 0.0
    with pytest.raises(SumRefusedError, match="or the round has ended"):
        client.mask("north", statements)


# --- the same question, and other lists


def test_the_same_task_is_not_summed_over_another_list_in_another_round(make: Make) -> None:
    client = Client(make(4, changes=9))
    client.mask_all(client.join_all(1), 1)
    statements = client.join_all(2)

    with pytest.raises(SumRefusedError, match="this task was summed over another list in another round"):
        client.mask(first(client, statements), statements[:3], 2)
    client.mask_all(statements, 2)


def test_a_second_study_with_one_member_more_uses_up_the_changes(make: Make) -> None:
    hospitals = make(4, changes=0)
    three = Client(hospitals, hospitals.study(hospitals.workers[:3], "a"))
    three.mask_all(three.join_all(supplied="01" * 32))
    four = Client(hospitals, hospitals.study(name="b"))
    statements = four.join_all(supplied="02" * 32)

    for name in ("north", "south", "east"):
        with pytest.raises(SumRefusedError, match="results of #x were summed over 1 different lists of workers"):
            four.mask(name, statements)


def test_changes_are_counted_across_users_and_restarts(make: Make) -> None:
    hospitals = make(4, changes=0)
    three = Client(hospitals, hospitals.study(hospitals.workers[:3], "a"))
    three.mask_all(three.join_all(supplied="01" * 32))
    north = hospitals.restart("north")
    studies_of(north).revoke()
    release_only_aggregates(north, computed_from=["#x"], user="eve", any_program=True, changes=0)
    hospitals.hook.local_worker.user = "eve"
    for worker in hospitals.workers[1:]:
        studies_of(worker).revoke()
        release_only_aggregates(worker, computed_from=["#x"], user="eve", any_program=True, changes=0)

    four = Client(hospitals, hospitals.study(name="b"))
    statements = four.join_all(supplied="02" * 32)
    with pytest.raises(SumRefusedError, match="the rule permits changes = 0"):
        four.mask("north", statements)


def test_a_member_that_has_masked_for_fewer_sums_than_before_is_refused(client: Client) -> None:
    client.mask_all(client.join_all(1), 1)
    for round in (2, 3):
        statements = client.join_all(round, supplied=f"0{round}" * 32)
        tally = client.mask_all(statements, round)
        for name in client.study.locations:
            client.reveal(name, tally, round=round)
    studies_of(client.hospitals.workers[1]).history.masked = 1  # It was restored from a backup.

    statements = client.join_all(4, supplied="04" * 32)
    with pytest.raises(SumRefusedError, match="has masked for fewer sums than before: it was restored from a backup"):
        client.mask("north", statements, 4)


# --- what is summed


@pytest.mark.parametrize("protocol", ["arrange", "noisy_max", "fetch"])
def test_results_of_other_code_are_refused(client: Client, protocol: str) -> None:
    with pytest.raises(SumRefusedError, match="not computed by its own code in one training"):
        client.join("north", protocol=protocol)


def test_a_tensor_of_the_client_is_refused(client: Client, hospitals: Hospitals) -> None:
    pointer = torch.ones(3).send(hospitals.workers[0])
    with pytest.raises(SumRefusedError, match="not computed by its own code"):
        client.join("north", ids=[pointer.child.id_at_location])


def test_the_data_itself_is_refused(client: Client, hospitals: Hospitals) -> None:
    (pointer,) = hospitals.workers[0].search("#x")
    with pytest.raises(SumRefusedError, match="not computed by its own code"):
        client.join("north", ids=[pointer.child.id_at_location])


def test_a_result_of_data_that_is_not_whole_is_refused(client: Client) -> None:
    with pytest.raises(SumRefusedError, match="not computed from whole objects that this owner has published"):
        client.join("north", is_whole=False)


def test_a_result_that_was_changed_in_place_is_refused(client: Client, hospitals: Hospitals) -> None:
    north = hospitals.workers[0]
    (id,) = hospitals.put(north, [1.0, 2.0])
    location = client.study.locations["north"]
    (known,) = north.search("#x")
    pointer = PointerTensor(location, id, known.child.framework, owner=hospitals.hook.local_worker)
    location.tell(Run("torch", "torch.Tensor.add_", (pointer, 1), {}, new_id()))

    with pytest.raises(SumRefusedError, match="or were changed since"):
        client.join("north", ids=[id])


def test_what_is_computed_from_a_result_is_refused(client: Client, hospitals: Hospitals) -> None:
    north = hospitals.workers[0]
    (id,) = hospitals.put(north, [1.0, 2.0])
    location, made = client.study.locations["north"], new_id()
    (known,) = north.search("#x")
    pointer = PointerTensor(location, id, known.child.framework, owner=hospitals.hook.local_worker)
    location.tell(Run("torch", "torch.Tensor.__getitem__", (pointer, 0), {}, made))

    with pytest.raises(SumRefusedError, match="not computed by its own code"):
        client.join("north", ids=[made])


def test_results_of_two_trainings_are_not_one_sum(client: Client, hospitals: Hospitals) -> None:
    north = hospitals.workers[0]
    ids = [*hospitals.put(north, [1.0]), *hospitals.put(north, [1.0], supplied="22" * 32)]
    with pytest.raises(SumRefusedError, match="in one training"):
        client.join("north", ids=ids)


def test_the_results_do_not_leave_otherwise(client: Client, hospitals: Hospitals) -> None:
    (id,) = hospitals.put(hospitals.workers[0], [1.0, 2.0])
    client.join("north", ids=[id])
    (known,) = hospitals.workers[0].search("#x")
    pointer = PointerTensor(
        client.study.locations["north"], id, known.child.framework, owner=hospitals.hook.local_worker
    )
    with pytest.raises(GetNotPermittedError):
        pointer.get()


def test_a_standing_approval_is_not_used_for_a_sum(client: Client, hospitals: Hospitals) -> None:
    north = hospitals.workers[0]
    north.allow("plain", by="Noor", user="dana", computed_from=["#x"], count=5, any_program=True)
    statements = client.join_all()
    client.mask("north", statements)

    (rule,) = north.rules
    assert rule.uses.total == 0
    assert next(iter(north.ledger)).rule == "aggregates"


# --- the rule


def test_a_program_that_is_not_approved_is_refused(make: Make) -> None:
    client = Client(make(any_program=None, programs=["ab" * 32]))
    client.join("north")
    with pytest.raises(SumRefusedError, match="its program is not approved, and the rule asks for no noise"):
        client.join("north", program="ab" * 31 + "ac")


def test_a_longer_digest_with_the_same_beginning_is_refused(make: Make) -> None:
    client = Client(make(any_program=None, programs=["ab" * 32]))
    with pytest.raises(SumRefusedError, match="its program is not approved"):
        client.join("north", program="ab" * 33)


@pytest.mark.parametrize("clip", [None, 1.5])
def test_a_training_with_a_larger_norm_is_refused(make: Make, clip: float | None) -> None:
    client = Client(make(clip=1.0))
    client.join("north", clip=1.0)
    with pytest.raises(SumRefusedError, match="its norm may be larger than the 1 of the rule"):
        client.join("north", clip=clip)


def test_a_result_of_too_few_rows_is_refused(make: Make) -> None:
    client = Client(make(rows_at_least=100))
    with pytest.raises(SumRefusedError, match="it used fewer than 100 rows"):
        client.join("north")


NOISE = {"multiplier": 1.1, "delta": 1e-5, "epsilon": 8.0}


def noisy(**changes: float) -> tuple[float, ...]:
    found = {"clip": 1.0, **NOISE, **changes}
    return found["clip"], found["multiplier"], 0.1, 20, found["delta"], found["epsilon"]


@pytest.mark.parametrize(
    ("privacy", "why"),
    [
        (None, "it has no noise, and under this rule nothing exact leaves"),
        (noisy(multiplier=1.0), "its noise multiplier is 1.0, and the rule wants at least 1.1"),
        (noisy(clip=2.0), "its norm may be larger than the 1 of the rule"),
        (noisy(delta=1e-3), "its delta is 0.001, and the rule wants at most 1e-05"),
        (noisy(epsilon=8.1), "its epsilon is 8.1, and the rule permits 8.0"),
    ],
)
def test_less_noise_than_the_rule_wants_is_refused(make: Make, privacy: Any, why: str) -> None:
    client = Client(make(any_program=None, clip=1.0, noise=NOISE))
    with pytest.raises(SumRefusedError, match=why):
        client.join("north", clip=None if privacy else 1.0, privacy=privacy)


def test_a_little_noise_does_not_open_more_lists_under_a_rule_that_demands_none(make: Make) -> None:
    hospitals = make(4, changes=0)
    three = Client(hospitals, hospitals.study(hospitals.workers[:3], "a"))
    three.mask_all(three.join_all(supplied="01" * 32, privacy=noisy(multiplier=1e-9)))
    four = Client(hospitals, hospitals.study(name="b"))
    statements = four.join_all(supplied="02" * 32, privacy=noisy(multiplier=1e-9))

    with pytest.raises(SumRefusedError, match="the rule permits changes = 0"):
        four.mask("north", statements)


def test_another_choice_of_results_is_the_same_question(make: Make) -> None:
    client = Client(make(4, changes=9))
    client.mask_all(client.join_all(1), 1)
    statements = client.join_all(2, value=(1.0,))

    with pytest.raises(SumRefusedError, match="this task was summed over another list"):
        client.mask(first(client, statements), statements[:3], 2)


def test_under_noise_only_the_parameters_are_summed(make: Make) -> None:
    client = Client(make(any_program=None, clip=1.0, noise=NOISE))
    ready = client.join("north", value=range(6), parameters=4, clip=1.0, privacy=noisy())

    assert ready.length == 5
    assert "left out" in ready.noise
    ids = [
        id
        for _ in range(2)
        for id in client.hospitals.put(client.hospitals.workers[0], [1.0], privacy=noisy(), clip=1.0)
    ]
    with pytest.raises(SumRefusedError, match="only the parameters have noise"):
        client.join("north", 2, ids=ids)


def test_under_noise_no_metric_leaves(make: Make) -> None:
    client = Client(make(any_program=None, clip=1.0, noise=NOISE))
    with pytest.raises(SumRefusedError, match="nothing exact leaves"):
        client.join("north", protocol="evaluate")


def test_each_round_is_one_use_whatever_its_lists(make: Make) -> None:
    client = Client(make(4, changes=9, count=1))
    statements = client.join_all()
    client.mask_all(statements)
    client.mask_all(statements[:3])

    with pytest.raises(SumRefusedError, match="all of its 1 uses are used up"):
        client.join(first(client, statements), 2)


def test_uses_are_counted_across_restarts(make: Make) -> None:
    client = Client(make(count=1))
    client.mask_all(client.join_all())
    client.hospitals.restart("north")
    with pytest.raises(SumRefusedError, match="all of its 1 uses are used up"):
        Client(client.hospitals).join("north", 2)


def test_a_list_that_one_rule_refuses_may_be_covered_by_another(make: Make) -> None:
    hospitals = make(4, at_least=4)
    for worker in hospitals.workers:
        table = {"computed_from": ["#x"], "user": "dana", "any_program": True}
        release_only_aggregates(worker, at_least=3, name="smaller", **table)
    client = Client(hospitals)
    statements = client.join_all()
    name = first(client, statements)
    client.mask(name, statements[:3])

    assert next(iter(hospitals.hook.local_worker.get_worker(name).ledger)).rule == "smaller"


def test_the_name_of_a_study_is_quoted_in_the_ledger(hospitals: Hospitals) -> None:
    name = 'icu", round=9, workers=99)\n'
    hospitals.study(name=name).sum(1, hospitals.put_all([[1.0]] * 3))

    line = next(iter(hospitals.workers[0].ledger))
    assert r'sum(study="icu\", round=9, workers=99)\n", round=1, workers=3' in line.form


# --- values


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_a_result_out_of_range_is_zeros_with_the_true_count(hospitals: Hospitals, bad: float) -> None:
    result = hospitals.study().sum(1, hospitals.put_all([[1.0, 2.0], [1.0, bad], [1.0, 2.0]]))
    np.testing.assert_allclose(result.vector, [120.0, 240.0, 180.0])


def test_a_training_that_failed_is_zeros_with_the_true_count_and_only_its_owner_knows(hospitals: Hospitals) -> None:
    results = hospitals.put_all([[1.0, 2.0]] * 3)
    entry = hospitals.workers[1].object_store.entry(results["south"][0])
    entry.sources |= {FailedSource("torch.nn.functional.cross_entropy", "IndexError")}
    entry.refresh_status()

    result = hospitals.study().sum(1, results)

    np.testing.assert_allclose(result.vector, [120.0, 240.0, 180.0])
    assert [next(iter(worker.ledger)).failed for worker in hospitals.workers] == [0, 1, 0]


def test_the_answer_of_a_worker_whose_result_is_out_of_range_looks_the_same(client: Client) -> None:
    good, bad = client.join("north", 1), client.join("south", 1, value=[np.nan, 1.0])
    assert (good.length, good.task, good.noise, good.masked) == (bad.length, bad.task, bad.noise, bad.masked)


def test_an_owner_may_let_failures_be_visible(make: Make) -> None:
    hospitals = make(4, failures="visible")
    values = [[1.0], [1.0], [np.nan], [1.0]]
    result = hospitals.study().sum(1, hospitals.put_all(values))

    assert result.samples == 180
    assert "not finite, or out of range" in result.lost["east"]


def test_equal_weights_count_workers(make: Make) -> None:
    hospitals = make(weights="equal")
    result = hospitals.study().sum(1, hospitals.put_all([[1.0], [2.0], [6.0]]), "equal")
    assert result.vector.tolist() == [9.0, 3.0]


def test_sums_of_one_list_with_other_weights_are_refused(hospitals: Hospitals) -> None:
    """North colludes: from 60 a + 50 b and a + b, the client would compute a and b."""
    pairs = zip(hospitals.workers, [([9.0], 70), ([1.0], 60), ([2.0], 50)], strict=True)
    results = {worker.id: hospitals.put(worker, value, samples=samples) for worker, (value, samples) in pairs}
    study = hospitals.study()
    study.sum(1, results)

    with pytest.raises(SumError, match="its weights are 'equal', and the rule wants 'samples'"):
        study.sum(2, results, "equal")
    assert all(len(list(worker.ledger)) == 1 for worker in hospitals.workers)


def test_a_clip_that_does_not_fit_the_encoding_is_refused(make: Make) -> None:
    client = Client(make(clip=1e12))
    with pytest.raises(SumRefusedError, match="does not fit"):
        client.join("north", clip=1e9)


# --- the ledger


def test_a_worker_without_a_ledger_file_has_no_rules(hook: Any, hospitals: Hospitals) -> None:
    worker = sy.VirtualWorker(hook, id="forgetful")
    with pytest.raises(SumRuleError, match="it has no ledger file"):
        release_only_aggregates(worker, computed_from=["#x"], user="dana", any_program=True)


def test_a_line_that_cannot_be_written_lets_nothing_leave(client: Client) -> None:
    statements = client.join_all()
    client.hospitals.workers[0].ledger.close()
    with pytest.raises(Exception, match="ledger"):
        client.mask("north", statements)
    assert studies_of(client.hospitals.workers[0]).history.masked == 0


def test_the_ledger_names_each_shorter_list(make: Make) -> None:
    client = Client(make(4, changes=9))
    statements = client.join_all()
    client.mask_all(statements)
    client.mask_all(statements[:3])
    worker = client.hospitals.hook.local_worker.get_worker(first(client, statements))

    lines = list(worker.ledger)
    assert ["workers=4" in line.form for line in lines] == [True, False]
    assert lines[0].request == lines[1].request


def test_a_ledger_with_sums_is_read_again(client: Client) -> None:
    client.mask_all(client.join_all())
    before = studies_of(client.hospitals.workers[0]).history
    after = studies_of(client.hospitals.restart("north")).history

    for name in ("masked", "last_rounds", "lists", "tasks", "counters"):
        assert getattr(after, name) == getattr(before, name)


# --- restrictions

EMBARGO = add_bit("tests: sums")


@pytest.fixture
def _embargo() -> Iterator[None]:
    kept = list(procedure._added)

    def refuse(_proceed: Any, task: Any) -> Any:
        raise PermissionError(f"cannot {task.kind}: by a test")

    add_stage(EMBARGO, refuse, kinds={"leave"})
    yield
    procedure._added[:] = kept
    procedure._procedures.clear()


@pytest.mark.usefixtures("_embargo")
def test_a_restriction_of_a_result_holds_for_a_sum(hospitals: Hospitals) -> None:
    client = Client(hospitals)
    north = hospitals.workers[0]
    ids = hospitals.put(north, [1.0, 2.0])
    north.object_store.entry(ids[0]).mark(EMBARGO)
    others = [client.join(worker.id) for worker in hospitals.workers[1:]]
    statements = sorted([client.join(north.id, ids=ids), *others])

    with pytest.raises(PermissionError, match="cannot leave: by a test"):
        client.mask(north.id, statements)
    assert len(north.ledger) == 0
    client.mask(hospitals.workers[1].id, statements)
