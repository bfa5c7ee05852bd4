"""The torch act of the demo: a stock module and a stock optimizer on a chain."""

from __future__ import annotations

from typing import Any

import torch

from syft_core.tensors.logging import LoggingTensor


def acts(stage: Any, hook: Any) -> None:
    """Train a stock ``nn.Linear`` with a stock optimizer, its weights and data hanging on chains."""
    torch.manual_seed(0)
    stage.say("Modules, autograd and optimizers are torch's own. Weights and data hang on chains here:")
    model = torch.nn.Linear(2, 1)
    for name, parameter in list(model.named_parameters()):
        setattr(model, name, torch.nn.Parameter(LoggingTensor().on(parameter.detach())))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    data = LoggingTensor().on(torch.randn(32, 2))
    target = LoggingTensor().on(data.child.child @ torch.tensor([[2.0], [-1.0]]))
    rows = []
    for step in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        rows.append((str(step + 1), f"{loss.item():.4f}", "█" * max(1, round(loss.item() * 6))))
    stage.table(("step", "loss", ""), rows)
    stage.code("model.weight", str(model.weight).replace("\n", " "))
