"""Federated training: seconds of a round, as ratios to a plain loop of torch, measured in turns in one run.

Every client has 600 samples of 784 numbers, a model 784-128-10, and trains one epoch of SGD with batches of 32. All
variants of one process run in turns, in another order each time; peers run in processes of their own, in the same
turns. CPU seconds are those of the process that trains, and of its children; the best of all turns counts, because
other load only adds. Run it with one thread.

With ``--only-ray``, the systems on Ray alone are measured, e.g. with 1,000 clients.

Usage: python benchmarks/federated.py [--clients 10,100] [--rounds N] [--pfl PYTHON] [--flower PYTHON] [--ray PYTHON]
                                      [--only-ray] [--update]
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from measure import ROOT, machine, table, update_readme, verdict
from torch import nn, optim

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError

SAMPLES, SIZE, CLASSES, BATCH, LR = 600, 784, 10, 32, 0.1
GOALS = {"workers": 1.15, "private": 1.15, "by wire": 1.3, "stacked": 0.7}
SUMMED, SUMMED_GOAL, MOST_MEMBERS = "only sums leave", 1.6, 64
"""A round in which only the sum of private updates leaves the workers, as a ratio to the round of "workers"."""
HERE = Path(__file__).parent


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(SIZE, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def make_data(clients: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(SAMPLES, SIZE, generator=generator), torch.randint(0, CLASSES, (SAMPLES,), generator=generator))
        for _ in range(clients)
    ]


def make_plain(data: list[tuple[torch.Tensor, torch.Tensor]]) -> Callable[[], Any]:
    """Return a round of a plain loop: a copy of the model for each client, and the mean of all."""
    model, local = make_model(), make_model()
    number = [0]

    def run() -> None:
        number[0] += 1
        start = {name: value.clone() for name, value in model.state_dict().items()}
        total = {name: torch.zeros_like(value) for name, value in start.items()}
        for client, (x, y) in enumerate(data):
            local.load_state_dict(start)
            optimizer = optim.SGD(local.parameters(), lr=LR)
            order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(1000 * number[0] + client))
            for rows in order.split(BATCH):
                optimizer.zero_grad()
                nn.functional.cross_entropy(local(x[rows]), y[rows]).backward()
                optimizer.step()
            for name, value in local.state_dict().items():
                total[name] += value / len(data)
        model.load_state_dict(total)

    return run


def make_ours(hook: Any, name: str, data: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[Callable[[], Any], float]:
    """Return a round of a trainer, and how many milliseconds of CPU it takes to set up a client."""
    from syft_torch import federated as fl  # noqa: PLC0415  # after the number of threads is set

    options = {"serialize": name == "by wire"}
    gc.collect()  # A collection of all objects, most of them torch's, would count as part of what it happens in.
    began = time.process_time()
    workers = [sy.VirtualWorker(hook, id=f"{name} {number}", **options) for number in range(len(data))]
    setting_up = time.process_time() - began
    for worker, (x, y) in zip(workers, data, strict=True):
        parts = [x.private_tensor(["board"]), y.private_tensor(["board"])] if name == "private" else [x, y.clone()]
        worker.load_data([part.tag(tag) for part, tag in zip(parts, ("#x", "#y"), strict=True)])
    found = fl.find("#x", "#y", workers=workers)
    engine = "stacked" if name == "stacked" else "workers"
    trainer = fl.FederatedTrainer(
        make_model(),
        nn.functional.cross_entropy,
        lambda p: optim.SGD(p, lr=LR),
        found,
        batch_size=BATCH,
        options=fl.Options(engine=engine),
    )
    gc.collect()
    began = time.process_time()
    for client in trainer.clients.values():
        client._send(trainer._job.train, trainer._job.fixed, trainer._job.settings)
    setting_up += time.process_time() - began

    def run_private() -> None:  # The update stays on the worker: who measures may not read it.
        weights = trainer.weights
        for number, client in enumerate(trainer.clients.values()):
            try:
                client.train(trainer._job, lambda: weights, number, None)
            except GetNotPermittedError:
                continue
            raise RuntimeError("a private update has left its worker")

    run = run_private if name == "private" else lambda: trainer.fit(1)
    return run, 1000 * setting_up / len(data)


def make_summed(hook: Any, data: list[tuple[torch.Tensor, torch.Tensor]], stack: ExitStack) -> Callable[[], Any]:
    """Return a round of private updates, of which only the sum leaves the workers; each has a ledger on disk."""
    from syft_core.workers.seeing.ledger import Ledger  # noqa: PLC0415  # the same
    from syft_torch import federated as fl  # noqa: PLC0415  # the same

    folder = Path(stack.enter_context(TemporaryDirectory()))
    hook.local_worker.user = "dana"
    workers = []
    for number, (x, y) in enumerate(data):
        worker = sy.VirtualWorker(
            hook, id=f"summed {number}", ledger=Ledger(f"summed {number}", path=folder / f"{number}")
        )
        worker.load_data([x.private_tensor([]).tag("#x"), y.private_tensor([]).tag("#y")])
        workers.append(worker)
    members = {worker.id: worker.studies.fingerprint for worker in workers}
    for worker in workers:
        fl.release_only_aggregates(worker, user="dana", computed_from=["#x", "#y"], members=members, any_program=True)
    trainer = fl.FederatedTrainer(
        make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=LR),
        fl.find("#x", "#y", workers=workers), batch_size=BATCH, aggregation=fl.SecureAggregation("benchmark"),
    )  # fmt: skip
    hook.local_worker.user = None

    def run() -> None:
        hook.local_worker.user = "dana"
        trainer.fit(1)
        hook.local_worker.user = None

    return run


SERVED = """
import sys, torch, syft_core as sy
sys.path.insert(0, {here!r})
from federated import make_data
torch.set_num_threads(1)
hook = sy.TorchHook(torch)
data = make_data({clients})
servers = []
for number in range({first}, {last}):
    server = sy.WebsocketServerWorker(hook, "127.0.0.1", 0, id=f"served {{number}}", auto_add=False)
    x, y = data[number]
    server.load_data([x.tag("#x"), y.tag("#y")])
    server.start(block=False)
    servers.append(server)
