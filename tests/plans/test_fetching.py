"""Plans as objects: they are found, fetched, called, tagged, and recorded while results of their models are in use."""

from __future__ import annotations

import inspect
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


def test_a_fetched_plan_has_no_function_to_record(hook: Any, bob: Any) -> None:
    sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).send(bob).tag("#it").publish()
    plan = bob.search("#it")[0].get()

    assert plan(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(PlanError, match="without its function; call or send it"):
        plan.build(torch.ones(3))
    with pytest.raises(PlanError, match="it was recorded for"):
        plan(torch.ones(3))


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


def test_the_parameters_are_listed_before_recording_and_on_a_worker(hook: Any, bob: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    plan = sy.Plan("step", training.step)
    parameters = list(training.model.parameters())

    assert [any(one is other for other in plan.parameters()) for one in parameters] == [True] * len(parameters)
    there = plan.build(*training.data[0], trace_autograd=True).send(bob)
    assert [tuple(p.shape) for p in there.parameters()] == [tuple(p.shape) for p in plan.parameters()]
    assert torch.equal(there.parameters()[0].copy().get(), training.model[0].weight)
    with pytest.raises(PlanError, match="only the client that sent a plan knows them; fetch it"):
        there.tag("#it"), bob.search("#it")[0].parameters()


@pytest.mark.parametrize("shapes", [(2, 3), [("a",)], [(-2,)], 5, [2.5], "ab", [(2,), None], [(True, 2)]])
def test_bad_shapes_are_refused(hook: Any, shapes: Any) -> None:
    with pytest.raises(PlanError, match="it must be a list with the shape of each argument; -1 means any length"):
        sy.func2plan(args_shape=shapes)(lambda x: x * 2)


@pytest.mark.parametrize(("dtypes", "why"), [([1], "is not a dtype"), ([None, None], "2 dtypes for 1 shapes")])
def test_bad_dtypes_are_refused(hook: Any, dtypes: Any, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        sy.func2plan(args_shape=[(2,)], args_dtypes=dtypes)(lambda x: x * 2)


def test_dtypes_say_which_of_two_hooked_frameworks_is_meant(hook: Any, bob: Any, numpy_hook: Any) -> None:
    plan = sy.func2plan(args_shape=[(-1, 2)], args_dtypes=[torch.float32])(lambda x: x * 2)

    assert plan.send(bob)(torch.ones(3, 2).send(bob)).get().tolist() == [[2, 2]] * 3


def test_the_state_of_a_plan_says_which_of_two_hooked_frameworks_is_meant(hook: Any, bob: Any, numpy_hook: Any) -> None:
    model = torch.nn.Linear(2, 1)
    plan = sy.func2plan(args_shape=[(-1, 2)])(lambda x: model(x))
    x = torch.ones(3, 2)
    expected = model(x).tolist()

    assert plan.send(bob)(x.send(bob)).get().tolist() == expected


def test_the_arguments_of_the_ancestor_are_accepted() -> None:
    assert list(inspect.signature(sy.func2plan).parameters) == ["args_shape", "state", "trace_autograd", "args_dtypes"]
    inspect.signature(sy.Plan.build).bind(None, 1, 2, trace_autograd=True)


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
