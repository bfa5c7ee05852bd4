"""Clipped gradients of samples are those of Opacus, if it is installed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    grad_sample = pytest.importorskip("opacus.grad_sample")
from torch import nn  # noqa: E402  # torch may be missing

import syft_core as sy  # noqa: E402  # the same
from tests.syft_torch.federated.private_steps.recorded import (  # noqa: E402  # the same
    MARGIN,
    Subject,
    cross_entropy,
    make_images,
    make_rows,
)


@pytest.fixture
def hook() -> Iterator[Any]:
    found = sy.TorchHook(torch)
    yield found
    found.unhook()


CASES: dict[str, Any] = {
    "layers": (lambda: nn.Sequential(nn.Linear(10, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)), make_rows),
    "images": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 8, 3, stride=2), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(200, 3)
        ),
        make_images,
    ),
}


def sum_by_opacus(model: Any, x: Any, y: Any, clip: float) -> list[Any]:
    module = grad_sample.GradSampleModule(model)
    cross_entropy(module(x), y).backward()
    found = [parameter.grad_sample for parameter in model.parameters()]
    norms = torch.stack([each.flatten(1).square().sum(1) for each in found]).sum(0).sqrt()
    factors = (clip * (1 - MARGIN) / norms).clamp(max=1.0)
    return [torch.tensordot(factors, each, 1) for each in found]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.filterwarnings("ignore")
def test_the_clipped_gradients_are_those_of_opacus(hook: Any, case: Any) -> None:
    make_model, make_batch = case
    torch.manual_seed(0)
    model, (x, y) = make_model(), make_batch()
    subject = Subject(model, x, y, clip=0.5)

    found = subject.sum_up()

    for one, other in zip(found, sum_by_opacus(model, x, y, 0.5), strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-4, atol=1e-6)
