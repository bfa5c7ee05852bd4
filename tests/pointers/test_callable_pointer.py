"""Callables on a worker: stored by its owner, called by others."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import ValueRefusedError
from syft_core.messages import Call, Store
from syft_core.pointers.callable_pointer import CallablePointer, ObjectWrapper, create_callable_pointer


@pytest.fixture
def double(bob: Any) -> CallablePointer:
    bob.load_data([ObjectWrapper(lambda x: x * 2, id="double", tags={"#double"}, description="doubles")])
    (pointer,) = bob.search("#double")
    return pointer


def test_a_search_finds_a_callable_that_the_owner_stored(double: Any) -> None:
    assert type(double) is CallablePointer
    assert (double.id_at_location, double.description) == ("double", "doubles")


def test_a_callable_runs_on_its_worker(double: Any, bob: Any) -> None:
    p = torch.tensor([1.0, 2.0]).send(bob)

    result = double(p)

    assert result.location is bob
    assert result.get().tolist() == [2.0, 4.0]


def test_a_pointer_to_a_callable_can_be_made_by_hand(double: Any, bob: Any, me: Any) -> None:
    by_hand = create_callable_pointer(bob, "double", owner=me)

    assert by_hand(torch.tensor([1.0]).send(bob)).get().tolist() == [2.0]


def test_plain_results_leave_and_are_recorded(bob: Any, me: Any) -> None:
    bob.load_data([ObjectWrapper(len, id="len")])

    count = create_callable_pointer(bob, "len", owner=me)(torch.ones(3).send(bob))

    assert count == 3
    assert bob.ledger[-1].reason == "result of a call"


def test_plain_results_of_private_data_are_refused(bob: Any, me: Any) -> None:
    bob.load_data([ObjectWrapper(lambda x: x.sum().item(), id="sum"), torch.ones(3).private_tensor(["bob"]).tag("#x")])
    (private,) = bob.search("#x")

    with pytest.raises(ValueRefusedError):
        create_callable_pointer(bob, "sum", owner=me)(private)
    assert len(bob.ledger) == 0


def test_results_inherit_the_restriction_of_their_operands(double: Any, bob: Any) -> None:
    bob.load_data([torch.ones(3).private_tensor(["bob"]).tag("#x")])
    (private,) = bob.search("#x")

    with pytest.raises(PermissionError):
        double(private).get()


def test_a_callable_cannot_be_sent_by_a_peer(bob: Any, me: Any) -> None:
    with pytest.raises((ValueRefusedError, ValueError)):
        me.location_of(bob).ask(Store(5, ObjectWrapper(print)))
    with pytest.raises(ValueError, match="cannot serialize"):
        me.location_of(bob).ask(Store(5, print))
    assert bob.objects_count == 0


def test_an_object_that_is_not_a_callable_cannot_be_called(bob: Any, me: Any) -> None:
    p = torch.ones(3).send(bob)

    with pytest.raises(ValueRefusedError, match="is not a function"):
        me.location_of(bob).ask(Call(p.id_at_location, (), {}, 5))


def test_a_worker_keeps_its_callables_when_pointers_are_dropped(double: Any, bob: Any) -> None:
    del double

    assert "double" in bob._objects
