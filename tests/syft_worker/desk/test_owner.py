"""The methods that the desk adds to workers, locations, pointers and tensors."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import AlreadyRetrievedError, GetNotPermittedError
from syft_worker.desk.errors import ReleaseDeniedError
from syft_worker.desk.handle import RequestHandle


@pytest.fixture
def total(bob: Any, me: Any) -> Any:
    """The sum of data of bob's that nobody may have."""
    bob.load_data([torch.tensor([1.0, 2.0]).private_tensor([]).tag("#ages")])
    return me.get_worker("bob").search("#ages")[0].sum()


def test_a_user_asks_with_a_tensor_and_follows_the_request(total: Any, bob: Any, me: Any) -> None:
    made = total.request("table 1")

    assert isinstance(made, RequestHandle)
    assert [found.id for found in me.location_of(bob).requests()] == [made.id]
    assert [request.id for request in bob.requests] == [made.id]


def test_a_pointer_itself_can_be_asked_for(total: Any, bob: Any) -> None:
    made = total.child.request("table 1")

    bob.approve(made)

    assert total.get().item() == 3.0


def test_the_owner_approves_denies_and_takes_back(total: Any, bob: Any) -> None:
    first, second = total.request("table 1"), total.request("table 2")

    bob.approve(first, by="noor", answer="fine")
    bob.deny(second, "once is enough")
    bob.withdraw(first)

    assert (first.state, second.state) == ("open", "denied")
    with pytest.raises(ReleaseDeniedError, match="once is enough"):
        total.get()


def test_a_rule_of_the_owner_is_added_and_revoked(total: Any, bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.allow("sums", user="eve", computed_from=["#ages"], any_program=True)
    assert total.copy().get().item() == 3.0

    bob.revoke("sums")

    with pytest.raises(GetNotPermittedError):
        total.get()
    assert [rule.name for rule in bob.rules] == ["sums"]


def test_an_object_that_was_fetched_cannot_be_asked_for(bob: Any) -> None:
    x = torch.ones(1).send(bob)
    x.get()

    with pytest.raises(AlreadyRetrievedError):
        x.request("again")


def test_a_local_tensor_cannot_be_asked_for(hook: Any) -> None:
    with pytest.raises(TypeError, match="cannot request a tensor: it is not a pointer"):
        torch.ones(1).request("mine")
