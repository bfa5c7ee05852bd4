from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
import toy
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import ConnectionLostError, ObjectNotFoundError
from syft_core.messages import Fetch, Release
from syft_ray.actor import Actor
from syft_ray.buffers import SMALL
from syft_ray.location import RayLocation, ReturnLocation


@pytest.fixture
def location(handle: Any, me: Any) -> RayLocation:
    actor = Actor(handle, "actor 1")
    made = RayLocation(me, "bob", actor, actor.admit("me"))
    me.add_worker(made)
    return made


def test_a_worker_in_an_actor_is_used_like_any_other(location: RayLocation) -> None:
    x = Wrapper(toy.Vector([1.0, 2.0])).send(location)

    assert ((x + 1.0) * 2.0).get().tolist() == [4.0, 6.0]


def test_large_frames_arrive_whole(location: RayLocation) -> None:
    values = [float(number) for number in range(SMALL)]

    assert Wrapper(toy.Vector(values)).send(location).get().tolist() == values


def test_the_error_of_a_worker_is_raised(location: RayLocation) -> None:
    with pytest.raises(ObjectNotFoundError):
        location.ask(Fetch(9))


def test_commands_that_were_told_are_executed_when_they_are_waited_for(location: RayLocation, host: Any) -> None:
    x = Wrapper(toy.Vector([1.0])).send(location)
    location.flush()
    location.tell(Release((x.id_at_location,)))

    location.settle()

    assert len(host._workers["bob"].object_store) == 0


def test_nothing_is_received_before_it_is_there(location: RayLocation) -> None:
    assert location.receive_frames(wait=False) is None


def test_a_closed_location_says_so(location: RayLocation) -> None:
    location.close()

    with pytest.raises(ConnectionLostError, match="cannot use worker 'bob': its RayWorkers were closed"):
        location.ask(Fetch(1))


def test_a_worker_reaches_others_through_its_links(handle: Any, me: Any) -> None:
    linked: list[Any] = []

    class Links:
        def link(self, location: RayLocation, other: Any) -> None:
            linked.append((location.id, other.id))

    bob, alice = (RayLocation(me, name, Actor(handle, "actor 1"), b"", Links()) for name in ("bob", "alice"))
    bob.introduce(alice, ())
    bob.introduce(bob, ())

    assert linked == [("bob", "alice")]


def test_a_request_to_a_client_waits_for_the_one_before(me: Any) -> None:
    posted: list[Future[Any]] = []

    def post(worker: Any, other: Any, sent: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_result([b"reply to " + sent[0]])
        posted.append(answer)
        return answer

    back = ReturnLocation(me, "ann", post)
    assert back.receive_frames(wait=False) is None

    for sent in (b"1", b"2"):
        back.send_frames([sent])

    assert [back.receive_frames(wait=True), back.receive_frames(wait=False)] == [[b"reply to 1"], [b"reply to 2"]]
    assert len(posted) == 2
