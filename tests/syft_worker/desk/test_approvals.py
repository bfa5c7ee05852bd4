"""Rules: what a user may have without a decision for each request."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.conditions import DAY
from syft_core.exceptions import GetNotPermittedError
from syft_core.ledgers.entry import Entry
from syft_core.messages import FetchAll
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.road.derivation import derivation_of
from syft_core.workers.seeing.ledger import Ledger
from syft_worker.desk.approvals import suggest_conditions
from syft_worker.desk.errors import ApprovalError

SCANS = {"user": "eve", "computed_from": ["#scans"], "any_program": True}


@pytest.fixture
def scans(bob: Any, me: Any) -> Any:
    """A pointer of eve's to private data, besides other private data."""
    me.user = "eve"
    bob.load_data([torch.tensor([1.0, 3.0]).private_tensor([]).tag("#scans", "#2026")])
    bob.load_data([torch.tensor([7.0, 7.0]).private_tensor([]).tag("#names")])
    return bob.search("#scans")[0]


def test_what_a_rule_covers_leaves_without_a_request_and_the_ledger_names_the_rule(bob: Any, scans: Any) -> None:
    bob.allow("study", by="noor", form="Tensor[]", **SCANS)

    assert scans.mean().get(reason="round 1").item() == 2.0

    (entry,) = bob.ledger
    assert (entry.event, entry.rule, entry.approver, entry.user) == ("released", "study", "noor", "eve")
    assert entry.reason == "round 1, rule study, approved by noor"
    assert [approval.uses.total for approval in bob.rules] == [1]
    assert len(bob.requests) == 0


def test_a_rule_covers_a_model_as_a_whole_and_counts_it_once(bob: Any, scans: Any) -> None:
    bob.allow("study", count=2, form="Parameter[1, 2], Parameter[1]", **SCANS)

    for round in range(3):
        model = torch.nn.Linear(2, 1).send(bob)
        model(scans).sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        if round < 2:
            assert all(parameter.grad is None for parameter in model.get().parameters())
        else:
            with pytest.raises(GetNotPermittedError, match="'study' does not cover it: all of its 2 uses are used up"):
                model.get()


def test_what_leaves_with_a_rule_is_not_restricted_any_more(bob: Any, alice: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)

    value = (scans * 2).get()

    assert type(value) is torch.Tensor
    assert value.send(alice).get().tolist() == [2.0, 6.0]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda x, bob: (x + bob.search("#names")[0]).sum(), "computed from #scans, and from no other data"),
        (lambda x, bob: bob.search("#names")[0].mean(), "what was computed from #scans, and from no other data"),
        (lambda x, bob: x * 1, r"Tensor\[\] .default float., and this is Tensor\[2\]"),
    ],
    ids=["mixed", "other data", "another form"],
)
def test_what_a_rule_does_not_cover_stays_and_the_error_says_why(bob: Any, scans: Any, make: Any, why: str) -> None:
    bob.allow("study", form="Tensor[]", **SCANS)
    asked = make(scans, bob)

    with pytest.raises(GetNotPermittedError, match=f"rule 'study' does not cover it: it is for .*{why}"):
        asked.get()

    assert len(bob.ledger) == 0
    assert [approval.uses.total for approval in bob.rules] == [0]


def test_a_rule_is_for_one_user_and_others_are_not_told_of_it(bob: Any, me: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)
    me.user = "mallory"

    with pytest.raises(GetNotPermittedError) as refused:
        scans.mean().get()

    assert "study" not in str(refused.value)


def test_public_objects_of_the_user_and_of_nobody_in_particular_do_not_matter(bob: Any, me: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)
    weights = [torch.ones(2).send(bob) for _ in range(80)]  # More than a lineage lists.

    total = scans
    for weight in weights:
        total = total * weight

    assert total.sum().get().item() == 4.0


def test_private_sources_cannot_be_hidden_behind_many_others(bob: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)
    total = scans * bob.search("#names")[0]
    for _ in range(80):
        total = total * torch.ones(2).send(bob)

    with pytest.raises(GetNotPermittedError, match="no other data"):
        total.get()


