from __future__ import annotations

import copy
import re
from contextlib import nullcontext
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import SyftError
from syft_core.plans.errors import PlanError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402
from tests.plans.traps import DECIDED, FIXED, RIGHT  # noqa: E402

from .owners import owners  # noqa: E402
from .practice import PRACTICE, Momentum  # noqa: E402
from .test_schedules import train_by_hand as train_model_by_hand  # noqa: E402
from .trainers import cross_entropy, make_data, make_model, make_samples, make_trainer, sgd  # noqa: E402


def test_losses_with_tensors_and_several_inputs_are_recorded(hook: Any, bob: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, a: Any, b: Any) -> Any:
            return self.linear(torch.cat([a, b], dim=1))

    x, y = make_samples(20)
    data = fl.FederatedDataset([fl.BaseDataset((x[:, :2], x[:, 2:]), y).send(bob)])
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))

    trainer = make_trainer(hook, data, model=Net(), loss=loss)

    assert trainer.fit(3).losses[-1] < trainer.history.losses[0]
    assert trainer.evaluate()["loss"] > 0


def test_a_batch_norm_that_reads_its_count_is_refused_with_a_way_out(hook: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 3))

    with pytest.raises(
        fl.FederatedError, match=r"the layer '1' .BatchNorm1d. has momentum=None, .* give it a momentum"
    ):
        make_trainer(hook, model=model)
    model[1].eval()
    assert len(make_trainer(hook, model=model).fit(1)) == 1


def test_a_complex_buffer_that_training_changes_is_refused(hook: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)
            self.register_buffer("seen", torch.zeros((), dtype=torch.complex64))

        def forward(self, x: Any) -> Any:
            self.seen += 1
            return self.linear(x)

    with pytest.raises(fl.FederatedError, match="training changes a complex buffer"):
        make_trainer(hook, model=Net())


# --- lengths of batches


def train_by_hand(function: Any, counts: Any, size: int) -> Any:
    """Return the weights after a round of federated averaging with a plain loop of torch."""
    total = 0.0
    for number, count in enumerate(counts):
        model, (x, y) = make_linear(), make_rows(count, number)
        optimizer = sgd(model.parameters())
        for first in range(0, count, size):
            optimizer.zero_grad()
            make_loss(function)(model(x[first : first + size]), y[first : first + size]).backward()
            optimizer.step()
        total = total + torch.cat([p.detach().flatten() for p in model.parameters()]) * (count / sum(counts))
    return total


def make_loss(function: Any) -> Any:
    return lambda output, target: 0.01 * function(output).sum() + ((output - target) ** 2).mean()


def make_linear() -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 4)


def make_rows(count: int, seed: int) -> tuple[Any, Any]:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(count, 4, generator=source), torch.randn(count, 4, generator=source)


def make_lengths(hook: Any, counts: Any, serialize: bool, private: bool = False) -> Any:
    datasets = []
    for number, count in enumerate(counts):
        worker = sy.VirtualWorker(hook, id=f"rows {number}", serialize=serialize)
        parts = make_rows(count, number)
        if private:
            worker.load_data([p.private_tensor(["board"]).tag(t) for p, t in zip(parts, ("#x", "#y"), strict=True)])
            datasets.append(fl.BaseDataset(*[worker.search(tag)[0] for tag in ("#x", "#y")]))
        else:
            datasets.append(fl.BaseDataset(*parts).send(worker))
    return fl.FederatedDataset(datasets)


WAYS = {
    "in process": ((20, 11), 8, {}, "workers"),
    "by wire": ((20, 11), 8, {"serialize": True}, "workers"),
    "stacked": ((11, 20, 20), 8, {}, "stacked"),
    "all at once": ((20, 11, 3), 32, {}, "workers"),
    "private": ((20, 11), 8, {"private": True}, "workers"),
}
TRAPS = {**RIGHT, **DECIDED, **FIXED}
REFUSED = {"a caught error"}


@pytest.mark.parametrize("name", TRAPS)
def test_a_loss_is_right_for_all_lengths_of_batches(hook: Any, name: str) -> None:
    train_and_compare(hook, name, "in process")


@pytest.mark.parametrize("way", ["by wire", "stacked", "private", "all at once"])
@pytest.mark.parametrize(
    "name", ["half by slice", "a maximum of a quotient", "ghost norm", "a branch", "a maximum", "len", "view", "splits"]
)
def test_a_loss_is_right_for_all_lengths_wherever_it_is_trained(hook: Any, name: str, way: str) -> None:
    train_and_compare(hook, name, way)


