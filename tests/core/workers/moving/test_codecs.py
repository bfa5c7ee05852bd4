from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import AlreadyRetrievedError, SerdeError
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.object_pointer import Here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import Context, deserialize, serialize
from syft_core.workers.moving import codecs


@pytest.fixture
def pointer(bob: Any) -> PointerTensor:
    return Wrapper(toy.Vector([1.0])).send(bob).child


def test_a_pointer_arrives_as_a_pointer_of_the_receiver(pointer: PointerTensor, alice: Any) -> None:
    received = deserialize(serialize(pointer), Context(worker=alice))

    assert received.owner is alice
    assert (received.location.id, received.id_at_location) == ("bob", pointer.id_at_location)
    assert received.framework is pointer.framework


def test_a_pointer_that_arrives_without_a_lease_does_not_release_the_object(
    pointer: PointerTensor, alice: Any, bob: Any
) -> None:
    received = deserialize(serialize(pointer), Context(worker=alice))
    assert not received.garbage_collect_data

    del received
    bob.collect_garbage()

    assert len(bob.object_store) == 1


def test_a_pointer_to_the_receiver_is_sent_as_an_id(pointer: PointerTensor) -> None:
    sent = serialize(pointer, Context(receiver="bob"))

    received = deserialize(sent)

    assert received == Here(_id_at_location=pointer.id_at_location, point_to_attr=None)
    assert len(sent) < len(serialize(pointer))


def test_a_pointer_to_an_object_that_is_gone_is_not_sent(pointer: PointerTensor) -> None:
    pointer.get()

    with pytest.raises(AlreadyRetrievedError):
        serialize(pointer)


def test_a_pointer_needs_a_worker_that_receives_it(pointer: PointerTensor) -> None:
    with pytest.raises(SerdeError, match=r"no worker receives it; read it with `Context\(worker=...\)`"):
        deserialize(serialize(pointer))


@pytest.mark.parametrize(
    "payload",
    [
        (1.5, None),
        (1, 2),
        (None, 1, None, "toy", False),
        ("bob", [1], None, "toy", False),
        ("bob", 1, 5, "toy", False),
        ("bob", 1, None, None, False),
        ("bob", 1, None, "toy", 0),
    ],
)
def test_a_malformed_pointer_is_refused(hook: ToyHook, bob: Any, payload: tuple[Any, ...]) -> None:
    with pytest.raises(SerdeError, match="one of its parts has a wrong type"):
        codecs._detail_pointer(payload, Context(worker=hook.local_worker))


def test_a_pointer_to_several_workers_arrives_with_all_of_them(bob: Any, alice: Any, me: Any) -> None:
    several = Wrapper(toy.Vector([1.0])).send(bob, alice).child

    received = deserialize(serialize(several), Context(worker=me))

    assert type(received) is MultiPointerTensor
    assert sorted(received.child) == ["alice", "bob"]


@pytest.mark.parametrize("pointers", [(), ["bob"], [Here(_id_at_location=1, point_to_attr=None)], None])
def test_several_of_anything_else_are_refused(pointers: Any) -> None:
    with pytest.raises(SerdeError, match="a multi-pointer: its parts are not pointers"):
        codecs._detail_several((pointers,), Context())
