from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.conditions import DAY
from syft_core.messages import FetchAll
from syft_core.peer import Peer
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker.desk.errors import ApprovalError, ReleaseDeniedError, ReleaseError
from syft_worker.desk.handlers import review_requests
from syft_worker.desk.messages import ReviewRequests
from syft_worker.desk.releases import Releases, releases_of


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

    assert bob.desk.decide("approve", request_id).decided_by == "worker bob"
    bob.desk.decide("withdraw", request_id)
    assert bob.desk.decide("approve", request_id, by="noor").decided_by == "noor"
    bob.desk.decide("withdraw", request_id)
    bob.user = "clinic"
    assert bob.desk.decide("deny", request_id, "no").decided_by == "clinic"


def test_requests_stay_when_their_client_is_gone(bob: Any, me: Any, request_id: str) -> None:
    bob.forget_client(Peer("me", "me"))

    assert [found.id for found in releases_of(bob).requests] == [request_id]


def test_a_rule_is_added_and_revoked(bob: Any, request_id: str) -> None:
    bob.allow("sums", by="noor", user="eve", computed_from=["#ages"], any_program=True)
    assert [found.name for found in releases_of(bob).approvals] == ["sums"]

    bob.revoke("sums")

    assert [found.is_revoked for found in releases_of(bob).approvals] == [True]


# --- requests that rules cover

RULE_OF_ME = {"user": "me", "computed_from": ["#ages"], "any_program": True}


def ask(bob: Any, me: Any) -> Any:
    return (me.get_worker("bob").search("#ages")[0].sum() * 2.0).request("table 1")


@contextmanager
def start(hook: Any, path: Path) -> Iterator[Any]:
    """Start a worker that continues the ledger of the one before, and end it."""
    with closing(Ledger("bob", path / "ledger.jsonl")) as ledger:
        worker = VirtualWorker(hook, id="bob", ledger=ledger)
        worker.load_data([torch.tensor([1.0, 2.0]).private_tensor([]).tag("#ages")])
        yield worker
        hook.local_worker.remove_worker_from_registry("bob")


def test_a_request_that_a_rule_covers_is_approved_and_uses_the_rule_once(bob: Any, me: Any, request_id: str) -> None:
    bob.deny(request_id, "no")
    bob.allow("sums", by="noor", form="Tensor[]", count=2, **RULE_OF_ME)
    told: list[Any] = []
    releases_of(bob).requests.on_request = told.append

    request = ask(bob, me)

    assert (request.state, request.answer) == ("approved", "the rule 'sums' covers it")
    assert request.wait(timeout=0).get().item() == 6.0
    assert bob.rules.find("sums").uses.total == 1
    assert [ask(bob, me).state for _ in range(3)] == ["approved", "open", "open"]
    assert len(told) == 2  # Nobody needs to decide on the first two.
    assert [entry.rule for entry in bob.ledger] == [""]  # The use is in the entry of the decision.


def test_a_rule_settles_the_requests_that_are_open_when_it_is_made(bob: Any, me: Any, request_id: str) -> None:
    requests = [ask(bob, me) for _ in range(2)]
    vector = (me.get_worker("bob").search("#ages")[0] * 1).request("table 1")

    bob.allow("sums", by="noor", form="Tensor[]", count=2, **RULE_OF_ME)

    assert [found.state for found in releases_of(bob).requests] == ["approved", "approved", "open", "open"]
    assert requests[1].state == vector.state == "open"
    bob.rules.configure({"others": {**RULE_OF_ME, "form": "Tensor[2]", "count": 5}})
    assert vector.state == "approved"


def test_a_failed_operation_does_not_decide_whether_a_rule_settles_a_request(
    bob: Any, me: Any, request_id: str
) -> None:
    bob.allow("sums", form="Tensor[]", **RULE_OF_ME)
    ages = me.get_worker("bob").search("#ages")[0]

    assert torch.bernoulli(ages).sum().request("a").state == torch.bernoulli(ages * 0).sum().request("b").state


def test_an_approval_that_was_taken_back_is_not_given_again_by_the_same_rule(
    bob: Any, me: Any, request_id: str
) -> None:
    bob.rules.configure({"sums": {**RULE_OF_ME, "form": "Tensor[]"}})

    bob.withdraw(request_id)
    bob.rules.configure({"sums": {**RULE_OF_ME, "form": "Tensor[]"}})

    assert releases_of(bob).requests.find(request_id).state == "open"


def test_a_use_that_settled_a_request_is_counted_after_a_restart(hook: Any, me: Any, tmp_path: Path) -> None:
    with start(hook, tmp_path) as bob:
        bob.allow("sums", form="Tensor[]", count=2, **RULE_OF_ME)
        ask(bob, me).get()

    with start(hook, tmp_path) as bob:
        assert bob.rules.find("sums").uses.total == 1


# --- what was released before


