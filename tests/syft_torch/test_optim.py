from __future__ import annotations

import contextlib
import copy
import inspect
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.optim.optimizer import _global_optimizer_pre_hooks  # noqa: E402

from syft_core.exceptions import NotCollocatedError, OperationNotAllowedError, ValueRefusedError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402
from tests.syft_torch.remote.architectures import differences, train, twins  # noqa: E402

OPTIMIZERS: dict[str, Any] = {
    "SGD": partial(optim.SGD, lr=0.1),
    "SGD with momentum": partial(optim.SGD, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "SGD with nesterov": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adam": partial(optim.Adam, lr=0.1),
    "Adam with amsgrad": partial(optim.Adam, lr=0.1, amsgrad=True, weight_decay=0.1),
    "Adam with a tensor as rate": partial(optim.Adam, lr=torch.tensor(0.1)),
    "AdamW": partial(optim.AdamW, lr=0.1),
    "Adamax": partial(optim.Adamax, lr=0.1),
    "NAdam": partial(optim.NAdam, lr=0.1),
    "RAdam": partial(optim.RAdam, lr=0.1),
    "Adagrad": partial(optim.Adagrad, lr=0.1, lr_decay=0.1),
    "Adadelta": partial(optim.Adadelta, lr=1.0),
    "RMSprop": partial(optim.RMSprop, lr=0.1, centered=True, momentum=0.5),
    "Rprop": partial(optim.Rprop, lr=0.1),
    "ASGD": partial(optim.ASGD, lr=0.1, t0=1),
}
if hasattr(optim, "Muon"):
    OPTIMIZERS["Muon"] = partial(optim.Muon, lr=0.1)
IN_LISTS: dict[str, dict[str, bool]] = {"foreach": {"foreach": True}}


def takes(name: str, options: dict[str, bool]) -> bool:
    if name == "Adam with a tensor as rate" and "foreach" in options:  # torch refuses it
        return False
    return options.keys() <= inspect.signature(OPTIMIZERS[name].func).parameters.keys()


SINGLE = [pytest.param(make, id=name) for name, make in OPTIMIZERS.items()]
LISTS = [
    pytest.param(partial(make, **options), id=f"{name}, {mode}")
    for name, make in OPTIMIZERS.items()
    for mode, options in IN_LISTS.items()
    if takes(name, options)
]


def mlp() -> nn.Module:
    # Muon accepts only matrices.
    return nn.Sequential(nn.Linear(4, 5, bias=False), nn.Tanh(), nn.Linear(5, 2, bias=False))


def data() -> tuple[Any, Any]:
    torch.manual_seed(3)
    return torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 1, 0])


def train_on_a_journey(train: Any, model: Any, optimizer: Any, bob: Any, alice: Any, steps: int) -> None:
    """Train a model locally, on one worker, on another and locally again, with one optimizer."""
    x, y = data()
    train(model, x, y, optimizer, steps=steps)
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer, steps=steps)
    model.move(alice)
    train(model, x.send(alice), y.send(alice), optimizer, steps=steps)
    model.get()
    train(model, x, y, optimizer, steps=steps)


@pytest.mark.parametrize("make", [*SINGLE, *LISTS])
def test_every_optimizer_gives_the_same_bits_on_remote_parameters(make: Any, bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    train(expected, x, y, make(expected.parameters()))

    optimizer = make(model.parameters())
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer)

    assert differences(model.get(), expected) == []


@pytest.mark.parametrize("make", [*SINGLE, *LISTS])
def test_the_state_follows_its_parameters_wherever_they_go(make: Any, bob: Any, alice: Any) -> None:
    model, expected = twins(mlp)
    train(expected, *data(), make(expected.parameters()), steps=8)

    train_on_a_journey(train, model, make(model.parameters()), bob, alice, steps=2)

    assert differences(model, expected) == []
    assert (bob.objects_count, alice.objects_count) == (0, 0)


