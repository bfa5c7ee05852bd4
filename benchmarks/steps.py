"""Count what an operation on a pointer takes: ``python benchmarks/steps.py [--update]``.

Python calls, files and messages do not depend on how busy the machine is; the time of the first operation, in a process
of its own, does.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import table, update_readme

from syft_core.workers.party.virtual import VirtualWorker
from syft_numpy.hook import NumpyHook
from syft_torch.hook import TorchHook

FIRST = """
import sys, time, torch, syft_core as sy
hook = sy.TorchHook(torch)
start = time.perf_counter()
bob = sy.VirtualWorker(hook, id="bob", serialize={serialize})
p = torch.ones(3).send(bob)
(p + p).shape
print((time.perf_counter() - start) * 1e3)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the table into benchmarks/README.md")
    options = parser.parse_args()
    hook = TorchHook(torch)
    hook.attributes.warm_up()
    numpy_hook = NumpyHook(np)
    rows = [row for by_wire in (False, True) for row in measure(hook, numpy_hook, by_wire)]
    text = table(["", "in process", "target", "by wire", "target"], join(rows))
    print(text)
    if options.update:
        update_readme("steps", text)


def measure(hook: Any, numpy_hook: Any, by_wire: bool) -> list[tuple[str, str, str]]:
    bob = VirtualWorker(hook, id=f"worker {by_wire}", serialize=by_wire)
    x, y = torch.rand(10).send(bob), torch.rand(10).send(bob)
    adds, files, _ = calls(lambda: x + y)
    arrays = VirtualWorker(numpy_hook, id=f"arrays {by_wire}", serialize=by_wire)
    a, b = numpy_hook.arange(10).send(arrays), numpy_hook.arange(10).send(arrays)
    array_adds, array_files, _ = calls(lambda: a + b)
    return [
        ("`x + y`, torch: calls of the library", str(adds), "≤ 110" if by_wire else "≤ 25"),
        ("`x + y`, torch: files", str(files), "" if by_wire else "≤ 11"),
        ("`x + y`, numpy: calls of the library", str(array_adds), "" if by_wire else "≤ 25"),
        ("`x + y`, numpy: files", str(array_files), "" if by_wire else "≤ 11"),
        ("SGD step of a Linear: Python calls", str(calls(sgd_step(bob))[2]), "≤ 900" if by_wire else ""),
        ("AdamW step of a two-layer MLP: messages", str(adamw_messages(bob)), "≤ 14"),
        ("first operation after the hook, ms", first(by_wire), "≤ 100"),
    ]


def join(rows: list[tuple[str, str, str]]) -> list[list[str]]:
    half = len(rows) // 2
    return [[*here, *there[1:]] for here, there in zip(rows[:half], rows[half:], strict=True)]


def calls(run: Callable[[], Any]) -> tuple[int, int, int]:
    """Return how many functions of the library a warm call runs, in how many files, and how many with all others."""
    for _ in range(20):
        run()
    profile = cProfile.Profile()
    profile.runcall(run)
    counted = {where: count for where, (count, *_rest) in pstats.Stats(profile).stats.items() if where[0] != "~"}
    own = {where: count for where, count in counted.items() if "syft_" in where[0]}
    return sum(own.values()), len({file for file, *_ in own}), sum(counted.values())


def sgd_step(worker: Any) -> Callable[[], None]:
    model = torch.nn.Linear(3, 2).send(worker)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.rand(4, 3).send(worker), torch.rand(4, 2).send(worker)

    def step() -> None:
        optimizer.zero_grad()
        ((model(data) - target) ** 2).mean().backward()
        optimizer.step()

    return step


def adamw_messages(worker: Any) -> int:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).send(worker)
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.rand(5, 3).send(worker)
    for _ in range(2):
        model(data).sum().backward()
        before = worker.stats.messages
        optimizer.step()
    return int(worker.stats.messages - before)


def first(by_wire: bool) -> str:
    program = FIRST.format(serialize=by_wire)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return f"{float(done.stdout):.1f}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
