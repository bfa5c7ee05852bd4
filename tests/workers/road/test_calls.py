"""Functions of the owner: what they return stays, or leaves with the stages of leaving."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import ValueRefusedError  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.callable_pointer import ObjectWrapper  # noqa: E402

from ..test_authority import MALLORY, ask, at  # noqa: E402

from syft_core.messages import Call, Fetch, Store  # noqa: E402  # isort: skip

ZOE = Peer("desk", "zoe")


@pytest.fixture
def secret(bob: Any) -> Any:
    bob.load_data([torch.tensor([3.0, 4.0]).private_tensor(["zoe"]).tag("#secret")])
    (id,) = bob.object_store.search(("#secret",))
    return id


def test_a_value_that_a_function_returns_is_recorded_with_what_it_was_computed_from(bob: Any, secret: Any) -> None:
    bob.register_obj(ObjectWrapper(lambda x: float(x.norm()), "norm"), "norm")

    assert ask(bob, Call("norm", (at(bob, secret),), {}, 900), sender=ZOE) == 5.0

    (left,) = bob.ledger
    assert (left.id, left.form, left.names[0], left.reason) == ("norm", "float", "#secret", "result of a call")


def test_a_value_that_depends_on_what_the_sender_may_not_have_is_refused(bob: Any, secret: Any) -> None:
    bob.register_obj(ObjectWrapper(lambda x: float(x.norm()), "norm"), "norm")

    with pytest.raises(ValueRefusedError):
        ask(bob, Call("norm", (at(bob, secret),), {}, 900), sender=MALLORY)

    assert len(bob.ledger) == 0


def test_an_error_about_private_data_is_hidden_and_recorded(bob: Any, secret: Any) -> None:
    def fail(x: Any) -> Any:
        raise KeyError(float(x[0]))

    bob.register_obj(ObjectWrapper(fail, "fail"), "fail")

    with pytest.raises(ValueRefusedError) as caught:
        ask(bob, Call("fail", (at(bob, secret),), {}, 900), sender=MALLORY)

    assert "3.0" not in str(caught.value)
    assert [left.reason for left in bob.ledger] == ["a call that failed"]


def test_an_error_about_public_data_is_raised_as_it_is(bob: Any) -> None:
    def fail(x: Any) -> Any:
        raise KeyError("no such table")

    bob.register_obj(ObjectWrapper(fail, "fail"), "fail")
    ask(bob, Store(1, torch.ones(2)))

    with pytest.raises(KeyError, match="no such table"):
        ask(bob, Call("fail", (at(bob, 1),), {}, 900))

    assert len(bob.ledger) == 0


def test_tensors_of_a_result_stay_with_the_restrictions_of_all_operands(bob: Any, secret: Any) -> None:
    bob.register_obj(ObjectWrapper(lambda x: (x * 2, x.sum()), "double"), "double")

    placed = ask(bob, Call("double", (at(bob, secret),), {}, 900))

    assert [part.id for part in placed] == [900, 901]
    assert all(bob.object_store.entry(part.id).access == {"zoe"} for part in placed)
    assert ask(bob, Fetch(901), sender=ZOE).child.child.item() == 7.0
