"""Third-party trainers and metrics, locally and on a worker."""

from __future__ import annotations

import copy
import logging
import time
from typing import Any

import torch
from torch.utils.data import DataLoader

from .compare import Outcome, judge
from .programs import digits, mlp


def train_with_lightning(bob: Any) -> Outcome:
    """Train a model for two epochs with Lightning's Trainer."""
    import lightning  # noqa: PLC0415

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Classifier(lightning.LightningModule):  # type: ignore[misc]  # what it inherits is Any
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp()

        def training_step(self, batch: Any, _number: int) -> Any:
            x, y = batch
            return torch.nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    def fit(model: Any, batches: Any) -> float:
        torch.manual_seed(1)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(accelerator="cpu", max_epochs=2, enable_model_summary=False, **quiet)
        started = time.perf_counter()
        trainer.fit(model, DataLoader(batches, batch_size=None))
        return time.perf_counter() - started

    torch.manual_seed(0)
    model, data = Classifier(), digits()
    remote = copy.deepcopy(model).send(bob)
    batches = [(data["x"][start : start + 16], data["y"][start : start + 16]) for start in range(0, 64, 16)]
    at_home = fit(model, batches)
    elsewhere = fit(remote, [(x.send(bob), y.send(bob)) for x, y in batches])
    return Outcome(judge(model.state_dict().values(), remote.get().state_dict().values()), elsewhere / at_home)


def measure_with_torchmetrics(bob: Any) -> Outcome:
    """Compute an accuracy over two batches; ``with bob:`` creates the state of the metric on the worker."""
    from torchmetrics.classification import MulticlassAccuracy  # noqa: PLC0415

    torch.manual_seed(0)
    scores, labels = torch.randn(64, 10), digits()["y"]
    metric = MulticlassAccuracy(10, average="micro", validate_args=False)
    with bob:
        remote = MulticlassAccuracy(10, average="micro", validate_args=False)
    times = []
    for one, send in ((metric, lambda tensor: tensor), (remote, lambda tensor: tensor.send(bob))):
        started = time.perf_counter()
        for rows in (slice(0, 32), slice(32, 64)):
            one.update(send(scores[rows]), send(labels[rows]))
        times.append(time.perf_counter() - started)
    return Outcome(judge([metric.compute()], [remote.compute().get()]), times[1] / times[0])
