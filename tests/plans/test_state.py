from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.plans.errors import PlanError

from .test_training import OPTIMIZERS, Training, equal

torch = pytest.importorskip("torch")


def overwrite(training: Training) -> None:
    training.model[0].weight.data.fill_(0.5)


def everything(training: Training) -> list[Any]:
    gradients = [parameter.grad for parameter in training.model.parameters()]
    missing = torch.tensor([gradient is None for gradient in gradients])
    states = [list(state.values()) for state in training.optimizer.state.values()]
    tensors = [*training.model.state_dict().values(), *[value for values in states for value in values]]
    return [*tensors, missing, *[gradient for gradient in gradients if gradient is not None]]


def test_a_repeated_send_continues_on_the_worker(bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    plan = sy.Plan("step", remote.step).build(*remote.data[0])
    for x, y in remote.data:
        there = plan.send(bob)
        there(x, y)
        local.step(x, y)
    there.get()
    assert equal(everything(remote), everything(local))


def test_a_repeated_send_sends_what_has_changed_here(bob: Any) -> None:
    remote, local = Training(OPTIMIZERS["sgd"]), Training(OPTIMIZERS["sgd"])
    plan = sy.Plan("step", remote.step).build(*remote.data[0])
    first = plan.send(bob)
    overwrite(remote), overwrite(local)

    there = plan.send(bob)
    there(*remote.data[0])
    local.step(*local.data[0])

    assert there is not first
    with pytest.raises(PlanError, match="its state has changed both here and there"):
        remote.model[0].weight.data.fill_(0.25), plan.send(bob)
    there.get()
    assert equal(everything(remote), everything(local))


def test_a_plan_that_was_recorded_again_does_not_confuse_the_state_on_other_workers(bob: Any, alice: Any) -> None:
    training, one, two = (Training(OPTIMIZERS["adam"]) for _ in range(3))
    plan = sy.Plan("step", training.step).build(*training.data[0])
    on_bob, on_alice = plan.send(bob), plan.send(alice)
    on_bob(*training.data[0])
    on_alice(*training.data[1])
    one.step(*training.data[0])
    two.step(*training.data[1])

    on_bob.get()
    assert equal(everything(training), everything(one))
    plan.send(bob)(*training.data[2])  # The gradients and the state of Adam are new: it is recorded again.
    on_alice.get()

    assert equal(everything(training), everything(two))


def test_a_tensor_that_calls_leave_outside_of_modules_is_not_forgotten_silently(hook: Any, bob: Any) -> None:
    hidden = [torch.zeros(2)]

    def cell(x: Any) -> Any:
        hidden[0] = torch.tanh(x + hidden[0])
        return hidden[0] * 1

    plan = sy.Plan("cell", cell).build(torch.ones(2))
    there = plan.send(bob)
    there(torch.ones(2))
    there.get()

    with pytest.raises(PlanError, match="keep it in a buffer"):
        plan.send(bob)


def test_the_state_of_a_plan_shows_no_values(hook: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    plan = sy.Plan("step", training.step).build(*training.data[0])
    assert "tensor(" not in repr(plan.recording) + repr(plan)


class Warming(torch.nn.Module):
    """A layer that counts its calls, and does something else after some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.seen, self.options = 0, [], {"step": 0}

    def forward(self, x: Any) -> Any:
        self.step += 1
        return x * 2 if self.step > 100 else x


class Logging(Warming):
    def forward(self, x: Any) -> Any:
        self.seen.append(x)
        self.last = x
        self.is_used = True
        return x * 2


class CountingInAttribute(Warming):
    def forward(self, x: Any) -> Any:
        self.options["step"] += 1
        return x * 2 if self.options["step"] > 100 else x


CALLS = 0


def count_globally(x: Any) -> Any:
    global CALLS  # noqa: PLW0603  # as programs do
    CALLS += 1
    return x * 2 if CALLS > 100 else x


@pytest.mark.parametrize("function", [Warming(), CountingInAttribute(), count_globally])
@pytest.mark.parametrize("args_shape", [None, [(-1, 2)]])
def test_a_function_that_counts_its_calls_is_refused(hook: Any, function: Any, args_shape: Any) -> None:
    with pytest.raises(PlanError, match=r"changes '(step|options|CALLS)' in each run; a plan would not count"):
        sy.Plan("count", function, args_shape=args_shape).build(*[] if args_shape else [torch.ones(3, 2)])


def test_a_function_may_keep_what_it_has_seen(hook: Any, bob: Any) -> None:
    plan = sy.Plan("log", Logging()).build(torch.ones(2))

    assert plan.send(bob)(torch.ones(2).send(bob)).get().tolist() == [2, 2]


def test_changes_of_the_state_here_are_used_after_the_plan_is_sent_again(hook: Any, bob: Any) -> None:
    model, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
    plan = sy.Plan("apply", lambda x: model(x)).build(x)
    there, before = plan.send(bob), model(x)

    with torch.no_grad():
        model.weight.mul_(2)
    model.load_state_dict({name: tensor * 3 for name, tensor in model.state_dict().items()})

    assert torch.equal(there(x.send(bob)).get(), before)
    with pytest.raises(PlanError, match="record it again to send what is here"):
        plan.send(bob)
    assert torch.equal(plan.build(x).send(bob)(x.send(bob)).get(), model(x))
