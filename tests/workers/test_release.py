"""Release: peers request objects they may not have, and the owner of the worker decides."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import GetNotPermittedError, ReleaseError
from syft_core.messages import AskRelease, Fetch, FetchAll
from syft_core.workers.release import MAX_OPEN


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

    assert bob.ledger[-1].reason == "table 1, request 1, approved by dr. noor"
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


def test_the_table_shows_form_sources_user_and_reason_and_no_value(bob: Any, mean: Any) -> None:
    mean.request("table 1\nalice  approved")

    (request,) = bob.requests
    assert request.values[0].item() == 15.0  # for the owner, who has everything anyway
    for text in (str(bob.requests), bob.requests._repr_html_(), repr(request)):
        assert "15" not in text
    assert r"1       open   eve  Tensor[]  #ages          table 1\nalice \x20approved" in str(bob.requests)


def test_before_a_decision_nothing_leaves(bob: Any, mean: Any) -> None:
    mean.request("table 1")

    with pytest.raises(GetNotPermittedError, match="request 1 is waiting for its owner"):
        mean.get()
    assert len(bob.ledger) == 0


def test_a_denial_says_why(bob: Any, mean: Any) -> None:
    bob.deny(mean.request("table 1"), "two patients are too few")

    with pytest.raises(GetNotPermittedError, match=r"its owner denied request 1 \(two patients are too few\)"):
        mean.get()


def test_the_released_value_is_the_requested_one_despite_later_writes(bob: Any, me: Any, mean: Any) -> None:
    number = mean.request("table 1")
    mean.fill_(99.0)
    mean.view(1)[0] = 98.0
    bob.approve(number)

    assert mean.get().item() == 15.0


def test_an_approval_is_valid_only_for_the_requester(bob: Any, me: Any, mean: Any) -> None:
    bob.approve(mean.request("table 1"))
    me.user = "mallory"

    with pytest.raises(GetNotPermittedError, match="it is private"):
        mean.get()


def test_a_model_is_asked_for_as_a_whole(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.ones(4, 2).private_tensor(["alice"]).tag("#x")])
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).send(bob)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(bob.search("#x")[0]).sum().backward()
    optimizer.step()
    with pytest.raises(GetNotPermittedError):
        model.get()

    bob.approve(model.request("the paper"))
    model.get()

    assert [type(parameter.data) for parameter in model.parameters()] == [torch.Tensor] * 4
    assert bob.requests[0].state == "released"
    assert len(bob.ledger) == 4


def test_a_gradient_can_be_asked_for(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.ones(2).private_tensor(["alice"]).tag("#x")])
    w = torch.ones(2, requires_grad=True).send(bob)
    (w * bob.search("#x")[0]).sum().backward()

    bob.approve(w.grad.request("a step"))

    assert w.grad.get().tolist() == [1.0, 1.0]
    with pytest.raises(GetNotPermittedError):
        w.get()


def test_an_owner_decides_once(bob: Any, mean: Any) -> None:
    number = mean.request("table 1")
    bob.deny(bob.requests[0], "no")

    with pytest.raises(ReleaseError, match="it was denied already"):
        bob.approve(number)
    with pytest.raises(ReleaseError, match="has no such request"):
        bob.approve(7)


def test_the_number_of_open_requests_is_limited(bob: Any, mean: Any) -> None:
    for _ in range(MAX_OPEN):
        mean.request("please")

    with pytest.raises(ReleaseError, match="64 requests are waiting"):
        mean.request("please")


def test_objects_of_others_cannot_be_requested(bob: Any, alice: Any, me: Any, mean: Any) -> None:
    pointer = mean.child
    stranger = alice.location_of(bob)

    with pytest.raises(GetNotPermittedError, match="belongs to someone else"):
        stranger.ask(AskRelease((pointer.id_at_location,), None, "please"))


def test_a_request_names_objects_and_copies_each_once(bob: Any, me: Any, mean: Any) -> None:
    location, id = mean.child._location, mean.child.id_at_location

    with pytest.raises(ReleaseError, match="names no object"):
        location.ask(AskRelease((), None, "please"))
    location.ask(AskRelease((id,) * 1000, None, "please"))

    assert len(bob.requests[0].values) == 1