def train_and_compare(hook: Any, name: str, way: str) -> None:
    counts, size, options, engine = WAYS[way]
    data = make_lengths(hook, counts, options.get("serialize", False), options.get("private", False))
    make = lambda: fl.FederatedTrainer(  # noqa: E731  # short
        make_linear(),
        make_loss(TRAPS[name]),
        sgd,
        data,
        batch_size=size,
        options=fl.Options(shuffle=False, engine=engine, reason="a study" if "private" in options else ""),
    )
    if name in REFUSED:
        with pytest.raises(PlanError, match=r"traps\.py:\d+ "):
            make()
        return
    trainer = make()
    with owners([hook.local_worker.get_worker(id) for id in data.workers]) if "private" in options else nullcontext():
        trainer.fit(1)
    assert not trainer.history[0].left_out
    torch.testing.assert_close(trainer.weights, train_by_hand(TRAPS[name], counts, size), atol=2e-6, rtol=1e-5)


def test_one_recording_serves_all_lengths_for_which_the_same_is_decided(hook: Any) -> None:
    counts = list(range(3, 43))
    data = make_lengths(hook, counts, serialize=False)

    for name, most in (("half by slice", 1), ("a branch", 2), ("a maximum", 2)):
        trainer = fl.FederatedTrainer(make_linear(), make_loss(TRAPS[name]), sgd, data, batch_size=None)
        assert len(trainer._job.train.all) <= most


@pytest.mark.slow
def test_too_many_lengths_are_refused_with_a_line(hook: Any) -> None:
    data = make_lengths(hook, range(1, 80), serialize=False)

    with pytest.raises(fl.FederatedError, match=r"traps\.py:\d+ does something else.*give a `batch_size`"):
        fl.FederatedTrainer(make_linear(), make_loss(lambda x: TRAPS["len"](x)), sgd, data, batch_size=None)


def test_clients_of_a_population_may_have_other_lengths_than_the_first(hook: Any) -> None:
    counts = (20, 3, 11)
    population = fl.Population(3, lambda number: make_rows(counts[number], number))

    trainer = fl.FederatedTrainer(
        make_linear(),
        make_loss(TRAPS["len"]),
        sgd,
        population,
        batch_size=8,
        options=fl.Options(shuffle=False, engine="workers"),
    )
    trainer.fit(1)

    assert not trainer.history[0].left_out
    torch.testing.assert_close(trainer.weights, train_by_hand(TRAPS["len"], counts, 8), atol=2e-6, rtol=1e-5)


# --- what models and losses do besides

PLACES: dict[str, dict[str, Any]] = {
    "in process": {},
    "by wire": {"serialize": True},
    "stacked, if that is possible": {"engine": "stacked"},
    "private": {"private": True},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PRACTICE)
def test_a_program_of_practice_is_trained_as_by_hand(hook: Any, name: str, place: str) -> None:
    make, loss, optimizer = PRACTICE[name]
    options = dict(PLACES[place])
    is_private, serialize = options.pop("private", False), options.pop("serialize", False)
    data, expected = make_data(hook, (20, 13), is_private, serialize), make()
    model = make()

    trainer = make_trainer(
        hook, data, model=model, loss=loss, optimizer=optimizer, batch_size=8, shuffle=False,
        **{"engine": "workers", "reason": "a study" * is_private, **options},
    )  # fmt: skip
    with owners([hook.local_worker.get_worker(id) for id in data.workers]) if is_private else nullcontext():
        history = trainer.fit(1)
    mean = train_model_by_hand(expected, loss, optimizer)

    assert not history[0].left_out
    assert history[0].loss == pytest.approx(mean, abs=1e-6)
    for key, value in expected.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(model.state_dict()[key], value, atol=2e-6, rtol=1e-5)


def test_a_loss_sees_no_old_memory(hook: Any) -> None:
    losses = cross_entropy, lambda output, target: cross_entropy(output, target) + torch.empty(10_000).abs().sum()

    found = [make_trainer(hook, make_data(hook, (20, 13)), loss=loss).fit(1).losses for loss in losses]

    assert found[0] == found[1]


SEEN = torch.zeros(3)
REFUSED_STEPS = {
    "a backward pass": (
        lambda output, target: (output.square().mean().backward(), cross_entropy(output, target))[1],
        r"cannot record the loss: 'torch.Tensor.backward' changes gradients; use `torch.autograd.grad`",
    ),
    "a gradient that is kept": (
        lambda output, target: (output.retain_grad(), cross_entropy(output, target))[1],
        r"cannot record the loss: 'torch.Tensor.retain_grad' changes gradients; use",
    ),
    "a tensor outside of the model": (
        lambda output, target: (SEEN.detach().add_(output.detach().mean(0)), cross_entropy(output + SEEN, target))[1],
        r"changes a tensor that is neither a parameter nor a buffer of the model; register it as a buffer there",
    ),
    "other memory": (
        lambda output, target: cross_entropy(output.as_strided((8, 3), (3, 1)), target[:8]),
        r"cannot record the loss: .*as_strided' may read other memory; use `p.unfold",
    ),
    "a shape by values": (
        lambda output, target: cross_entropy(output, target) + torch.bincount(target).sum(),
        r"calls 'bincount', .*; use `torch.nn.functional.one_hot",
    ),
    "a transform": (
        lambda output, target: torch.vmap(lambda row: row / row.sum())(output).mean(),
        r"cannot use a transform of torch.func on a pointer .*; use torch.autograd.grad",
    ),
}


