"""Up to how many weights stacked clients train faster than one after the other: ``python -m benchmarks.stacking``.

Ten clients of this process train a network with one hidden layer, in one thread. The table has the seconds of a round
with each engine, the median of several, and their ratio. ``MAX_STACKED_WEIGHTS`` in
``syft_torch/federated/engines.py`` is about the size up to which stacking takes at most 0.7 of the time with both batch
sizes.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import torch
from torch import nn, optim

import syft_core as sy
from syft_torch import federated as fl

WIDTHS = (16, 64, 128, 192, 256, 384, 512, 768, 1024)
CLIENTS, SAMPLES, INPUTS, CLASSES = 10, 640, 784, 10


def measure(hook: Any, data: Any, width: int, batch_size: int, engine: str, rounds: int = 5) -> float:
    """Return the seconds of a round."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, CLASSES))
    make = lambda p: optim.SGD(p, lr=0.1)  # noqa: E731  # as a user writes it
    options = fl.Options(engine=engine)
    trainer = fl.FederatedTrainer(
        model, nn.functional.cross_entropy, make, data, batch_size=batch_size, options=options
    )
    trainer.fit(1)
    times = []
    for _ in range(rounds):
        began = time.process_time()
        trainer.fit(1)
        times.append(time.process_time() - began)
    return median(times)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    hook = sy.TorchHook(torch)
    workers = [sy.VirtualWorker(hook, id=f"client-{number}") for number in range(CLIENTS)]
    samples = torch.randn(CLIENTS * SAMPLES, INPUTS), torch.randint(0, CLASSES, (CLIENTS * SAMPLES,))
    data = fl.BaseDataset(*samples).federate(workers)
    print("| weights | batch | one after the other | stacked | ratio |\n|---|---|---|---|---|")
    for width in WIDTHS:
        weights = width * (INPUTS + CLASSES + 1) + CLASSES
        for batch_size in (16, 64):
            alone, stacked = (measure(hook, data, width, batch_size, engine) for engine in ("workers", "stacked"))
            print(f"| {weights:,} | {batch_size} | {alone:.3f} | {stacked:.3f} | {stacked / alone:.2f} |", flush=True)


if __name__ == "__main__":
    main()
