"""Masks, indices and lengths that a client sent are read without consent; the worker confirms whose they are."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError, ValueRefusedError  # noqa: E402
from syft_core.messages import Fetch, Store  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.workers.seeing import permissions  # noqa: E402

from .test_authority import ask, at, run  # noqa: E402

CAROL = Peer("carol", "carol")


@pytest.fixture
def mask(bob: Any) -> Any:
    return torch.tensor([[1, 1, 0], [1, 1, 1]]).send(bob)


def is_refused(pointer: Any) -> bool:
    """Return whether a truth test of a pointer is refused."""
    try:
        bool(pointer.sum())
    except ValueRefusedError:
        return True
    return False


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (lambda mask: bool(mask.to(torch.bool)[:, torch.arange(3)].all()), False),
        (lambda mask: bool((mask == 0).any()), True),
        (lambda mask: mask.sum(1).tolist(), [2, 3]),
        (lambda mask: int(mask.sum(dim=1).max()), 3),
        (lambda mask: mask[0, 0].item(), 1),
        (lambda mask: torch.equal(mask, mask.clone()), True),
        (lambda mask: [7, 8, 9][mask[0, 0]], 8),
    ],
)
def test_a_mask_that_the_client_sent_is_read_without_consent(mask: Any, bob: Any, read: Any, answer: Any) -> None:
    assert read(mask) == answer
    assert {line.reason for line in bob.ledger} == {"computed from your own values"}


def test_an_index_created_on_the_worker_is_the_clients_too(mask: Any, bob: Any) -> None:
    with bob:
        columns = torch.arange(2)
    assert bool(mask[:, columns].all())


def test_arrays_of_numpy_are_read_in_the_same_way(numpy_hook: Any, carol: Any) -> None:
    p = numpy_hook.array([1, 0, 2]).send(carol)

    assert not bool((p > 0).all())
    with pytest.raises(ValueRefusedError):
        bool((p * 0.5).sum() > numpy_hook.array([0.5]).send(carol).sum())


def test_real_numbers_are_never_read_without_consent(mask: Any, bob: Any) -> None:
    weights = torch.rand(3).send(bob)

    for pointer in (weights, weights.long(), weights > 0, mask + (weights > 0), mask.float()):
        assert is_refused(pointer)
    assert not bob.ledger


def test_data_of_the_worker_is_not_read(mask: Any, bob: Any) -> None:
    bob.load_data([torch.tensor([1, 0, 1]).tag("#data")])
    (data,) = bob.search("#data")

    assert is_refused(data)
    assert is_refused(data == 1)
    assert is_refused(mask + data)


def test_what_another_client_sent_is_not_read(bob: Any) -> None:
    ask(bob, Store(77, torch.tensor([1, 0]), tags=("#theirs",)), sender=CAROL)
    (theirs,) = bob.search("#theirs")

    assert is_refused(theirs)


@pytest.mark.parametrize("write", [lambda mask, data: mask.copy_(data), lambda mask, data: mask[0].add_(data)])
def test_a_mask_into_which_data_was_written_is_not_read(mask: Any, bob: Any, write: Any) -> None:
    bob.load_data([torch.tensor([1, 0, 1]).tag("#data")])
    view = mask[0]

    write(mask, bob.search("#data")[0])

    assert is_refused(mask)
    assert is_refused(view)


def test_a_mask_that_another_worker_may_change_is_not_read(mask: Any, bob: Any, alice: Any) -> None:
    derived, view = mask > 0, mask[0]
    given = view.send(alice)

    # A constant leaves no trace in the lineage.
    ask(bob, run("Tensor.fill_", at(bob, view.id_at_location), 5), sender=alice.peer)

    assert is_refused(mask)
    assert is_refused(derived)
    assert is_refused(mask[1])
    del given
    assert is_refused(mask)


def test_what_comes_from_another_worker_is_not_read(bob: Any, alice: Any) -> None:
    moved = torch.tensor([1, 0]).send(alice).move(bob)
    returned = torch.tensor([1, 0]).send(bob).remote_send(alice).remote_get()

    assert is_refused(moved)
    assert is_refused(returned)


def test_the_result_of_a_function_of_the_worker_is_not_read(mask: Any, bob: Any) -> None:
    secret = torch.tensor(3)
    bob.load_data([sy.ObjectWrapper(lambda x: x + secret, id="shift")])
    shift = sy.create_callable_pointer(bob, "shift", owner=mask.child.owner)

    assert is_refused(shift(mask))


def test_the_result_of_a_plan_of_others_is_not_read(mask: Any, bob: Any) -> None:
    @sy.func2plan()
    def shift(x: Any) -> Any:
        return x + torch.tensor(3)

    shift.build(torch.ones(2, 3, dtype=torch.long))
    own = shift.send(bob)
    assert not is_refused(own(mask))
    bob.object_store.entry(own.id_at_location).giver = CAROL

    shifted = own(mask)

    assert is_refused(shifted)
    assert is_refused(mask)


def test_private_masks_are_not_read(bob: Any, me: Any) -> None:
    private = torch.tensor([1, 0]).private_tensor(["me"]).send(bob)

    assert is_refused(private)
    assert is_refused(private > 0)


def test_the_policy_of_the_worker_applies(mask: Any, bob: Any) -> None:
    bob.policy = permissions.nothing

    with pytest.raises(GetNotPermittedError):
        bool(mask.all())


def test_a_peer_cannot_fetch_what_others_know(mask: Any, bob: Any) -> None:
    mask.tag("#mask")

    for sender, behalf in ((CAROL, ()), (mask.child.owner.peer, (CAROL,))):
        with pytest.raises(ValueRefusedError):
            ask(bob, Fetch(mask.id_at_location, None, True, None, "", True), sender=sender, behalf=behalf)


def test_a_gradient_is_not_read_without_consent(bob: Any) -> None:
    w = torch.tensor([1.0]).send(bob).requires_grad_()
    (w * torch.tensor([2]).send(bob)).sum().backward()

    assert is_refused(w.grad.long())
