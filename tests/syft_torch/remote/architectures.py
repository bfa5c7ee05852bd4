"""Ten small models with data, and a function to train them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear, mse_loss

Loss = Callable[[Any, Any], Any]


class LastStep(nn.Module):
    """A recurrent layer with a linear head on its last step."""

    def __init__(self, kind: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.body = kind(4, 6, batch_first=True, **options)
        self.head = nn.Linear(12 if options.get("bidirectional") else 6, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x)[0][:, -1])


class Tied(nn.Module):
    """An autoencoder that decodes with the transposed weight of its encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(6, 3)
        self.again = nn.Linear(6, 3)
        self.again.weight = self.encoder.weight

    def forward(self, x: Any) -> Any:
        code = torch.tanh(self.encoder(x)) + self.again(x)
        return linear(code, self.encoder.weight.t())


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.attention(x, x, x)[0].mean(1))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2)
    )


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(40, 2))


def frozen() -> nn.Module:
    backbone = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU())
    return nn.Sequential(backbone.requires_grad_(False), nn.Linear(7, 2))


@dataclass(frozen=True)
class Architecture:
    make: Callable[[], nn.Module]
    data: Callable[[], tuple[Any, Any]]
    loss: Loss = cross_entropy


def classes(*shape: int) -> Callable[[], tuple[Any, Any]]:
    return lambda: (torch.randn(*shape), torch.randint(0, 2, shape[:1]))


class Residual(nn.Module):
    """A residual block in the manner of ResNet, which changes results in place."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        out = self.layers(x)
        out += x
        return self.relu(out)


def residual() -> nn.Module:
    return nn.Sequential(Residual(2), nn.MaxPool2d(2), Residual(2), nn.Flatten(), nn.Linear(8, 2))


ARCHITECTURES = {
    "mlp": Architecture(
        lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)),
        lambda: (torch.randn(16, 4), torch.randn(16, 1)),
        mse_loss,
    ),
    "cnn with batchnorm": Architecture(cnn, classes(6, 1, 8, 8)),
    "residual in place": Architecture(residual, classes(3, 2, 4, 4)),
    "lstm": Architecture(lambda: LastStep(nn.LSTM, num_layers=2, bidirectional=True), classes(5, 3, 4)),
    "gru": Architecture(lambda: LastStep(nn.GRU), classes(5, 3, 4)),
    "transformer": Architecture(transformer, classes(4, 5, 8)),
    "embedding": Architecture(
        lambda: nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Flatten(), nn.Linear(12, 2)),
        lambda: (torch.randint(0, 10, (7, 3)), torch.randint(0, 2, (7,))),
    ),
    "tied autoencoder": Architecture(
        Tied, lambda: (torch.arange(30.0).view(5, 6) / 30, torch.arange(30.0).view(5, 6) / 30), mse_loss
    ),
    "frozen backbone": Architecture(frozen, classes(9, 5)),
    "attention": Architecture(Attending, classes(4, 5, 8)),
    "layernorm and dropout": Architecture(
        lambda: nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Dropout(0.4), nn.GELU(), nn.Linear(8, 2)),
        classes(9, 5),
    ),
}


def twins(make: Callable[[], nn.Module]) -> tuple[nn.Module, nn.Module]:
    """Return two equal models."""
    torch.manual_seed(1)
    model = make()
    return model, copy.deepcopy(model)


def train(model: Any, x: Any, y: Any, optimizer: Any, loss: Loss = cross_entropy, steps: int = 3) -> None:
    """Train for some steps with fixed random numbers."""
    torch.manual_seed(2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def differences(model: nn.Module, other: nn.Module) -> list[str]:
    """Return the names of parameters, buffers and gradients that are not bit-identical in two local models."""
    tensors = [dict(m.state_dict(keep_vars=True)) for m in (model, other)]
    names = [name for name in tensors[0] if not torch.equal(tensors[0][name], tensors[1][name])]
    for name, ours in tensors[0].items():
        grad, expected = ours.grad, tensors[1][name].grad
        if (grad is None) != (expected is None) or (grad is not None and not torch.equal(grad, expected)):
            names.append(f"{name}.grad")
    return names