SPARSE: dict[str, Any] = {
    "SGD": partial(optim.SGD, lr=0.1),
    "SGD with momentum": partial(optim.SGD, lr=0.1, momentum=0.9, foreach=True),
    "SparseAdam": partial(optim.SparseAdam, lr=0.1),
    "Adagrad": partial(optim.Adagrad, lr=0.1),
    "Adagrad, foreach": partial(optim.Adagrad, lr=0.1, foreach=True),
}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in SPARSE.items()])
def test_sparse_gradients_stay_sparse(make: Any, bob: Any) -> None:
    model, expected = twins(lambda: nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Flatten()))
    x, y = torch.tensor([[0], [3], [3], [1]]), torch.tensor([0, 1, 0, 1])
    train(expected, x, y, make(expected.parameters()))

    optimizer = make(model.parameters())
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer)

    assert model[0].weight.grad.is_sparse
    assert torch.equal(model.get()[0].weight, expected[0].weight)


def test_an_optimizer_refuses_the_same_options_on_remote_parameters(bob: Any) -> None:
    for make in (
        partial(optim.Adam, capturable=True),
        partial(optim.ASGD, capturable=True, foreach=True),
        partial(optim.SGD, lr=0.1, differentiable=True),
        partial(optim.Adam, fused=True, differentiable=True),
    ):
        errors = []
        for place in (None, bob):
            model = mlp()
            x, y = data()
            if place is not None:
                model.send(bob)
                x, y = x.send(bob), y.send(bob)
            with pytest.raises((RuntimeError, AssertionError)) as caught:
                train(model, x, y, make(model.parameters()))
            errors.append((type(caught.value), str(caught.value)))
        assert errors[0] == errors[1]


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_a_fused_step_is_refused_with_the_list_form_as_advice(bob: Any, make: Any) -> None:
    model = mlp()
    optimizer = make(model.parameters(), lr=0.1, fused=True)
    x, y = data()
    model.send(bob)
    cross_entropy(model(x.send(bob)), y.send(bob)).backward()
    before = [parameter.copy().get() for parameter in model.parameters()]

    with pytest.raises(OperationNotAllowedError, match=r"use `torch.optim.\w+\(model.parameters\(\), foreach=True\)`"):
        optimizer.step()

    assert all(old.equal(new) for old, new in zip(before, model.get().parameters(), strict=True))


def test_a_differentiable_step_is_differentiated_remotely(bob: Any) -> None:
    gradients = []
    for place in (None, bob):
        weight, rate = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(0.1, requires_grad=True)
        if place is not None:
            weight, rate = weight.send(bob), rate.send(bob)
        moving = weight.clone()
        moving.grad = weight * weight
        optimizer = optim.SGD([moving], lr=0.1, momentum=0.9, differentiable=True)
        optimizer.step()
        (moving * rate).sum().backward()
        gradients.append([t.grad if place is None else t.grad.get() for t in (weight, rate)])
    assert all(map(torch.equal, *gradients))


def test_an_optimizer_may_be_created_after_sending(bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    train(expected, x, y, optim.Adagrad(expected.parameters()))
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optim.Adagrad(model.parameters()))
    assert differences(model.get(), expected) == []


def test_the_state_of_a_parameter_sent_in_place_follows(bob: Any) -> None:
    parameters = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))]
    optimizers = [optim.SGD([parameter], lr=0.1, momentum=0.9) for parameter in parameters]
    for parameter, optimizer in zip(parameters, optimizers, strict=True):
        for place in (None, bob):
            if parameter is parameters[0] and place is not None:
                parameter.send_(place)
            (parameter * parameter).sum().backward()
            optimizer.step()
    assert torch.equal(parameters[0].get_(), parameters[1])


def test_a_parameter_without_dimensions_has_state_too(bob: Any) -> None:
    def scale() -> nn.Module:
        module = nn.Module()
        module.factor = nn.Parameter(torch.tensor(2.0))
        module.forward = lambda x: module.factor * x  # type: ignore[method-assign]
        return module

    model, expected = scale(), scale()
    x = torch.ones(3)
    for twin in (expected, model):
        optimizer = optim.Adam(twin.parameters(), lr=0.1)
        for place in (None, bob):
            if twin is model and place is not None:
                twin.send(place)
            for _ in range(2):
                optimizer.zero_grad()
                twin(x.send(bob) if twin.location else x).sum().backward()
                optimizer.step()
    assert torch.equal(model.get().factor, expected.factor)