def test_a_user_cannot_make_other_data_match_by_tagging_it(bob: Any, me: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)
    other = bob.search("#names")[0] * 1

    with pytest.raises(PermissionError, match="#scans"):
        other.tag("#scans")
    with pytest.raises(GetNotPermittedError, match="no other data"):
        other.get()


def test_a_fetch_that_fails_uses_nothing_up(bob: Any, scans: Any) -> None:
    bob.allow("study", count=1, **SCANS)
    mean, names = scans.mean(), bob.search("#names")[0]
    both = FetchAll((mean.child.id_at_location, names.child.id_at_location))

    with pytest.raises(GetNotPermittedError):
        mean.child._location.ask(both)

    assert mean.get().item() == 2.0


def test_a_day_has_its_limit_and_passes(bob: Any, scans: Any) -> None:
    approval = bob.allow("study", per_day=1, **SCANS)
    scans.mean().get()
    with pytest.raises(GetNotPermittedError, match="it was used 1 times within 24 hours"):
        scans.mean().get()

    approval.uses.times = {use: when - DAY - 1 for use, when in approval.uses.times.items()}

    scans.mean().get()
    assert approval.uses.total == 2


def test_a_rule_ends(bob: Any, scans: Any) -> None:
    approval = bob.allow("study", until=date.today() + timedelta(days=1), **SCANS)
    scans.mean().get()

    approval.conditions["until"] = (datetime.now() - timedelta(seconds=1)).isoformat()

    with pytest.raises(GetNotPermittedError, match="it expired on"):
        scans.mean().get()
    assert approval.state == "expired"


def test_a_revoked_rule_approves_nothing(bob: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)
    bob.revoke("study", by="noor")

    with pytest.raises(GetNotPermittedError, match="it was revoked"):
        scans.mean().get()
    with pytest.raises(ApprovalError, match="it was revoked already"):
        bob.revoke("study")
    with pytest.raises(ApprovalError, match="did you mean 'study'?"):
        bob.revoke("studi")


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ({"computed_from": ["#scans"]}, "'user' is missing"),
        ({"user": "eve"}, "'computed_from' is missing"),
        ({**SCANS, "cuont": 3}, "there is no condition 'cuont' .did you mean 'count'"),
        ({**SCANS, "count": 0}, "count must be a whole number of at least 1, not 0"),
        ({**SCANS, "count": True}, "count must be a whole number"),
        ({**SCANS, "count": 2, "per_day": 3}, "per_day = 3 contradicts count = 2"),
        ({**SCANS, "until": "friday"}, "until must be a date"),
        ({**SCANS, "until": "2020-01-01"}, "could never be used, because 2020-01-01 is in the past"),
        ({**SCANS, "form": "Tensor[2"}, "form = 'Tensor.2' is wrong: 'Tensor.2' is not a form; write it as"),
        ({**SCANS, "form": ""}, "form must be a text"),
        ({**SCANS, "computed_from": []}, "computed_from must be a list of at least one tag"),
        ({**SCANS, "computed_from": ["#scan"]}, "no data of this worker has the tag '#scan' .did you mean '#scans'"),
        ({**SCANS, "user": ""}, "user must be a text"),
        ({**SCANS, "user": "e" * 5000}, "more than 4096 characters"),
    ],
)
def test_a_rule_that_is_wrong_or_matches_nothing_is_an_error(bob: Any, scans: Any, conditions: Any, why: str) -> None:
    with pytest.raises(ApprovalError, match=why):
        bob.allow("study", **conditions)

    assert len(bob.rules) == 0


def test_rules_that_contradict_each_other_are_refused(bob: Any, scans: Any) -> None:
    bob.allow("study", count=3, **SCANS)

    with pytest.raises(ApprovalError, match="'study' is for the same user, form and data"):
        bob.allow("study-2", count=5, **SCANS)
    with pytest.raises(ApprovalError, match="there is one of that name"):
        bob.allow("study", **SCANS)
    with pytest.raises(ApprovalError, match="a name is 1 to 64 letters"):
        bob.allow("a study", **SCANS)
    bob.allow("scalars", form="Tensor[]", **SCANS)


