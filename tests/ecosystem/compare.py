"""Run a program at home and on a worker, and compare: forward, loss, and three steps of AdamW."""

from __future__ import annotations

import copy
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

import syft_core as sy
from syft_core.exceptions import SyftError

from .programs import Program

STEPS = 3


@dataclass(frozen=True)
class Outcome:
    """What a program does on a worker."""

    verdict: str
    """"same bits", a difference, or what refuses it and why."""
    ratio: float | None = None
    """How many times as long as at home it takes."""

    @property
    def is_same(self) -> bool:
        return self.verdict.startswith("same bits")


def compare(program: Program, bob: Any) -> Outcome:
    """Run a program with, if it reads values in passing, the consent that it needs."""
    torch.manual_seed(0)
    model, batch = program.build(), program.batch()
    remote = copy.deepcopy(model).send(bob)
    there = {name: tensor.send(bob) for name, tensor in batch.items()}
    expected, at_home = _train(program, model, batch)
    refusal, verdict = "", "same bits"
    try:
        found, elsewhere = _train(program, copy.deepcopy(remote), there)
    except SyftError as error:
        refusal = _first_line(error)
        try:
            with sy.revealing("the model reads its mask"):
                found, elsewhere = _train(program, copy.deepcopy(remote), there)
        except SyftError as again:
            return Outcome(f"refused: {_first_line(again)}")
        verdict = f"same bits, with `sy.revealing`: {refusal}"
    worst = max(float((a - b).abs().max()) for a, b in zip(expected, found, strict=True))
    if any(not torch.equal(a, b) for a, b in zip(expected, found, strict=True)):
        return Outcome(f"differs by {worst:.1g}", elsewhere / at_home)
    return Outcome(verdict, elsewhere / at_home)


def _train(program: Program, model: torch.nn.Module, batch: Any) -> tuple[list[torch.Tensor], float]:
    """Train a model; return the losses and all parameters and buffers, and the time of the steps after the first."""
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
    losses = [loss.get() if hasattr(loss, "child") else loss.detach() for loss in losses]
    took = time.perf_counter() - started
    if hasattr(next(model.parameters()), "child"):
        model.get()
    state = [tensor.detach().float() for tensor in model.state_dict().values()]
    return [*losses, *state], took


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0].split(";")[0]


__all__ = ["Outcome", "compare", "nullcontext"]
