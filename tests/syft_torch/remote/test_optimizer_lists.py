"""Optimizers use lists for remote parameters by default if that gives the same bits."""

from __future__ import annotations

import copy
import inspect
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402
from torch.nn.functional import mse_loss  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor  # noqa: E402
from tests.syft_torch.remote.architectures import differences, train, twins  # noqa: E402

LISTED: dict[str, Any] = {
    "SGD": partial(optim.SGD, lr=0.1),
    "SGD with decay": partial(optim.SGD, lr=0.1, weight_decay=0.01),
    "SGD with momentum": partial(optim.SGD, lr=0.1, momentum=0.9, dampening=0.1),
    "SGD with nesterov and decay": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD with nesterov, maximizing": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adam": partial(optim.Adam, lr=0.1),
    "Adam with amsgrad": partial(optim.Adam, lr=0.1, amsgrad=True, weight_decay=0.1, maximize=True),
    "AdamW": partial(optim.AdamW, lr=0.1),
    "AdamW with amsgrad": partial(optim.AdamW, lr=0.1, amsgrad=True),
    "Adagrad": partial(optim.Adagrad, lr=0.1),
    "Adagrad with decay": partial(optim.Adagrad, lr=0.1, lr_decay=0.1, weight_decay=0.1),
    "Adadelta": partial(optim.Adadelta, lr=0.7),
    "Adamax": partial(optim.Adamax, lr=0.1, weight_decay=0.1),
    "RMSprop": partial(optim.RMSprop, lr=0.1),
    "RMSprop, centered": partial(optim.RMSprop, lr=0.1, centered=True, momentum=0.5, weight_decay=0.1),
    "Rprop": partial(optim.Rprop, lr=0.1),
}
SINGLE: dict[str, Any] = {
    "NAdam": optim.NAdam,
    "RAdam": optim.RAdam,
    "ASGD": optim.ASGD,
    "SGD with nesterov": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "Adam with a tensor as rate": partial(optim.Adam, lr=torch.tensor(0.1)),
    "RMSprop with a tensor as rate": partial(optim.RMSprop, lr=torch.tensor(0.1)),
    "foreach=False": partial(optim.Adam, foreach=False),
    "fused=False": partial(optim.Adam, fused=False),
}
if "Tensor" in str(inspect.signature(optim.Adam).parameters["betas"].annotation):  # since torch 2.6
    SINGLE["Adam with tensors as betas"] = partial(optim.Adam, betas=(torch.tensor(0.9), torch.tensor(0.99)))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def data() -> tuple[Any, Any]:
    torch.manual_seed(3)
    return torch.randn(16, 4), torch.randn(16, 1)


def parameters_of(makers: dict[str, Any]) -> list[Any]:
    return [pytest.param(make, id=name) for name, make in makers.items()]


def operations_of(optimizer: Any) -> list[str]:
    """Take a step, and return the operations that workers executed."""
    with sy.trace() as trace:
        optimizer.step()
    return [event.operation for event in trace.events]


def steps_in_lists(optimizer: Any) -> bool:
    return any(operation.startswith("_foreach_") for operation in operations_of(optimizer))


def give_gradients(parameters: Any) -> None:
    """Give every parameter, local or remote, a gradient of the same values."""
    for parameter in parameters:
        (parameter * parameter).abs().sum().backward()


@pytest.mark.parametrize("make", parameters_of(LISTED))
def test_a_list_step_gives_the_same_bits_as_a_local_single_step(make: Any, bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    local, optimizer = make(expected.parameters()), make(model.parameters())
    train(expected, x, y, local, loss=mse_loss, steps=5)

    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer, loss=mse_loss, steps=5)

    assert steps_in_lists(optimizer)
    local.step()
    assert differences(model.get(), expected) == []
    for state, wanted in zip(*(o.state_dict()["state"].values() for o in (optimizer, local)), strict=True):
        assert state.keys() == wanted.keys()
        assert all(torch.equal(torch.as_tensor(state[name]), torch.as_tensor(wanted[name])) for name in state)


