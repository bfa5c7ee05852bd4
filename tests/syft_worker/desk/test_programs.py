"""Rules that read the program: what they cover, and which ways around them they refuse, with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError
from syft_core.messages import FetchAll
from syft_worker.desk.approvals import suggest_conditions
from syft_worker.desk.errors import ApprovalError
from syft_worker.desk.handle import RequestHandle
from syft_worker.desk.handlers import look_at

ROWS = 100
RULE = {"user": "eve", "computed_from": ["#scans"]}


@pytest.fixture
def scans(bob: Any, me: Any) -> Any:
    me.user = "eve"
    torch.manual_seed(0)
    bob.load_data([torch.rand(ROWS, 4).private_tensor([]).tag("#scans")])
    return bob.search("#scans")[0]


def approve(bob: Any, pointer: Any, **conditions: Any) -> Any:
    """Approve the program of a result from now on, as the page does from a request."""
    pointer.request("table 1")
    suggested = suggest_conditions(bob, bob.requests[-1])
    return bob.allow("study", **{**suggested, **conditions})


def average(x: Any) -> Any:
    return (x * 2.0).mean(0)


def find_program(bob: Any, pointer: Any, *free: str) -> str | None:
    pointer.request("table 1")
    return bob.requests[-1].results[0].derivation.find_program(free)  # type: ignore[no-any-return]  # a digest


def refuses(compute: Callable[[], Any], why: str) -> None:
    with pytest.raises(GetNotPermittedError, match=why):
        compute().get()


# --- a rule says how results are computed


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"form": "Tensor[114]", "count": 20}, "20 uses of Tensor.114.: up to 2,280 numbers of the data"),
        ({"form": "Tensor[10], Tensor[]", "count": 1}, "1 use of Tensor.10., Tensor..: up to 11 numbers of the data"),
        ({"form": "Tensor[]", "count": 1}, "1 use of Tensor..: up to 1 number of the data"),
        ({"form": "Tensor[]"}, "each use of Tensor..: up to 1 number of the data, without a limit"),
        ({"form": "Tensor[114]"}, "each use of Tensor.114.: up to 114 numbers of the data, without a limit"),
        ({"form": "Tensor[*]", "count": 3}, "3 uses of Tensor.\\*.: any part of the data"),
        ({}, "unlimited uses of any form: any part of the data"),
    ],
)
def test_a_rule_without_a_program_is_refused_with_the_words_to_add_and_what_they_mean(
    bob: Any, scans: Any, limits: Any, text: str
) -> None:
    with pytest.raises(ApprovalError, match=f"{text}; name the programs .* or add `any_program = true`"):
        bob.allow("study", **RULE, **limits)

    rule = bob.allow("study", **RULE, **limits, any_program=True)

    assert re.search(f"by any program: {text}", rule.describe())


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ({"program": ["abc"]}, "program has 'abc', which is not a digest of 64 digits"),
        ({"program": ["A" * 64]}, "which is not a digest of 64 digits"),
        ({"program": ["a" * 65]}, "which is not a digest of 64 digits"),
        ({"program": []}, "program must be a list of 1 to 64 digests"),
        ({"program": ["a" * 64], "any_program": True}, "any_program = true contradicts program"),
        ({"any_program": False}, "any_program must be true, not False"),
        ({"any_program": True, "free": ["input 1"]}, "free is for rules with programs"),
        ({"samples": 0}, "samples must be a whole number of at least 1"),
        ({"program": ["a" * 64], "rows_behind": -1}, "rows_behind must be a whole number, or 0"),
        ({"program": ["a" * 64], "numbers_per_row": 0}, "numbers_per_row must be a positive number"),
        ({"program": ["a" * 64], "free": []}, "free must be a list of names of inputs"),
    ],
)
def test_a_condition_about_programs_that_is_wrong_is_an_error(bob: Any, scans: Any, conditions: Any, why: str) -> None:
    with pytest.raises(ApprovalError, match=why):
        bob.allow("study", **RULE, **conditions)


def test_a_rule_with_programs_checks_rows_and_numbers_unless_it_states_something_else(bob: Any, scans: Any) -> None:
    rule = bob.allow("study", **RULE, program=["a" * 64])

    assert rule.conditions["numbers_per_row"] == 0.33
    assert rule.conditions["rows_behind"] == 10
    assert "by program aaaaaaaaaaaa…; at most 0.33 numbers for each row; at least 10 rows behind" in rule.describe()


# --- programs


def test_an_approved_program_leaves_without_a_further_click(bob: Any, scans: Any) -> None:
    approve(bob, average(scans), count=3)

    assert bob.requests[0].state == "approved"
    assert average(scans).get().shape == (4,)
    assert bob.ledger[-1].rule == "study"


OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "other constants": lambda bob, x: (x * 2.5).mean(0),
    "another order": lambda bob, x: x.mean(0) * 2.0,
    "a row": lambda bob, x: (x * 2.0)[13],
    "a mask that selects a row": lambda bob, x: (x * _row(2.0).send(bob)).mean(0),
    "more steps": lambda bob, x: (x * 2.0).mean(0) + 0.0,
    "a write in place": lambda bob, x: torch.zeros(4).send(bob).add_(x[13]) * 1.0,
    "a write with out": lambda bob, x: _write_out(bob, x),
    "a write behind a view": lambda bob, x: _write_behind_a_view(bob, x),
    "a change of its result": lambda bob, x: _change_result(x),
    "a gradient": lambda bob, x: _differentiate(bob, x),
}


def _row(value: float) -> Any:
    mask = torch.zeros(ROWS, 4)
    mask[13] = value
    return mask


def _write_out(bob: Any, x: Any) -> Any:
    target = torch.zeros(4).send(bob)
    torch.add(x[13], 0.0, out=target)
    return target


def _write_behind_a_view(bob: Any, x: Any) -> Any:
    found = average(x)
    view = found.view(2, 2)
    found.copy_(x[13])
    return view.view(4)


def _change_result(x: Any) -> Any:
    found = average(x)
    found[:].copy_(x[13])
    return found


def _differentiate(bob: Any, x: Any) -> Any:
    weights = torch.ones(4, requires_grad=True).send(bob)
    (x[13] * weights).sum().backward()
    return weights.grad * 1.0


@pytest.mark.parametrize("compute", OTHERS.values(), ids=OTHERS)
def test_another_program_of_the_same_form_is_refused(bob: Any, scans: Any, compute: Any) -> None:
    approve(bob, average(scans), count=3)

    refuses(lambda: compute(bob, scans), "the rule 'study' does not cover it: its program is not approved")


def test_a_share_of_an_approved_result_is_not_the_result(
    bob: Any, alice: Any, me: Any, scans: Any, serialize: bool
) -> None:
    carol = sy.VirtualWorker(me.hook, id="carol", serialize=serialize)
    for worker in (bob, alice):
        worker.trust("bob", "alice", "carol")
    approve(bob, average(scans), count=3, form="Tensor[4] int64")

    shared = average(scans).fix_prec().share(bob, alice, crypto_provider=carol)

    refuses(lambda: shared, "the rule 'study' does not cover it: its program is not approved")


def test_a_digest_is_compared_as_a_whole(bob: Any, scans: Any) -> None:
    average(scans).request("table 1")
    (program,) = suggest_conditions(bob, bob.requests[0])["program"]
    almost = program[:-1] + ("0" if program[-1] != "0" else "1")

    bob.allow("study", **RULE, program=[almost])

    refuses(lambda: average(scans), f"its program is not approved .{program[:12]}")


def test_ten_raw_numbers_do_not_leave_under_a_rule_for_two_results(bob: Any, me: Any, scans: Any) -> None:
    means, total = average(scans), scans.sum()
    request = me.location_of(bob)
    RequestHandle.ask(request, [means.id_at_location, total.id_at_location], None, "a round")
    bob.allow("study", **suggest_conditions(bob, bob.requests[-1]), count=5)
    fetch = lambda *found: request.ask(FetchAll(tuple([each.id_at_location for each in found])))  # noqa: E731  # short

    assert len(fetch(average(scans), scans.sum())) == 2
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        fetch(scans[13], scans[13, 0])
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        fetch(average(scans), scans[13, 0])


# --- inputs that may be anything


def test_a_supplied_input_is_part_of_the_program_unless_the_rule_frees_it(bob: Any, scans: Any) -> None:
    kept = []

    def weigh(weights: Any) -> Any:
        kept.append(weights.send(bob))
        return (scans * kept[-1]).sum(0)

    approved = weigh(torch.ones(4))
    bob.allow("pinned", **RULE, program=[find_program(bob, approved)])
    assert weigh(torch.ones(4)).get().shape == (4,)
    refuses(lambda: weigh(torch.arange(4.0)), "its program is not approved")

    freed = find_program(bob, approved, "input 1")
    bob.allow("free", **RULE, program=[freed], free=["input 1"])

    assert weigh(torch.arange(4.0)).get().shape == (4,)
    refuses(lambda: scans.sum(0), "it has no input 'input 1'")


def test_an_input_that_is_gone_cannot_be_checked(bob: Any, scans: Any) -> None:
    """Otherwise a user could drop a mask that selects one row, and an example would take its place."""
    found = (scans * _row(1.0).send(bob)).sum(0)
    freed = find_program(bob, found, "input 1")
    bob.allow("study", **RULE, program=[freed], free=["input 1"])

    masked = lambda: (scans * _row(1.0).send(bob)).sum(0)  # noqa: E731  # short
    refuses(masked, "their input 1 is not here any more: keep a pointer to it until the result has left")


def test_a_free_mask_that_selects_a_row_fails_the_check_of_rows(bob: Any, scans: Any) -> None:
    def weigh(mask: Any) -> Any:
        sent = mask.send(bob)
        return (scans * sent).sum(0), sent

    found, kept = weigh(torch.ones(ROWS, 4))
    freed = find_program(bob, found, "input 1")
    bob.allow("study", **RULE, program=[freed], free=["input 1"])
    assert weigh(torch.ones(ROWS, 4))[0].get().shape == (4,)

    picked, kept = weigh(_row(1.0))

    refuses(lambda: picked, "a number of it depends on 1 rows, and the rule requires 10")
    assert kept is not None


# --- checks that need no values


CHECKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "five rows": (lambda x: x[:5].mean(0), "a number of it depends on 5 rows, and the rule requires 10"),
    "a row by index": (lambda x: x[13], "its index returns single elements of the data"),
    "rows by a list": (lambda x: x[[1, 2]].mean(0), "its index returns single elements"),
    "the largest": (lambda x: x.max(0)[0], "its step 'max' returns single elements"),
    "sorted": (lambda x: x.sort(0)[0].mean(0), "its step 'sort' returns single elements"),
    "the middle": (lambda x: x.median(0)[0], "its step 'median' returns single elements"),
    "many numbers": (lambda x: x @ x.t(), "it has 100.00 numbers for each row of the data, and the rule allows 0.33"),
    "random numbers": (lambda x: torch.dropout(x, 0.5, True).mean(0), "its step 'dropout' draws random numbers"),
}


@pytest.mark.parametrize(("compute", "why"), CHECKS.values(), ids=CHECKS)
def test_an_approved_program_that_shows_single_rows_is_refused_unless_the_rule_states_it(
    bob: Any, scans: Any, compute: Any, why: str
) -> None:
    approve(bob, compute(scans), count=9, numbers_per_row=0.33, rows_behind=10)
    refuses(lambda: compute(scans), why)
    bob.revoke("study")

    bob.allow("stated", **suggest_conditions(bob, bob.requests[0]), count=9)

    compute(scans).get()


def test_a_refusal_does_not_depend_on_the_data(bob: Any, scans: Any) -> None:
    """What rows are behind a number is found on examples: the data itself is constant here, so it would show none."""
    bob.load_data([torch.zeros(ROWS, 4).private_tensor([]).tag("#zeros")])
    zeros = bob.search("#zeros")[0]

    approve(bob, zeros.mean(0), count=2)

    assert zeros.mean(0).get().tolist() == [0.0] * 4


def test_a_computation_that_is_too_long_to_be_repeated_needs_a_rule_that_states_it(bob: Any, scans: Any) -> None:
    def compute() -> Any:
        found = scans.mean(0)
        for _ in range(300):
            found = found * 1.0
        return found

    approve(bob, compute(), count=2, rows_behind=10)
    refuses(compute, "because it has up to 302 steps, of which only the last ones are known")
    bob.revoke("study")

    bob.allow("stated", **suggest_conditions(bob, bob.requests[0]))

    assert compute().get().shape == (4,)


# --- samples


def test_samples_are_the_rows_that_the_worker_finds_behind_each_number(bob: Any, scans: Any) -> None:
    bob.allow("study", **RULE, samples=50)

    assert scans.sum(0).get().shape == (4,)
    refuses(lambda: scans[:20].sum(0), "it needs 50 rows, and 20 are behind it")
    refuses(lambda: scans[13:14].expand(ROWS, 4).sum(0), "it needs 50 rows, and 1 are behind it")


# --- what owners see


def test_a_request_shows_how_its_objects_were_computed_and_what_the_user_supplied(bob: Any, scans: Any) -> None:
    (scans * torch.ones(4).send(bob)).mean(0).request("table 1")

    (request,) = bob.requests
    table = request.to_table()

    (how,) = table["how"]
    assert how.startswith("mean(0) of (#scans * their input 1 (Tensor[4] ")
    assert how.endswith(f"; program {request.results[0].derivation.find_program()}")


def test_the_ledger_says_how_what_has_left_was_computed(bob: Any, scans: Any) -> None:
    approve(bob, average(scans), count=3)

    average(scans).get()

    assert bob.ledger[-1].how.startswith("mean(0) of (#scans * 2.0); program ")


def test_the_owner_alone_sees_the_largest_influence_of_a_row(bob: Any, me: Any) -> None:
    me.user = "eve"
    rows = torch.zeros(ROWS, 1)
    rows[42] = 50.0
    bob.load_data([rows.private_tensor([]).tag("#scans")])
    bob.search("#scans")[0].mean(0).request("table 1")

    (shown,) = look_at(bob, bob.requests[0], "noor")

    assert shown["influence"].startswith("with another row in place of row 42, a number changes by 0.5")
    assert "influence" not in str(bob.requests[0].to_asker()) + str(bob.requests[0].to_table())


def test_a_table_without_its_means_is_not_a_result_of_many_samples(bob: Any, scans: Any) -> None:
    """Each of its numbers depends on all rows."""
    bob.allow("study", **RULE, samples=ROWS)
    assert scans.mean(0).get().shape == (4,)

    with pytest.raises(GetNotPermittedError, match=r"it has 4\.00 numbers for each row of the data"):
        (scans - scans.mean(0)).get()
