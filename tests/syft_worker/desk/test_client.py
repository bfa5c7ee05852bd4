from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_worker.desk.client import Desk
from syft_worker.desk.errors import ReleaseError


@pytest.fixture
def asked(bob: Any, me: Any) -> Any:
    """A request of the local worker for the sum of data of bob's."""
    bob.load_data([torch.tensor([1.0, 2.0]).private_tensor([]).tag("#ages")])
    return me.get_worker("bob").search("#ages")[0].sum().request("table 1")


@pytest.fixture
def desk(bob: Any, me: Any) -> Desk:
    """The desk of bob, used over the connection of the local worker, which has the rights of the owner."""
    bob.is_owner = lambda peer: peer.id == "me"
    return Desk(me.location_of(bob))


def test_the_owner_lists_and_shows_requests_without_values(desk: Desk, asked: Any) -> None:
    (listed,) = desk.requests()

    assert (listed["id"], listed["state"], listed["reason"]) == (asked.id, "open", "table 1")
    assert desk.requests("open") == [listed]
    assert desk.requests("denied") == []
    assert desk.show(asked)["id"] == asked.id
    assert "3.0" not in str(desk.show(asked))


def test_the_owner_sees_a_summary_and_the_ledger_says_so(desk: Desk, asked: Any, bob: Any) -> None:
    (summary,) = desk.values(asked)

    assert "3" in str(summary)
    assert asked.state == "open"


def test_the_owner_decides(desk: Desk, asked: Any) -> None:
    assert desk.approve(asked, "fine")["state"] == "approved"
    assert desk.withdraw(asked)["state"] == "open"
    assert desk.deny(asked, "too few")["state"] == "denied"
    assert asked.answer == "too few"


def test_a_decision_about_something_else_is_refused(desk: Desk, asked: Any) -> None:
    with pytest.raises(ReleaseError):
        desk.approve(asked, digest="of something else")
    assert asked.state == "open"


def test_rules_are_added_from_a_request_or_from_conditions_and_revoked(desk: Desk, asked: Any) -> None:
    desk.allow("like-it", asked)
    desk.allow("sums", user="eve", computed_from=["#ages"], any_program=True)
    assert [rule["name"] for rule in desk.rules()] == ["like-it", "sums"]

    assert desk.revoke("sums")["name"] == "sums"


def test_only_the_owner_uses_the_desk(desk: Desk, asked: Any, bob: Any) -> None:
    bob.is_owner = lambda peer: False

    for act in (desk.requests, desk.rules, lambda: desk.approve(asked), lambda: desk.values(asked)):
        with pytest.raises(ReleaseError):
            act()
    assert asked.state == "open"