def test_a_model_that_moves_between_workers_trains_as_locally(bob: Any, alice: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    local = optim.Adam(expected.parameters(), lr=0.1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    batches = [(x[:3].send(bob), y[:3].send(bob)), (x[3:].send(alice), y[3:].send(alice))]
    for _ in range(3):
        for (data_there, target), here in zip(batches, (slice(0, 3), slice(3, 6)), strict=True):
            train(expected, x[here], y[here], local, steps=1)
            model.send(data_there.location)
            train(model, data_there, target, optimizer, steps=1)
            model.get()
    assert differences(model, expected) == []


class TestTwoWorkers:
    """One optimizer for a model with each half on a different worker."""

    def train(self, make: Any, workers: tuple[Any, Any]) -> Any:
        torch.manual_seed(1)
        halves = nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 2)])
        optimizer = make(
            [{"params": half.parameters(), "lr": rate} for half, rate in zip(halves, (0.1, 0.2), strict=True)]
        )
        x, y = data()
        first, second = workers
        if first is not None:
            halves[0].send(first)
            halves[1].send(second)
            x, y = x.send(first), y.send(second)
        for _ in range(3):
            optimizer.zero_grad()
            middle = halves[0](x).tanh()
            if first is not None:
                middle = middle.move(second, requires_grad=True)
            cross_entropy(halves[1](middle), y).backward()
            optimizer.step()
        return halves, optimizer

    @pytest.mark.parametrize(
        "make", [param for param in (*SINGLE, *LISTS) if param.id is not None and "Muon" not in param.id]
    )
    def test_every_optimizer_steps_on_both_workers(self, make: Any, bob: Any, alice: Any) -> None:
        expected, _ = self.train(make, (None, None))

        halves, optimizer = self.train(make, (bob, alice))

        for half, worker in zip(halves, (bob, alice), strict=True):
            for parameter in half.parameters():
                kept = [value for value in optimizer.state[parameter].values() if isinstance(value, torch.Tensor)]
                assert {value.location for value in kept} <= {worker, None}
            half.get()
        assert differences(halves, expected) == []

    def test_a_list_is_split_by_worker(self, bob: Any, alice: Any) -> None:
        here, there = (
            self.train(lambda groups: optim.SGD([p for g in groups for p in g["params"]], 0.1, foreach=True), place)[0]
            for place in ((None, None), (bob, alice))
        )
        for half in there:
            half.get()
        assert differences(there, here) == []

    def test_a_norm_over_both_workers_is_refused(self, bob: Any, alice: Any) -> None:
        halves, _ = self.train(optim.SGD, (bob, alice))
        with pytest.raises(NotCollocatedError, match="live on 'bob' and 'alice'; move the first one"):
            nn.utils.clip_grad_norm_(halves.parameters(), 0.1)
        nn.utils.clip_grad_value_(halves.parameters(), 0.01)
        for half in halves:
            nn.utils.clip_grad_norm_(half.parameters(), 0.1)


def test_parameters_of_two_precisions_are_not_mixed_in_a_list(bob: Any) -> None:
    model, expected = twins(lambda: nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2).double()]))
    inputs = [torch.ones(1, 2), torch.ones(1, 2).double()]
    for twin in (expected, model):
        given = inputs
        if twin is model:
            twin.send(bob)
            given = [x.send(bob) for x in inputs]
        optimizer = optim.Adam(twin.parameters(), lr=0.1, foreach=True)
        for layer, x in zip(twin, given, strict=True):
            layer(x).sum().backward()
        optimizer.step()
    assert differences(model.get(), expected) == []


def test_state_stays_on_a_worker_to_which_the_model_returns(bob: Any) -> None:
    model = mlp()
    optimizer = optim.Adam(model.parameters())
    x, y = (part.send(bob) for part in data())
    places = []
    for _ in range(2):
        model.send(bob)
        train(model, x, y, optimizer, steps=1)
        model.get()
        places.append([state["exp_avg"].id_at_location for state in optimizer.state.values()])
    assert places[0] == places[1]


