"""Our workers on Ray in a process of their own, for ``federated.py``: a round for each line that it reads.

With ``population``, clients exist while they train, and make their data again each time, as those of Flower do;
otherwise each is a worker that keeps its data.
"""

import json
import logging
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from processes import count_cpu, count_memory

import syft_core as sy

SAMPLES, SIZE, CLASSES, BATCH, LR = 600, 784, 10, 32, 0.1


def load(number):
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(SAMPLES, SIZE, generator=generator)
    return x, torch.randint(0, CLASSES, (SAMPLES,), generator=generator)


def set_up(worker):
    x, y = load(int(str(worker.id).removeprefix("ray-")))
    worker.load_data([x.tag("#x"), y.tag("#y")])


def main():
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    clients, is_population = int(sys.argv[1]), sys.argv[2:] == ["population"]
    hook = sy.TorchHook(torch)
    from syft_torch import federated as fl  # noqa: PLC0415  # after the number of threads is set

    actors = max(min(os.cpu_count(), clients // 10), 1)
    count, setup = (0, None) if is_population else (clients, set_up)
    with sy.RayWorkers(hook, count, actors=actors, setup=setup) as workers:
        data = fl.Population(clients, load) if is_population else fl.find("#x", "#y", workers=workers)
        model = torch.nn.Sequential(torch.nn.Linear(SIZE, 128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES))
        trainer = fl.FederatedTrainer(
            model, torch.nn.functional.cross_entropy, lambda p: torch.optim.SGD(p, lr=LR), data, batch_size=BATCH,
            options=fl.Options(engine=workers),
        )  # fmt: skip
        print(json.dumps({"engine": "ray"}), flush=True)
        while sys.stdin.readline():
            before = count_cpu(), time.perf_counter()
            trainer.fit(1)
            cpu, wall = count_cpu() - before[0], time.perf_counter() - before[1]
            print(json.dumps({"cpu": cpu, "wall": wall, "memory": count_memory()}), flush=True)


if __name__ == "__main__":
    main()
