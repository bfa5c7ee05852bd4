"""What a sender who may not have the values sees of an operation on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import toy
from syft_toy.attributes import ToyAttributes
from syft_toy.hook import ToyHook

from syft_core.exceptions import OperationFailedError, ValueRefusedError
from syft_core.hook import signatures
from syft_core.hook.contracts.forms import Forms
from syft_core.messages import Describe, Fetch, Placed, Run
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.tensors.private import PrivateTensor

EVE, ALICE = Peer("eve"), Peer("laptop", "alice")


@pytest.fixture(autouse=True)
def secrets(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bob have vectors that only alice may have: ``positive`` and ``negative``."""
    monkeypatch.setattr(signatures, "_memos", {})
    for name, values in (("positive", [1.0, 2.0]), ("negative", [-1.0, 2.0])):
        bob.register_obj(PrivateTensor(["alice"]).on(toy.Vector(values)), name)


def run(bob: Any, name: str, *args: Any, sender: Peer = EVE, result: int = 100) -> Any:
    resolved = tuple([Here(_id_at_location=arg, point_to_attr=None) if type(arg) is str else arg for arg in args])
    return bob.handle(Run("toy", name, resolved, None, result), sender)


def test_an_operation_that_fails_because_of_values_looks_like_one_that_works(bob: Any) -> None:
    worked = run(bob, "toy.Vector.log", "positive", result=100)
    failed = run(bob, "toy.Vector.log", "negative", result=200)

    assert (worked, failed) == (Placed(100), Placed(200))
    forms = [bob.handle(Describe((id,)), EVE) for id in (100, 200)]
    assert forms[0] == forms[1]


def test_who_may_have_the_values_gets_the_error_at_once(bob: Any) -> None:
    with pytest.raises(ValueError, match="math domain error|expected a positive input"):
        run(bob, "toy.Vector.log", "negative", sender=ALICE)
    assert 100 not in bob.object_store


def test_who_may_have_the_result_later_learns_that_it_failed(bob: Any) -> None:
    run(bob, "toy.Vector.log", "negative")

    with pytest.raises(OperationFailedError, match="log"):
        bob.handle(Fetch(100, keep=True), ALICE)


def test_what_fails_for_all_values_raises_the_error_of_the_framework(bob: Any) -> None:
    with pytest.raises(ValueError, match="zip"):
        run(bob, "toy.Vector.__add__", "positive", toy.Vector([1.0, 2.0, 3.0]))


def test_a_form_that_depends_on_values_is_refused(bob: Any) -> None:
    with pytest.raises(ValueRefusedError):
        run(bob, "toy.Vector.__pow__", "positive", -1)
    with pytest.raises(ValueRefusedError):
        run(bob, "toy.Vector.__getitem__", "positive", toy.Vector([True, False]))


def test_a_backend_without_shadows_computes_nothing_on_private_values(
    bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyAttributes, "shadow", Forms.shadow)

    with pytest.raises(ValueRefusedError) as caught:
        run(bob, "toy.Vector.log", "negative")

    assert "-1.0" not in str(caught.value)
    assert caught.value.__context__ is None
    assert 100 not in bob.object_store


@pytest.mark.usefixtures("own_table")
def test_random_numbers_on_private_values_come_from_a_generator_of_their_own(
    hook: ToyHook, bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    protected: list[bool] = []
    drawn: list[bool] = []

    @contextmanager
    def protect(*_call: Any) -> Iterator[None]:
        protected.append(True)
        yield
        protected.pop()

    def draw(x: toy.Vector) -> toy.Vector:
        drawn.append(bool(protected))
        return x * 2

    monkeypatch.setattr(ToyAttributes, "protect_rng", protect)
    hook.attributes.allow(
        draw, "toy.draw", tier="reviewed", discloses="nothing", writes=frozenset(), reads_beyond=False, random=True
    )

    run(bob, "toy.draw", toy.Vector([1.0]), result=300)
    assert drawn == [False]
    run(bob, "toy.draw", "positive", result=400)
    assert drawn[-1]
    assert not protected
