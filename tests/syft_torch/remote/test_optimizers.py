from __future__ import annotations

import copy
import inspect
import io
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.optim.optimizer import _global_optimizer_pre_hooks  # noqa: E402

from syft_core.exceptions import ValueRefusedError  # noqa: E402
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
IN_LISTS: dict[str, dict[str, bool]] = {"foreach": {"foreach": True}, "fused": {"fused": True}}


def takes(name: str, options: dict[str, bool]) -> bool:
    if name in ("ASGD", "Adam with a tensor as rate"):  # The first has a test of its own, torch refuses the second.
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
    # Muon takes matrices only.
    return nn.Sequential(nn.Linear(4, 5, bias=False), nn.Tanh(), nn.Linear(5, 2, bias=False))


def data() -> tuple[Any, Any]:
    torch.manual_seed(3)
    return torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 1, 0])


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
    x, y = data()
    train(expected, x, y, make(expected.parameters()), steps=8)

    optimizer = make(model.parameters())
    train(model, x, y, optimizer, steps=2)
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer, steps=2)
    model.move(alice)
    train(model, x.send(alice), y.send(alice), optimizer, steps=2)
    model.get()
    train(model, x, y, optimizer, steps=2)

    assert differences(model, expected) == []
    assert (bob.objects_count, alice.objects_count) == (0, 0)


def test_asgd_goes_tensor_by_tensor_on_remote_parameters(bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    train(expected, x, y, optim.ASGD(expected.parameters(), lr=0.1, t0=1, foreach=False))

    optimizer = optim.ASGD(model.parameters(), lr=0.1, t0=1, foreach=True)
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer)

    assert differences(model.get(), expected) == []


@pytest.mark.parametrize("make", [partial(optim.SparseAdam, lr=0.1), partial(optim.SGD, lr=0.1)], ids=["adam", "sgd"])
def test_sparse_gradients_stay_sparse(make: Any, bob: Any) -> None:
    model, expected = twins(lambda: nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Flatten()))
    x, y = torch.tensor([[0], [3], [3], [1]]), torch.tensor([0, 1, 0, 1])
    train(expected, x, y, make(expected.parameters()))

    optimizer = make(model.parameters())
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer)

    assert model[0].weight.grad.is_sparse
    assert torch.equal(model.get()[0].weight, expected[0].weight)


@pytest.mark.parametrize("make", [optim.LBFGS, getattr(optim, "Adafactor", optim.LBFGS)], ids=["lbfgs", "adafactor"])
def test_optimizers_that_read_values_are_refused_with_advice(make: Any, bob: Any) -> None:
    model = mlp()
    optimizer = make(model.parameters())
    model.send(bob)
    x, y = (part.send(bob) for part in data())

    def closure() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    with pytest.raises(ValueRefusedError, match="it would bring a value from 'bob' here unnoticed; fetch it with"):
        optimizer.step(closure)


def test_an_optimizer_made_after_sending_is_as_good(bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    train(expected, x, y, optim.Adagrad(expected.parameters()))
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optim.Adagrad(model.parameters()))
    assert differences(model.get(), expected) == []


def test_a_single_parameter_that_is_sent_in_place_takes_its_state_along(bob: Any) -> None:
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


def test_a_model_that_visits_two_workers_batch_by_batch_learns_as_at_home(bob: Any, alice: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    at_home = optim.Adam(expected.parameters(), lr=0.1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    batches = [(x[:3].send(bob), y[:3].send(bob)), (x[3:].send(alice), y[3:].send(alice))]
    for _ in range(3):
        for (data_there, target), here in zip(batches, (slice(0, 3), slice(3, 6)), strict=True):
            train(expected, x[here], y[here], at_home, steps=1)
            model.send(data_there.location)
            train(model, data_there, target, optimizer, steps=1)
            model.get()
    assert differences(model, expected) == []


def test_state_stays_at_a_worker_to_which_the_model_comes_back(bob: Any) -> None:
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
    def trained(self, bob: Any) -> tuple[Any, Any]:
        model = mlp()
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        model.send(bob)
        x, y = data()
        train(model, x.send(bob), y.send(bob), optimizer)
        return model, optimizer

    def test_the_state_of_remote_parameters_is_remote(self, bob: Any) -> None:
        _model, optimizer = self.trained(bob)
        assert {state["exp_avg"].location.id for state in optimizer.state_dict()["state"].values()} == {"bob"}
        assert len(bob.ledger) == 0

    def test_after_get_it_can_be_saved(self, bob: Any) -> None:
        model, optimizer = self.trained(bob)
        model.get()
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        assert torch.load(file)["state"].keys() == {0, 1}
        assert bob.objects_count == 0

    def test_collocate_brings_it_at_once(self, bob: Any) -> None:
        model, optimizer = self.trained(bob)
        model.get()
        optimizer.collocate()
        assert {type(state["exp_avg"]) for state in optimizer.state.values()} == {torch.Tensor}

    def test_loaded_state_goes_to_the_parameters(self, bob: Any) -> None:
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


class TestAroundTheStep:
    @pytest.mark.parametrize("norm", [2.0, 1.0, float("inf")])
    def test_gradients_are_clipped_by_norm(self, bob: Any, norm: float) -> None:
        model, expected = twins(mlp)
        x, y = data()
        cross_entropy(expected(x), y).backward()
        total = nn.utils.clip_grad_norm_(expected.parameters(), 0.1, norm_type=norm)
        model.send(bob)
        cross_entropy(model(x.send(bob)), y.send(bob)).backward()
        remote = nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=norm)
        assert remote.location is bob
        assert torch.equal(remote.get(), total)
        assert differences(model.get(), expected) == []

    def test_gradients_are_clipped_by_value(self, bob: Any) -> None:
        model, expected = twins(mlp)
        x, y = data()
        cross_entropy(expected(x), y).backward()
        nn.utils.clip_grad_value_(expected.parameters(), 0.01)
        model.send(bob)
        cross_entropy(model(x.send(bob)), y.send(bob)).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
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

    @pytest.mark.parametrize(
        "schedule",
        [
            partial(optim.lr_scheduler.StepLR, step_size=1, gamma=0.5),
            partial(optim.lr_scheduler.CosineAnnealingLR, T_max=3),
            partial(optim.lr_scheduler.OneCycleLR, max_lr=0.2, total_steps=4),
        ],
        ids=["step", "cosine", "one-cycle"],
    )
    def test_schedulers_change_the_rate(self, bob: Any, schedule: Any) -> None:
        model, expected = twins(mlp)
        x, y = data()
        for twin in (expected, model):
            optimizer = optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
            scheduler = schedule(optimizer)
            given = (x, y)
            if twin is model:
                twin.send(bob)
                given = (x.send(bob), y.send(bob))
            for _ in range(3):
                train(twin, *given, optimizer, steps=1)
                scheduler.step()
        assert differences(model.get(), expected) == []


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

    def test_the_hook_common_to_all_optimizers_goes(self) -> None:
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
