"""Change results that need gradients in place: on private data, by pointers and in plans, with the bits of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError

torch = pytest.importorskip("torch")
nn = torch.nn

X = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
MASK = X > 0.5
CHANGES: dict[str, Callable[[Any], Any]] = {
    "add": lambda z: z.add_(1),
    "operator": lambda z: z.__iadd__(z),
    "multiply": lambda z: z.mul_(2).sub_(0.5).div_(3),
    "activation": lambda z: torch.relu_(z),
    "module": nn.ReLU(inplace=True),
    "functional": lambda z: nn.functional.leaky_relu(z, inplace=True),
    "clamp": lambda z: z.clamp_(min=0),
    "transcendental": lambda z: z.sigmoid_(),
    "fill": lambda z: z.masked_fill_(z.detach() > 0.5, 0.25),
    "item": lambda z: _set(z, 0, 1.0),
    "slice": lambda z: _set(z, (slice(None), 1), 2.0),
    "part": lambda z: _change(z, lambda t: t[1:3].mul_(3)),
    "column": lambda z: _change(z, lambda t: t.t()[0].add_(1)),
    "chunk": lambda z: _change(z, lambda t: t.unsqueeze(0)[0, :2].exp_()),
    "transpose": lambda z: z.t_().mul_(2),
    "unsqueeze": lambda z: z.unsqueeze_(1).add_(1),
    "copy": lambda z: _change(z, lambda t: t[0].copy_(t[1].detach())),
    "addcmul": lambda z: z.addcmul_(z.detach(), z.detach(), value=0.5),
    "lerp": lambda z: z.lerp_(z.detach() * 2, 0.25),
    "expanded": lambda z: z[:, :1].expand(4, 3).contiguous().add_(1),
}


def _set(tensor: Any, place: Any, value: float) -> Any:
    tensor[place] = value
    return tensor


def _change(tensor: Any, change: Callable[[Any], Any]) -> Any:
    change(tensor)
    return tensor


def run(change: Callable[[Any], Any], x: Any, weight: Any) -> Any:
    loss = (change(x * weight) ** 2).sum()
    loss.backward()
    return loss


@pytest.fixture
def private(bob: Any) -> Any:
    bob.load_data([X.clone().private_tensor(["alice"]).tag("#x")])
    return bob.search("#x")[0]


@pytest.mark.parametrize("name", CHANGES)
def test_results_of_private_data_are_changed_in_place(private: Any, bob: Any, name: str) -> None:
    weight, there = (torch.full((3,), 1.5, requires_grad=True) for _ in range(2))
    expected, there = run(CHANGES[name], X, weight), there.send(bob)

    loss = run(CHANGES[name], private, there)

    with pytest.raises(GetNotPermittedError):
        loss.copy().get()
    bob.hook.local_worker.user = "alice"
    assert torch.equal(loss.get().detach(), expected)
    assert torch.equal(there.grad.copy().get(), weight.grad)


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_changes_results_of_private_data_in_place(private: Any, bob: Any, name: str) -> None:
    weight, other = (torch.full((3,), 1.5, requires_grad=True) for _ in range(2))
    expected = run(CHANGES[name], X, weight)
    plan = sy.Plan(name, lambda x: run(CHANGES[name], x, other)).build(X)

    loss = plan.send(bob)(private)

    bob.hook.local_worker.user = "alice"
    assert torch.equal(loss.get().detach(), expected)
    plan.get()
    assert torch.equal(other.grad, weight.grad)
