from __future__ import annotations

import asyncio
from typing import Any

import pytest
import toy
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import AuthenticationError, WorkerNotFoundError
from syft_core.messages import Batch, Fetch, Store
from syft_core.serde import Context, frames, from_frames
from syft_ray.actor import Actor
from syft_ray.errors import RayStartError
from syft_ray.host import Host, _Order


@pytest.fixture
def actor(handle: Any) -> Actor:
    made = Actor(handle, "actor 1")
    assert made.ask("ready")
    return made


def deliver(actor: Actor, key: bytes, number: int, *commands: Any, worker: str = "bob", client: Any = None) -> Any:
    context = Context(worker=client)
    received = actor.ask("deliver", key, worker, number, frames(Batch(number, commands, True), context))
    reply = from_frames(received, context)
    if reply.failure is not None:
        raise reply.failure.error
    return reply.value


def test_calls_go_on_in_the_order_of_their_numbers() -> None:
    done: list[int] = []

    async def call(order: _Order, number: int) -> None:
        await order.begin(number)
        done.append(number)
        order.end()

    async def run() -> None:
        order = _Order()
        await asyncio.gather(*[call(order, number) for number in (2, 0, 3, 1)])

    asyncio.run(run())

    assert done == [0, 1, 2, 3]


def test_a_client_with_a_key_is_served(actor: Actor, me: Any) -> None:
    key = actor.admit("ann")

    deliver(actor, key, 0, Store(1, toy.Vector([1.0])), client=me)

    assert deliver(actor, key, 1, Fetch(1), client=me).tolist() == [1.0]


def test_a_client_without_a_key_is_refused(actor: Actor, me: Any) -> None:
    with pytest.raises(AuthenticationError, match="the key of the client is not valid"):
        deliver(actor, b"guessed", 0, Store(1, toy.Vector([1.0])), client=me)


def test_a_key_is_for_one_client(actor: Actor) -> None:
    key = actor.admit("ann")

    assert len(key) == 32
    with pytest.raises(AuthenticationError, match="another client is called 'ann'"):
        actor.ask("admit", "ann", None, False)
    assert actor.ask("admit", "eve", None, False) != key


def test_a_client_does_not_take_the_name_of_a_worker(actor: Actor, me: Any) -> None:
    key = actor.admit("bob")

    with pytest.raises(AuthenticationError, match="a client is called 'bob'"):
        deliver(actor, key, 0, Store(1, toy.Vector([1.0])), client=me)


def test_an_unknown_worker_is_named(actor: Actor, me: Any) -> None:
    with pytest.raises(WorkerNotFoundError, match="carol"):
        deliver(actor, actor.admit("ann"), 0, Store(1, toy.Vector([1.0])), worker="carol", client=me)


def test_the_user_of_a_client_is_the_one_that_was_admitted(actor: Actor, host: Host, me: Any) -> None:
    deliver(actor, actor.admit("ann", "annette"), 0, Store(1, toy.Vector([1.0])), client=me)

    assert host._workers["bob"].object_store.entry(1).giver.user == "annette"


def test_workers_of_one_actor_reach_each_other(actor: Actor, host: Host) -> None:
    actor.ask("link_here", "bob", "alice")
    bob, alice = host._workers["bob"], host._workers["alice"]

    pointer = bob.send(Wrapper(toy.Vector([1.0])), alice)

    assert pointer.location is alice
    with pytest.raises(WorkerNotFoundError):
        actor.ask("link_here", "bob", "carol")


def test_a_request_of_a_worker_is_answered_by_the_process_that_started_the_actor(actor: Actor, host: Host) -> None:
    asked = host._post("bob", "me", [b"frames"])

    number, worker, other, sent = actor.ask("next_request")
    actor.ask("answer", number, [b"reply"])

    assert (worker, other, sent) == ("bob", "me", [b"frames"])
    assert asked.result(10) == [b"reply"]


def test_a_setup_that_fails_names_the_worker(host: Host) -> None:
    def fail(worker: Any) -> None:
        raise ValueError("secret 77")

    with pytest.raises(RayStartError, match="`setup` of worker 'carol' raised ValueError") as caught:
        host._make_worker("carol", fail)
    assert "77" not in str(caught.value)


def test_a_host_whose_setup_has_failed_says_why_with_its_type(host: Host, ray: Any) -> None:
    def fail(worker: Any) -> None:
        raise ValueError("secret 77")

    from .conftest import Handle  # noqa: PLC0415  # next to the fixtures

    with pytest.warns(UserWarning, match="hook"):
        failed = Host("toy", ["carol"], fail)
    try:
        with pytest.raises(RayStartError, match="`setup` of worker 'carol' raised ValueError"):
            Actor(Handle(ray, failed), "actor 1").ask("ready")
    finally:
        failed._threads.shutdown()
        failed._hook.unhook()
