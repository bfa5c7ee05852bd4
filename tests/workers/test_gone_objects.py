"""Commands that the library issues by itself never make a command of the user fail because other objects are gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import ObjectNotFoundError

from ..network.served import serve

torch = pytest.importorskip("torch")


def clear(worker: Any, _pointer: Any) -> None:
    worker.clear_objects()


def delete(worker: Any, pointer: Any) -> None:
    worker.object_store.remove(pointer.id_at_location, "its owner deleted it")


def take(_worker: Any, pointer: Any) -> None:
    """Fetch the object through another pointer, so that this one does not know."""
    pointer.child.lease().get()


LOSSES: dict[str, Any] = {"cleared": clear, "deleted": delete, "fetched": take}


def read_gradient(worker: Any) -> tuple[Any, Any]:
    """Return a pointer whose gradient was read, and that gradient."""
    x = torch.ones(2, requires_grad=True).send(worker)
    (x * 2).sum().backward()
    return x, x.grad


def backward(worker: Any) -> list[float]:
    w = torch.ones(2, requires_grad=True).send(worker)
    (w * 3).sum().backward()
    return w.grad.copy().get().tolist()


def backward_with_graph(worker: Any) -> list[float]:
    w = torch.ones(2, requires_grad=True).send(worker)
    (w * w).sum().backward(create_graph=True)
    return w.grad.detach().copy().get().tolist()


def set_gradient(worker: Any) -> list[float]:
    w = torch.ones(2, requires_grad=True).send(worker)
    w.grad = torch.ones(2).send(worker)
    return w.grad.copy().get().tolist()


def train(worker: Any) -> list[float]:
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.send(worker)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(1, 2).send(worker)).sum().backward()
        optimizer.step()
    return model.get().weight.tolist()[0]


def run_plan(worker: Any) -> list[float]:
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)

    def step(x: Any) -> Any:
        model.zero_grad()
        model(x).sum().backward()
        return model.weight.grad * 1

    return sy.Plan("step", step).build(torch.ones(1, 2)).send(worker)(torch.ones(1, 2)).get().tolist()[0]


COMMANDS: dict[Callable[[Any], list[float]], list[float]] = {
    backward: [3.0, 3.0], backward_with_graph: [2.0, 2.0], set_gradient: [1.0, 1.0], train: [-1.0, -1.0],
    run_plan: [1.0, 1.0],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_gradient_of_a_lost_object_does_not_disturb_others(bob: Any, loss: str, command: Any) -> None:
    x, gradient = read_gradient(bob)
    LOSSES[loss](bob, x)

    assert command(bob) == COMMANDS[command]
    assert command(bob) == COMMANDS[command]

    for lost in (x, gradient):
        with pytest.raises(ObjectNotFoundError):
            lost.get()


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("loss", ["cleared", "deleted"])
def test_a_gradient_of_a_lost_object_on_the_network_does_not_disturb_others(hook: Any, loss: str) -> None:
    with serve(hook) as served:
        far = served.connect()
        for command, expected in COMMANDS.items():
            x, gradient = read_gradient(far)
            far.flush()
            LOSSES[loss](served.worker, x)

            assert command(far) == expected

            with pytest.raises(ObjectNotFoundError):
                (gradient + 1).get()


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_an_error_of_the_program_is_not_lost_with_a_gradient(hook: Any) -> None:
    with serve(hook) as served:
        far = served.connect()
        x, gradient = read_gradient(far)
        y, _ = read_gradient(far)
        far.flush()
        served.worker.clear_objects()

        failed = y * 2
        w = torch.ones(2, requires_grad=True).send(far)
        with pytest.raises(ObjectNotFoundError, match=str(y.id_at_location)):
            (w * w).sum().backward(create_graph=True), w.get()
        assert failed is not gradient is not x


def test_a_lost_parameter_does_not_hide_the_gradients_of_others(bob: Any) -> None:
    model = torch.nn.Linear(2, 1)
    model.send(bob)
    model(torch.ones(1, 2).send(bob)).sum().backward()
    bob.object_store.remove(model.bias.id_at_location, "its owner deleted it")
    bob.hook.local_worker.location_of(bob).forget_gradients()

    assert model.weight.grad.copy().get().tolist() == [[1.0, 1.0]]
