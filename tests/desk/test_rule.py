from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import GetNotPermittedError
from syft_core.messages import Fetch, FetchAll


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
