"""Rules for the programs of trainings and evaluations: weights may be anything, everything else is approved."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError
from syft_core.messages import FetchAll
from syft_core.workers.party.derivations import find_option
from syft_torch.federated.arranging import Columns, Half, Scale, arrange_there
from syft_worker.desk.approvals import suggest_conditions
from syft_worker.desk.handle import RequestHandle

from .settings import SAMPLES, Setting


@pytest.fixture
def study(hook: Any) -> Setting:
    hook.local_worker.user = "dana"
    return Setting(hook, sy.VirtualWorker(hook, id="alice"), private=True)


def approve(study: Setting, **conditions: Any) -> dict[str, Any]:
    """Approve a training from now on, as the page does from a request; return the conditions."""
    message = study.message()
    study.location.tell(message)
    RequestHandle.ask(study.location, [message.result, message.result + 1], None, "a round")
    suggested = suggest_conditions(study.worker, study.worker.requests[-1])
    study.worker.allow("study", **{**suggested, **conditions})
    return suggested


def test_a_training_is_approved_with_a_click_for_other_weights_and_seeds(study: Setting) -> None:
    conditions = approve(study, count=9)
    (request,) = study.worker.requests

    assert conditions["program"] == [find_option(request.made_by[0], "program")]
    assert "rows_behind" not in conditions
    study.train()
    study.train(weights=study.weights + 1.0, seed=9)
    assert study.worker.ledger[-1].rule == "study"
    assert f"train {conditions['program'][0][:12]} on #x, #y (50 samples) with their weights" in request.how[0]


@pytest.mark.parametrize("name", ["epochs", "clip"])
def test_other_settings_are_refused(study: Setting, name: str) -> None:
    approve(study, count=9)

    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        study.train(settings={**study.settings, name: 3})


def test_another_loss_is_refused(study: Setting) -> None:
    approve(study, count=9)
    study.record(lambda output, y: torch.nn.functional.cross_entropy(output, y) * 2.0)

    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        study.train()


def test_a_correction_is_refused_unless_the_rule_frees_it(study: Setting) -> None:
    approve(study, count=9)
    correction = torch.ones_like(study.weights)
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        study.train(correction=correction)
    study.worker.revoke("study")
    message = study.message(correction=correction)
    study.location.tell(message)
    RequestHandle.ask(study.location, [message.result, message.result + 1], None, "a round")
    request = study.worker.requests[-1]
    found = request.results[0].derivation.find_program(["correction"])

    conditions = {**suggest_conditions(study.worker, request), "program": [found], "free": ["correction"]}
    study.worker.allow("corrected", **conditions, count=9)

    study.train(correction=correction * 2.0)


def test_data_that_was_masked_before_the_training_is_another_program(study: Setting) -> None:
    approve(study, count=9)
    x = study.worker.search("#x")[0]
    mask = torch.zeros(SAMPLES, 1)
    mask[13] = 1.0

    masked = x * mask.send(study.worker)

    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        study.train(data=(masked.child, study.data[1]))


def test_raw_numbers_of_the_forms_of_update_and_loss_do_not_leave(study: Setting) -> None:
    """What the sender computes by hand has the forms that the rule names, and was released before."""
    approve(study, count=9)
    x = study.worker.search("#x")[0]
    numbers, number = x.reshape(-1)[: len(study.weights)] * 1.0, x[13, 0].double()

    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        study.location.ask(FetchAll((numbers.id_at_location, number.id_at_location)))


def test_samples_are_those_that_the_worker_used(study: Setting) -> None:
    study.worker.allow("study", user="dana", computed_from=["#x", "#y"], samples=SAMPLES)
    study.train()
    study.worker.revoke("study")

    study.worker.allow("more", user="dana", computed_from=["#x", "#y"], samples=SAMPLES + 1)

    with pytest.raises(GetNotPermittedError, match="it needs 51 rows, and 50 are behind it"):
        study.train()


def test_a_record_that_was_expanded_is_not_counted(study: Setting) -> None:
    study.worker.allow("study", user="dana", computed_from=["#x", "#y"], samples=10)
    x, y = (study.worker.search(tag)[0] for tag in ("#x", "#y"))

    with pytest.raises(GetNotPermittedError, match="cannot count its rows: the data was computed first"):
        study.train(data=(x[13:14].expand(SAMPLES, 4).child, y[13:14].expand(SAMPLES).child))


def test_a_loss_that_picks_one_row_fails_the_check_of_rows(study: Setting) -> None:
    def pick(output: Any, y: Any) -> Any:
        first = (torch.ones_like(output[:, 0]).cumsum(0) == 1.0).to(output.dtype)
        return (output.sum(1) * first).sum()

    study.record(pick)
    conditions = approve(study, count=9, rows_behind=10)

    assert conditions["rows_behind"] == 0
    with pytest.raises(GetNotPermittedError, match=r"a number of it depends on \d rows, and the rule requires 10"):
        study.train()


def scale(part: Any, factor: float = 1.0) -> Any:
    (found,) = arrange_there(Scale(torch.stack([torch.zeros(4), torch.full((4,), factor)])), [part])
    return found


def take_columns(worker: Any, *inputs: str) -> list[Any]:
    return arrange_there(Columns(inputs, "kind", "float32"), [worker.search("#table")[0]])


def test_a_record_that_was_expanded_and_then_arranged_is_not_counted(study: Setting) -> None:
    study.worker.allow("study", user="dana", computed_from=["#x", "#y"], samples=10)
    x, y = (study.worker.search(tag)[0] for tag in ("#x", "#y"))
    expanded = scale(x[13:14].expand(SAMPLES, 4))

    with pytest.raises(GetNotPermittedError, match="cannot count its rows: the data was computed first"):
        study.train(data=(expanded.child, y.child))


def test_a_record_that_was_arranged_in_several_ways_is_not_counted_again(study: Setting) -> None:
    columns = ["a", "b", "c", "d", sy.Column("kind", "category", categories=("p", "q", "r"))]
    table = torch.cat([study.x, study.y.unsqueeze(1)], dim=1).name_columns(*columns)
    study.worker.load_data([table.private_tensor(["board"]).tag("#table")])
    study.worker.allow("study", user="dana", computed_from=["#table"], samples=SAMPLES)
    one, other = take_columns(study.worker, *"abcd"), take_columns(study.worker, *"dcba")
    study.train(data=tuple(part.child for part in one))
    study.worker.revoke("study")
    study.worker.allow("more", user="dana", computed_from=["#table"], samples=SAMPLES + 1)

    with pytest.raises(GetNotPermittedError, match="cannot count its rows: the data was computed first, or is used"):
        study.train(data=tuple(part.child for part in (*one, *other)))


def test_rows_that_were_only_arranged_are_not_a_result_of_many_samples(study: Setting) -> None:
    study.worker.allow("study", user="dana", computed_from=["#x"], samples=10)

    with pytest.raises(GetNotPermittedError, match="cannot count the rows"):
        scale(study.worker.search("#x")[0]).get()


@pytest.mark.parametrize("name", ["weights", "correction"])
def test_private_data_in_place_of_what_the_sender_supplies_is_another_program(study: Setting, name: str) -> None:
    approve(study, count=9)
    size = len(study.weights)
    study.worker.load_data([torch.randn(size).private_tensor(["board"]).tag("#x", "#secret")])
    secret = study.worker.search("#secret")[0]

    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        study.train(**{name: secret.child})


def test_a_free_arrangement_chooses_no_single_rows(study: Setting) -> None:
    """A test half of one row would be an update of this row."""
    message = study.message()
    study.location.tell(message)
    RequestHandle.ask(study.location, [message.result, message.result + 1], None, "a round")
    found = study.worker.requests[-1].results[0].derivation.find_program(["arrangement"])
    rule = {"user": "dana", "computed_from": ["#x", "#y"], "rows_behind": 0, "numbers_per_row": 100.0}
    study.worker.allow("study", **rule, program=[found], free=["arrangement"])
    parts = [study.worker.search(tag)[0] for tag in ("#x", "#y")]
    many, few = (arrange_there(Half(1 / SAMPLES, is_test), parts) for is_test in (False, True))

    for half in (few, many):
        with pytest.raises(GetNotPermittedError, match="its program is not approved"):
            study.train(data=tuple(part.child for part in half))