class TestStateDict:
    def make_trained(self, bob: Any) -> tuple[Any, Any]:
        model = mlp()
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        model.send(bob)
        x, y = data()
        train(model, x.send(bob), y.send(bob), optimizer)
        return model, optimizer

    def test_the_state_of_remote_parameters_is_remote(self, bob: Any) -> None:
        _model, optimizer = self.make_trained(bob)
        assert {state["exp_avg"].location.id for state in optimizer.state_dict()["state"].values()} == {"bob"}
        assert len(bob.ledger) == 0

    def test_state_can_be_saved_after_get(self, bob: Any) -> None:
        model, optimizer = self.make_trained(bob)
        model.get()
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        assert torch.load(file, weights_only=True)["state"].keys() == {0, 1}
        assert bob.objects_count == 0

    def test_collocate_moves_the_state_at_once(self, bob: Any) -> None:
        model, optimizer = self.make_trained(bob)
        model.get()
        optimizer.collocate()
        assert {type(state["exp_avg"]) for state in optimizer.state.values()} == {torch.Tensor}

    @pytest.mark.parametrize("order", ["load, send", "send, load"])
    def test_a_new_optimizer_continues_from_a_saved_state(self, bob: Any, order: str) -> None:
        x, y = data()
        expected, model = twins(mlp)
        first = optim.Adam(expected.parameters(), lr=0.1)
        train(expected, x, y, first)
        saved, weights = copy.deepcopy(first.state_dict()), copy.deepcopy(expected.state_dict())
        train(expected, x, y, first)

        optimizer = optim.Adam(model.parameters(), lr=0.5)
        if order == "send, load":
            model.send(bob)
        model.load_state_dict(weights)
        optimizer.load_state_dict(saved)
        if order == "load, send":
            model.send(bob)
        train(model, x.send(bob), y.send(bob), optimizer)

        assert differences(model.get(), expected) == []

    def test_loaded_state_is_moved_to_the_parameters(self, bob: Any) -> None:
        x, y = data()
        expected, other = twins(mlp)
        first = optim.Adam(expected.parameters(), lr=0.1)
        train(expected, x, y, first)
        saved = copy.deepcopy(first.state_dict())
        other.load_state_dict(expected.state_dict())
        second = optim.Adam(other.parameters(), lr=0.1)
        other.send(bob)
        train(other, x.send(bob), y.send(bob), optim.SGD(other.parameters(), lr=0.0), steps=1)
        second.step()
        other.load_state_dict(expected.state_dict())
        second.load_state_dict(saved)
        train(expected, x, y, first)
        train(other, x.send(bob), y.send(bob), second)
        assert differences(other.get(), expected) == []


rates = optim.lr_scheduler
SCHEDULES: dict[str, Any] = {
    "StepLR": partial(rates.StepLR, step_size=1, gamma=0.5),
    "MultiStepLR": partial(rates.MultiStepLR, milestones=[1, 2]),
    "LambdaLR": partial(rates.LambdaLR, lr_lambda=lambda epoch: 1 / (1 + epoch)),
    "MultiplicativeLR": partial(rates.MultiplicativeLR, lr_lambda=lambda epoch: 0.5),
    "ExponentialLR": partial(rates.ExponentialLR, gamma=0.5),
    "LinearLR": partial(rates.LinearLR, total_iters=3),
    "ConstantLR": partial(rates.ConstantLR, total_iters=2),
    "PolynomialLR": partial(rates.PolynomialLR, total_iters=3),
    "CosineAnnealingLR": partial(rates.CosineAnnealingLR, T_max=3),
    "CosineAnnealingWarmRestarts": partial(rates.CosineAnnealingWarmRestarts, T_0=2),
    "CyclicLR": partial(rates.CyclicLR, base_lr=0.01, max_lr=0.2, step_size_up=2),
    "OneCycleLR": partial(rates.OneCycleLR, max_lr=0.2, total_steps=4),
    "SWALR": partial(optim.swa_utils.SWALR, swa_lr=0.05, anneal_epochs=2),
    "SequentialLR": lambda optimizer: rates.SequentialLR(
        optimizer, [rates.ConstantLR(optimizer), rates.ExponentialLR(optimizer, gamma=0.5)], milestones=[1]
    ),
    "ChainedScheduler": lambda optimizer: rates.ChainedScheduler(
        [rates.ConstantLR(optimizer), rates.ExponentialLR(optimizer, gamma=0.5)]
    ),
}


