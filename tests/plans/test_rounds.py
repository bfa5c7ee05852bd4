"""A plan that is sent and fetched again and again trains like the function, whatever changes in between."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import WorkerError
from syft_core.plans.errors import PlanError

from .test_training import OPTIMIZERS, Training, equal

torch = pytest.importorskip("torch")
ROUNDS, CALLS = 3, 2


class LateClearing(Training):
    """Gradients are cleared after the step, so that recording starts with something to clear."""

    def step(self, x: Any, y: Any) -> Any:
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


class Zeros(Training):
    """Gradients are set to zeros in place."""

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss


class Accumulating(Training):
    """Gradients are never cleared."""

    def step(self, x: Any, y: Any) -> Any:
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss


def add_layer(training: Training) -> None:
    torch.manual_seed(5)
    training.model.append(torch.nn.Linear(3, 3))
    training.optimizer.add_param_group({"params": list(training.model[-1].parameters()), "lr": 0.05})


def replace_parameter(training: Training) -> None:
    torch.manual_seed(6)
    training.model[0].weight = torch.nn.Parameter(torch.randn(8, 4))
    training.optimizer.param_groups[0]["params"][0] = training.model[0].weight


def freeze(training: Training) -> None:
    training.model[0].weight.requires_grad_(False)


def freeze_and_clear(training: Training) -> None:
    for parameter in training.model[0].parameters():
        parameter.requires_grad, parameter.grad = False, None


def set_rate(training: Training) -> None:
    training.optimizer.param_groups[0]["lr"] *= 0.5


def run_scheduler(training: Training) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Torch misses the steps of the optimizer, which were on the worker.
        torch.optim.lr_scheduler.StepLR(training.optimizer, 1, 0.5).step()


def train_locally(training: Training) -> None:
    Training.step(training, *training.data[-1])


def backward_locally(training: Training) -> None:
    training.model(training.data[-1][0]).sum().backward()


def new_optimizer(training: Training) -> None:
    training.optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1, momentum=0.9)


def reload(training: Training) -> None:
    training.optimizer.load_state_dict(training.optimizer.state_dict())
    training.model.load_state_dict(training.model.state_dict())


def set_dropout(training: Training) -> None:
    training.model[1].momentum, training.model[1].eps = 0.3, 1e-3


def overwrite(training: Training) -> None:
    training.model[0].weight.data.fill_(0.5)


CHANGES: dict[str, Any] = {
    "nothing": lambda training: None,
    "gradients cleared": lambda training: training.optimizer.zero_grad(),
    "gradients zeroed": lambda training: training.optimizer.zero_grad(set_to_none=False),
    "trained locally": train_locally,
    "gradients added locally": backward_locally,
    "evaluation mode": lambda training: training.model.eval(),
    "a layer in evaluation mode": lambda training: training.model[1].eval(),
    "parameter frozen": freeze,
    "parameters frozen and cleared": freeze_and_clear,
    "learning rate": set_rate,
    "scheduler": run_scheduler,
    "weight decay": lambda training: training.optimizer.param_groups[0].update(weight_decay=0.1),
    "optimizer state removed": lambda training: training.optimizer.state.clear(),
    "optimizer replaced": new_optimizer,
    "parameter added": add_layer,
    "parameter replaced": replace_parameter,
    "state loaded": reload,
    "settings of a layer": set_dropout,
    "weights overwritten": overwrite,
    "statistics reset": lambda training: training.model[1].reset_running_stats(),
}
KINDS: dict[str, Any] = {"first": Training, "last": LateClearing, "zeros": Zeros, "never": Accumulating}


def everything(training: Training) -> list[Any]:
    gradients = [parameter.grad for parameter in training.model.parameters()]
    missing = torch.tensor([gradient is None for gradient in gradients])
    states = [list(state.values()) for state in training.optimizer.state.values()]
    tensors = [*training.model.state_dict().values(), *[value for values in states for value in values]]
    return [*tensors, missing, *[gradient for gradient in gradients if gradient is not None]]


def run_rounds(worker: Any, remote: Training, local: Training, change: Any) -> None:
    plan = sy.Plan("step", remote.step).build(*remote.data[0])
    for number in range(ROUNDS):
        there = plan.send(worker)
        for x, y in remote.data[:CALLS]:
            there(x, y)
            local.step(x, y)
        there.get()
        assert equal(everything(remote), everything(local)), number
        change(remote), change(local)


@pytest.mark.parametrize("change", CHANGES)
def test_rounds_train_with_the_bits_of_the_function(bob: Any, change: str) -> None:
    run_rounds(bob, Training(OPTIMIZERS["dampened"]), Training(OPTIMIZERS["dampened"]), CHANGES[change])


@pytest.mark.parametrize(("name", "kind"), [*[(name, "first") for name in OPTIMIZERS], *[("adam", k) for k in KINDS]])
def test_rounds_of_every_optimizer_train_with_the_bits_of_the_function(hook: Any, name: str, kind: str) -> None:
    worker = sy.VirtualWorker(hook, id="wire", serialize=True)
    run_rounds(worker, KINDS[kind](OPTIMIZERS[name]), KINDS[kind](OPTIMIZERS[name]), CHANGES["gradients cleared"])


REMOTE_CHANGES = [
    "nothing", "gradients cleared", "gradients zeroed", "gradients added locally", "evaluation mode", "learning rate",
    "parameter frozen", "weights overwritten",
]  # fmt: skip


@pytest.mark.parametrize("change", REMOTE_CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_on_a_model_on_the_worker_are_right_or_refused(bob: Any, kind: str, change: str) -> None:
    """The model is changed with commands of its own between the calls of a plan."""
    remote, local = KINDS[kind](OPTIMIZERS["momentum"]), KINDS[kind](OPTIMIZERS["momentum"])
    remote.model.send(bob)
    remote.data = [(x.send(bob), y.send(bob)) for x, y in remote.data]
    there = sy.Plan("step", remote.step).build(*remote.data[0]).send(bob)

    for batch, own in zip(remote.data[:3], local.data, strict=False):
        try:
            there(*batch)
        except PlanError:
            break
        local.step(*own)
        CHANGES[change](remote), CHANGES[change](local)
    else:
        assert change not in ("learning rate", "evaluation mode", "parameter frozen")

    remote.model.get()
    expected = list(local.model.state_dict().values())
    assert equal(list(remote.model.state_dict().values()), expected)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_rounds_on_a_model_that_stays_on_the_worker_train_with_the_bits_of_the_function(bob: Any, name: str) -> None:
    remote, local = Training(OPTIMIZERS[name]), Training(OPTIMIZERS[name])
    remote.model.send(bob)
    remote.data = [(x.send(bob), y.send(bob)) for x, y in remote.data]
    plan = sy.Plan("step", remote.step).build(*remote.data[0])
    for batch, own in zip(remote.data, local.data, strict=True):
        there = plan.send(bob)
        there(*batch)
        there.get()
        local.step(*own)
    remote.model.get()
    remote.optimizer.collocate()
    assert equal(everything(remote), everything(local))


@pytest.mark.parametrize("change", [set_rate, set_dropout, add_layer, CHANGES["evaluation mode"]])
def test_a_setting_that_changes_between_calls_is_refused(bob: Any, change: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    there = sy.Plan("step", training.step).build(*training.data[0]).send(bob)
    there(*training.data[0])

    change(training)

    with pytest.raises(PlanError, match="changed after it was recorded; undo the change, or fetch the plan"):
        there(*training.data[1])


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_plan_does_not_leave_out_the_hooks_of_tensors(bob: Any, register: str) -> None:
    training = Training(OPTIMIZERS["sgd"])
    plan = sy.Plan("step", training.step).build(*training.data[0])
    there = plan.send(bob)
    there(*training.data[0])
    handle = getattr(training.model[0].weight, register)(lambda _: None)

    with pytest.raises(PlanError, match="'hooks of a tensor'"):
        there(*training.data[0])
    there.get()
    for record in (lambda: plan.send(bob), lambda: sy.Plan("other", training.step).build(*training.data[0])):
        with pytest.raises(WorkerError, match="cannot move a tensor with hooks"):
            record()

    handle.remove()
    plan.send(bob)(*training.data[0])


def test_a_state_that_does_not_fit_the_examples_any_more_is_refused_with_advice(hook: Any, bob: Any) -> None:
    training = Training(OPTIMIZERS["sgd"])
    plan = sy.Plan("step", training.step).build(*training.data[0])
    training.model.double()

    with pytest.raises(RuntimeError, match="dtype") as caught:
        plan.send(bob)

    assert caught.value.__notes__[0].startswith("the plan 'step' was recorded again, because its state has changed")
    plan.build(training.data[0][0].double(), training.data[0][1]).send(bob)
