from __future__ import annotations

import inspect
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import SerdeError
from syft_core.plans import plan as plan_module
from syft_core.plans.errors import PlanError, PlanShapesError
from syft_core.serde import deserialize, serialize

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


def test_bad_shapes_are_values_too(hook: Any) -> None:
    for shapes in ([(-2,)], 5):
        with pytest.raises(ValueError, match="cannot record a plan with args_shape"):
            sy.func2plan(args_shape=shapes)(lambda x: x * 2)


@pytest.mark.parametrize(
    ("shapes", "function", "problem"),
    [
        ((), lambda x: x, "has 0 shapes, .*missing a required argument: 'x'"),
        ([(2,)], lambda x, y: x + y, "has 1 shapes, .*missing a required argument: 'y'"),
        ([(2,), (2,)], lambda x: x, "has 2 shapes, .*too many positional arguments"),
    ],
)
def test_each_argument_needs_a_shape(hook: Any, shapes: Any, function: Any, problem: str) -> None:
    with pytest.raises(PlanShapesError, match=problem):
        sy.func2plan(args_shape=shapes)(function)


def test_a_function_without_arguments_needs_no_shapes(hook: Any) -> None:
    assert sy.func2plan(args_shape=())(lambda: torch.ones(2)).is_built
    assert sy.func2plan(args_shape=[(2,)], state=(torch.ones(2),))(lambda x, state: x + state.read()[0]).is_built


def test_a_stored_plan_trains_as_the_plan_would(hook: Any, bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    plan = sy.Plan("step", remote.step).build(*remote.data[0]).tag("#step").describe("one step")
    losses = []
    for x, y in remote.data:  # Each step with a plan that was stored and read again.
        plan = deserialize(serialize(plan))
        there = plan.send(bob)
        losses.append(there(x.send(bob), y.send(bob)).get())
        there.get()

    assert [loss.tolist() for loss in losses] == [local.step(x, y).tolist() for x, y in local.data]
    assert plan.tags == {"#step"}
    assert plan.description == "one step"


def test_a_plan_is_stored_as_its_state_is_now(hook: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    plan = sy.Plan("step", training.step).build(*training.data[0])
    for parameter in training.model.parameters():
        parameter.data.zero_()
    training.optimizer.param_groups[0]["lr"] = 0.5

    read = deserialize(serialize(plan))

    assert not any(parameter.any() for parameter in read.parameters() if parameter.requires_grad)
    assert "0.5" in read.code


class Doubling(sy.Plan):
    def forward(self, x: Any) -> Any:
        return x * 2


def test_a_plan_of_a_subclass_is_read_as_a_plan_without_the_function(hook: Any) -> None:
    read = deserialize(serialize(Doubling().build(torch.ones(2))))

    assert type(read) is sy.Plan
    assert read(torch.ones(2)).tolist() == [2, 2]


def test_a_plan_that_was_sent_can_be_part_of_another(hook: Any, bob: Any) -> None:
    inner = sy.Plan("abs", lambda x: x.abs()).build(torch.ones(2))
    inner.send(bob)

    outer = sy.Plan("more", lambda x: inner(x) + 1).build(torch.ones(2))

    x = torch.tensor([-1.0, 2.0])
    assert outer.send(bob)(x.send(bob)).get().tolist() == [2, 3]
    assert deserialize(serialize(outer))(x).tolist() == [2, 3]


def test_a_plan_without_its_function_cannot_be_part_of_another(hook: Any) -> None:
    read = deserialize(serialize(sy.Plan("abs", lambda x: x.abs()).build(torch.ones(2))))

    with pytest.raises(PlanError, match="calls the plan 'abs', of which there are only the recorded steps"):
        sy.Plan("more", lambda x: read(x) + 1).build(torch.ones(2))


def test_a_plan_that_was_sent_before_gets_later_names(hook: Any, bob: Any) -> None:
    plan = sy.Plan("abs", lambda x: x.abs()).build(torch.ones(2))
    pointer = plan.send(bob).tag("#own").describe("mine")

    plan.tag("#later")
    assert plan.send(bob) is pointer
    assert len(bob.search(["#own", "#later"])) == 1
    assert pointer.description == "mine"
    plan.describe("absolute values").send(bob)
    assert bob.search("#later")[0].description == "absolute values"


def test_a_plan_that_cannot_be_stored_is_refused(hook: Any, bob: Any) -> None:
    there = torch.ones(2).send(bob)
    with pytest.raises(PlanError, match="it is not recorded yet"):
        serialize(sy.Plan("double", lambda x: x * 2))
    with pytest.raises(PlanError, match="a part of its state is on a worker"):
        serialize(sy.Plan("add", lambda x: x + there).build(there))


def test_malformed_plans_are_refused(hook: Any) -> None:
    program = sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).program
    for payload in (
        (None, [], None, None),
        (program, (), None, None),
        (program, [torch.ones(1)], None, None),
        (program, ["tensor"], None, None),
        (program, [], {1}, None),
        (program, [], ["#tag"], None),
        (program, [], None, 5),
    ):
        with pytest.raises(SerdeError, match="cannot read a plan"):
            plan_module._detail_plan(payload, None)


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
