from __future__ import annotations

from typing import Any

import pytest
import toy

from syft_core.exceptions import (
    GetNotPermittedError,
    PolicyError,
    TagNotPermittedError,
    TicketError,
    TooManyHopsError,
    WriteNotPermittedError,
)
from syft_core.messages import Fetch, GetTicket, Release, Run, Store
from syft_core.peer import Peer
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing import permissions
from syft_core.workers.seeing.permissions import (
    MAX_HOPS,
    MAX_TAGS,
    belongs_to,
    find_policy,
    is_findable,
    is_hidden,
    may_change,
    may_leave,
    nothing,
    only_published,
    refusal,
    require_delegable,
    require_few_hops,
    require_free_tags,
    require_identity,
    require_permission,
    require_right_to_change,
    require_right_to_lease,
    require_right_to_publish,
    require_right_to_tag,
    unless_private,
)

ANN, EVE, ALICE = Peer("ann"), Peer("eve"), Peer("laptop", "alice")


@pytest.fixture
def anns(bob: Any) -> Stored:
    """An object of ann."""
    bob.handle(Store(1, toy.Vector([1.0])), ANN)
    return bob.object_store.entry(1)


@pytest.fixture
def secret(bob: Any) -> Stored:
    """An object of bob that only alice may have."""
    bob.register_obj(PrivateTensor(["alice"]).on(toy.Vector([77.0])), "secret")
    return bob.object_store.entry("secret")


# --- policies


@pytest.mark.parametrize("verb", ["read", "move"])
def test_private_objects_leave_for_their_users_only(bob: Any, secret: Stored, verb: Any) -> None:
    assert refusal(bob, verb, secret, ALICE, secret.value) is None
    for peer in (EVE, Peer("alice"), Peer("eve", None, (ALICE,)), Peer("laptop", "alice", (EVE,))):
        assert "it is private" in (refusal(bob, verb, secret, peer, secret.value) or "")


@pytest.mark.parametrize("verb", ["describe", "search", "write", "tag", "lease", "call"])
def test_private_objects_may_be_used_by_everybody(bob: Any, secret: Stored, verb: Any) -> None:
    assert refusal(bob, verb, secret, EVE, secret.value) is None


def test_no_policy_lets_private_objects_leave(bob: Any, secret: Stored) -> None:
    bob.policy = lambda verb, stored, peer, value: None

    assert not may_leave(bob, [secret], EVE)
    assert may_leave(bob, [secret], ALICE)


def test_a_change_of_the_allowed_users_applies_at_once(bob: Any, secret: Stored) -> None:
    secret.value.child.register_credentials(["eve"])

    assert may_leave(bob, [secret], Peer("laptop", "eve"))
    assert not may_leave(bob, [secret], ALICE)


def test_only_published_objects_leave_and_only_as_they_were_published(anns: Stored) -> None:
    assert only_published("read", anns, ANN, anns.value) is not None

    anns.publish(ANN)
    assert only_published("read", anns, EVE, anns.value) is None
    assert only_published("read", anns, EVE, "its gradient") is not None
    assert only_published("describe", anns, EVE, anns.value) is None


@pytest.mark.parametrize("policy", [only_published, nothing])
def test_objects_of_others_are_hidden(anns: Stored, policy: Any) -> None:
    assert policy("describe", anns, ANN, anns.value) is None
    assert policy("describe", anns, EVE, anns.value) is not None
    assert policy("search", anns, EVE, anns.value) is not None
    assert policy("write", anns, EVE, anns.value) is None
    assert policy.hides


def test_nothing_leaves_not_even_what_is_published(anns: Stored) -> None:
    anns.publish(ANN)

    assert nothing("read", anns, ANN, anns.value) == "this worker lets nothing leave"
    assert nothing("move", anns, ANN, anns.value) == "this worker lets nothing leave"


def test_a_policy_is_a_name_or_a_function_of_four() -> None:
    assert find_policy("only_published") is only_published
    assert find_policy(unless_private) is unless_private
    with pytest.raises(PolicyError, match="only_published"):
        find_policy("only_publised")
    with pytest.raises(PolicyError):
        find_policy(lambda verb, stored: None)


def test_everybody_in_a_request_needs_the_permission(bob: Any, anns: Stored) -> None:
    bob.policy = lambda verb, stored, peer, value: "eve may not" if peer.id == "eve" else None

    for peer in (EVE, Peer("ann", None, (EVE,)), Peer("eve", None, (ANN,))):
        assert refusal(bob, "read", anns, peer, anns.value) == "eve may not"
    assert refusal(bob, "read", anns, ANN, anns.value) is None


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("read", GetNotPermittedError),
        ("describe", GetNotPermittedError),
        ("write", WriteNotPermittedError),
        ("tag", TagNotPermittedError),
    ],
)
def test_a_refusal_says_who_what_where_and_why(bob: Any, anns: Stored, verb: Any, error: type[Exception]) -> None:
    bob.policy = lambda verb, stored, peer, value: "it is Sunday"

    with pytest.raises(error) as caught:
        require_permission(bob, verb, anns, EVE, anns.value)

    for part in ("eve", "1", "bob", "it is Sunday"):
        assert part in str(caught.value)


# --- ownership


def test_an_object_belongs_to_who_sent_it_or_had_it_computed(anns: Stored) -> None:
    assert belongs_to(anns, ANN)
    assert not belongs_to(anns, EVE)

    anns.holder, anns.giver = "alice", Peer("alice", None, (EVE,))
    assert belongs_to(anns, EVE)


