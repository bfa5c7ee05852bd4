"""How long a step with ``SampleDP`` takes beside a plain one: ``python -m benchmarks.sample_dp``.

Plain steps, steps with clipped gradients of single samples, and the same by ``vmap`` and by Opacus (ghost clipping, if
it is installed) take turns in one process and one thread; CPU seconds, without noise. The noise is compared with
``torch.randn`` of the same length.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.func import grad, vmap

import syft_core as sy
from benchmarks.measure import machine, table, verdict
from syft_core.hook.forms import form
from syft_torch.federated.losses import Loss, ModelForms
from syft_torch.federated.private_steps.gradients import ClippedGradients
from syft_torch.federated.private_steps.noise import NoiseStream
from syft_torch.federated.private_steps.samples import follow
from syft_torch.federated.recorded_model import RecordedModel

CLIP, ROUNDS, STEPS, NUMBERS = 0.5, 15, 8, 101_770
cross_entropy = nn.functional.cross_entropy


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.first = nn.Embedding(1000, 64), nn.Linear(64, 128)
        self.norm, self.last = nn.LayerNorm(128), nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(self.norm(self.first(self.words(x)))).mean(1))


def make_images() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.GroupNorm(4, 32), nn.ReLU(), nn.Flatten(),
        nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


CASES: list[tuple[str, Callable[[], Any], Callable[[int], Any], int, float]] = [
    (
        "784-128-10, batches of 32",
        lambda: nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)),
        lambda b: torch.randn(b, 784), 32, 1.8,
    ),
    (
        "784-512-256-10, batches of 256",
        lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)),
        lambda b: torch.randn(b, 784), 256, 1.4,
    ),
    ("convolutions and GroupNorm, batches of 64", make_images, lambda b: torch.randn(b, 1, 28, 28), 64, 2.7),
    ("20 words, embedding and LayerNorm, batches of 64", Text, lambda b: torch.randint(0, 1000, (b, 20)), 64, 2.3),
]  # fmt: skip


def make_opacus(model: Any, x: Any, y: Any) -> Callable[[], Any] | None:
    """Return a step of Opacus with ghost clipping; None if it is not installed."""
    try:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost  # noqa: PLC0415  # optional
        from opacus.utils.fast_gradient_clipping_utils import (  # noqa: PLC0415  # the same
            DPLossFastGradientClipping as GhostLoss,
        )
    except ImportError:
        return None
    ghost = Ghost(model, max_grad_norm=CLIP, use_ghost_clipping=True)

    class Optimizer:
        """What the loss asks of an optimizer."""

        loss_reduction, expected_batch_size, max_grad_norm = "mean", len(x), CLIP

        def zero_grad(self, set_to_none: bool = True) -> None:
            for parameter in model.parameters():
                parameter.grad = None

    criterion = GhostLoss(ghost, Optimizer(), nn.CrossEntropyLoss(), loss_reduction="mean")

    def step() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        criterion(ghost(x), y).backward()

    return step


def make_steps(make_model: Callable[[], Any], x: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Return a step of each kind, by name."""
    torch.manual_seed(0)
    model = make_model()
    recorded = RecordedModel(model, cross_entropy, [form(tuple(p.shape), None, p.dtype) for p in (x, y)], []).recorded
    program = recorded.programs.all[0]
    loss, shape = Loss(program, 2), ModelForms(program, 0, 2)
    values = [tensor.detach().clone() for tensor in recorded.trained]
    leaves = [value.clone().requires_grad_() for value in values]
    clipped = ClippedGradients(loss, len(values), follow([loss], shape), CLIP)

    def compute(parameters: Sequence[Any], *sample: Any) -> Any:
        return loss((*parameters, *[part.unsqueeze(0) for part in sample]))

    by_one = vmap(grad(compute), in_dims=(None, 0, 0))
    steps: dict[str, Callable[[], Any]] = {
        "plain": lambda: torch.autograd.grad(loss((*leaves, x, y)), leaves),
        "SampleDP": lambda: clipped.sum_up(values, [], [x, y]),
        "vmap": lambda: by_one(tuple(values), x, y),
    }
    opacus = make_opacus(make_model(), x, y)
    return steps if opacus is None else {**steps, "Opacus": opacus}


def measure(steps: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return the CPU seconds of each kind of step, in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            count = 1 if name == "vmap" else STEPS
            began = time.process_time()
            for _ in range(count):
                step()
            if number:
                times[name].append((time.process_time() - began) / count)
    return times


def main() -> None:
    """Print the tables."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    sy.TorchHook(torch)
    print(f"{machine()}, torch {torch.__version__}\n")
    rows = []
    for name, make_model, make_batch, size, limit in CASES:
        times = measure(make_steps(make_model, make_batch(size), torch.randint(0, 10, (size,))))
        ratios = {
            kind: median(one / plain for one, plain in zip(found, times["plain"], strict=True))
            for kind, found in times.items()
        }
        shown = [f"{ratios[kind]:.2f}" if kind in ratios else "-" for kind in ("SampleDP", "vmap", "Opacus")]
        plain, outcome = f"{median(times['plain']) * 1e3:.2f} ms", verdict(ratios["SampleDP"], limit)
        rows.append([name, plain, *shown, f"{limit}", outcome])
        print(f"{name}: {ratios}", flush=True)
    print("\n" + table(["a step", "plain", "SampleDP", "vmap", "Opacus", "goal", ""], rows))
    stream, values = NoiseStream(), torch.zeros(NUMBERS)
    noise = measure({"plain": lambda: torch.randn(NUMBERS), "SampleDP": lambda: stream.add_noise(values, 1.0)})
    ratio = median(one / plain for one, plain in zip(noise["SampleDP"], noise["plain"], strict=True))
    print(f"\nnoise for {NUMBERS:,} weights: {ratio:.2f} times torch.randn (goal 2.5, {verdict(ratio, 2.5)})")


if __name__ == "__main__":
    main()
