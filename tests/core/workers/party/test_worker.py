from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook

from syft_core.exceptions import (
    ObjectNotFoundError,
    PolicyError,
    WorkerError,
    WorkerIdTakenError,
    WorkerNotFoundError,
    WorkerNotPicklableError,
)
from syft_core.messages import Failure, Store
from syft_core.peer import Peer
from syft_core.workers.party import worker as module
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.status import LOGGED, POLICY, QUOTA, VERBOSE
from syft_core.workers.party.worker import ClientState
from syft_core.workers.seeing.permissions import nothing, unless_private

FAILED = Failure(ValueError("mine"), "", 1, 0)


# --- what a client expects


def test_the_cause_of_a_missing_object_is_the_last_failure_that_was_to_create_it() -> None:
    state, other = ClientState(), Failure(ValueError("other"), "", 2, 0)
    state.poison(range(5, 8), other)
    state.poison(range(6, 7), FAILED)
    state.poison(range(0), FAILED)

    assert state.find_cause(ObjectNotFoundError.on(6, "bob")) is FAILED
    assert state.find_cause(ObjectNotFoundError.on(7, "bob")) is other
    assert state.find_cause(ObjectNotFoundError.on(9, "bob")) is None
    assert state.find_cause(ObjectNotFoundError.on("name", "bob")) is None
    assert state.find_cause(ValueError("mine")) is None


def test_what_is_remembered_of_failures_is_bounded() -> None:
    state = ClientState()

    for id in range(module.MAX_POISONED + 1):
        state.poison(range(id, id + 1), FAILED)

    assert state.find_cause(ObjectNotFoundError.on(0, "bob")) is None
    assert state.find_cause(ObjectNotFoundError.on(1, "bob")) is FAILED


# --- identity, policy and status


def test_a_worker_acts_for_its_user(bob: Any) -> None:
    assert (bob.user, bob.peer) == (None, Peer("bob"))

    bob.user = "clinic"

    assert bob.peer == Peer("bob", "clinic")


def test_the_default_policy_costs_no_check(bob: Any) -> None:
    assert bob.policy is unless_private
    assert bob.custom_policy is None

    bob.policy = "nothing"
    assert bob.policy is nothing
    assert bob.status & POLICY

    bob.policy = unless_private
    assert not bob.status & POLICY


def test_an_unknown_policy_is_refused_and_the_old_one_stays(bob: Any) -> None:
    bob.policy = nothing

    for policy in ("noting", lambda verb: None):
        with pytest.raises(PolicyError):
            bob.policy = policy

    assert bob.policy is nothing


def test_options_set_and_clear_bits_of_the_status(bob: Any) -> None:
    for name, bit in (("guard", QUOTA), ("log_msgs", LOGGED), ("verbose", VERBOSE)):
        setattr(bob, name, True)
        assert bob.status & bit
        setattr(bob, name, None)
        assert not bob.status & bit


def test_workers_are_trusted_by_id_or_as_themselves(bob: Any, alice: Any) -> None:
    bob.trust(alice, "carol", 7)

    assert bob.trusted == {"alice", "carol", 7}


def test_only_the_worker_itself_is_its_owner(bob: Any) -> None:
    assert bob.is_owner(bob.peer)
    assert not bob.is_owner(Peer("ann", "bob"))


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_worker_belongs_to_its_process(bob: Any, act: Any) -> None:
    with pytest.raises(WorkerNotPicklableError, match="'bob'"):
        act(bob)


# --- clients


def test_a_session_begins_with_numbers_that_no_other_session_had(bob: Any) -> None:
    first = bob.session_of("ann")
    assert bob.session_of("ann") is first

    bob.forget_client(Peer("ann"))

    assert bob.session_of("ann").form_epoch > first.form_epoch


def test_the_oldest_session_is_forgotten_first(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 2)

    for client in ("ann", "eve", "zoe"):
        bob.session_of(client)

    assert list(bob.sessions) == ["eve", "zoe"]