def count_before(bob: Any, me: Any) -> int:
    """Return what the owner reads about the next request for a sum."""
    request = ask(bob, me)
    found = releases_of(bob).requests.find(request)
    (shown,) = review_requests(bob, ReviewRequests((request.id,)), bob.peer)
    bob.deny(found, "only a question")
    return int(shown["released_before"])


def test_only_releases_of_the_same_form_count_as_released_before(bob: Any, me: Any, request_id: str) -> None:
    ages = me.get_worker("bob").search("#ages")[0]
    bob.allow("everything", by="noor", **RULE_OF_ME)
    for _ in range(3):
        (ages * 1).get()
    ages.sum().get()
    bob.revoke("everything")
    bob.approve(request := ask(bob, me))
    request.get()

    assert count_before(bob, me) == 2


def test_releases_of_earlier_processes_count_too(hook: Any, me: Any, tmp_path: Path) -> None:
    with start(hook, tmp_path) as bob:
        bob.allow("sums", form="Tensor[]", **RULE_OF_ME)
        bob.allow("pairs", form="Tensor[], Tensor[]", **RULE_OF_ME)
        ages = bob.search("#ages")[0]
        ages.sum().get()
        one, other = ages.sum(), ages.mean()
        one.child._location.ask(FetchAll((one.child.id_at_location, other.child.id_at_location)))
        bob.revoke("sums")
        bob.approve(request := ask(bob, me))
        request.get()

    with start(hook, tmp_path) as bob:
        assert count_before(bob, me) == 2


def test_what_was_computed_from_other_data_does_not_count(hook: Any, me: Any, tmp_path: Path) -> None:
    with start(hook, tmp_path) as bob:
        bob.load_data([torch.ones(2).private_tensor([]).tag("#doses")])
        bob.allow("ages", form="Tensor[]", **RULE_OF_ME)
        bob.allow("doses", form="Tensor[]", **{**RULE_OF_ME, "computed_from": ["#doses"]})
        for _ in range(3):
            bob.search("#doses")[0].sum().get()
        bob.search("#ages")[0].sum().get()
        bob.revoke("ages")
        assert count_before(bob, me) == 1

    with start(hook, tmp_path) as bob:
        assert count_before(bob, me) == 1


# --- users


def test_a_rule_for_somebody_who_cannot_connect_is_refused_with_the_names(bob: Any, request_id: str) -> None:
    bob.rules.list_users = lambda: {"ana", "dana"}

    for user, hint in (("danna", "did you mean 'dana'"), ("zoe", "the users are ana, dana")):
        with pytest.raises(ApprovalError, match=f"no user of this worker has the name '{user}' .{hint}"):
            bob.allow("sums", user=user, computed_from=["#ages"], any_program=True)
    (warning,) = bob.rules.configure({"sums": {**RULE_OF_ME, "user": "danna"}})
    assert "the rule 'sums' cannot be used: no user of this worker has the name 'danna'" in warning
    assert bob.rules.configure({"sums": {**RULE_OF_ME, "user": "dana"}}) == []


# --- requests expire


def test_requests_and_unused_approvals_expire_and_their_copies_are_dropped(bob: Any, me: Any, request_id: str) -> None:
    requests = bob.requests
    approved, denied = ask(bob, me), ask(bob, me)
    bob.approve(approved)
    bob.deny(denied, "no")
    assert all(request.expires_at - request.asked_at > 29 * DAY for request in requests if request.state != "denied")

    for request in requests:
        request.asked_at -= 31 * DAY
        request.decided_at = None if request.decided_at is None else request.decided_at - 29 * DAY

    assert [found.state for found in me.location_of(bob).requests()] == ["expired", "approved", "denied"]
    assert requests[0].values == [None]
    requests[1].decided_at -= 2 * DAY
    with pytest.raises(ReleaseDeniedError, match=f"request {approved.id} to worker 'bob' expired, because it was not"):
        approved.get()
    with pytest.raises(ReleaseError, match="it was expired already"):
        bob.approve(approved)


def test_an_owner_chooses_when_requests_expire(bob: Any, me: Any, request_id: str) -> None:
    bob.requests.set_lifetime(None)
    bob.requests[0].asked_at = 0.0
    assert bob.requests[0].state == "open"
    assert bob.requests[0].to_table()["expires"] is None

    bob.requests.set_lifetime(60.0)

    assert bob.requests[0].state == "expired"


def test_what_expired_stays_so_after_a_restart(hook: Any, me: Any, tmp_path: Path) -> None:
    with start(hook, tmp_path) as bob:
        ask(bob, me)
        bob.requests.set_lifetime(1e-9)
        assert bob.requests[0].state == "expired"

    with start(hook, tmp_path) as bob:
        assert bob.requests[0].state == "expired"
    assert [entry.event for entry in read_ledger(tmp_path / "ledger.jsonl")][-1] == "expired"
