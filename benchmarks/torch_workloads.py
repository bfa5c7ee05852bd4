"""What is run on torch: the same statements for us, for the hand-written peer and for the ancestor.

As a script it is a process that times the plain statements in a torch that was never hooked.

Python 3.7 with torch 1.4 can run this file: the ancestor's script imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from measure import Clock, serve

PLAIN = {
    "add": "torch.add(x, y)",
    "cat": "torch.cat([x, y])",
    "relu": "torch.relu(x)",
    "linear": "linear(batch)",
    "SGD step": "step()",
    "torch.tensor": "torch.tensor(numbers)",
}
"""On plain tensors of four floats; ``linear`` is 32 to 32 at batch 1, the step an MLP 32-64-10 at batch 1."""

CHAIN = {
    "add": "torch.add(x, y)",
    "relu": "torch.relu(x)",
    "shape": "x.shape",
    "cat": "torch.cat([x, y])",
}
"""On chains over tensors of four floats."""


def plain_names() -> dict[str, Any]:
    """Return the names that the plain statements use."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return {
        "torch": torch,
        "x": torch.rand(4),
        "y": torch.rand(4),
        "numbers": [1.0, 2.0, 3.0, 4.0],
        "linear": torch.nn.Linear(32, 32),
        "batch": torch.rand(1, 32),
        "step": _training_step(),
    }


def _training_step() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, target = torch.rand(1, 32), torch.tensor([3])

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()

    return step


def plain_clocks() -> dict[str, Clock]:
    """Return a clock for each plain statement, called ``plain <name>``."""
    names = plain_names()
    return {f"plain {name}": Clock(statement, names) for name, statement in PLAIN.items()}


def chain_clocks(put_on: Callable[[Any], Any]) -> dict[str, Clock]:
    """Return a clock for each chain statement, called ``chain <name>``, on what ``put_on`` makes of a tensor."""
    names = {"torch": torch, "x": put_on(torch.rand(4)), "y": put_on(torch.rand(4))}
    return {f"chain {name}": Clock(statement, names) for name, statement in CHAIN.items()}


if __name__ == "__main__":
    serve({}, plain_clocks())
