from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import AuthenticationError, WorkerError
from syft_ray.actor import Actor
from syft_ray.errors import ActorLostError


class Program:
    """What runs in an actor."""

    def __init__(self) -> None:
        self.admitted: list[Any] = []

    async def admit(self, *client: Any) -> bytes:
        self.admitted.append(client)
        return f"key of {client[0]}".encode()

    async def fail(self, error: Exception) -> None:
        raise error


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def actor(ray: Any, program: Program) -> Actor:
    from .conftest import Handle  # noqa: PLC0415  # next to the fixtures

    return Actor(Handle(ray, program), "actor 1")


def test_a_client_gets_its_key_once(actor: Actor, program: Program) -> None:
    assert actor.admit("ann", "user") == b"key of ann"
    assert actor.admit("ann", "user") == b"key of ann"

    assert program.admitted == [("ann", "user", False)]


def test_a_call_is_waited_for_later(actor: Actor) -> None:
    reference = actor.call("admit", "ann")

    assert actor.result(reference) == b"key of ann"
    assert actor.has_result(reference)


def test_an_error_of_ours_is_raised_as_it_is(actor: Actor) -> None:
    error = AuthenticationError.refused("ray", "mine", "try again")

    with pytest.raises(AuthenticationError, match="mine"):
        actor.ask("fail", error)
    assert not actor.is_lost


def test_another_error_is_named_without_its_text(actor: Actor) -> None:
    with pytest.raises(WorkerError, match="ValueError in actor 1; the log of the actor has its traceback") as caught:
        actor.result(actor.call("fail", ValueError("secret 77")), "bob")

    assert "worker 'bob'" in str(caught.value)
    assert "77" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "why", "is_lost"),
    [
        ("NodeDiedError", "", "was lost with its machine", True),
        ("RayActorError", "on a lost machine", "was lost with its machine", True),
        ("OutOfMemoryError", "", "has no memory left", True),
        ("RayActorError", "", "has ended", True),
        ("ActorUnavailableError", "", "does not answer", False),
        ("RayError", "", "failed with RayError", False),
    ],
)
def test_what_has_happened_to_an_actor_is_explained(
    actor: Actor, ray: Any, kind: str, text: str, why: str, is_lost: bool
) -> None:
    error = getattr(ray.exceptions, kind)(text)
    actor.node, ray.machines = "one", {"one": not text, "two": True}

    with pytest.raises(ActorLostError, match=why) as caught:
        actor.result(actor.call("fail", error), "bob")

    assert "worker 'bob'" in str(caught.value)
    assert actor.is_lost is is_lost


def test_a_lost_actor_stays_lost(actor: Actor, ray: Any) -> None:
    for kind in ("RayActorError", "ActorUnavailableError"):
        with pytest.raises(ActorLostError):
            actor.ask("fail", getattr(ray.exceptions, kind)(""))

    assert actor.is_lost


def test_ray_is_not_started_again_by_a_call(actor: Actor, ray: Any) -> None:
    reference = actor.call("admit", "ann")
    ray.is_on = False

    for act in (
        lambda: actor.call("admit", "eve"),
        lambda: actor.result(reference),
        lambda: actor.has_result(reference),
    ):
        with pytest.raises(ActorLostError, match="Ray was shut down; start Ray and new RayWorkers"):
            act()
