"""The encrypted tutorials of PySyft 0.2 (parts 09 to 12), in their own words as far as they still apply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402

import syft_core as sy  # noqa: E402


@pytest.fixture
def workers() -> Iterator[list[Any]]:
    with sy.TorchHook(torch) as hook:
        yield [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "bill", "crypto_provider")]


def test_part_09_encrypted_programs(workers: list[Any]) -> None:
    bob, alice, bill, crypto_provider = workers
    x = torch.tensor([25]).share(bob, alice, bill)
    assert list(x.child.child) == ["bob", "alice", "bill"]
    assert x.get().tolist() == [25]

    x, y = torch.tensor([25]).share(bob, alice), torch.tensor([5]).share(bob, alice)
    assert [(x + y).get().item(), (x - y).get().item()] == [30, 20]

    x = torch.tensor([25]).share(bob, alice, crypto_provider=crypto_provider)
    y = torch.tensor([5]).share(bob, alice, crypto_provider=crypto_provider)
    assert (x * y).get().tolist() == [125]
    a = torch.tensor([[1, 2], [3, 4]]).share(bob, alice, crypto_provider=crypto_provider)
    b = torch.tensor([[2, 0], [0, 2]]).share(bob, alice, crypto_provider=crypto_provider)
    assert a.matmul(b).get().tolist() == [[2, 4], [6, 8]]
    assert [(x > y).get().item(), (x < y).get().item(), (x == y).get().item()] == [1, 0, 0]
    real = torch.tensor([25.0, 13.5]).fix_precision().share(bob, alice, crypto_provider=crypto_provider)
    assert (real > 20).get().float_precision().tolist() == [1.0, 0.0]
    numbers = torch.tensor([[2, 3], [4, 1]]).share(bob, alice, crypto_provider=crypto_provider)
    assert numbers.max().get().item() == 4
    assert [part.get().tolist() for part in numbers.max(dim=0)] == [[4, 3], [1, 0]]


def test_part_10_secure_aggregation(workers: list[Any]) -> None:
    bob, alice, _bill, crypto_provider = workers
    models = [nn.Linear(2, 1) for _ in range(2)]
    expected = [(one + other).detach() / 2 for one, other in zip(*[m.parameters() for m in models], strict=True)]
    params = [list(model.send(worker).parameters()) for model, worker in zip(models, (bob, alice), strict=True)]

    averages = []
    for pair in zip(*params, strict=True):
        shared = [p.fix_precision().share(bob, alice, crypto_provider=crypto_provider) for p in pair]
        averages.append((shared[0] + shared[1]).detach().get().float_precision() / 2)

    assert all(torch.allclose(a, b, atol=2e-3) for a, b in zip(averages, expected, strict=True))


def test_part_11_secure_classification(workers: list[Any]) -> None:
    bob, alice, _bill, crypto_provider = workers
    torch.manual_seed(0)
    model, data = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), torch.randn(4, 6)
    expected = model(data).argmax(dim=1)
    model.fix_precision().share(bob, alice, crypto_provider=crypto_provider)
    private = data.fix_precision().share(bob, alice, crypto_provider=crypto_provider)

    with torch.no_grad():
        output = model(private)

    assert torch.equal(output.argmax(dim=1).get().float_precision().long(), expected)


def test_part_12_encrypted_training(workers: list[Any]) -> None:
    bob, alice, _bill, crypto_provider = workers
    torch.manual_seed(0)
    data = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    target = torch.tensor([[0], [0], [1], [1.0]])
    model = nn.Linear(2, 1)
    data = data.fix_precision().share(bob, alice, crypto_provider=crypto_provider, requires_grad=True)
    target = target.fix_precision().share(bob, alice, crypto_provider=crypto_provider, requires_grad=True)
    model = model.fix_precision().share(bob, alice, crypto_provider=crypto_provider)
    assert data.requires_grad

    opt = optim.SGD(params=model.parameters(), lr=0.1).fix_precision()
    losses = []
    for _ in range(20):
        opt.zero_grad()
        pred = model(data)
        loss = ((pred - target) ** 2).sum()
        loss.backward()
        opt.step()
        losses.append(loss.detach().get().float_precision().item())

    assert losses[-1] < 0.1 < losses[0]
