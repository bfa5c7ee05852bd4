"""What changes between rounds counts from the next one on: schedules, settings, parts of the model, frozen tensors."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402  # torch may be missing
from torch.optim import lr_scheduler  # noqa: E402  # the same

from syft_torch import federated as fl  # noqa: E402  # the same
from tests.plans.sources import SOURCES, make_sources  # noqa: E402  # the same

from .trainers import cross_entropy, gather_options, make_model, make_samples, sgd  # noqa: E402  # the same

COUNTS, SIZE = (20, 13), 8
TOLERANCE = {"atol": 2e-6, "rtol": 1e-5}


def make_data(hook: Any, serialize: bool = False) -> fl.FederatedDataset:
    workers = [sy.VirtualWorker(hook, id=f"w{number}", serialize=serialize) for number in range(len(COUNTS))]
    datasets = [
        fl.BaseDataset(*make_samples(count, number)).send(worker)
        for number, (count, worker) in enumerate(zip(COUNTS, workers, strict=True))
    ]
    return fl.FederatedDataset(datasets)


def make_trainer(hook: Any, model: nn.Module, loss: Any = cross_entropy, **options: Any) -> fl.FederatedTrainer:
    given = {"optimizer": sgd, "batch_size": SIZE, "shuffle": False, "engine": "workers", **options}
    return fl.FederatedTrainer(
        model, loss, data=make_data(hook, given.pop("serialize", False)), **gather_options(given)
    )


def train_by_hand(model: nn.Module, loss: Any, make: Any, numbers: dict[str, Any] | None = None) -> float:
    """Do one round of federated averaging with a plain loop of torch; return the mean loss."""
    start, total, mean = copy.deepcopy(model.state_dict()), {}, 0.0
    for number, count in enumerate(COUNTS):
        model.load_state_dict(start)
        x, y = make_samples(count, number)
        optimizer = make([parameter for parameter in model.parameters() if parameter.requires_grad])
        optimizer.param_groups[0].update(numbers or {})
        for first in range(0, count, SIZE):
            batch = x[first : first + SIZE], y[first : first + SIZE]
            mean += take_step(model, loss, optimizer, *batch) * len(batch[0]) / sum(COUNTS)
        for name, tensor in model.state_dict().items():
            total[name] = total.get(name, 0) + tensor * (count / sum(COUNTS))
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(total[name])
    for parameter in model.parameters():
        parameter.grad = None
    return mean


def take_step(model: nn.Module, loss: Any, optimizer: Any, x: Any, y: Any) -> float:
    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(model(x.clone()), y)
        value.backward()
        return value

    return optimizer.step(closure).item()  # type: ignore[no-any-return]  # a number


def assert_equal(one: nn.Module, other: nn.Module) -> None:
    torch.testing.assert_close(one.state_dict(), other.state_dict(), **TOLERANCE)


# --- schedules

SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "steps": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "milestones": lambda o: lr_scheduler.MultiStepLR(o, [1, 3]),
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.5),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 6),
    "function": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=8),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)], [2]
    ),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, factor=0.1, threshold=0.1),
}


def train_with_schedule(model: nn.Module, make: Any, make_scheduler: Any, rounds: int) -> list[float]:
    made = make(list(model.parameters()))
    scheduler, losses = make_scheduler(made), []
    for _ in range(rounds):
        numbers = {name: value for name, value in made.param_groups[0].items() if name != "params"}
        losses.append(train_by_hand(model, cross_entropy, make, numbers))
        made.step()  # Without gradients, it does nothing.
        scheduler.step(*[losses[-1]] * isinstance(scheduler, lr_scheduler.ReduceLROnPlateau))
    return losses


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.AdamW(p, lr=0.01)])
def test_a_schedule_trains_as_a_loop_by_hand(hook: Any, name: str, make: Any) -> None:
    model, other = make_model(), make_model()

    history = make_trainer(hook, model, optimizer=make, scheduler=SCHEDULERS[name]).fit(4)

    assert history.losses == pytest.approx(train_with_schedule(other, make, SCHEDULERS[name], 4), abs=1e-6)
    assert_equal(model, other)


@pytest.mark.parametrize("options", [{"serialize": True}, {"engine": "stacked"}, {"buffer": 2}])
def test_a_schedule_reaches_all_engines(hook: Any, options: dict[str, Any]) -> None:
    model, other = make_model(), make_model()

    make_trainer(hook, model, scheduler=SCHEDULERS["exponential"], **options).fit(3)

    train_with_schedule(other, sgd, SCHEDULERS["exponential"], 3)
    if options != {"buffer": 2}:  # There, updates of an older round may count less.
        assert_equal(model, other)


@pytest.mark.parametrize("name", ["plateau", "milestones", "function"])
def test_a_schedule_continues_from_a_checkpoint(hook: Any, name: str, tmp_path: Any) -> None:
    whole, part, rest = make_model(), make_model(), make_model()
    options = {"scheduler": SCHEDULERS[name]}

    make_trainer(hook, whole, **options).fit(5)
    make_trainer(hook, part, **options).fit(2, checkpoint=tmp_path / "run")
    history = make_trainer(hook, rest, **options).fit(5, checkpoint=tmp_path / "run")

    assert len(history) == 5
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), rest.parameters(), strict=True))


@pytest.mark.parametrize(
    "scheduler", [3, lambda o: o, lambda o: lr_scheduler.StepLR(sgd([nn.Parameter(torch.ones(1))]), 1)]
)
def test_a_scheduler_of_another_optimizer_is_refused(hook: Any, scheduler: Any) -> None:
    with pytest.raises(fl.FederatedError, match=r"the scheduler is a .*; pass a function of the optimizer"):
        make_trainer(hook, make_model(), scheduler=scheduler)


# --- changes between rounds


class Activation(nn.Module):
    """A layer with a function in an attribute, as models of transformers have it."""

    def __init__(self) -> None:
        super().__init__()
        self.function = torch.relu

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Changed:
    """A model, a loss and numbers that a program changes between rounds."""

    def __init__(self) -> None:
        self.model = make_model()
        self.model[1] = Activation()
        self.model.insert(2, nn.Dropout(0.0))
        self.model.register_buffer("shift", torch.zeros(3))
        self.model[0].bias.requires_grad_(False)
        self.weight, self.classes = [1.0], torch.ones(3)
        self.numbers = {"lr": 0.1}

    def loss(self, output: Any, target: Any) -> Any:
        kl = (output * output.softmax(1)).mean()
        return cross_entropy(output + self.model.shift, target, self.classes) + self.weight[0] * kl

    def make(self, parameters: Any) -> Any:
        return optim.SGD(parameters, **self.numbers)


def replace_head(found: Changed) -> None:
    torch.manual_seed(7)
    found.model[3] = nn.Linear(8, 3)


def assign_state(found: Changed) -> None:
    state = {name: tensor.clone() * 0.5 for name, tensor in found.model.state_dict().items()}
    found.model.load_state_dict(state, assign=True)
    for name, parameter in found.model.named_parameters():
        parameter.requires_grad_(name != "0.bias")


def freeze(found: Changed) -> None:
    found.model[0].weight.requires_grad_(False)


CHANGES: dict[str, Callable[[Changed], object]] = {
    "a weight in a closure": lambda found: found.weight.__setitem__(0, 3.0),
    "a learning rate in a dict": lambda found: found.numbers.update(lr=0.01),
    "another option": lambda found: found.numbers.update(momentum=0.9),
    "class weights in place": lambda found: found.classes.mul_(torch.tensor([1.0, 5.0, 0.1])),
    "class weights below autograd": lambda found: found.classes.data.mul_(torch.tensor([1.0, 5.0, 0.1])),
    "other class weights": lambda found: setattr(found, "classes", torch.tensor([3.0, 0.1, 1.0])),
    "a buffer": lambda found: found.model.shift.add_(torch.tensor([1.0, 0.0, -1.0])),
    "a frozen bias": lambda found: found.model[0].bias.data.add_(1.0),
    "a frozen layer": freeze,
    "a layer to train": lambda found: found.model[0].bias.requires_grad_(True),
    "dropout": lambda found: setattr(found.model[2], "p", 1.0),
    "a replaced head": replace_head,
    "an assigned state": assign_state,
    "a function in an attribute": lambda found: setattr(found.model[1], "function", torch.sigmoid),
    "another activation": lambda found: found.model.__setitem__(1, nn.Tanh()),
    "weights": lambda found: [parameter.data.mul_(0.5) for parameter in found.model.parameters()],
}


@pytest.mark.parametrize(
    "options", [{}, {"engine": "stacked"}, {"serialize": True}], ids=["alone", "stacked", "by wire"]
)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_from_the_next_round(hook: Any, change: str, options: dict[str, Any]) -> None:
    found, other = Changed(), Changed()
    trainer = make_trainer(hook, found.model, found.loss, optimizer=found.make, **options)
    trainer.fit(1)
    train_by_hand(other.model, other.loss, other.make)

    CHANGES[change](found)
    CHANGES[change](other)
    trainer.fit(2)

    for _ in range(2):
        train_by_hand(other.model, other.loss, other.make)
    assert_equal(found.model, other.model)


@pytest.mark.parametrize("name", SOURCES)
def test_a_change_of_whatever_a_loss_reads_counts_from_the_next_round(hook: Any, name: str) -> None:
    model, other = make_model(), make_model()
    read, change = make_sources()[name]

    def loss(output: Any, target: Any) -> Any:
        return cross_entropy(output, target) * read()

    trainer = make_trainer(hook, model, loss)
    trainer.fit(1)
    train_by_hand(other, loss, sgd)

    change()
    trainer.fit(1)

    train_by_hand(other, loss, sgd)
    assert_equal(model, other)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_in_the_next_evaluation(hook: Any, change: str) -> None:
    found = Changed()
    if "class" in change:  # A mean with weights for classes and one without are no mean together.
        found.weight[0] = 0.0
    trainer = make_trainer(hook, found.model, found.loss, optimizer=found.make)
    trainer.evaluate()
    trainer.fit(1)

    CHANGES[change](found)

    x, y = map(torch.cat, zip(*[make_samples(count, number) for number, count in enumerate(COUNTS)], strict=True))
    found.model.eval()
    with torch.no_grad():
        expected = found.loss(found.model(x), y).item()
    found.model.train()
    assert trainer.evaluate()["loss"] == pytest.approx(expected, abs=1e-5)


def test_what_did_not_change_is_not_recorded_again(hook: Any) -> None:
    calls = itertools.count()

    def loss(output: Any, target: Any) -> Any:
        next(calls)
        return cross_entropy(output, target)

    trainer = make_trainer(hook, make_model(), loss)
    trainer.evaluate()
    before = next(calls)

    trainer.fit(3)
    trainer.evaluate()

    assert next(calls) == before + 1


def test_a_strategy_with_a_state_refuses_other_parameters(hook: Any) -> None:
    model = make_model()
    trainer = make_trainer(hook, model, strategy=fl.FedAdam())
    trainer.fit(1)

    model[0].weight.requires_grad_(False)

    with pytest.raises(fl.FederatedError, match="than before, of which FedAdam keeps a state"):
        trainer.fit(1)


def test_evaluation_leaves_the_mode_of_each_layer(hook: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    model[1].eval()

    make_trainer(hook, model).evaluate()

    assert [layer.training for layer in model.modules()] == [True, True, False, True]
