from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.desk.releases import Releases, releases_of
from syft_core.peer import Peer


@pytest.fixture
def request_id(bob: Any, me: Any) -> str:
    bob.load_data([torch.tensor([1.0, 2.0]).private_tensor([]).tag("#ages")])
    return me.get_worker("bob").search("#ages")[0].sum().request("table 1").id


def test_a_worker_has_one_desk(bob: Any, alice: Any) -> None:
    assert releases_of(bob) is releases_of(bob)
    assert releases_of(bob) is not releases_of(alice)
    assert isinstance(releases_of(bob), Releases)


def test_a_decision_is_that_of_the_worker_unless_somebody_is_named(bob: Any, request_id: str) -> None:
    bob.user = None

    assert bob.decide("approve", request_id).decided_by == "worker bob"
    bob.decide("withdraw", request_id)
    assert bob.decide("approve", request_id, by="noor").decided_by == "noor"
    bob.decide("withdraw", request_id)
    bob.user = "clinic"
    assert bob.decide("deny", request_id, "no").decided_by == "clinic"


def test_requests_stay_when_their_client_is_gone(bob: Any, me: Any, request_id: str) -> None:
    bob.forget_client(Peer("me", "me"))

    assert [found.id for found in releases_of(bob).requests] == [request_id]


def test_a_rule_is_added_and_revoked(bob: Any, request_id: str) -> None:
    bob.allow("sums", by="noor", user="eve", computed_from=["#ages"])
    assert [found.name for found in releases_of(bob).approvals] == ["sums"]

    bob.revoke("sums")

    assert [found.is_revoked for found in releases_of(bob).approvals] == [True]