@pytest.mark.parametrize(("count", "noticed"), [(1, False), (-1, True)])
def test_a_client_is_told_of_changes_that_it_did_not_predict(bob: Any, count: int, noticed: bool) -> None:
    ann, eve = bob.session_of("ann"), bob.session_of("eve")
    before = [(session.form_epoch, session.gradient_epoch) for session in (ann, eve)]

    bob.note_form_change(count, Peer("ann"))
    bob.note_gradient_change(count, Peer("ann"))

    assert (ann.form_epoch, ann.gradient_epoch) == (before[0][0] + noticed, before[0][1] + noticed)
    assert (eve.form_epoch, eve.gradient_epoch) == (before[1][0] + 1, before[1][1] + 1)


def test_everybody_is_told_of_an_object_that_the_owner_replaced(bob: Any) -> None:
    session = bob.session_of("ann")
    before = session.form_epoch, session.gradient_epoch

    bob.note_replacement()

    assert (session.form_epoch, session.gradient_epoch) == (before[0] + 1, before[1] + 1)


def test_a_client_that_is_gone_leaves_nothing_behind(bob: Any) -> None:
    class Kept:
        def __init__(self, worker: Any) -> None:
            self.forgotten: list[Any] = []

        def forget(self, peer: Any) -> None:
            self.forgotten.append(peer)

    part = bob.part(Kept)
    bob.handle(Store(1, toy.Vector([1.0])), Peer("ann"))
    bob.handle(Store(2, toy.Vector([1.0])), Peer("eve"))
    bob.session_of("ann")

    bob.forget_client(Peer("ann"))

    assert list(bob.object_store) == [2]
    assert "ann" not in bob.sessions
    assert bob.part(Kept) is part
    assert part.forgotten == ["ann"]


# --- other workers


def test_a_worker_is_found_by_id_and_the_error_names_the_nearest(me: Any, bob: Any, alice: Any) -> None:
    assert me.get_worker("bob") is bob
    assert me.get_worker(bob) is bob
    with pytest.raises(WorkerNotFoundError, match="alice"):
        me.get_worker("alise")
    with pytest.raises(TypeError, match="expected a worker or its id, got float"):
        me.get_worker(1.5)


def test_the_location_of_a_worker_is_made_once_and_again_if_another_takes_its_place(me: Any, bob: Any) -> None:
    location = me.location_of("bob")
    assert me.location_of(bob) is location

    bob.forget_locations()

    assert me.location_of(bob) is not location


def test_workers_that_are_added_know_all_others(hook: ToyHook) -> None:
    first, second, third = (BaseWorker(None, id=name) for name in ("first", "second", "third"))

    assert first.add_workers([second, third]) is first

    assert second.get_worker("third") is third
    assert third.get_worker("first") is first


def test_an_id_is_taken_once() -> None:
    first = BaseWorker(None, id="first")
    second = BaseWorker(None, id="second")
    first.add_worker(second)
    first.add_worker(second)

    with pytest.raises(WorkerIdTakenError, match="'second'"):
        first.add_worker(BaseWorker(None, id="second"))

    assert first.get_worker("second") is second


def test_a_worker_that_is_removed_is_unknown_to_all(hook: ToyHook, me: Any, bob: Any, alice: Any) -> None:
    me.location_of(bob)

    me.remove_worker_from_registry("bob")

    for known in (me, alice):
        with pytest.raises(WorkerNotFoundError):
            known.get_worker("bob")
    with pytest.raises(WorkerError, match="from its own registry: do it on another worker"):
        me.remove_worker_from_registry("me")


def test_a_worker_answers_to_its_aliases(bob: Any) -> None:
    bob.add_alias("bob at home")

    assert bob.get_worker("bob at home") is bob


# --- frameworks


def test_a_worker_supports_the_frameworks_that_are_hooked(hook: ToyHook, bob: Any) -> None:
    assert bob.is_framework_supported("toy")
    assert not bob.is_framework_supported("jax")
    assert bob.attributes_of("toy") is hook.attributes
    with pytest.raises(WorkerNotFoundError, match="cannot run jax on worker 'bob': it is not hooked there; hook it"):
        bob.attributes_of("jax")
