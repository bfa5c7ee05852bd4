from __future__ import annotations

import inspect
from typing import Any

import pytest

import syft_core as sy
from syft_core.plans.errors import PlanError

from .test_training import OPTIMIZERS, Training

torch = pytest.importorskip("torch")


def test_a_fetched_plan_has_no_function_to_record(hook: Any, bob: Any) -> None:
    sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).send(bob).tag("#it").publish()
    plan = bob.search("#it")[0].get()

    assert plan(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(PlanError, match="without its function; call or send it"):
        plan.build(torch.ones(3))
    with pytest.raises(PlanError, match="it was recorded for"):
        plan(torch.ones(3))


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
