"""Models whose parameters are shared."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402

PRECISION = {"base": 2, "precision_fractional": 16}


@pytest.fixture
def workers(hook: Any) -> list[Any]:
    return [VirtualWorker(hook, id=f"{name} of models") for name in ("bob", "alice", "carol")]


def share(target: Any, workers: list[Any]) -> Any:
    return target.fix_precision(**PRECISION).share(*workers[:2], crypto_provider=workers[2])


def test_a_model_is_fetched_while_a_loss_of_it_is_alive(hook: Any, workers: list[Any]) -> None:
    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    before, parameter = model.weight.detach().clone(), model.weight
    share(model, workers)
    loss = (model(share(x, workers)) ** 2).mean()
    loss.backward()

    model.get().float_precision()

    assert model.weight is parameter
    assert torch.allclose(model.weight, before, atol=1e-4)
    assert loss.requires_grad


def test_sharing_a_model_keeps_its_parameters_for_the_optimizer(hook: Any, workers: list[Any]) -> None:
    model, twin = nn.Linear(3, 1), nn.Linear(3, 1)
    twin.load_state_dict(model.state_dict())
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9) for net in (model, twin)]
    share(model, workers)
    for net, optimizer, data, target in (
        (model, optimizers[0], share(x, workers), share(y, workers)),
        (twin, optimizers[1], x, y),
    ):
        for _ in range(3):
            optimizer.zero_grad()
            ((net(data) - target) ** 2).mean().backward()
            optimizer.step()

    model.decrypt()

    for found, expected in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(found, expected, atol=1e-3)


def test_a_model_that_may_not_leave_is_not_lost(hook: Any, workers: list[Any]) -> None:
    model = share(nn.Linear(3, 1), workers)
    workers[1].policy = "nothing"
    try:
        with pytest.raises(PermissionError):
            model.get()
    finally:
        workers[1].policy = "unless_private"

    assert model.get().float_precision().weight.shape == (1, 3)
