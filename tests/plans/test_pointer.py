"""Plans as objects: they are found, fetched, called, tagged, and recorded while results of their models are in use."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import WorkerError
from syft_core.plans.errors import PlanError

from .test_training import OPTIMIZERS, Training, equal

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("calls", [0, 2])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_a_plan_that_was_found_is_fetched_as_a_plan(hook: Any, bob: Any, alice: Any, name: str, calls: int) -> None:
    training, local = Training(OPTIMIZERS[name]), Training(OPTIMIZERS[name])
    there = sy.Plan("step", training.step).build(*training.data[0]).send(bob).tag("#step").publish()
    for batch in training.data[:calls]:
        there(*batch)
        local.step(*batch)
    (found,) = alice.request_search("#step", bob)

    plan = found.get()

    assert isinstance(plan, sy.Plan)
    losses = [plan(*batch) for batch in training.data]
    assert equal(losses, [local.step(*batch).detach() for batch in training.data])
    assert equal(plan.parameters()[:1], [local.model[0].weight])

    on_bob = plan.send(bob)
    assert torch.equal(on_bob(*training.data[0]).get(), local.step(*training.data[0]))
    assert on_bob.get() is plan
    assert torch.equal(plan(*training.data[1]), local.step(*training.data[1]))
    assert hook.local_worker.objects_count == 0


def test_the_state_that_a_call_through_another_pointer_created_is_fetched(hook: Any, bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    there = sy.Plan("step", remote.step).build(*remote.data[0]).tag("#step").send(bob)
    bob.search("#step")[0](*remote.data[0])
    local.step(*local.data[0])

    there.get()

    assert equal(remote.tensors(), local.tensors())


def test_a_found_plan_arrives_although_another_object_does_not(hook: Any, bob: Any) -> None:
    sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).tag("#it").send(bob).publish()
    lost, (found,) = torch.ones(2).send(bob), bob.search("#it")
    bob.object_store.remove(lost.id_at_location, "its owner deleted it")
    with pytest.raises(WorkerError):
        sy.get_all(found, lost)
    assert found.get()(torch.ones(2)).tolist() == [2.0, 2.0]


def test_a_plan_is_sent_and_fetched_itself(hook: Any, bob: Any, alice: Any) -> None:
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    plan = sy.Plan("step", remote.step).build(*remote.data[0]).tag("#step").describe("one step")
    for batch in remote.data:
        hook.local_worker.send(plan, bob)(*batch)
        assert bob.search("#step")[0].description == "one step"
        assert plan.get() is plan
        local.step(*batch)

    assert equal(remote.tensors(), local.tensors())
    with pytest.raises(PlanError, match="it is on no worker"):
        plan.get()
    plan.send(bob, alice)
    with pytest.raises(PlanError, match="it is on 'bob', 'alice'; call `get` of the pointer"):
        plan.get()


# --- while a local result of the model is in use


def test_a_model_is_recorded_while_a_local_result_of_it_is_in_use(hook: Any, bob: Any) -> None:
    model, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    result = model(x)

    there = sy.Plan("model", lambda x: model(x)).build(x).send(bob)

    assert torch.equal(there(x).get(), result)
    result.sum().backward()
    assert model.weight.grad.tolist() == [[1.0, 1.0]]


def test_a_backward_pass_through_replaced_weights_is_refused(hook: Any, bob: Any) -> None:
    training, x = Training(OPTIMIZERS["sgd"]), torch.ones(2, 4)
    there = sy.Plan("step", training.step).build(*training.data[0]).send(bob)
    there(*training.data[0])
    result = training.model(x)

    there.get()

    with pytest.raises(WorkerError, match="whose data has been moved, shared or replaced since; compute the result"):
        result.sum().backward()
    training.model(x).sum().backward()


@pytest.mark.parametrize("convert", ["fix_precision", "share"])
def test_a_model_is_shared_while_a_local_result_of_it_is_in_use(bob: Any, alice: Any, convert: str) -> None:
    model, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    carol = sy.VirtualWorker(bob.hook, id="carol")
    result = model(x)
    before = result.detach().clone()

    model.fix_precision()
    if convert == "share":
        model.share(bob, alice, crypto_provider=carol)
        assert torch.allclose(
            model(x.fix_prec().share(bob, alice, crypto_provider=carol)).get().float_prec(), before, atol=0.01
        )
        model.get()
    model.float_precision()

    assert torch.equal(result, before)
    with pytest.raises(WorkerError, match="compute the result again"):
        result.sum().backward()
    assert torch.allclose(model(x), before, atol=0.01)


@pytest.mark.parametrize("serialize", [False, True])
def test_a_plan_may_return_its_argument_or_a_constant(hook: Any, serialize: bool) -> None:
    worker = sy.VirtualWorker(hook, id="far", serialize=serialize)
    pick = sy.Plan("pick", lambda x: x if x.shape[0] > 1 else x * 2, args_shape=[(-1, 2)]).build().send(worker)
    constant = sy.Plan("constant", lambda x: torch.as_tensor([1.0, 2.0])).build(torch.ones(2)).send(worker)

    for length in (2, 3, 2):  # A repeated form is known, so that the client does not wait.
        x = torch.ones(length, 2).send(worker)
        assert pick(x) is x
        assert constant(torch.ones(2).send(worker)).get().tolist() == [1.0, 2.0]
