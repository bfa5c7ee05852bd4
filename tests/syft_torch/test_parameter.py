from __future__ import annotations

import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import AlreadyRetrievedError, GetNotPermittedError, WorkerError  # noqa: E402
from syft_core.pointers.fetches import complete  # noqa: E402
from syft_torch import parameter  # noqa: E402
from syft_torch.parameter import Moves, fetch, find_remote, location_of, make_move, relocate, send_in_place  # noqa: E402


@pytest.fixture
def weights(hook: Any) -> list[Any]:
    return [torch.nn.Parameter(torch.ones(2)), torch.zeros(3)]


def test_the_data_moves_and_the_objects_stay(hook: Any, weights: list[Any], bob: Any) -> None:
    one, other = weights
    moves = Moves.count

    send_in_place(weights, hook.local_worker.location_of(bob))

    assert isinstance(one, torch.nn.Parameter)
    assert [location_of(tensor) for tensor in weights] == [bob, bob]
    assert find_remote([one, torch.ones(1), other]) == [one, other]
    assert bob.objects_count == 2
    assert Moves.count > moves

    relocate(weights, lambda tensors: complete(fetch(tensors, None, "")))

    assert one.tolist() == [1.0, 1.0]
    assert other.tolist() == [0.0, 0.0, 0.0]
    assert find_remote(weights) == []
    assert bob.objects_count == 0


def test_a_tensor_keeps_its_id_its_tags_and_its_attributes(hook: Any, weights: list[Any], bob: Any) -> None:
    one = weights[0].tag("#w")
    id, one.mine = one.id, 7

    send_in_place(weights, hook.local_worker.location_of(bob))

    assert (one.id, one.tags, one.mine) == (id, {"#w"}, 7)


def test_tensors_move_from_worker_to_worker(hook: Any, weights: list[Any], bob: Any, alice: Any) -> None:
    send_in_place(weights, hook.local_worker.location_of(bob))

    relocate(weights, make_move(hook.local_worker.location_of(alice)))

    assert [location_of(tensor) for tensor in weights] == [alice, alice]
    assert alice.objects_count == 2


def test_if_one_cannot_be_fetched_all_stay(hook: Any, weights: list[Any], bob: Any) -> None:
    send_in_place(weights, hook.local_worker.location_of(bob))
    bob.policy = lambda verb, stored, peer, value: "no" if stored.value.shape == (3,) else None

    with pytest.raises(GetNotPermittedError, match="no"):
        relocate(weights, lambda tensors: complete(fetch(tensors, None, "")))

    assert find_remote(weights) == weights


def test_what_was_fetched_is_not_fetched_again(hook: Any, bob: Any) -> None:
    x = torch.ones(2).send(bob)
    assert complete(fetch([x], None, ""))[0].tolist() == [1.0, 1.0]

    with pytest.raises(AlreadyRetrievedError):
        complete(fetch([x], None, ""))
    assert complete(fetch([], None, "")) == []


def test_a_tensor_with_hooks_is_refused(hook: Any, weights: list[Any], bob: Any) -> None:
    weights[0].register_hook(lambda gradient: gradient)

    with pytest.raises(WorkerError, match="cannot move a tensor with hooks"):
        send_in_place(weights, hook.local_worker.location_of(bob))
    assert parameter.has_hooks(weights[0])
    assert find_remote(weights) == []


def test_a_tensor_that_a_graph_or_a_cache_needs_is_refused(hook: Any, weights: list[Any], bob: Any) -> None:
    location = hook.local_worker.location_of(bob)
    loss = (weights[0] ** 2).sum()
    with pytest.raises(WorkerError, match="an autograd graph needs it"):
        send_in_place(weights, location)
    del loss

    reference = weakref.ref(weights[1])
    with pytest.raises(WorkerError, match="there are weak references to it"):
        send_in_place(weights, location)
    assert reference() is weights[1]


def test_a_pass_through_data_that_was_replaced_is_refused(hook: Any, bob: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    loss = (x**2).sum()

    relocate([x], lambda tensors: [torch.zeros(2, requires_grad=True)])

    with pytest.raises(WorkerError, match="cannot run this backward pass"):
        loss.backward()
