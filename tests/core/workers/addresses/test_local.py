from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import ObjectNotFoundError
from syft_core.messages import Describe, Fetch, FetchAll, Run, Store
from syft_core.peer import Peer, acting_for
from syft_core.pointers.object_pointer import Here
from syft_core.workers.addresses.local import LocalLocation
from syft_core.workers.seeing.permissions import nothing


@pytest.fixture
def location(me: Any, bob: Any) -> LocalLocation:
    return LocalLocation(me, bob)


@pytest.fixture
def vector(location: LocalLocation) -> toy.Vector:
    """A vector, of which bob has a copy."""
    made = toy.Vector([1.0, 2.0])
    location.ask(Store(1, made))
    return made


def test_client_and_worker_share_no_memory(location: LocalLocation, vector: toy.Vector, bob: Any) -> None:
    vector[0] = 5.0
    assert bob.get_obj(1).tolist() == [1.0, 2.0]

    fetched = location.ask(Fetch(1, keep=True))
    fetched[0] = 7.0
    assert bob.get_obj(1).tolist() == [1.0, 2.0]


def test_an_object_that_was_fetched_is_gone(location: LocalLocation, vector: toy.Vector, bob: Any) -> None:
    assert location.ask(Fetch(1)).tolist() == [1.0, 2.0]
    with pytest.raises(ObjectNotFoundError):
        location.ask(Fetch(1))


def test_several_objects_are_fetched_at_once(location: LocalLocation, vector: toy.Vector) -> None:
    location.ask(Store(2, toy.Vector([3.0])))

    assert [found.tolist() for found in location.ask(FetchAll((1, 2)))] == [[1.0, 2.0], [3.0]]


def test_an_error_is_raised_at_once_also_by_what_is_not_waited_for(location: LocalLocation) -> None:
    for send in (location.ask, location.tell):
        with pytest.raises(ObjectNotFoundError):
            send(Run("toy", "toy.Vector.sum", (Here(_id_at_location=9, point_to_attr=None),), None, 2))
    location.flush()


def test_forms_are_read_from_the_objects(hook: ToyHook, location: LocalLocation, vector: toy.Vector, bob: Any) -> None:
    (form,) = location.describe((1,))

    assert form is hook.attributes.form_of(vector)
    assert location.ask(Describe((1,))) == [form]
    assert location.peek(1) is bob.get_obj(1)
    assert location.peek(9) is None


def test_a_worker_with_a_policy_of_its_own_lets_nobody_look(
    location: LocalLocation, vector: toy.Vector, bob: Any
) -> None:
    bob.policy = nothing

    assert location.peek(1) is None


def test_two_ids_of_one_object_are_one_key(location: LocalLocation, vector: toy.Vector, bob: Any) -> None:
    location.ask(Store(2, toy.Vector([1.0, 2.0])))

    assert location.identify(1) == id(bob.get_obj(1))
    assert location.identify(1) != location.identify(2)
    assert location.identify("gone") == "gone"


def test_the_lease_of_a_dropped_pointer_waits_for_the_next_message(
    location: LocalLocation, vector: toy.Vector, bob: Any
) -> None:
    location.drop(1)
    assert len(bob.object_store) == 1

    location.ask(Store(2, toy.Vector([3.0])))

    assert list(bob.object_store) == [2]


def test_a_lent_lease_is_released_for_its_lender(location: LocalLocation, bob: Any) -> None:
    location.drop(1, "carol")

    assert list(bob.dropped) == [(1, ("me", "carol"))]


def test_messages_name_the_peers_on_whose_behalf_they_are_sent(location: LocalLocation, bob: Any) -> None:
    with acting_for((Peer("laptop", "ann"),)):
        location.ask(Store(1, toy.Vector([1.0])))

    assert bob.object_store.entry(1).giver == Peer("me", None, (Peer("laptop", "ann"),))


def test_the_face_of_a_location_is_the_worker(location: LocalLocation, bob: Any) -> None:
    assert location.face is bob
    assert Wrapper(toy.Vector([1.0])).send(bob).location is bob
