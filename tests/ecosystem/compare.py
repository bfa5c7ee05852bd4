"""Run a program locally and on a worker, and compare the losses and the state after three steps of AdamW."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from syft_core.exceptions import SyftError

from .programs import Program

STEPS = 3


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program on a worker."""

    verdict: str
    """"same bits", a difference, or why it is refused."""
    ratio: float | None = None
    """Its time as a multiple of the local time."""


def compare(program: Program, bob: Any) -> Outcome:
    """Train a model locally and on a worker."""
    torch.manual_seed(0)
    model, batch = program.build(), program.batch()
    remote = copy.deepcopy(model).send(bob)
    there = {name: tensor.send(bob) for name, tensor in batch.items()}
    expected, at_home = _train(program, model, batch)
    try:
        found, elsewhere = _train(program, remote, there)
    except SyftError as error:
        return Outcome(f"refused: {error}")
    return Outcome(judge(expected, found), elsewhere / at_home)


def judge(expected: Iterable[torch.Tensor], found: Iterable[torch.Tensor]) -> str:
    """Return "same bits" if tensors are equal, or else how much they differ."""
    pairs = list(zip(expected, found, strict=True))
    if all(torch.equal(one, other) for one, other in pairs):
        return "same bits"
    return f"differs by {max(float((one - other).abs().max()) for one, other in pairs):.1g}"


def _train(program: Program, model: torch.nn.Module, batch: Any) -> tuple[list[torch.Tensor], float]:
    """Train a model; return the losses with all parameters and buffers, and the time of the steps after the first."""
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses, started = [], 0.0
    for step in range(STEPS):
        started = time.perf_counter() if step == 1 else started
        optimizer.zero_grad()
        loss = program.loss(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    fetched = [loss.get() if model.location is not None else loss.detach() for loss in losses]
    took = time.perf_counter() - started
    if model.location is not None:
        model.get()
    return [*fetched, *[tensor.detach().float() for tensor in model.state_dict().values()]], took