print(*[f"{{server.port}}/{{server.token}}" for server in servers], flush=True)
sys.stdin.read()
"""


def make_served(hook: Any, clients: int, stack: ExitStack) -> Callable[[], Any]:
    """Return a round with workers in two processes."""
    from syft_torch import federated as fl  # noqa: PLC0415  # the same

    locations = []
    for part in range(2):
        bounds = {"first": part * clients // 2, "last": (part + 1) * clients // 2}
        code = SERVED.format(here=str(HERE), clients=clients, **bounds)
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        stack.callback(process.wait)
        stack.callback(process.stdin.close)
        for line in process.stdout.readline().split():
            port, _, token = line.partition("/")
            locations.append(sy.connect(f"ws://127.0.0.1:{port}", token=token))
            stack.callback(locations[-1].close)
    found = fl.find("#x", "#y", workers=locations)
    trainer = fl.FederatedTrainer(
        make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=LR), found, batch_size=BATCH
    )
    return lambda: trainer.fit(1)


class Peer:
    """Another system, or ours on Ray, in a process of its own, that runs a round when it reads a line."""

    def __init__(self, name: str, python: str, clients: int, stack: ExitStack) -> None:
        began = time.perf_counter()
        script, *arguments = name.split(", ")
        command = [python, str(HERE / f"federated_{script}.py"), str(clients), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)} if script == "ray" else None
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment,
        )  # fmt: skip
        self.memory = 0.0
        self.first: float | None = None
        stack.callback(self._process.wait)
        stack.callback(self._process.stdin.close)
        self.facts = self._answer()
        self._began = began

    def run(self) -> tuple[float, float]:
        """Return the CPU seconds and the wall time of a round."""
        self._process.stdin.write("round\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.memory = max(self.memory, answer.get("memory", 0.0))
        return answer["cpu"], answer["wall"]

    def start(self) -> None:
        """Run the first round, so that nothing is left to be started."""
        self.run()
        self.first = time.perf_counter() - self._began

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a peer ended with code {self._process.wait()}")
        return json.loads(line)


def start_peer(name: str, python: str, clients: int, stack: ExitStack, attempts: int = 3) -> Peer:
    """Start a peer and run its first round; try again, because Ray may not start on a busy machine."""
    try:
        peer = Peer(name, python, clients, stack)
        peer.start()
    except RuntimeError:
        if attempts == 1:
            raise
        return start_peer(name, python, clients, stack, attempts - 1)
    return peer


def time_here(run: Callable[[], Any]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - wall


def make_variants(
    clients: int, stack: ExitStack, setting_up: dict[str, float]
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Return what runs in this process, or is served to it."""
    hook = stack.enter_context(sy.TorchHook(torch))
    hook.attributes.warm_up()
    data = make_data(clients)
    variants: dict[str, Callable[[], tuple[float, float]]] = {}
    plain = make_plain(data)
    variants["plain loop"] = lambda: time_here(plain)
    for name in GOALS:
        run, setting_up[name] = make_ours(hook, name, data)
        variants[name] = lambda run=run: time_here(run)
    if clients <= MOST_MEMBERS:
        summed = make_summed(hook, data, stack)
        variants[SUMMED] = lambda: time_here(summed)
    served = make_served(hook, clients, stack) if clients <= 10 else None
    if served is not None:
        variants["served, two processes"] = lambda: time_here(served)
    return variants