class TestAroundTheStep:
    def test_a_step_while_another_thread_clears_the_gradients_breaks_nothing(self, hook: Any) -> None:
        bob = VirtualWorker(hook, id="shared by threads", serialize=False)
        model = mlp().send(bob)
        x, y = (part.send(bob) for part in data())
        stepping, clearing = (optim.SGD(model.parameters(), lr=0.01) for _ in range(2))
        done = threading.Event()

        def clear() -> None:
            while not done.is_set():
                clearing.zero_grad()

        with ThreadPoolExecutor(1) as pool:
            cleared = pool.submit(clear)
            try:
                for _ in range(50):
                    cross_entropy(model(x), y).backward()
                    with contextlib.suppress(TypeError):  # A gradient is cleared between two commands of the step.
                        stepping.step()
            finally:
                done.set()
            cleared.result(60)
        cross_entropy(model(x), y).backward()
        stepping.step()

    @pytest.mark.parametrize("foreach", [None, True, False])
    @pytest.mark.parametrize("norm", [2.0, 1.0, float("inf")])
    def test_gradients_are_clipped_by_norm(self, bob: Any, norm: float, foreach: bool | None) -> None:
        model, expected = twins(mlp)
        x, y = data()
        cross_entropy(expected(x), y).backward()
        total = nn.utils.clip_grad_norm_(expected.parameters(), 0.1, norm_type=norm, foreach=foreach)
        model.send(bob)
        cross_entropy(model(x.send(bob)), y.send(bob)).backward()
        remote = nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=norm, foreach=foreach)
        assert remote.location is bob
        assert torch.equal(remote.get(), total)
        assert differences(model.get(), expected) == []

    @pytest.mark.parametrize("foreach", [None, True, False])
    def test_gradients_are_clipped_by_value(self, bob: Any, foreach: bool | None) -> None:
        model, expected = twins(mlp)
        x, y = data()
        cross_entropy(expected(x), y).backward()
        nn.utils.clip_grad_value_(expected.parameters(), 0.01, foreach=foreach)
        model.send(bob)
        cross_entropy(model(x.send(bob)), y.send(bob)).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.01, foreach=foreach)
        assert differences(model.get(), expected) == []

    @pytest.mark.parametrize("set_to_none", [True, False])
    def test_zero_grad(self, bob: Any, set_to_none: bool) -> None:
        model = mlp()
        optimizer = optim.SGD(model.parameters())
        model.send(bob)
        x, y = data()
        cross_entropy(model(x.send(bob)), y.send(bob)).backward()
        optimizer.zero_grad(set_to_none=set_to_none)
        grad = model.get()[0].weight.grad
        assert grad is None if set_to_none else not grad.any()

    # SequentialLR of torch 2.4 uses a deprecated call.
    @pytest.mark.filterwarnings("ignore:The epoch parameter:UserWarning")
    @pytest.mark.parametrize("rate", [0.1, torch.tensor(0.1)], ids=["number", "tensor"])
    @pytest.mark.parametrize("schedule", [pytest.param(make, id=name) for name, make in SCHEDULES.items()])
    def test_schedulers_change_the_learning_rate(self, bob: Any, schedule: Any, rate: Any) -> None:
        model, expected = twins(mlp)
        x, y = data()
        for twin in (expected, model):
            optimizer = optim.SGD(twin.parameters(), lr=copy.deepcopy(rate), momentum=0.9)
            scheduler = schedule(optimizer)
            given = (x, y)
            if twin is model:
                twin.send(bob)
                given = (x.send(bob), y.send(bob))
            for _ in range(3):
                train(twin, *given, optimizer, steps=1)
                scheduler.step()
        assert differences(model.get(), expected) == []

    def test_reduce_on_plateau_works_with_a_fetched_loss(self, bob: Any) -> None:
        model, expected = twins(mlp)
        x, y = data()
        for twin in (expected, model):
            optimizer = optim.SGD(twin.parameters(), lr=1.0)
            scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, threshold=1.0)
            given = (x, y)
            if twin is model:
                twin.send(bob)
                given = (x.send(bob), y.send(bob))
                with pytest.raises(ValueRefusedError, match="fetch it first"):
                    scheduler.step(cross_entropy(model(given[0]), given[1]))
            for _ in range(3):
                train(twin, *given, optimizer, steps=1)
                loss = cross_entropy(twin(given[0]), given[1]).detach()
                scheduler.step(loss.get() if twin is model else loss)
            assert optimizer.param_groups[0]["lr"] == 0.125
        assert differences(model.get(), expected) == []

    @pytest.mark.parametrize("infinite", [False, True])
    def test_a_gradient_scaler_is_refused_because_it_would_miss_infinite_gradients(
        self, bob: Any, infinite: bool
    ) -> None:
        model = mlp().send(bob)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        x, y = (part.send(bob) for part in data())
        loss = cross_entropy(model(x), y) * (float("inf") if infinite else 1.0)
        scaler.scale(loss).backward()
        with pytest.raises(NotCollocatedError, match="it would implicitly reveal a value from 'bob' by writing it"):
            scaler.step(optimizer)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"use_buffers": True},
            {"multi_avg_fn": optim.swa_utils.get_ema_multi_avg_fn(0.9)},
            {"avg_fn": optim.swa_utils.get_ema_avg_fn(0.9)},
        ],
        ids=["mean", "with buffers", "moving", "moving, one by one"],
    )
    def test_weights_are_averaged_on_the_worker(self, bob: Any, options: Any) -> None:
        averages = []
        for place, twin in zip((None, bob), twins(mlp), strict=True):
            given = data()
            if place is not None:
                twin.send(place)
                given = tuple(part.send(place) for part in given)
            optimizer = optim.SGD(twin.parameters(), lr=0.1)
            average = optim.swa_utils.AveragedModel(twin, **options)
            for _ in range(3):
                train(twin, *given, optimizer, steps=1)
                average.update_parameters(twin)
            averages.append(average.module if place is None else average.module.get())
        assert differences(*averages) == []

    def test_a_closure_returns_the_loss(self, bob: Any) -> None:
        model = mlp().send(bob)
        x, y = (part.send(bob) for part in data())
        optimizer = optim.Adam(model.parameters())

        def closure() -> Any:
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            return loss

        losses = [optimizer.step(closure) for _ in range(3)]

        assert {loss.location for loss in losses} == {bob}
        assert losses[-1].get() < losses[0].get()


