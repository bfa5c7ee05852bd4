"""``sy.get_all``: several fetches with one wait, and what happens to the others if one fails."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import AlreadyRetrievedError, GetNotPermittedError, WorkerError

torch = pytest.importorskip("torch")


@pytest.fixture
def secret(me: Any, bob: Any) -> Any:
    """A pointer to an object that only zoe may fetch."""
    me.user = "zoe"
    pointer = torch.ones(2).private_tensor(["zoe"]).send(bob)
    me.user = "me"
    return pointer


def test_pointers_and_modules_of_several_workers_are_fetched(bob: Any, alice: Any) -> None:
    model, recurrent = torch.nn.Linear(2, 1), torch.nn.LSTM(2, 3)
    weights = [tensor.clone() for tensor in (*model.parameters(), *recurrent.parameters())]
    x, y = torch.tensor([1.0, 2.0]).send(bob), torch.tensor([3.0]).send(alice)

    results = sy.get_all(model.send(bob), x, recurrent.send(alice), y + 1)

    assert results[0] is model
    assert results[2] is recurrent
    assert [results[1].tolist(), results[3].tolist()] == [[1.0, 2.0], [4.0]]
    fetched = (*model.parameters(), *recurrent.parameters())
    assert all(one.equal(other) for one, other in zip(fetched, weights, strict=True))
    assert recurrent(torch.ones(1, 2))[0].shape == (1, 3)


def test_nothing_is_fetched_with_nothing() -> None:
    assert sy.get_all() == []


def test_every_departure_is_recorded_with_the_reason(bob: Any, alice: Any) -> None:
    model, x = torch.nn.Linear(2, 1).send(bob), torch.ones(3).send(alice)

    sy.get_all(model, x, reason="end of the epoch")

    assert [line.reason for line in bob.ledger] == ["end of the epoch"] * 2
    assert [(line.form, line.reason) for line in alice.ledger] == [("Tensor[3]", "end of the epoch")]


def test_objects_leave_their_workers_as_with_get(bob: Any) -> None:
    x = torch.ones(3).send(bob)

    sy.get_all(x)

    assert bob.objects_count == 0
    with pytest.raises(AlreadyRetrievedError, match="it was fetched by"):
        x.get()


def test_gradients_are_fetched_as_copies(bob: Any) -> None:
    w = torch.ones(2, requires_grad=True).send(bob)
    (w * 3).sum().backward()

    gradient, weight = sy.get_all(w.grad, w)

    assert gradient.tolist() == [3.0, 3.0]
    assert weight.grad.tolist() == [3.0, 3.0]


def test_layers_above_pointers_are_kept(bob: Any) -> None:
    logged = sy.LoggingTensor().on(torch.ones(2).send(bob))

    (fetched,) = sy.get_all(logged)

    assert type(fetched.child) is sy.LoggingTensor
    assert fetched.child.child.tolist() == [1.0, 1.0]


def test_multi_pointers_shares_and_plans_are_fetched_as_with_get(hook: Any, bob: Any, alice: Any) -> None:
    several = torch.tensor([1, 2]).send(bob, alice)
    shared = torch.tensor([4, 5]).share(bob, alice, crypto_provider=sy.VirtualWorker(hook, id="carol"))
    plan = sy.Plan("double", lambda x: x * 2, args_shape=[(2,)]).build()

    pair, value, fetched = sy.get_all(several, shared, plan.send(bob))

    assert [part.tolist() for part in pair] == [[1, 2], [1, 2]]
    assert value.tolist() == [4, 5]
    assert fetched is plan


def test_if_one_is_refused_the_others_arrive_and_nothing_is_lost(bob: Any, alice: Any, secret: Any) -> None:
    model, x, y = torch.nn.Linear(2, 1), torch.tensor([1.0, 2.0]).send(bob), torch.tensor([3.0]).send(alice)
    logged = sy.LoggingTensor().on(torch.tensor([4.0]).send(alice))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        sy.get_all(x, secret, model.send(bob), y, logged)

    assert model.location is None
    assert x.get().tolist() == [1.0, 2.0]
    assert sy.get_all(y)[0].tolist() == [3.0]
    assert logged.get().child.child.tolist() == [4.0]
    assert [len(bob.ledger), len(alice.ledger)] == [3, 2]
    assert bob.objects_count == 1
    assert (secret + 1).shape == (2,)


def test_if_a_multi_pointer_is_refused_in_part_the_rest_is_not_lost(bob: Any, alice: Any, secret: Any) -> None:
    x = torch.tensor([3.0, 4.0]).send(alice)
    several = sy.combine_pointers(x, secret)

    with pytest.raises(GetNotPermittedError, match="it is private"):
        several.get()

    assert x.get().tolist() == [3.0, 4.0]


def test_a_plan_that_arrived_is_not_lost(bob: Any, secret: Any) -> None:
    layer = torch.nn.Linear(2, 1)
    plan = sy.Plan("layer", layer, args_shape=[(1, 2)]).build()
    pointer = plan.send(bob)

    with pytest.raises(GetNotPermittedError, match="it is private"):
        sy.get_all(pointer, secret)

    assert pointer.get() is plan


def test_the_first_error_is_raised(bob: Any, secret: Any) -> None:
    x = torch.ones(2).send(bob)
    bob.object_store.remove(x.id_at_location, "a test removed it")

    with pytest.raises(GetNotPermittedError, match="it is private"):
        sy.get_all(secret, x)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (torch.ones(2), "cannot get a tensor: it is not a pointer"),
        ([1], r"cannot get argument 1 of type 'list': it is not a pointer or a module; pass each of them, e.g. "
              r"`sy.get_all\(x, y\)` or `sy.get_all\(\*pointers\)`"),
        ({}, "cannot get argument 1 of type 'dict'"),
        (None, "cannot get argument 1 of type 'NoneType'"),
    ],
)  # fmt: skip
def test_nothing_is_requested_if_an_argument_is_wrong(bob: Any, wrong: Any, message: str) -> None:
    x = torch.ones(2).send(bob)

    with pytest.raises(TypeError, match=message):
        sy.get_all(x, wrong)

    assert len(bob.ledger) == 0
    assert x.get().tolist() == [1.0, 1.0]


def test_nothing_is_requested_if_a_module_is_local(bob: Any) -> None:
    x = torch.ones(2).send(bob)

    with pytest.raises(WorkerError, match="cannot get a Linear: it is in this process; use it as it is"):
        sy.get_all(x, torch.nn.Linear(2, 1))

    assert x.get().tolist() == [1.0, 1.0]


def test_nothing_is_requested_if_an_object_was_fetched_before(bob: Any) -> None:
    x, y = torch.ones(2).send(bob), torch.ones(2).send(bob)
    y.get()

    with pytest.raises(AlreadyRetrievedError, match="it was fetched by"):
        sy.get_all(x, y)

    assert x.get().tolist() == [1.0, 1.0]


def test_a_module_with_a_method_called_fetch_is_fetched(bob: Any) -> None:
    class Retriever(torch.nn.Linear):
        def fetch(self) -> None:
            raise AssertionError

    model = Retriever(2, 1).send(bob)

    assert sy.get_all(model)[0].location is None