def test_a_rule_can_be_made_from_a_request(bob: Any, scans: Any) -> None:
    bob.load_data([torch.ones(2).tag("#2026")])
    scans.mean().request("round 1")

    conditions = suggest_conditions(bob, bob.requests[0])
    bob.allow("study", **conditions, count=20)

    program = scans.mean()
    found = derivation_of(bob.object_store.entry(program.id_at_location)).find_program()
    stated = {"numbers_per_row": 0.5, "rows_behind": 0}  # There are two rows.
    assert conditions == {
        "user": "eve", "form": "Tensor[]", "computed_from": ["#scans"], "program": [found], **stated
    }  # fmt: skip
    assert program.get().item() == 2.0
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        scans.sum().get()


def test_rules_compose_with_policies(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.tensor([1.0, 3.0]).tag("#scans")])
    scans = bob.search("#scans")[0]
    mean = scans.mean()
    bob.policy = "nothing"
    bob.allow("study", form="Tensor[]", **SCANS)

    assert mean.get().item() == 2.0
    with pytest.raises(GetNotPermittedError, match="this worker lets nothing leave"):
        (scans * 2).get()


def test_a_move_is_not_a_release(bob: Any, alice: Any, scans: Any) -> None:
    bob.allow("study", **SCANS)

    with pytest.raises(GetNotPermittedError):
        scans.mean().move(alice)


def test_the_configuration_adds_changes_and_removes_rules_but_not_what_was_revoked(bob: Any, scans: Any) -> None:
    assert bob.rules.configure({"study": {**SCANS, "count": 1}}) == []
    scans.mean().get()
    bob.rules.configure({"study": {**SCANS, "count": 3}})
    assert bob.rules.find("study").to_table()["used"] == 1

    bob.revoke("study")
    (warning,) = bob.rules.configure({"study": {**SCANS, "count": 3}})
    assert "was revoked, and stays so" in warning
    with pytest.raises(GetNotPermittedError, match="it was revoked"):
        scans.mean().get()
    bob.rules.configure({})
    assert len(bob.rules) == 0
    (warning,) = bob.rules.configure({"old": {**SCANS, "until": "2020-01-01"}})
    assert "has expired" in warning


DTYPES = ("complex128", "float64", "int64", "float16")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_rule_without_a_dtype_does_not_release_more_bits_than_default_floats_have(
    bob: Any, scans: Any, dtype: str
) -> None:
    bob.allow("study", form="Tensor[]", **SCANS)
    wider = scans.mean().to(getattr(torch, dtype))

    with pytest.raises(GetNotPermittedError, match=rf"Tensor\[\] .default float., and this is Tensor\[\] {dtype}"):
        wider.get()

    bob.allow("wider", form=f"Tensor[] {dtype}", **SCANS)
    assert wider.get().dtype is getattr(torch, dtype)


def test_a_star_stands_for_one_size(bob: Any, scans: Any) -> None:
    bob.allow("study", form="Tensor[*]", **SCANS)

    assert scans.cumsum(0).get().tolist() == [1.0, 4.0]
    with pytest.raises(GetNotPermittedError, match=r"it is for Tensor\[\*\] .default float., and this is Tensor"):
        scans.reshape(1, 2).get()


def test_a_rule_from_a_request_names_the_dtype_that_was_asked_for(bob: Any, scans: Any) -> None:
    request = scans.mean().double().request("round 1")

    conditions = suggest_conditions(bob, bob.requests[0])

    assert request.form == conditions["form"] == "Tensor[] float64"


def test_a_rule_of_an_earlier_process_that_is_not_clear_any_more_is_dropped_and_the_log_says_so(
    hook: Any, tmp_path: Any, caplog: Any
) -> None:
    with closing(Ledger("bob", tmp_path / "ledger.jsonl")) as ledger:
        for name, form in (("old", "Tensor[1*]"), ("kept", "Tensor[*, 4]")):
            conditions = json.dumps({**SCANS, "form": form})
            made = Entry(1.0, "eve", "", form, (), "", conditions, event="standing", rule=name, approver="noor")
            ledger.record(made)

    with closing(Ledger("bob", tmp_path / "ledger.jsonl")) as ledger:
        bob = VirtualWorker(hook, id="bob", ledger=ledger)
        assert [approval.name for approval in bob.rules] == ["kept"]

    assert "dropped a rule: cannot use the rule 'old': form = 'Tensor[1*]' is" in caplog.text
