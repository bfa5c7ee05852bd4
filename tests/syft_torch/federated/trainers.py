"""A small model, its data on workers, and a trainer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402

cross_entropy = nn.functional.cross_entropy
OPTIONS = {field.name for field in fields(fl.Options)}


STRATEGIES = [
    fl.FedAvg, lambda: fl.FedProx(0.1), fl.FedAdam, fl.FedYogi, fl.FedAdagrad, fl.Scaffold, fl.Median,
    lambda: fl.TrimmedMean(0.2), lambda: fl.Krum(1, keep=2),
]  # fmt: skip


def sgd(parameters: Any) -> Any:
    return optim.SGD(parameters, lr=0.1)


def make_model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def make_samples(count: int, seed: int = 1) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=generator)
    return x, x[:, :3].argmax(dim=1)


def make_data(hook: Any, counts: Any = (40, 40, 40, 40, 40), private: bool = False, serialize: bool = False) -> Any:
    datasets = []
    for number, count in enumerate(counts):
        worker = sy.VirtualWorker(hook, id=f"w{number}", serialize=serialize)
        parts = make_samples(count, number)
        if private:
            worker.load_data([p.private_tensor(["board"]).tag(t) for p, t in zip(parts, ("#x", "#y"), strict=True)])
            parts = [worker.search(tag)[0] for tag in ("#x", "#y")]
            datasets.append(fl.BaseDataset(*parts))
        else:
            datasets.append(fl.BaseDataset(*parts).send(worker))
    return fl.FederatedDataset(datasets)


def make_trainer(hook: Any, data: Any = None, **options: Any) -> Any:
    data = make_data(hook) if data is None else data
    given = {"model": make_model(), "loss": cross_entropy, "optimizer": sgd, "data": data, "batch_size": 16, **options}
    return fl.FederatedTrainer(**gather_options(given))


def gather_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a trainer, with its options gathered in ``fl.Options``."""
    options = {name: given[name] for name in given if name in OPTIONS}
    return {**{name: given[name] for name in given if name not in OPTIONS}, "options": fl.Options(**options)}


def wide(*layers: Any) -> Any:
    return nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 3))
