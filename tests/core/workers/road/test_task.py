from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import ObjectNotFoundError, ValueRefusedError
from syft_core.messages import Store
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.private import PrivateTensor, get_allowed_users
from syft_core.workers.party.status import DELEGATED, FOREIGN, PRIVATE
from syft_core.workers.road.task import Task, attribute

ANN, EVE = Peer("ann"), Peer("eve")


@pytest.fixture(autouse=True)
def stored(bob: Any) -> None:
    """Let bob have objects 1 and 2 of ann, and a secret of his own."""
    bob.handle(Store(1, toy.Vector([1.0])), ANN)
    bob.handle(Store(2, toy.Vector([2.0])), ANN)
    bob.register_obj(PrivateTensor(["alice"]).on(toy.Vector([3.0])), "secret")


def here(id: Any) -> Here:
    return Here(_id_at_location=id, point_to_attr=None)


def test_pointers_are_replaced_by_the_objects_wherever_they_are(bob: Any) -> None:
    operands = Task(bob, ANN, "run")

    args = operands.resolve((here(1), [here(2), 5], {"deep": (here(1),)}, "text", None))

    one, two = bob.get_obj(1), bob.get_obj(2)
    assert args[0] is one
    assert args[1][0] is two
    assert args[1][1] == 5
    assert args[2]["deep"][0] is one
    assert args[3:] == ("text", None)
    assert [parent.value for parent in operands.parents] == [one, two, one]


def test_a_missing_object_is_named(bob: Any) -> None:
    with pytest.raises(ObjectNotFoundError, match="cannot find object 9 on worker 'bob'"):
        Task(bob, ANN, "run").resolve((here(9),))


def test_objects_of_others_are_marked(bob: Any) -> None:
    mine, others = Task(bob, ANN, "run"), Task(bob, EVE, "run")

    mine.resolve((here(1),))
    others.resolve((here(1),))

    assert not mine.status & FOREIGN
    assert others.status & FOREIGN


def test_the_restriction_of_an_object_is_its_status_and_not_a_layer_of_the_operand(bob: Any) -> None:
    operands = Task(bob, ANN, "run")

    (value,) = operands.resolve((here("secret"),))

    assert type(value) is toy.Vector
    assert operands.status & PRIVATE


def test_a_private_chain_in_a_message_restricts_what_is_computed_from_it(bob: Any) -> None:
    operands = Task(bob, ANN, "run")

    (value,) = operands.resolve((PrivateTensor(["alice"]).on(toy.Vector([5.0])),))

    assert get_allowed_users(value) is None
    assert operands.parents[0].access == {"alice"}
    assert operands.status & PRIVATE


def test_a_pointer_to_another_worker_stays_a_pointer(bob: Any, alice: Any) -> None:
    elsewhere = Wrapper(toy.Vector([1.0])).send(alice)
    operands = Task(bob, ANN, "run")

    (value,) = operands.resolve((elsewhere.child,))

    assert type(value) is PointerTensor


def test_a_tensor_that_is_only_a_number_is_no_operand(bob: Any) -> None:
    operands = Task(bob, ANN, "run")
    entries = [bob.object_store.entry(id) for id in (1, 2)]

    operands.add_operands(entries, [entries[0].value, 2.5])

    assert operands.parents == entries[:1]


def test_only_the_gradient_of_an_object_is_an_attribute(hook: ToyHook) -> None:
    vector = toy.Vector([1.0])

    assert attribute(vector, None) is vector
    with pytest.raises(ValueRefusedError, match="reading 'shape'"):
        attribute(vector, "shape")


def test_a_task_joins_the_status_of_its_objects_its_sender_and_its_worker(bob: Any) -> None:
    secret = bob.object_store.entry("secret")

    task = Task(bob, ANN._replace(behalf=(EVE,)), "leave", [secret])

    assert task.parents == [secret]
    assert task.status & PRIVATE
    assert task.status & DELEGATED
