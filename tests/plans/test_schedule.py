"""Schedules: what a worker knows from earlier calls of a plan never hides that a call differs from them."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.hook.forms import form
from syft_core.messages import Store
from syft_core.plans import running, schedule
from syft_core.plans.errors import PlanError
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import Program, Routine, Slot, Step
from syft_core.pointers.object_pointer import new_id
from syft_core.workers.road import execution
from syft_worker.quotas import QuotaGuard

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _quotas(bob: Any) -> None:
    bob.guard = QuotaGuard(bob, {})


@pytest.fixture
def signatures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The operations whose signatures were computed."""
    computed: list[Any] = []
    known = execution.signature_of

    def note(op: Any, args: Any, kwargs: Any) -> Any:
        computed.append(op)
        return known(op, args, kwargs)

    monkeypatch.setattr(execution, "signature_of", note)
    return computed


class Model:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def send(self, bob: Any) -> Any:
        return sy.Plan("step", self.step, args_shape=[(-1, 3), (-1, 2)]).build().send(bob)


def memos_on(bob: Any) -> dict[Any, Any]:
    (program,) = [value for value in bob._objects.values() if hasattr(value, "memos")]
    return dict(program.memos)


def test_a_call_on_arguments_of_known_forms_computes_no_signature(bob: Any, signatures: list[Any]) -> None:
    plan, x, y = Model().send(bob), torch.rand(4, 3).send(bob), torch.rand(4, 2).send(bob)
    for _ in range(3):
        plan(x, y).get()
    before = len(signatures)

    plan(x, y).get()

    assert before
    assert len(signatures) == before


def test_calls_on_arguments_of_other_forms_give_the_same_bits_as_locally(bob: Any) -> None:
    local, plan = Model(), Model().send(bob)

    for rows in (4, 2, 4, 5, 2, 4):
        x, y = torch.rand(rows, 3), torch.rand(rows, 2)
        assert torch.equal(plan(x.send(bob), y.send(bob)).get(), local.step(x, y).detach())


def test_a_plan_keeps_a_bounded_number_of_schedules(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "MAX_SCHEDULES", 3)
    plan = Model().send(bob)

    for rows in range(1, 11):
        plan(torch.rand(rows, 3).send(bob), torch.rand(rows, 2).send(bob)).get()
        assert len(memos_on(bob)) <= 3


def test_a_call_with_a_dtype_that_was_not_recorded_is_refused_after_others(bob: Any) -> None:
    plan, x, y = Model().send(bob), torch.rand(4, 3), torch.rand(4, 2).send(bob)
    for _ in range(3):
        plan(x.send(bob), y).get()

    with pytest.raises(PlanError, match="float64"):
        plan(x.double().send(bob), y)


def test_state_that_no_longer_needs_gradients_is_refused_after_other_calls(bob: Any) -> None:
    plan, x, y = Model().send(bob), torch.rand(4, 3).send(bob), torch.rand(4, 2).send(bob)
    for _ in range(3):
        plan(x, y).get()

    plan.parameters()[0].requires_grad_(False)

    with pytest.raises(PlanError, match="does not need gradients"):
        plan(x, y).get()


def test_a_gradient_that_was_not_recorded_is_refused_after_other_calls(bob: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    plan = sy.Plan("scale", lambda x: x * weight, args_shape=[(2,)], state=(weight,)).build().send(bob)
    x = torch.ones(2).send(bob)
    for _ in range(3):
        plan(x).get()

    (state,) = plan.parameters()
    (state * 2).sum().backward()

    with pytest.raises(PlanError, match="has a gradient"):
        plan(x).get()


def test_a_gradient_of_a_constant_is_refused_after_other_calls(bob: Any) -> None:
    factor = torch.ones(2)
    plan = sy.Plan("scale", lambda x: x * factor, args_shape=[(2,)], state=(factor,)).build().send(bob)
    x = torch.ones(2).send(bob)
    for _ in range(3):
        plan(x).get()

    (state,) = plan.parameters()
    state.grad = torch.ones(2).send(bob)

    with pytest.raises(PlanError, match="has a gradient"):
        plan(x).get()


def test_a_plan_whose_shapes_depend_on_values_has_no_schedule(bob: Any, me: Any) -> None:
    steps = (
        Step("torch", "torch.Tensor.__gt__", (Slot(0), 0.0), {}, 1, "True False torch.float32 None"),
        Step("torch", "torch.masked_select", (Slot(0), Slot(1)), {}, 1),
        Step("torch", "torch.Tensor.sum", (Slot(2),), {}, 1),
    )  # A recording refuses it, but a peer can write it by hand.
    location, id = me.location_of(bob), new_id()
    location.ask(Store(id, Program("positive", (form((4,), None, torch.float32),), (), 0, (Routine(steps, Slot(3)),))))

    for values in ([1.0, 2.0, 3.0, 4.0], [1.0, -2.0, 3.0, -4.0], [-1.0, -2.0, -3.0, -4.0], [1.0, 2.0, 3.0, -4.0]):
        x = torch.tensor(values).send(bob)
        result = location.ask(RunPlan(id, (x.child,), new_id())).id
        assert me.request_obj(result, bob) == sum(value for value in values if value > 0)

    assert not memos_on(bob)


def test_a_plan_lets_others_change_forms_between_its_steps(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TURN_SECONDS", -1.0)
    local, plan = Model(), Model().send(bob)
    x, y = torch.rand(4, 3), torch.rand(4, 2)

    for _ in range(3):
        assert torch.equal(plan(x.send(bob), y.send(bob)).get(), local.step(x, y).detach())

    assert not memos_on(bob)


def test_private_data_stays_private_in_all_calls(bob: Any, me: Any) -> None:
    bob.load_data([torch.rand(4, 3).private_tensor(["zoe"]).tag("#x"), torch.rand(4, 2).tag("#y")])
    plan, (x,), (y,) = Model().send(bob), bob.search("#x"), bob.search("#y")

    for _ in range(4):
        loss = plan(x, y)
        with pytest.raises(PermissionError):
            loss.get()
        for parameter in plan.parameters():
            with pytest.raises(PermissionError):
                parameter.copy().get()


def test_a_mask_in_place_of_an_index_is_refused_after_other_calls(bob: Any) -> None:
    plan = sy.Plan("pick", lambda x, index: x[index]).build(torch.rand(4), torch.tensor([0, 1, 2, 3])).send(bob)
    bob.load_data([torch.rand(4).private_tensor(["zoe"]).tag("#x"), torch.tensor([0, 1, 1, 0]).tag("#i")])
    bob.load_data([torch.tensor([True, False, True, True]).private_tensor(["zoe"]).tag("#m")])
    (x,), (index,), (mask,) = bob.search("#x"), bob.search("#i"), bob.search("#m")
    for _ in range(3):
        plan(x, index)

    with pytest.raises(PlanError, match="bool"):
        plan(x, mask)


def test_arrays_have_schedules_too(bob: Any, numpy_hook: Any) -> None:
    plan = sy.Plan("double", lambda x: x * 2).build(numpy_hook.arange(3)).send(bob)

    for start in range(3):
        x = numpy_hook.arange(start, start + 3)
        assert plan(x.send(bob)).get().tolist() == [2 * number for number in range(start, start + 3)]

    assert memos_on(bob)