def test_an_object_is_changed_by_its_sender_and_by_the_worker(bob: Any, anns: Stored) -> None:
    assert may_change(bob, anns, ANN)
    assert may_change(bob, anns, bob.peer)
    assert not may_change(bob, anns, EVE)
    assert not may_change(bob, anns, Peer("ann", None, (EVE,)))
    with pytest.raises(WriteNotPermittedError, match="belongs to someone else"):
        require_right_to_change(bob, anns, EVE, anns.value)


def test_a_published_object_is_changed_by_its_publisher_only(bob: Any, anns: Stored) -> None:
    anns.publish(EVE)

    assert may_change(bob, anns, EVE)
    with pytest.raises(WriteNotPermittedError, match="it is published"):
        require_right_to_change(bob, anns, ANN, anns.value)


def test_an_object_whose_memory_others_own_is_not_changed(bob: Any, anns: Stored) -> None:
    bob.handle(Store(2, toy.Vector([1.0])), EVE)
    mine = bob.object_store.entry(2)
    mine.guard = anns

    assert not may_change(bob, mine, EVE)


def test_tags_are_given_by_who_may_change_an_object(bob: Any, anns: Stored) -> None:
    require_right_to_tag(bob, anns, ANN, ["#x"])
    with pytest.raises(TagNotPermittedError, match="it belongs to someone else"):
        require_right_to_tag(bob, anns, EVE, ["#x"])


def test_the_number_of_tags_is_limited(bob: Any, anns: Stored) -> None:
    require_free_tags(bob, [str(number) for number in range(MAX_TAGS)], ANN, anns)
    with pytest.raises(TagNotPermittedError, match=f"the limit is {MAX_TAGS} tags"):
        require_free_tags(bob, [str(number) for number in range(MAX_TAGS + 1)], ANN, anns)


def test_tags_under_which_the_worker_has_published_are_reserved(bob: Any, anns: Stored) -> None:
    bob.handle(Store(2, toy.Vector([1.0]), publish=True, tags=("#patients",)), bob.peer)

    with pytest.raises(TagNotPermittedError, match="#patients"):
        require_free_tags(bob, ["#patients"], ANN, anns)
    require_free_tags(bob, ["#patients"], bob.peer, anns)
    require_free_tags(bob, ["#others"], ANN, anns)


def test_an_object_is_published_by_who_sent_it_or_may_read_it(bob: Any, anns: Stored, secret: Stored) -> None:
    require_right_to_publish(bob, anns, ANN)
    require_right_to_publish(bob, secret, ALICE)
    with pytest.raises(GetNotPermittedError):
        require_right_to_publish(bob, secret, EVE)
    with pytest.raises(TagNotPermittedError, match="cannot be published on behalf of others"):
        require_right_to_publish(bob, anns, Peer("ann", None, (ANN,)))


def test_tagged_and_published_objects_are_found(bob: Any, anns: Stored) -> None:
    assert is_findable(bob, anns, ANN)
    assert is_findable(bob, anns, bob.peer)
    assert not is_findable(bob, anns, EVE)

    bob.object_store.tag(1, ["#x"], None)
    assert is_findable(bob, anns, EVE)


def test_a_lease_needs_an_object_that_can_be_found_or_an_earlier_lease(bob: Any, anns: Stored) -> None:
    with pytest.raises(GetNotPermittedError, match="who has not given you a pointer to it"):
        require_right_to_lease(bob, anns, EVE)

    anns.lease("eve")
    require_right_to_lease(bob, anns, EVE)


def test_objects_are_hidden_by_policies_only_and_not_from_who_has_a_pointer(bob: Any, anns: Stored) -> None:
    assert not is_hidden(bob, anns, EVE)

    bob.policy = nothing
    assert is_hidden(bob, anns, EVE)
    assert not is_hidden(bob, anns, ANN)
    anns.lease("eve")
    assert not is_hidden(bob, anns, EVE)


# --- senders


def test_a_claimed_user_is_not_authentication() -> None:
    require_identity(None, EVE, 1, "bob")
    require_identity("alice", ALICE, 1, "bob")
    with pytest.raises(GetNotPermittedError, match="a claimed user name is not authentication"):
        require_identity("alice", EVE, 1, "bob")


def test_what_concerns_only_the_sender_is_not_sent_for_others() -> None:
    require_delegable(Fetch(1), EVE)
    with pytest.raises(TicketError, match="GetTicket"):
        require_delegable(GetTicket("bob", ()), EVE)


def test_a_request_does_not_come_back_and_is_not_passed_on_forever(bob: Any) -> None:
    require_few_hops(bob, Fetch(1), Peer("alice", None, (ANN,)))
    require_few_hops(bob, Fetch(1), Peer("alice", None, (Peer("bob"),)))  # It is the first request of bob himself.
    with pytest.raises(TooManyHopsError):
        require_few_hops(bob, Fetch(1), Peer("alice", None, (ANN, Peer("bob"))))
    with pytest.raises(TooManyHopsError):
        require_few_hops(bob, Fetch(1), Peer("alice", None, tuple(map(Peer, range(MAX_HOPS + 1)))))


def test_a_release_is_executed_however_often_it_was_passed_on(bob: Any) -> None:
    require_few_hops(bob, Release((1,)), Peer("alice", None, (ANN, Peer("bob"))))
    with pytest.raises(TooManyHopsError):
        require_few_hops(bob, Run("toy", "toy.cat", (), None, 1), Peer("alice", None, (ANN, Peer("bob"))))


def test_every_built_in_policy_has_its_name() -> None:
    assert set(permissions.POLICIES) == {"unless_private", "only_published", "nothing"}