@pytest.mark.parametrize("make", parameters_of(SINGLE))
def test_lists_are_not_used_where_results_would_differ_or_the_user_chose(make: Any, bob: Any) -> None:
    model, expected = twins(mlp)
    x, y = data()
    local, optimizer = make(expected.parameters()), make(model.parameters())
    train(expected, x, y, local, loss=mse_loss)

    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer, loss=mse_loss)

    assert not steps_in_lists(optimizer)
    local.step()
    assert differences(model.get(), expected) == []


with_momentum = partial(optim.SGD, lr=0.1, momentum=0.9)


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        *((make, dtype) for make in (optim.Adam, optim.Adagrad) for dtype in (torch.float16, torch.bfloat16)),
        *((with_momentum, dtype) for dtype in (torch.float16, torch.bfloat16, torch.complex64)),
    ],
)
def test_half_and_complex_parameters_do_not_use_lists(make: Any, dtype: Any, bob: Any) -> None:
    there, here = ([nn.Parameter(torch.arange(1, 4).to(dtype) / 3)] for _ in range(2))
    local, optimizer = make(here), make(there)
    there[0].send_(bob)
    for _ in range(2):
        give_gradients([*there, *here])
        local.step()
        assert not steps_in_lists(optimizer)
    assert torch.equal(there[0].get_(), here[0])


def test_float64_parameters_use_lists(bob: Any) -> None:
    there, here = ([nn.Parameter(torch.arange(1, 4).double() / 3)] for _ in range(2))
    local, optimizer = optim.Adam(here), optim.Adam(there)
    there[0].send_(bob)
    give_gradients([*there, *here])
    local.step()
    assert steps_in_lists(optimizer)
    assert torch.equal(there[0].get_(), here[0])


MOST_MESSAGES = {"SGD": 2, "SGD with momentum": 4, "Adam": 13, "AdamW": 14, "RMSprop": 10, "Adagrad": 10}
"""For a step with existing state; one message asks for the gradients."""


def messages_of_a_step(model: Any, make: Any, bob: Any) -> int:
    optimizer = make(model.send(bob).parameters())
    x, y = (part.send(bob) for part in data())
    train(model, x, y, optimizer, loss=mse_loss, steps=2)
    mse_loss(model(x), y).backward()
    before = bob.stats.messages
    optimizer.step()
    return int(bob.stats.messages - before)


@pytest.mark.parametrize("name", MOST_MESSAGES)
def test_a_step_takes_few_messages(name: str, bob: Any) -> None:
    assert messages_of_a_step(mlp(), LISTED[name], bob) <= MOST_MESSAGES[name]


@pytest.mark.parametrize("name", MOST_MESSAGES)
def test_a_larger_model_takes_no_more_messages(name: str, bob: Any) -> None:
    large = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), mlp())
    assert messages_of_a_step(large, LISTED[name], bob) == messages_of_a_step(mlp(), LISTED[name], bob)


def test_the_choice_of_lists_is_not_stored_in_param_groups(bob: Any) -> None:
    model = mlp()
    optimizer = optim.AdamW(model.parameters())
    groups = copy.deepcopy(optimizer.state_dict()["param_groups"])
    x, y = data()
    model.send(bob)
    train(model, x.send(bob), y.send(bob), optimizer, loss=mse_loss)
    assert optimizer.param_groups[0]["foreach"] is None
    assert optimizer.state_dict()["param_groups"] == groups

    model.get()
    mse_loss(model(x), y).backward()
    with Recorded() as local:
        optimizer.step()

    assert optimizer.state_dict()["param_groups"] == groups
    assert not [name for name in local.names if name.startswith("_foreach_")]


