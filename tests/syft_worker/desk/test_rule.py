from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import DomainError, GetNotPermittedError, ValueRefusedError
from syft_core.messages import Fetch, FetchAll
from syft_core.pointers.callable_pointer import ObjectWrapper


@pytest.fixture
def mean(bob: Any, me: Any) -> Any:
    """A pointer of eve's to the mean of private data."""
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    return bob.search("#ages")[0].mean()


def test_what_is_approved_leaves_once_and_the_ledger_names_the_approver(bob: Any, mean: Any) -> None:
    number = mean.request("the average age for table 1")
    bob.approve(number, by="dr. noor")
    kept = mean.copy()

    assert mean.get(reason="table 1").item() == 15.0

    assert bob.ledger[-1].reason == f"table 1, request {number}, approved by dr. noor"
    assert bob.ledger[-1].user == "eve"
    assert bob.ledger[-1].names == ("#ages",)
    with pytest.raises(GetNotPermittedError, match="it is private"):
        kept.get()


def test_an_approval_is_valid_for_one_departure(bob: Any, mean: Any) -> None:
    bob.approve(mean.request("table 1"))

    assert mean.get(deregister_ptr=False).item() == 15.0
    with pytest.raises(GetNotPermittedError, match="it is private"):
        mean.get()


def test_an_approved_copy_leaves_with_one_message_even_if_others_arrive_before_it_has_left(
    bob: Any, me: Any, mean: Any
) -> None:
    bob.approve(mean.request("table 1"))
    first, second = Fetch(mean.child.id_at_location, None, True), Fetch(mean.child.id_at_location, None, True)
    assert bob.handle(first, me.peer).item() == 15.0

    with pytest.raises(GetNotPermittedError, match="it is private"):
        bob.handle(second, me.peer)

    bob.requests.give_back([second])  # It took nothing.
    with pytest.raises(GetNotPermittedError, match="it is private"):
        bob.handle(second, me.peer)
    bob.requests.give_back([first])  # The answer could not be sent.
    assert bob.handle(second, me.peer).item() == 15.0


def test_an_approval_outlives_a_fetch_that_fails(bob: Any, mean: Any) -> None:
    bob.approve(mean.request("table 1"))
    other = bob.search("#ages")[0].sum()

    with pytest.raises(GetNotPermittedError):
        mean.location.ask(FetchAll((mean.child.id_at_location, other.child.id_at_location)))

    assert mean.get().item() == 15.0


def test_before_a_decision_nothing_leaves(bob: Any, mean: Any) -> None:
    number = mean.request("table 1")

    with pytest.raises(GetNotPermittedError, match=f"request {number} is waiting for its owner"):
        mean.get()
    assert len(bob.ledger) == 0


def test_a_denial_says_why(bob: Any, mean: Any) -> None:
    bob.deny(mean.request("table 1"), "two patients are too few")

    with pytest.raises(GetNotPermittedError, match=r"its owner denied request \w+ \(two patients are too few\)"):
        mean.get()


def test_an_approval_is_valid_only_for_the_requester(bob: Any, me: Any, mean: Any) -> None:
    bob.approve(mean.request("table 1"))
    me.user = "mallory"

    with pytest.raises(GetNotPermittedError, match="it is private"):
        mean.get()


# --- failed operations

FAILS, WORKS = 0.0, 100.0
"""What to subtract from 10 and 20, so that they are probabilities or not; see ``draw``."""


def draw(ages: Any, scale: float) -> Any:
    """Compute with an operation that fails unless all values are probabilities."""
    return torch.bernoulli(ages * 0 + ages * (0.0 if scale == WORKS else 1.0)).sum()


def fetch_by_rule(bob: Any, failed: Any) -> Any:
    bob.allow("study", user="eve", computed_from=["#ages"], any_program=True, count=1)
    return failed.get(reason="round 1")


def fetch_all_by_rule(bob: Any, failed: Any) -> Any:
    bob.allow("study", user="eve", computed_from=["#ages"], any_program=True, count=1)
    (value,) = failed.child._location.ask(FetchAll((failed.child.id_at_location,), reason="round 1"))
    return value


def fetch_by_request(bob: Any, failed: Any) -> Any:
    bob.approve(failed.request("table 1"), by="noor")
    return failed.get(reason="table 1")


def fetch_released(bob: Any, failed: Any) -> Any:
    request = failed.request("table 1")
    bob.approve(request, by="noor")
    return request.get("table 1")


