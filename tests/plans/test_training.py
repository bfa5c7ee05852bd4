"""A plan trains with the bits of the original function, with one message per call."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest

import syft_core as sy
from syft_core.serde import serialize as to_bytes

torch = pytest.importorskip("torch")

OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.1),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "dampened": partial(torch.optim.SGD, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "nesterov": partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "adam": partial(torch.optim.Adam, lr=0.01),
    "adam one by one": partial(torch.optim.Adam, lr=0.01, foreach=False),
    "adamw": partial(torch.optim.AdamW, lr=0.01, amsgrad=True),
    "nadam": partial(torch.optim.NAdam, lr=0.01),
    "adagrad": partial(torch.optim.Adagrad, lr=0.01, lr_decay=0.1),
    "rmsprop": partial(torch.optim.RMSprop, lr=0.01, momentum=0.5),
}
BATCHES = 5


class Training:
    """The same model trained by a function, here, and by its plan, on a worker."""

    def __init__(self, make_optimizer: Any) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
        )
        self.optimizer = make_optimizer(self.model.parameters())
        self.data = [(torch.randn(5, 4), torch.randint(3, (5,))) for _ in range(BATCHES)]

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def tensors(self) -> list[Any]:
        state = self.optimizer.state_dict()["state"]
        values = [value for entry in state.values() for value in entry.values() if isinstance(value, torch.Tensor)]
        return [*self.model.state_dict().values(), *values]


def equal(one: list[Any], two: list[Any]) -> bool:
    return len(one) == len(two) and all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_plan_trains_with_the_bits_of_the_function(bob: Any, name: str) -> None:
    remote, local = Training(OPTIMIZERS[name]), Training(OPTIMIZERS[name])
    plan = sy.Plan("step", remote.step).build(*remote.data[0])
    there = plan.send(bob)

    losses = [there(x.send(bob), y.send(bob)) for x, y in remote.data]

    expected = [local.step(x, y).detach() for x, y in local.data]
    assert equal([loss.get() for loss in losses], expected)
    assert there.get() is plan
    assert equal(remote.tensors(), local.tensors())


def test_a_fetched_plan_goes_on_where_the_worker_stopped(bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    there = sy.Plan("step", remote.step).build(*remote.data[0]).send(bob)
    for x, y in remote.data:
        there(x.send(bob), y.send(bob))
        local.step(x, y)

    plan = there.get()
    plan(*remote.data[0])
    again = plan.build(*remote.data[0]).send(bob)
    again(*remote.data[1])
    again.get()

    local.step(*local.data[0])
    local.step(*local.data[1])
    assert equal(remote.tensors(), local.tensors())


def test_a_plan_trains_a_model_that_is_on_the_worker(bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["momentum"]), Training(OPTIMIZERS["momentum"])
    remote.model.send(bob)
    data = [(x.send(bob), y.send(bob)) for x, y in remote.data]
    there = sy.Plan("step", remote.step).build(*data[0]).send(bob)

    for (x, y), batch in zip(local.data, data, strict=True):
        local.step(x, y)
        there(*batch)

    remote.model.get()
    assert equal(list(remote.model.state_dict().values()), list(local.model.state_dict().values()))


def test_an_epoch_is_one_message_of_a_few_kilobytes(bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["sgd"]), Training(OPTIMIZERS["sgd"])
    x, y = torch.cat([x for x, _ in remote.data]), torch.cat([y for _, y in remote.data])

    def epoch(x: Any, y: Any) -> Any:
        for start in range(0, len(x), 5):
            loss = remote.step(x[start : start + 5], y[start : start + 5])
        return loss

    plan = sy.Plan("epoch", epoch).build(x, y)
    there, data = plan.send(bob), (x.send(bob), y.send(bob))
    with sy.trace() as trace:
        there(*data)

    for batch in local.data:
        local.step(*batch)
    there.get()
    assert [event.kind for event in trace] == ["RunPlan"]
    assert len(to_bytes(sy.Plan("step", remote.step).build(*remote.data[0]).program)) < 4_000
    assert equal(remote.tensors(), local.tensors())


def test_the_state_differs_on_each_worker(bob: Any, alice: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    both = sy.Plan("step", training.step).build(*training.data[0]).send(bob, alice)
    twice, once = copy.deepcopy(training), copy.deepcopy(training)

    for worker, calls in ((bob, 2), (alice, 1)):
        for _ in range(calls):
            loss = both(*[part.send(worker) for part in training.data[0]])
        assert loss.location.id == worker.id

    twice.step(*training.data[0]), twice.step(*training.data[0]), once.step(*training.data[0])
    for worker, expected in ((bob, twice), (alice, once)):
        weight = bob.id and both.child[worker.id].state[0].copy().get()
        assert torch.equal(weight, expected.model[0].weight)


def test_a_call_does_not_wait(hook: Any) -> None:
    worker = sy.VirtualWorker(hook, id="wire", serialize=True)
    training = Training(OPTIMIZERS["adam"])
    there = sy.Plan("step", training.step).build(*training.data[0]).send(worker)
    data = [(x.send(worker), y.send(worker)) for x, y in training.data]
    there(*data[0])
    location = hook.local_worker.location_of(worker)
    waits = location.waits

    losses = [there(*batch) for batch in data[1:]]

    assert [tuple(loss.shape) for loss in losses] == [()] * (BATCHES - 1)
    assert location.waits == waits


def test_a_call_within_autocast_computes_as_recorded(hook: Any, bob: Any) -> None:
    there, x = sy.Plan("square", lambda x: x @ x).build(torch.eye(2)).send(bob), torch.eye(2).send(bob)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = there(x)

    assert result.dtype == torch.float32
    assert result.get().dtype == torch.float32


def test_random_operations_draw_anew_in_each_call(hook: Any, bob: Any) -> None:
    plan = sy.Plan("noise", lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand(100)).build(torch.ones(100))
    there, x = plan.send(bob), torch.ones(100).send(bob)

    assert not torch.equal(there(x).get(), there(x).get())


def test_a_tensor_that_a_call_leaves_for_the_next_is_state(hook: Any, bob: Any) -> None:
    hidden = [torch.zeros(2)]

    def cell(x: Any) -> Any:
        hidden[0] = torch.tanh(x + hidden[0])
        return hidden[0] * 1

    there = sy.Plan("cell", cell).build(torch.ones(2)).send(bob)
    hidden[0] = torch.zeros(2)
    x = torch.tensor([0.1, 0.2])

    assert equal([there(x.send(bob)).get() for _ in range(3)], [cell(x) for _ in range(3)])


def test_results_are_part_of_a_graph_on_the_worker(hook: Any, bob: Any) -> None:
    there = sy.Plan("square", lambda x: (x * x).sum()).build(torch.ones(2)).send(bob)
    x = torch.tensor([1.0, 2.0], requires_grad=True).send(bob)

    there(x).backward()

    assert x.grad.get().tolist() == [2.0, 4.0]


def test_a_recurrent_model_is_recorded_several_times_while_the_plans_exist(hook: Any) -> None:
    model = torch.nn.GRU(1, 5, batch_first=True)
    inputs = [torch.randn(length, 4, 1) for length in (16, 8)]

    plans = [sy.Plan("run", lambda x: model(x)[0]).build(x) for x in inputs]

    for plan, x in zip(plans, inputs, strict=True):
        assert torch.equal(plan(x), model(x)[0])


def test_a_recurrent_model_trains_as_a_plan(bob: Any) -> None:
    class Recurrent(Training):
        def __init__(self) -> None:
            super().__init__(OPTIMIZERS["adam"])
            self.model = torch.nn.ModuleDict({"gru": torch.nn.GRU(4, 6), "out": torch.nn.Linear(6, 3)})
            self.optimizer = OPTIMIZERS["adam"](self.model.parameters())

        def step(self, x: Any, y: Any) -> Any:
            self.optimizer.zero_grad()
            hidden, _ = self.model["gru"](x)
            loss = torch.nn.functional.cross_entropy(self.model["out"](hidden), y)
            loss.backward()
            self.optimizer.step()
            return loss

    torch.manual_seed(0)
    local = Recurrent()
    remote = Recurrent()
    remote.model.load_state_dict(local.model.state_dict())
    local.step(*local.data[0])  # After a call, a recurrent layer has weak references to its weights.
    remote.step(*remote.data[0])
    there = sy.Plan("step", remote.step).build(*remote.data[0]).send(bob)
    for x, y in remote.data:
        there(x.send(bob), y.send(bob))
        local.step(x, y)

    there.get()
    assert equal(remote.tensors(), local.tensors())


def test_the_objects_of_other_workers_are_not_state_of_a_plan(hook: Any, bob: Any) -> None:
    """A remote model refers to its location, through which all workers of the process can be reached."""
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    remote.model.send(bob)
    data = [(x.send(bob), y.send(bob)) for x, y in remote.data]
    other = sy.VirtualWorker(hook, id="other")
    kept = [torch.ones(2).send(other), torch.ones(2, requires_grad=True).send(bob)]
    before = [worker.get_obj(p.id_at_location) for worker, p in zip((other, bob), kept, strict=True)]

    plan = sy.Plan("step", remote.step).build(*data[0])

    state = len(remote.tensors())
    assert len(plan.parameters()) <= state
    assert [worker.get_obj(p.id_at_location) for worker, p in zip((other, bob), kept, strict=True)] == before
    there = plan.send(bob)
    for (x, y), batch in zip(local.data, data, strict=True):
        local.step(x, y)
        there(*batch)
    there.get()
    remote.model.get()
    remote.optimizer.collocate()
    assert equal(remote.tensors(), local.tensors())


def test_a_plan_keeps_gradients_that_are_replaced(bob: Any) -> None:
    class Twice(Training):
        def step(self, x: Any, y: Any) -> Any:
            kept = []
            for part in (slice(0, 3), slice(2, 5)):
                self.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.model(x[part]), y[part]).backward()
                kept.append([parameter.grad for parameter in self.model.parameters()])
            for parameter, *gradients in zip(self.model.parameters(), *kept, strict=True):
                parameter.grad = gradients[0] - 2 * gradients[1]
            self.optimizer.step()
            return kept[0][0].sum()

    remote, local = Twice(OPTIMIZERS["momentum"]), Twice(OPTIMIZERS["momentum"])
    there = sy.Plan("step", remote.step).build(*remote.data[0]).send(bob)

    losses = [there(x.send(bob), y.send(bob)).get() for x, y in remote.data]

    assert equal(losses, [local.step(x, y) for x, y in local.data])
    there.get()
    assert equal(remote.tensors(), local.tensors())
