"""Measure training on one served worker: ``python benchmarks/served.py [--rounds N] [--update]``.

The worker is the one that ``syft-core worker`` serves, with quotas and a ledger file, in a process of its own. The
model and the data, 30 batches of 32, stay there; an epoch ends when the client has waited for the worker. It is
compared with the same epoch on local tensors. Private data belongs to another user, who has published it; the client
cannot fetch it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import network_servers as servers
import torch
from measure import compare, machine, table, update_readme, verdict

from syft_core.network.client import WebsocketClientWorker
from syft_core.plans.plan import Plan
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.hook import TorchHook

BATCHES, BATCH = 30, 32
LIMITS = {(False, False): 2.2, (False, True): 2.8, (True, False): 1.5, (True, True): 2.0}
"""The targets, by whether a plan is used and whether the data is private."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="rounds of A B B A per comparison (15)")
    parser.add_argument("--update", action="store_true", help="write the table into benchmarks/README.md")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # Nothing here is encrypted.
    torch.set_num_threads(1)
    hook = TorchHook(torch)
    hook.attributes.warm_up()
    with servers.start(servers.serve_worker, "bob") as server:
        owner = connect(hook, server.port, "zoe", VirtualWorker(hook, id="zoe's program"))
        client = connect(hook, server.port, "ann", None)
        rows = list(measure(client, owner, options.rounds))
        client.close()
        owner.close()
    headers = ["one epoch, served", "local ms", "ms", "ratio", "95 %", "target", ""]
    text = f"{table(headers, rows)}\n\n{machine()}, torch {torch.__version__}, one thread."
    print(text)
    if options.update:
        update_readme("served", text)


def connect(hook: Any, port: int, user: str, client: VirtualWorker | None) -> WebsocketClientWorker:
    if client is not None:
        client.user = user
    return WebsocketClientWorker(hook, "127.0.0.1", port, token=user, client=client)


def measure(client: Any, owner: Any, rounds: int) -> Iterator[list[str]]:
    """Yield a row for each way to train."""
    local = make_epoch(make_model(), make_batches(), wait=lambda: None)
    for planned in (False, True):
        for private in (False, True):
            batches = send(make_batches(), client, owner if private else None)
            epoch = (plan_epoch if planned else train_there)(client, batches)
            epoch()
            found, limit = compare(local, epoch, rounds), LIMITS[planned, private]
            name = f"{'private' if private else 'plain'} data, {'a plan per step' if planned else 'no plan'}"
            times = f"{found.a * 1e3:.0f}", f"{found.b * 1e3:.0f}"
            shown = f"**{found.ratio:.2f}**", found.interval(), f"≤ {limit:g}", verdict(found.ratio, limit)
            yield [name, *times, *shown]


def make_model() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))


def make_batches() -> list[Any]:
    torch.manual_seed(2)
    return [(torch.rand(BATCH, 784), torch.randint(10, (BATCH,))) for _ in range(BATCHES)]


def send(batches: list[Any], client: Any, owner: Any) -> list[Any]:
    """Send batches as the client or, private, as another user who publishes them."""
    if owner is None:
        return [(data.send(client), target.send(client)) for data, target in batches]
    sender = owner.client
    for number, batch in enumerate(batches):
        for part, tensor in zip(("data", "target"), batch, strict=True):
            private = tensor.private_tensor([sender.user])
            sender.send(private.tag(f"#{part}{number}"), owner).publish()
    found = [[client.search(f"#{part}{number}")[0] for part in ("data", "target")] for number in range(len(batches))]
    return [tuple(batch) for batch in found]


def make_epoch(model: Any, batches: list[Any], wait: Callable[[], Any]) -> Callable[[], float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def epoch() -> float:
        start = perf_counter()
        for data, target in batches:
            step(model, optimizer, data, target)
        wait()
        return perf_counter() - start

    return epoch


def step(model: Any, optimizer: Any, data: Any, target: Any) -> Any:
    optimizer.zero_grad()
    scores = torch.nn.functional.log_softmax(model(data), dim=1)
    loss = torch.nn.functional.nll_loss(scores, target)
    loss.backward()
    optimizer.step()
    return loss


def train_there(client: Any, batches: list[Any]) -> Callable[[], float]:
    return make_epoch(make_model().send(client), batches, lambda: client.search("#nothing"))


def plan_epoch(client: Any, batches: list[Any]) -> Callable[[], float]:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(data: Any, target: Any) -> Any:
        return step(model, optimizer, data, target)

    plan = Plan("step", train, args_shape=[(-1, 784), (-1,)], args_dtypes=[torch.float32, torch.int64])
    sent = plan.build().send(client)

    def epoch() -> float:
        start = perf_counter()
        for data, target in batches:
            sent(data, target)
        client.search("#nothing")
        return perf_counter() - start

    return epoch


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