class Recorded(TorchFunctionMode):
    """Records the names of torch's functions that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_each_worker_gets_its_own_list(bob: Any, alice: Any) -> None:
    halves, expected = twins(lambda: nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 2)]))
    local, optimizer = optim.Adam(expected.parameters()), optim.Adam(halves.parameters())
    halves[0].send(bob)
    halves[1].send(alice)
    for _ in range(2):
        give_gradients([*halves.parameters(), *expected.parameters()])
        local.step()
        operations = operations_of(optimizer)
    assert operations.count("_foreach_lerp_") == 2
    for half in halves:
        half.get()
    assert differences(halves, expected) == []


def test_a_group_of_local_and_remote_parameters_does_not_use_lists(bob: Any) -> None:
    halves, expected = twins(lambda: nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 2)]))
    local, optimizer = optim.Adam(expected.parameters()), optim.Adam(halves.parameters())
    halves[0].send(bob)
    for _ in range(2):
        give_gradients([*halves.parameters(), *expected.parameters()])
        local.step()
        assert not steps_in_lists(optimizer)
    halves[0].get()
    assert differences(halves, expected) == []


def test_a_group_of_local_parameters_does_not_affect_other_groups(bob: Any) -> None:
    halves = nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 2)])
    optimizer = optim.Adam([{"params": half.parameters()} for half in halves])
    halves[0].send(bob)
    give_gradients(halves.parameters())
    assert steps_in_lists(optimizer)


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_parameters_without_gradients_are_skipped(make: Any, bob: Any) -> None:
    model, expected = twins(mlp)
    local, optimizer = (make(m.parameters(), lr=0.1) for m in (expected, model))
    model.send(bob)
    for trained in (slice(1, 3), slice(0, 4), slice(0, 0)):
        for twin, stepping in ((model, optimizer), (expected, local)):
            stepping.zero_grad()
            give_gradients(list(twin.parameters())[trained])
            stepping.step()
    assert differences(model.get(), expected) == []


def test_a_moved_model_uses_lists_again(bob: Any, alice: Any) -> None:
    model = mlp().send(bob).move(alice)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    give_gradients(model.parameters())
    assert steps_in_lists(optimizer)


def test_parameters_under_opaque_layers_do_not_use_lists(bob: Any) -> None:
    weight = PlusIsMinusTensor().on(torch.ones(3)).send(bob)
    weight.grad = torch.ones(3).send(bob)
    optim.SGD([weight], lr=0.5).step()
    assert torch.equal(weight.get().child.child, torch.full((3,), 1.5))


class Halved(optim.SGD):
    """A third-party optimizer that collects the gradients as torch does, and takes steps of its own."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            params: list[Any] = []
            grads: list[Any] = []
            self._init_group(group, params, grads, [])
            for parameter, gradient in zip(params, grads, strict=True):
                parameter.sub_(gradient, alpha=group["lr"] / 2)


def test_an_optimizer_that_collects_gradients_takes_its_own_steps(bob: Any) -> None:
    model, expected = twins(mlp)
    local, optimizer = (Halved(m.parameters(), lr=0.1) for m in (expected, model))
    model.send(bob)
    give_gradients([*model.parameters(), *expected.parameters()])
    local.step()
    optimizer.step()
    assert differences(model.get(), expected) == []


class Descent(optim.Optimizer):
    """A third-party optimizer without a list form."""

    def step(self, closure: Any = None) -> None:
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.sub_(parameter.grad, alpha=group["lr"])


def test_third_party_optimizers_do_not_use_lists(bob: Any) -> None:
    model, expected = twins(mlp)
    local, optimizer = (Descent(m.parameters(), {"lr": 0.1}) for m in (expected, model))
    model.send(bob)
    give_gradients([*model.parameters(), *expected.parameters()])
    local.step()
    assert not steps_in_lists(optimizer)
    assert differences(model.get(), expected) == []


@pytest.mark.parametrize(("foreach", "is_private"), [(False, False), (None, True)])
def test_a_list_is_as_private_as_its_most_private_member(
    hook: Any, bob: Any, foreach: bool | None, is_private: bool
) -> None:
    bob.load_data([torch.ones(3, 2).private_tensor(["the board"]).tag("#salaries")])
    (salaries,) = bob.search("#salaries")
    on_salaries, on_others = nn.Linear(2, 1).send(bob), nn.Linear(2, 1).send(bob)
    optimizer = optim.SGD([*on_salaries.parameters(), *on_others.parameters()], lr=0.1, foreach=foreach)
    on_salaries(salaries).sum().backward()
    on_others(torch.ones(3, 2).send(bob)).sum().backward()

    optimizer.step()

    with pytest.raises(GetNotPermittedError):
        on_salaries.get()
    if is_private:
        with pytest.raises(GetNotPermittedError):
            on_others.get()
    else:
        assert on_others.get().location is None
