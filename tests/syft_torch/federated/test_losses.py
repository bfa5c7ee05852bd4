from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402

from .trainers import make_samples, make_trainer  # noqa: E402


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