@pytest.mark.parametrize("name", REFUSED_STEPS)
def test_what_workers_would_refuse_is_refused_when_the_loss_is_recorded(hook: Any, name: str) -> None:
    loss, message = REFUSED_STEPS[name]

    with pytest.raises((SyftError, PlanError), match=message):
        make_trainer(hook, loss=loss)


def test_a_model_that_replaces_the_data_of_a_parameter_is_refused_with_a_way_out(hook: Any) -> None:
    model = Momentum(lambda slow, parameter: setattr(slow, "data", slow.data * 0.9 + parameter.data * 0.1))

    with pytest.raises(
        fl.FederatedError,
        match=r"'torch.Tensor.data.__set__' replaces a tensor; change it in place, e.g. `p.data.copy_",
    ):
        make_trainer(hook, model=model)


class Caching(nn.Module):
    """Makes a tensor in its first call, and keeps it in a dict, an attribute or a buffer."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.layer = kind, nn.Linear(4, 3)
        self.cache: dict[int, Any] = {}
        self.mask = None
        self.register_buffer("kept", None)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        if self.kind == "dict":
            if y.shape[1] not in self.cache:
                self.cache[y.shape[1]] = torch.arange(3.0)
            return y + self.cache[y.shape[1]]
        name = "mask" if self.kind == "attribute" else "kept"
        if getattr(self, name) is None:
            setattr(self, name, torch.arange(3.0))
        return y + getattr(self, name)


@pytest.mark.parametrize(("kind", "line"), [("dict", 4), ("attribute", 8), ("buffer", 8)])
def test_a_model_that_fills_a_cache_is_refused_with_the_line_and_a_way_out_that_works(
    hook: Any, kind: str, line: int
) -> None:
    place = f"{__file__}:{Caching.forward.__code__.co_firstlineno + line}"

    with pytest.raises((fl.FederatedError, PlanError), match=re.escape(place)) as caught:
        make_trainer(hook, model=Caching(kind))

    assert "call of the model" in str(caught.value)
    model = Caching(kind)
    model(torch.zeros(1, 4))
    trainer = make_trainer(hook, make_data(hook, (40, 30)), model=model)
    assert trainer.fit(rounds=2).losses[-1] < trainer.history.losses[0]


class Scale(torch.autograd.Function):
    """Doubles the gradient."""

    @staticmethod
    def forward(_ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(_ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def test_a_hook_in_a_loss_is_refused_and_an_autograd_function_instead_trains(hook: Any) -> None:
    def hooked(output: Any, target: Any) -> Any:
        output.register_hook(lambda gradient: gradient * 2)
        return cross_entropy(output, target)

    data = make_data(hook, (40,))
    with pytest.raises(PlanError, match=r"calls 'register_hook', .*write an autograd function with a `backward`"):
        make_trainer(hook, data, loss=hooked)

    trainer = make_trainer(hook, data, loss=lambda output, target: cross_entropy(Scale.apply(output), target))
    trainer.fit(rounds=1)

    twice = make_trainer(hook, data, optimizer=lambda p: torch.optim.SGD(p, lr=0.2), model=make_model())
    twice.fit(rounds=1)
    for one, other in zip(trainer.model.parameters(), twice.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


class Normalized(nn.Module):
    """Normalizes its input as torchvision does, with constants that are lists."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        constants = [0.1, 0.2, 0.3, 0.4], [2.0] * 4
        mean, std = (torch.as_tensor(each, dtype=x.dtype, device=x.device) for each in constants)
        return self.layer(x.sub(mean.view(1, -1)).div_(std.view(1, -1)))


def test_a_model_that_normalizes_with_constants_is_trained_as_locally(hook: Any) -> None:
    (x, y), model = make_samples(40, 0), Normalized()
    other = copy.deepcopy(model)
    make_trainer(hook, make_data(hook, (40,)), model=model, batch_size=40).fit(1)

    optimizer = sgd(other.parameters())
    cross_entropy(other(x), y).backward()
    optimizer.step()

    torch.testing.assert_close(dict(model.named_parameters()), dict(other.named_parameters()))


class Counting(Normalized):
    """Counts its calls through a view of a buffer, after it has normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        y = super().forward(x)
        self.calls[:1].add_(1.0)
        return y


def test_constants_are_moved_where_the_steps_are_rehearsed(hook: Any) -> None:
    """Otherwise the rehearsal ends before the step that changes the buffer, and the change is lost."""
    model = Counting()

    make_trainer(hook, make_data(hook, (40,)), model=model, batch_size=20).fit(1)

    assert model.calls.tolist() == [2.0, 0.0]