ROADS = (fetch_by_rule, fetch_all_by_rule, fetch_by_request, fetch_released)


@pytest.mark.parametrize("road", ROADS)
def test_what_an_operation_failed_to_compute_leaves_like_any_other_value(bob: Any, me: Any, road: Any) -> None:
    seen = []
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    for scale in (WORKS, FAILS):
        value = road(bob, draw(bob.search("#ages")[0], scale))
        left, uses = bob.ledger[-1], [rule.uses.total for rule in bob.rules]
        assert left.failed == (scale == FAILS)
        seen.append((type(value), value.shape, value.dtype, left.event, left.form, len(left.sources), uses))
        for rule in bob.rules:
            rule.is_revoked = True
            bob.rules._known.clear()

    assert seen[0] == seen[1]
    assert len(bob.ledger) == 2


def test_a_failure_uses_a_rule_up_as_often_as_a_value_does(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor([]).tag("#ages")])
    bob.allow("study", user="eve", computed_from=["#ages"], any_program=True, count=2)
    ages = bob.search("#ages")[0]

    assert [draw(ages, FAILS).get().item() for _ in range(2)] == [0.0, 0.0]

    with pytest.raises(GetNotPermittedError, match="all of its 2 uses are used up"):
        draw(ages, FAILS).get()
    assert "(computed with 1 failed operation)" in str(bob.ledger)
    assert "bernoulli" not in str(bob.ledger)


def test_an_owner_sees_that_operations_failed_and_the_asker_does_not(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor([]).tag("#ages")])
    ages = bob.search("#ages")[0]

    worked, failed = draw(ages, WORKS).request("a"), draw(ages, FAILS).request("a")

    assert [request.sources for request in bob.requests] == ["#ages", "#ages (computed with 1 failed operation)"]
    known = [
        {name: value for name, value in request._ask().items() if name not in ("id", "objects", "asked", "expires")}
        for request in (worked, failed)
    ]
    assert known[0] == known[1]


def only_numbers(verb: str, stored: Any, peer: Any, value: Any) -> str | None:
    """Let single numbers leave, whatever they were computed from."""
    return "only numbers leave" if verb in ("read", "move") and (value is None or value.dim()) else None


@pytest.mark.parametrize("leave", [lambda p, alice: p.get(), lambda p, alice: p.move(alice)], ids=["get", "move"])
def test_a_policy_that_lets_results_leave_lets_failed_ones_leave_too_and_the_ledger_has_them(
    bob: Any, me: Any, alice: Any, leave: Any
) -> None:
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).tag("#ages")])
    bob.policy = only_numbers
    ages = bob.search("#ages")[0]

    for scale in (WORKS, FAILS):
        leave(draw(ages, scale), alice)

    assert [entry.failed for entry in bob.ledger] == [0, 1]


def test_a_policy_that_lets_answers_of_functions_leave_does_not_reveal_failures_free_of_charge(
    bob: Any, me: Any
) -> None:
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).tag("#ages"), ObjectWrapper(lambda x: x.item(), tags={"#item"})])
    bob.policy = lambda verb, stored, peer, value: (
        "only numbers leave" if verb in ("read", "move") and isinstance(value, torch.Tensor) else None
    )
    ages, item = bob.search("#ages")[0], bob.search("#item")[0]

    assert [item(draw(ages, scale)) for scale in (WORKS, FAILS)] == [0.0, 0.0]
    assert len(bob.ledger) == 2


def test_an_owners_function_that_fails_on_hidden_values_tells_no_more_and_is_in_the_ledger(bob: Any, me: Any) -> None:
    def check(x: Any) -> Any:
        if x.max() > 15:
            raise {20.0: KeyError, 30.0: DomainError}[x.max().item()](f"{x.max().item()} is too much")
        return x.sum()

    me.user = "eve"
    values = torch.tensor([20.0]), torch.tensor([30.0])
    bob.load_data([*(v.private_tensor([]).tag("#ages", f"#{v.item():.0f}") for v in values)])
    bob.load_data([ObjectWrapper(check, tags={"#check"})])
    texts = []
    for tag in ("#20", "#30"):
        with pytest.raises(ValueRefusedError) as refused:
            bob.search("#check")[0](bob.search(tag)[0])
        texts.append(str(refused.value))

    assert texts[0] == texts[1]
    assert "KeyError" not in texts[0]
    assert [entry.reason for entry in bob.ledger] == ["a call that failed"] * 2
