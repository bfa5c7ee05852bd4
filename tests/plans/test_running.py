"""A plan has the permissions of single operations, for the peer that calls it; a received plan is checked first."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import (
    GetNotPermittedError,
    IdNotUniqueError,
    ValueRefusedError,
    WriteNotPermittedError,
)
from syft_core.messages import Store
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import ITEM, Slot, Step

torch = pytest.importorskip("torch")

from .programs import RUN, program  # noqa: E402  # torch may be missing

# --- privacy


def test_a_plan_trains_on_private_data_and_its_results_stay_private(hook: Any, bob: Any) -> None:
    secret = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    bob.load_data([secret.private_tensor(["owner"]).tag("#secret")])
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    (x,) = bob.search("#secret")
    there = sy.Plan("step", step).build(x).send(bob)
    objects = bob.objects_count
    for _ in range(3):
        loss = there(x)
        step(secret)

    weight = bob.object_store.entry(there.state[0].id_at_location)
    assert torch.equal(weight.value, model.weight)
    assert weight.access == frozenset({"owner"})
    assert bob.objects_count == objects + 1 + there.program.made
    with pytest.raises(GetNotPermittedError):
        loss.get()
    with pytest.raises(GetNotPermittedError):
        there.get()
    assert len(bob.ledger) == 0


@pytest.mark.parametrize("policy", ["nothing", "only_published"])
def test_adam_counts_its_steps_where_nothing_may_leave(hook: Any, serialize: bool, policy: str) -> None:
    worker = sy.VirtualWorker(hook, id="strict", serialize=serialize, policy=policy)
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.1)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    there, x = sy.Plan("step", step).build(torch.ones(2)).send(worker), torch.ones(2).send(worker)
    for _ in range(3):
        there(x)
        step(torch.ones(2))

    worker.flush()
    assert torch.equal(worker.get_obj(there.state[0].id_at_location), weight)


def test_a_number_of_private_data_cannot_be_read_by_a_plan(hook: Any, bob: Any) -> None:
    bob.load_data([torch.tensor([5.0, 6.0]).private_tensor(["owner"]).tag("#secret")])
    (x,) = bob.search("#secret")
    first = Step("torch", "torch.Tensor.__getitem__", (Slot(0), 0), {}, 1)
    item = Step("", ITEM, (Slot(1),), {}, 1)
    use = Step("torch", "torch.Tensor.__mul__", (Slot(0), Slot(2)), {}, 1)
    location = hook.local_worker.location_of(bob)
    location.tell(Store(7, program(first, item, use, answer=Slot(3))))

    with pytest.raises(ValueRefusedError, match="read number") as caught:
        location.ask(RunPlan(7, (x.child,), 8))
    assert "in step 2 of 3 of the plan 'p': v1 = v0.item()" in caught.value.__notes__


def test_a_plan_writes_only_what_its_caller_may_change(hook: Any, bob: Any) -> None:
    data = torch.tensor([1.0, 2.0])
    bob.load_data([data.tag("#data")])
    (x,) = bob.search("#data")
    location = hook.local_worker.location_of(bob)
    views = Step("torch", "torch.Tensor.view", (Slot(0), 2), {}, 1)
    for id, steps in enumerate((
        [Step("torch", "torch.Tensor.add_", (Slot(0), 1), {}, 0)],
        [views, Step("torch", "torch.Tensor.add_", (Slot(1), 1), {}, 0)],
    )):  # fmt: skip
        location.tell(Store(100 + id, program(*steps)))
        with pytest.raises(WriteNotPermittedError):
            location.ask(RunPlan(100 + id, (x.child,), 8))

    assert data.tolist() == [1.0, 2.0]


def test_a_view_that_a_plan_returns_is_guarded(hook: Any, bob: Any) -> None:
    bob.load_data([torch.tensor([1.0, 2.0]).tag("#data")])
    (x,) = bob.search("#data")
    view = sy.Plan("view", lambda x: x.view(2, 1)).build(x).send(bob)(x)

    with pytest.raises(WriteNotPermittedError):
        view.add_(1).get()


def test_others_run_a_published_plan_but_do_not_change_its_state(hook: Any, bob: Any, alice: Any) -> None:
    weight = torch.ones(2, requires_grad=True)

    def predict(x: Any) -> Any:
        return x * weight

    def train(x: Any) -> None:
        (x * weight).sum().backward()
        with torch.no_grad():
            weight.sub_(weight.grad)

    x = alice.send(torch.tensor([3.0, 4.0]), bob)
    sy.Plan("predict", predict).build(torch.ones(2)).send(bob).tag("#predict").publish()
    sy.Plan("train", train).build(torch.ones(2)).send(bob).tag("#train").publish()
    bob.flush()
    (found,) = alice.request_search("#predict", bob)
    (training,) = alice.request_search("#train", bob)
    wrapped = hook.attributes.wrapper(x)

    assert found(wrapped).detach().get().tolist() == [3.0, 4.0]
    with pytest.raises(WriteNotPermittedError):
        training(wrapped)


def test_a_plan_of_somebody_else_cannot_be_replaced(hook: Any, bob: Any, alice: Any) -> None:
    there = sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).send(bob)
    bob.flush()

    with pytest.raises(IdNotUniqueError):
        alice.location_of(bob).ask(Store(there.id_at_location, program(RUN, answer=Slot(1))))


def test_a_refused_caller_does_not_run_a_plan(hook: Any, bob: Any) -> None:
    there = sy.Plan("double", lambda x: x * 2).build(torch.ones(2)).send(bob)
    x = torch.ones(2).send(bob)
    bob.flush()
    bob.policy = lambda verb, stored, peer, value: "no calls" if verb == "call" else None

    with pytest.raises(GetNotPermittedError, match="no calls"):
        there(x).get()


# --- failures


def test_the_error_of_a_call_names_the_step_of_the_plan(hook: Any, bob: Any) -> None:
    plan = sy.Plan("root", lambda x: torch.linalg.cholesky(x) + 1).build(torch.eye(2)).send(bob)

    with pytest.raises(RuntimeError) as caught:
        plan((-torch.eye(2)).send(bob)).get()
    assert "in step 1 of 2 of the plan 'root': v0 = torch.linalg.cholesky(x0)" in caught.value.__notes__


def test_a_failed_call_changes_the_state_up_to_the_failed_step(hook: Any, bob: Any) -> None:
    total = torch.zeros(2, 2)

    def add(x: Any) -> Any:
        total.add_(x)
        return torch.linalg.cholesky(x)

    there = sy.Plan("add", add).build(torch.eye(2)).send(bob)
    with pytest.raises(RuntimeError):
        there((-torch.eye(2)).send(bob)).get()

    assert torch.equal(there(torch.eye(2).send(bob)).get(), torch.eye(2))
    there.get()
    assert torch.equal(total, torch.zeros(2, 2))


# --- plans from the wire


def test_a_plan_runs_only_on_tensors_of_its_worker(hook: Any, bob: Any) -> None:
    location = hook.local_worker.location_of(bob)
    location.tell(Store(12, program(RUN, answer=Slot(1))))

    for arg in ("x", [1], 5, None):
        with pytest.raises((TypeError, ValueError)):
            location.ask(RunPlan(12, (arg,), 20))
    x = torch.ones(2).send(bob)
    with pytest.raises(ValueRefusedError, match="is not a plan"):
        location.ask(RunPlan(x.child.id_at_location, (), 20))
