from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import IdNotUniqueError
from syft_core.messages import Placed, Run, Store
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.party.status import DELEGATED, OUT
from syft_core.workers.road.execution import Execution, snapshot_forms

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


def test_a_snapshot_differs_after_the_form_has_changed(hook: ToyHook) -> None:
    vector = toy.Vector([1.0])
    before = snapshot_forms([vector, Wrapper(vector)])

    vector[0] = 2.0
    assert snapshot_forms([vector, Wrapper(vector)]) == before
    vector._values.append(3.0)
    assert snapshot_forms([vector, Wrapper(vector)]) != before
