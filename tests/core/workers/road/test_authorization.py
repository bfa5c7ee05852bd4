from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook

from syft_core.exceptions import OperationNotAllowedError, ValueRefusedError, WriteNotPermittedError
from syft_core.hook.facts import Facts
from syft_core.hook.ops import Op, describe_op
from syft_core.messages import Run, Store
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.road.authorization import is_always_allowed, require_command

ANN, EVE = Peer("ann"), Peer("eve")


@pytest.fixture(autouse=True)
def stored(bob: Any) -> None:
    """Let bob have objects of ann and of eve, and a secret of his own."""
    bob.handle(Store(1, toy.Vector([1.0])), ANN)
    bob.handle(Store(2, toy.Vector([2.0])), EVE)
    bob.register_obj(PrivateTensor(["alice"]).on(toy.Vector([77.0])), 3)


def run(bob: Any, name: str, *ids: int, sender: Peer = ANN) -> Any:
    args = tuple([Here(_id_at_location=id, point_to_attr=None) for id in ids])
    return bob.handle(Run("toy", name, args, None, 100), sender)


def op(hook: ToyHook, name: str) -> Op:
    return hook.attributes.ops.look_up(name)


def test_an_operation_that_reveals_values_is_refused_on_any_object(hook: ToyHook, bob: Any) -> None:
    with pytest.raises(ValueRefusedError, match="tolist"):
        run(bob, "toy.Vector.tolist", 1)
    with pytest.raises(ValueRefusedError):
        require_command(bob, op(hook, "toy.Vector.item"), hook.attributes)


def test_an_operation_that_runs_the_callers_code_is_refused(hook: ToyHook, bob: Any) -> None:
    with pytest.raises(ValueRefusedError):
        require_command(bob, op(hook, "toy.Vector.map"), hook.attributes)


def test_an_operation_that_is_off_is_refused_with_what_to_write_instead(hook: ToyHook, bob: Any) -> None:
    facts = Facts(tier="off", instead="write `x.same()`")
    off = describe_op("toy.off", toy.cat, "function", describe=lambda _op: facts)

    with pytest.raises(OperationNotAllowedError, match="write `x.same\\(\\)`"):
        require_command(bob, off, hook.attributes)


def test_operations_that_need_no_check_are_known(hook: ToyHook) -> None:
    assert is_always_allowed(op(hook, "toy.Vector.__add__"), hook.attributes)
    assert not is_always_allowed(op(hook, "toy.Vector.tolist"), hook.attributes)
    assert not is_always_allowed(op(hook, "toy.Vector.map"), hook.attributes)
    assert not is_always_allowed(op(hook, "toy.Vector.__pow__"), hook.attributes)


def test_objects_of_others_may_be_read_and_not_changed(bob: Any) -> None:
    assert run(bob, "toy.Vector.__add__", 1, 2).id == 100
    with pytest.raises(WriteNotPermittedError, match="belongs to someone else"):
        run(bob, "toy.Vector.add_", 2, 1)
    assert bob.get_obj(2).tolist() == [2.0]


def test_own_objects_and_those_of_the_worker_itself_may_be_changed(bob: Any) -> None:
    run(bob, "toy.Vector.add_", 1, 2)
    run(bob, "toy.Vector.add_", 2, 1, sender=bob.peer)

    assert bob.get_obj(1).tolist() == [3.0]
    assert bob.get_obj(2).tolist() == [5.0]


@pytest.mark.usefixtures("own_table")
def test_an_operation_that_nobody_reviewed_runs_on_public_data_only(hook: ToyHook, bob: Any) -> None:
    hook.attributes.allow(lambda x: x * 2, "toy.twice", writes=frozenset())

    run(bob, "toy.twice", 1)
    with pytest.raises(ValueRefusedError, match="toy.twice.*it has not been reviewed for private data"):
        run(bob, "toy.twice", 3)

    assert bob.get_obj(100).tolist() == [2.0]


def test_a_policy_is_asked_whether_the_forms_of_operands_may_be_known(bob: Any) -> None:
    asked: list[Any] = []

    def policy(verb: str, stored: Any, peer: Peer, value: Any) -> str | None:
        asked.append((verb, stored.id, peer.id))
        return None

    bob.policy = policy
    run(bob, "toy.Vector.__add__", 1, 2)

    assert ("describe", 1, "ann") in asked
    assert ("describe", 2, "ann") in asked
