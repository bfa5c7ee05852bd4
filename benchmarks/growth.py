"""Measure whether calls take longer with more objects on a worker: ``python benchmarks/growth.py [--update]``.

The objects belong to another client. In seconds of the processor, which depend less on how busy the machine is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import torch
from measure import machine, table, update_readme, verdict

from syft_core.messages import Store
from syft_core.peer import Peer
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.hook import TorchHook

COUNTS = (10, 10_000, 100_000)
LIMIT = 2.0
"""How many times as long a call may take with the most objects as with the fewest."""
STRANGER = Peer("somebody else")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the table into benchmarks/README.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hook = TorchHook(torch)
    hook.attributes.warm_up()
    found = [measure(hook, count) for count in COUNTS]
    rows = []
    for name in found[0]:
        times = [column[name] * 1e6 for column in found]
        ratio = times[-1] / times[0]
        rows.append(
            [name, *[f"{time:.0f}" for time in times], f"**{ratio:.2f}**", f"≤ {LIMIT:g}", verdict(ratio, LIMIT)]
        )
    headers = ["in process", *[f"{count:,} objects, µs" for count in COUNTS], "ratio", "target", ""]
    text = f"{table(headers, rows)}\n\n{machine()}, torch {torch.__version__}, one thread."
    print(text)
    if options.update:
        update_readme("growth", text)


def measure(hook: TorchHook, count: int) -> dict[str, float]:
    """Return the seconds of calls on a worker that holds ``count`` objects of another client."""
    worker = VirtualWorker(hook, id=f"worker with {count} objects")
    for number in range(count):
        worker.handle(Store(-number - 1, torch.zeros(2, requires_grad=True), tags=(f"#{number}",)), STRANGER)
    worker.load_data([torch.ones(2).tag("#wanted")])
    x, y = (torch.ones(4, requires_grad=True).send(worker) for _ in range(2))
    plain = torch.ones(4).send(worker)

    def make_client() -> Any:
        return VirtualWorker(hook, id="new", auto_add=False).location_of(worker).describe((plain.id_at_location,))

    calls: dict[str, Callable[[], Any]] = {
        "addition": lambda: x + y,
        "addition in place": lambda: plain.add_(1),
        "backward pass": lambda: (x * y).sum().backward(),
        "search by tag": lambda: worker.search("#wanted"),
        "`send` and `get`": lambda: torch.ones(4).send(worker).get(),
        "a new client": make_client,
    }
    return {name: _fastest(call) for name, call in calls.items()}


def _fastest(call: Callable[[], Any], rounds: int = 15, calls: int = 40) -> float:
    times = []
    for _ in range(rounds):
        start = process_time()
        for _ in range(calls):
            call()
        times.append((process_time() - start) / calls)
    return min(times)


if __name__ == "__main__":
    main()
