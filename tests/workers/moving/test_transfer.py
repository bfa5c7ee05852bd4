from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.workers.moving.transfer import give_away

torch = pytest.importorskip("torch")


@pytest.fixture
def carol(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="carol", serialize=False)


def step(model: Any, **options: Any) -> None:
    torch.optim.SGD(model.parameters(), lr=0.1, **options).step()


def test_objects_that_cannot_be_given_away_are_still_there(hook: Any, carol: Any) -> None:
    values = [torch.ones(2), lambda: None, torch.zeros(2)]
    with pytest.raises(sy.exceptions.SerdeError):
        give_away(values, carol)
    assert [type(value).__name__ for value in values] == ["Tensor", "function", "Tensor"]
    assert values[0].tolist() == [1.0, 1.0]


def test_a_tensor_that_shares_memory_with_a_sent_module_does_not_change(carol: Any) -> None:
    model = torch.nn.Linear(2, 1)
    before, alias = model.weight.detach().clone(), model.weight.detach()
    for _ in range(2):
        model.send(carol)
        model(torch.ones(1, 2).send(carol)).sum().backward()
        step(model)
        model.get()
    assert torch.equal(alias, before)
    assert not torch.equal(model.weight, before)
