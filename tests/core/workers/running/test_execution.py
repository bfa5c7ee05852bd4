from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError, ValueRefusedError
from syft_core.messages import Placed, Run, Store
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.private import PrivateTensor, get_allowed_users
from syft_core.workers.party.status import DELEGATED, FOREIGN, OUT, PRIVATE
from syft_core.workers.running.execution import Execution, snapshot_forms
from syft_core.workers.running.task import Task, attribute

ANN, EVE = Peer("ann"), Peer("eve")


@pytest.fixture(autouse=True)
def stored(bob: Any) -> None:
    """Let bob have objects 1 and 2 of ann, and a secret of his own."""
    bob.handle(Store(1, toy.Vector([1.0])), ANN)
    bob.handle(Store(2, toy.Vector([2.0])), ANN)
    bob.register_obj(PrivateTensor(["alice"]).on(toy.Vector([3.0])), "secret")


def here(id: Any) -> Here:
    return Here(_id_at_location=id, point_to_attr=None)


def execution(hook: ToyHook, bob: Any, name: str, *args: Any, peer: Peer = ANN, **kwargs: Any) -> Execution:
    made = Execution(bob, hook.attributes, hook.attributes.ops.look_up(name), peer)
    made.read(Run("toy", name, args, kwargs or None, 100))
    return made


def test_pointers_are_replaced_by_the_objects_wherever_they_are(bob: Any) -> None:
    operands = Task(bob, Peer("ann"), "run")

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
        Task(bob, Peer("ann"), "run").resolve((here(9),))


def test_objects_of_others_are_marked(bob: Any) -> None:
    mine, others = Task(bob, Peer("ann"), "run"), Task(bob, Peer("eve"), "run")

    mine.resolve((here(1),))
    others.resolve((here(1),))

    assert not mine.status & FOREIGN
    assert others.status & FOREIGN


def test_the_restriction_of_an_object_is_its_status_and_not_a_layer_of_the_operand(bob: Any) -> None:
    operands = Task(bob, Peer("ann"), "run")

    (value,) = operands.resolve((here("secret"),))

    assert type(value) is toy.Vector
    assert operands.status & PRIVATE


def test_a_private_chain_in_a_message_restricts_what_is_computed_from_it(bob: Any) -> None:
    operands = Task(bob, Peer("ann"), "run")

    (value,) = operands.resolve((PrivateTensor(["alice"]).on(toy.Vector([5.0])),))

    assert get_allowed_users(value) is None
    assert operands.parents[0].access == {"alice"}
    assert operands.status & PRIVATE


def test_a_pointer_to_another_worker_stays_a_pointer(bob: Any, alice: Any) -> None:
    elsewhere = Wrapper(toy.Vector([1.0])).send(alice)
    operands = Task(bob, Peer("ann"), "run")

    (value,) = operands.resolve((elsewhere.child,))

    assert type(value) is PointerTensor


def test_a_tensor_that_is_only_a_number_is_no_operand(bob: Any) -> None:
    operands = Task(bob, Peer("ann"), "run")
    entries = [bob.object_store.entry(id) for id in (1, 2)]

    operands.add_operands(entries, [entries[0].value, 2.5])

    assert operands.parents == entries[:1]


def test_an_execution_knows_what_it_changes(hook: ToyHook, bob: Any) -> None:
    added = execution(hook, bob, "toy.Vector.__add__", here(1), here(2))
    changed = execution(hook, bob, "toy.Vector.add_", here(1), here(2))
    into = execution(hook, bob, "toy.add", here(1), 1.0, out=here(2))

    assert added.targets() == []
    assert [target.id for target in changed.targets()] == [1]
    assert [target.id for target in into.targets()] == [2]
    assert into.status & OUT
    assert changed.ends == [bob.get_obj(1)]


def test_the_sender_may_read_operands_unless_one_is_private(hook: ToyHook, bob: Any) -> None:
    assert execution(hook, bob, "toy.Vector.__add__", here(1), here(2)).is_readable
    secret = execution(hook, bob, "toy.Vector.__add__", here(1), here("secret"))
    assert not secret.is_readable
    assert secret.may_read(bob.object_store.entry(1))
    assert not secret.may_read(bob.object_store.entry("secret"))
    alice = Peer("laptop", "alice")
    assert execution(hook, bob, "toy.Vector.__add__", here(1), here("secret"), peer=alice).is_readable


def test_a_result_is_stored_for_the_sender_under_the_id_of_its_place(hook: ToyHook, bob: Any) -> None:
    made = execution(hook, bob, "toy.Vector.__add__", here(1), here("secret"))

    placed = made.store(toy.Vector([9.0]), 2)

    assert placed == Placed(102)
    entry = made.find_result(placed)
    assert entry is bob.object_store.entry(102)
    assert (entry.holder, entry.access) == ("ann", {"alice"})


def test_a_result_that_was_computed_for_others_names_them(hook: ToyHook, bob: Any) -> None:
    peer = Peer("alice", None, (ANN,))
    made = execution(hook, bob, "toy.Vector.__add__", here(1), here(2), peer=peer)
    assert made.status & DELEGATED

    entry = made.find_result(made.store(toy.Vector([9.0]), 0))

    assert entry.giver == peer


def test_ids_that_are_taken_are_refused_before_anything_is_stored(hook: ToyHook, bob: Any) -> None:
    made = execution(hook, bob, "toy.Vector.__add__", here(1), here(2))
    made.require_free(3)
    bob.handle(Store(101, toy.Vector([1.0])), EVE)

    made.require_free(1)
    with pytest.raises(IdNotUniqueError, match="101"):
        made.require_free(2)


def test_a_memo_is_that_of_the_call_before_it_runs(hook: ToyHook, bob: Any) -> None:
    made = execution(hook, bob, "toy.Vector.add_", here(1), here(2))
    before = made.memo

    bob.get_obj(1)._values.append(5.0)

    assert made.memo is before
    assert execution(hook, bob, "toy.Vector.add_", here(1), here(2)).memo is not before


def test_only_the_gradient_of_an_object_is_an_attribute(hook: ToyHook) -> None:
    vector = toy.Vector([1.0])

    assert attribute(vector, None) is vector
    with pytest.raises(ValueRefusedError, match="reading 'shape'"):
        attribute(vector, "shape")


def test_a_snapshot_differs_after_the_form_has_changed(hook: ToyHook) -> None:
    vector = toy.Vector([1.0])
    before = snapshot_forms([vector, Wrapper(vector)])

    vector[0] = 2.0
    assert snapshot_forms([vector, Wrapper(vector)]) == before
    vector._values.append(3.0)
    assert snapshot_forms([vector, Wrapper(vector)]) != before