def measure(clients: int, rounds: int, peers: dict[str, str], only_ray: bool) -> list[list[str]]:
    """Return the rows of the table for a number of clients."""
    with ExitStack() as stack:
        setting_up: dict[str, float] = {}
        variants = {} if only_ray else make_variants(clients, stack, setting_up)
        started = {}
        for name, python in peers.items():
            started[name] = start_peer(name, python, clients, stack)
        variants.update({name: peer.run for name, peer in started.items()})
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
        for turn in range(rounds + 1):
            for name in random.Random(turn).sample(list(variants), len(variants)):
                seconds = variants[name]()
                if turn:  # The first one warms up.
                    found[name].append(seconds)
        loop = None if only_ray else [min(column) for column in zip(*found["plain loop"], strict=True)]
        plain = min([cpu for cpu, _ in found["workers"]]) if "workers" in found else None
        rows = []
        for name, times in found.items():
            cpu, wall = (min(column) for column in zip(*times, strict=True))
            is_wall = name.startswith("served")
            ratio = None if loop is None else wall / loop[1] if is_wall else cpu / loop[0]
            goal = 0.75 if is_wall else GOALS.get(name)
            note = " (wall)" if is_wall else ""
            if name == SUMMED:
                ratio, goal, note = cpu / plain, SUMMED_GOAL, " (to workers)"
            rows.append([
                name, f"{cpu:.3f}", f"{median([t[0] for t in times]):.3f}", f"{wall:.3f}",
                "-" if ratio is None else f"**{ratio:.2f}**{note}",
                "-" if goal is None else f"≤ {goal}",
                "-" if goal is None else verdict(ratio, goal),
                _tell_start(name, setting_up, started),
            ])  # fmt: skip
        return rows


def _tell_start(name: str, setting_up: dict[str, float], started: dict[str, Peer]) -> str:
    if name in started:
        peer = started[name]
        memory = f", {peer.memory:.0f} MB" if peer.memory else ""
        return f"first round after {peer.first:.1f} s{memory}"
    return f"{setting_up[name]:.2f}" if name in setting_up else "-"


def measure_memory() -> str:
    """Return the peak memory of a run with 1,000 clients of which ten train, compared with ten clients."""
    code = """
import resource, sys, torch, syft_core as sy
sys.path.insert(0, {here!r})
from federated import *
from syft_torch import federated as fl
hook = sy.TorchHook(torch)
def load(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(SAMPLES, SIZE, generator=generator), torch.randint(0, CLASSES, (SAMPLES,), generator=generator)
population = fl.Population({size}, load)
trainer = fl.FederatedTrainer(make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=LR), population,
                              batch_size=BATCH, options=fl.Options(clients_per_round=10))
trainer.fit(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    peaks = []
    for size in (10, 1000):
        run = [sys.executable, "-c", code.format(here=str(HERE), size=size)]
        done = subprocess.run(
            run, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        peaks.append(int(done.stdout.split()[-1]) / 1024)
    ratio = peaks[1] / peaks[0]
    found = f"{peaks[0]:.0f} MB of ten, {peaks[1]:.0f} MB of 1,000 clients: {ratio:.2f} times"
    return f"Peak memory, ten clients a round: {found} (goal 1.5, {verdict(ratio, 1.5)})."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", default="10,100")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pfl", help="the Python of an environment with pfl")
    parser.add_argument("--flower", help="the Python of an environment with Flower and Ray")
    parser.add_argument("--ray", default=sys.executable, help="the Python of an environment with syft-core and Ray")
    parser.add_argument("--only-ray", action="store_true")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    venvs = Path(os.environ.get("PEERS", HERE / ".venvs"))
    peers = {}
    for name in ("pfl", "flower"):
        python = getattr(arguments, name) or str(venvs / name / "bin" / "python")
        if Path(python).exists() and (name == "flower" or not arguments.only_ray):
            peers[name] = python
            if name == "flower" and not arguments.only_ray:
                peers["flower, sums"] = python
    if subprocess.run([arguments.ray, "-c", "import ray"], capture_output=True, check=False).returncode == 0:
        peers |= {"ray": arguments.ray, "ray, population": arguments.ray}
    texts = []
    header = ["", "CPU s", "median", "wall s", "ratio to the loop", "goal", "", "CPU ms to set up a client"]
    for clients in map(int, arguments.clients.split(",")):
        rounds = arguments.rounds if clients <= 10 else max(arguments.rounds // 2, 2)
        rows = measure(clients, rounds, peers, arguments.only_ray)
        texts.append(f"**{clients} clients**\n\n{table(header, rows)}")
        print(texts[-1], flush=True)
    if not arguments.only_ray:
        texts.append(measure_memory())
        print(texts[-1])
    texts.append(f"{machine()}, torch {torch.__version__}, one thread.")
    print(texts[-1])
    if arguments.update:
        update_readme("federated", "\n\n".join(texts))


if __name__ == "__main__":
    main()
