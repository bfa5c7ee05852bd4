"""Recorded losses, and the gradients of their samples as autograd finds them, one after the other."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch may be missing

from syft_core.hook.forms import form  # noqa: E402
from syft_torch.federated.losses import Loss, ModelForms  # noqa: E402
from syft_torch.federated.private_steps.gradients import MARGIN, ClippedGradients  # noqa: E402
from syft_torch.federated.private_steps.samples import follow  # noqa: E402
from syft_torch.federated.recorded_model import RecordedModel  # noqa: E402

cross_entropy = nn.functional.cross_entropy


class Model(nn.Module):
    """A model of parts, and a function of them and the input."""

    def __init__(self, forward: Any, **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.function = forward

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Subject:
    """A model, a batch, and their recorded loss."""

    def __init__(self, model: Any, x: Any, y: Any, loss: Any = cross_entropy, clip: float = 0.5) -> None:
        forms = [form(tuple(part.shape), None, part.dtype) for part in (x, y)]
        self.recorded = RecordedModel(model, loss, forms, []).recorded
        program = self.recorded.programs.all[0]
        self.batch = [x, y]
        self.loss, self.clip = Loss(program, 2), clip
        self.shape = ModelForms(program, len(self.recorded.fixed), 2)
        self.values = [tensor.detach().clone() for tensor in self.recorded.trained]
        self.fixed = [tensor.detach() for tensor in self.recorded.fixed]

    def follow(self) -> Any:
        return follow([Loss(program, 2) for program in self.recorded.programs.all], self.shape)

    def gradients(self) -> ClippedGradients:
        return ClippedGradients(self.loss, len(self.values), self.follow(), self.clip)

    def sum_up(self, batch: Any = None) -> list[Any]:
        found: list[Any] = self.gradients().sum_up(self.values, self.fixed, self.batch if batch is None else batch)
        return found

    def sum_one_by_one(self) -> list[Any]:
        """Return the sum of clipped gradients, each of a batch of one sample."""
        total = [torch.zeros_like(value) for value in self.values]
        limit = self.clip * (1 - MARGIN)
        for place in range(len(self.batch[0])):
            leaves = [value.clone().requires_grad_() for value in self.values]
            loss = self.loss((*leaves, *self.fixed, *[part[place : place + 1] for part in self.batch]))
            found = torch.autograd.grad(loss, leaves, allow_unused=True)
            found = [torch.zeros_like(v) if g is None else g for g, v in zip(found, leaves, strict=True)]
            norm = sum([g.double().square().sum() for g in found]).sqrt()
            for known, gradient in zip(total, found, strict=True):
                known += gradient * min(1.0, limit / float(norm))
        return total


def make_rows(count: int = 12, seed: int = 0) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 10, generator=generator) * 3, torch.randint(0, 3, (count,), generator=generator)


def make_words(count: int = 12, length: int = 6) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    draw = lambda high, *shape: torch.randint(0, high, shape, generator=generator)  # noqa: E731  # short
    return draw(20, count, length), draw(3, count)


def make_images(count: int = 12) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 2, 12, 12, generator=generator), torch.randint(0, 3, (count,), generator=generator)
