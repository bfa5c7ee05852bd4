from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from syft_core.exceptions import NotCollocatedError  # noqa: E402


class Positions(nn.Module):
    """Creates tensors in its forward, as models do."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: Any) -> Any:
        n = x.shape[1]
        x = x + self.table(torch.arange(n, device=x.device)) + torch.zeros(n, 4).to(x) + torch.randn(n, 4)
        mask = torch.full((n, n), float("-inf"), device=x.device).triu(1) + torch.ones(n, n) - torch.eye(n)
        x = (mask.softmax(-1) @ x) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.linspace(0, 1, 4)
        if torch.rand([]) < 2.0:  # A single number is local.
            x = x[:, torch.randperm(n)] * torch.tensor(0.5)
        return self.norm(x + torch.empty(4).fill_(1.0) + torch.as_tensor([1.0, 2.0, 3.0, 4.0]))


def test_tensors_created_in_a_forward_are_on_the_modules_worker(bob: Any) -> None:
    torch.manual_seed(0)
    model, data = Positions(), torch.randn(2, 5, 4)
    remote = copy.deepcopy(model).send(bob)

    for module, x in ((model, data), (remote, data.send(bob))):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            optimizer.step()

    found = remote.get().state_dict()
    assert all(torch.equal(value, found[name]) for name, value in model.state_dict().items())


def test_a_copy_of_a_remote_module_creates_its_tensors_remotely_too(bob: Any) -> None:
    remote = Positions().send(bob)

    result = copy.deepcopy(remote)(torch.zeros(2, 5, 4).send(bob))

    assert result.location is bob


def test_code_outside_of_a_forward_creates_local_tensors(bob: Any) -> None:
    remote = Positions().send(bob)
    remote(torch.zeros(2, 5, 4).send(bob))
    with pytest.raises(NotCollocatedError):
        remote(torch.zeros(2, 5, 4))

    assert type(torch.zeros(3)) is torch.Tensor
    home = remote.get()
    assert type(home(torch.zeros(2, 5, 4))) is torch.Tensor
    assert not [name for name in home.__dict__ if "compiled" in name]


def test_an_interrupted_forward_leaves_nothing_behind(bob: Any) -> None:
    class Interrupted(nn.Linear):
        def forward(self, x: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted(2, 2).send(bob)(torch.zeros(2, 2).send(bob))

    assert type(torch.zeros(3)) is torch.Tensor


def test_tensors_are_created_on_a_worker_in_a_with_block(bob: Any, alice: Any) -> None:
    x = torch.ones(3).send(bob)

    with bob:
        made = torch.arange(3.0)
        with alice:
            other = torch.zeros(2)
        result = x + made + torch.zeros(3).to(x)

    assert made.location is bob
    assert other.location is alice
    assert result.get().tolist() == [1, 2, 3]
    assert type(torch.zeros(3)) is torch.Tensor


def test_similar_arguments_create_tensors_of_their_own_forms(bob: Any) -> None:
    for make in (
        lambda: torch.arange(0.0, 1.0, 0.1, device="cpu"),
        lambda: torch.arange(0.0, 1.0, 0.2, device="cpu"),
        lambda: torch.full((2,), 1, device="cpu"),
        lambda: torch.full((2,), 1.0, device="cpu"),
        lambda: torch.full((2,), True, device="cpu"),
    ):
        with bob:
            made = make()
        expected = make()
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
        assert made.get().equal(expected)


def test_uninitialized_memory_is_cleared_on_a_worker(bob: Any) -> None:
    with bob:
        assert not torch.empty(1000).get().any()