class TestUnhooking:
    def test_no_hook_is_left_on_optimizers(self, bob: Any, hook: Any) -> None:
        model = mlp()
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model.send(bob)
        x, y = data()
        train(model, x.send(bob), y.send(bob), optimizer)
        assert optimizer._optimizer_state_dict_pre_hooks
        hook.unhook()
        assert not optimizer._optimizer_state_dict_pre_hooks
        assert not optimizer._optimizer_load_state_dict_post_hooks

    def test_the_global_optimizer_hook_is_removed(self) -> None:
        before = dict(_global_optimizer_pre_hooks)
        with TorchHook(torch):
            assert len(_global_optimizer_pre_hooks) == len(before) + 1
        assert _global_optimizer_pre_hooks == before

    def test_optimizers_of_plain_parameters_get_no_hooks(self, bob: Any) -> None:
        nn.Linear(1, 1).send(bob)
        model = mlp()
        optimizer = optim.Adam(model.parameters())
        train(model, *data(), optimizer)
        assert not optimizer._optimizer_state_dict_pre_hooks


class TestZeroGrad:
    def test_gradients_are_cleared_with_one_command_per_worker(self, bob: Any, alice: Any) -> None:
        models = [mlp().send(bob), mlp().send(alice)]
        for model, worker in zip(models, (bob, alice), strict=True):
            model(torch.rand(3, 4).send(worker)).sum().backward()
        optimizer = optim.SGD([parameter for model in models for parameter in model.parameters()], lr=0.1)
        before = [worker.stats.operations for worker in (bob, alice)]
        optimizer.zero_grad()
        assert [worker.stats.operations for worker in (bob, alice)] == [count + 1 for count in before]
        assert [parameter.grad for model in models for parameter in model.parameters()] == [None] * 4
        optimizer.zero_grad()
        assert [worker.stats.operations for worker in (bob, alice)] == [count + 1 for count in before]

    def test_gradients_of_all_kinds_of_parameters_are_cleared(self, bob: Any, alice: Any) -> None:
        here, there, beyond = mlp(), mlp().send(bob), mlp().send(bob)
        x = torch.rand(3, 4)
        here(x).sum().backward()
        there(x.send(bob)).sum().backward()
        beyond[0].weight.remote_send(alice)
        models = (here, there, beyond)
        optimizer = optim.SGD([parameter for model in models for parameter in model.parameters()], lr=0.1)
        optimizer.zero_grad()
        assert [parameter.grad for model in models for parameter in model.parameters()] == [None] * 6

    def test_gradients_can_be_set_to_zeros(self, bob: Any) -> None:
        model = mlp().send(bob)
        model(torch.rand(3, 4).send(bob)).sum().backward()
        optim.SGD(model.parameters(), lr=0.1).zero_grad(set_to_none=False)
        assert all(torch.equal(parameter.grad.get(), torch.zeros(parameter.shape)) for parameter in model.parameters())
