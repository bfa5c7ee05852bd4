"""What is run on workers: the same statements for us and for the ancestor.

As a script it is a process that times them with this library.

Python 3.7 with torch 1.4 can run this file: the ancestor's script imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from measure import Clock, serve

ELEMENTS, POOL = 10, 40
SAMPLES, BATCH = 2000, 32


def clocks(bob: Any, alice: Any) -> dict[str, Callable[[], float]]:
    """Return a clock for each statement, on two workers."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = torch.rand(ELEMENTS), torch.rand(ELEMENTS)
    plain = {"x": x, "y": y, "bob": bob}
    pointers = {"x": x.send(bob), "y": torch.rand(ELEMENTS).send(bob)}
    return {
        "plain add": Clock("x + y", plain),
        "pointer add": Clock("x + y", pointers),
        "send": Clock("x.send(bob)", plain),
        "get": lambda: time_gets(bob),
        "local epoch": Epoch(None, None),
        "remote epoch": Epoch(bob, alice),
    }


def time_gets(worker: Any) -> float:
    """Return the seconds of one get, which can be done only once for each pointer: the fastest of five pools."""
    times = []
    for _ in range(5):
        pointers = [torch.rand(ELEMENTS).send(worker) for _ in range(POOL)]
        start = perf_counter()
        for pointer in pointers:
            pointer.get()
        times.append((perf_counter() - start) / POOL)
    return min(times)


class Epoch:
    """One epoch of an MLP 784-128-10 over the batches of two workers, as the ancestor's tutorials train.

    Without workers the same batches are trained on here; sending and fetching the model is all that is left out.
    """

    def __init__(self, *workers: Any) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.batches = [batch for worker in workers for batch in self.make_batches(worker, SAMPLES // len(workers))]

    def make_batches(self, worker: Any, samples: int) -> list[Any]:
        data, target = torch.rand(samples, 784), torch.randint(10, (samples,))
        batches = [(data[i : i + BATCH].clone(), target[i : i + BATCH].clone()) for i in range(0, samples, BATCH)]
        return batches if worker is None else [(d.send(worker), t.send(worker)) for d, t in batches]

    def __call__(self) -> float:
        start = perf_counter()
        for data, target in self.batches:
            self.step(data, target)
        return perf_counter() - start

    def step(self, data: Any, target: Any) -> Any:
        location = data.location if hasattr(data, "child") else None
        if location is not None:
            self.model.send(location)
        loss = self.train(data, target)
        if location is not None:
            self.model.get()
            loss = loss.get()
        return loss

    def train(self, data: Any, target: Any) -> Any:
        return train(self.model, self.optimizer, data, target)


def train(model: Any, optimizer: Any, data: Any, target: Any) -> Any:
    """Take one step, and return the loss."""
    optimizer.zero_grad()
    scores = torch.nn.functional.log_softmax(model(data), dim=1)
    loss = torch.nn.functional.nll_loss(scores, target)
    loss.backward()
    optimizer.step()
    return loss


class FetchOnceEpoch(Epoch):
    """The same batches, but each worker gets the model once, and the results are fetched when it has trained.

    The second worker continues with the model of the first, so the workers take turns, and the client waits for each.
    """

    def __call__(self) -> float:
        start = perf_counter()
        for batches in self.by_worker():
            self.model.send(batches[0][0].location)
            losses = [self.train(data, target) for data, target in batches]
            self.fetch_all(self.model, torch.stack(losses))
        return perf_counter() - start

    def fetch_all(self, *objects: Any) -> None:
        from syft_core.pointers.travel import get_all  # noqa: PLC0415  # the ancestor's Python has none

        get_all(*objects)

    def by_worker(self) -> list[list[Any]]:
        """Return the batches of each worker."""
        workers: dict[Any, list[Any]] = {}
        for batch in self.batches:
            workers.setdefault(batch[0].location.id, []).append(batch)
        return list(workers.values())


class FederatedEpoch(FetchOnceEpoch):
    """The same batches; each worker trains its own copy of the model, and all results are fetched at the end."""

    def __call__(self) -> float:
        start = perf_counter()
        results: list[Any] = []
        for batches in self.by_worker():
            model = self.model.copy().send(batches[0][0].location)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            losses = [train(model, optimizer, data, target) for data, target in batches]
            results += (model, torch.stack(losses))
        self.fetch_all(*results)
        return perf_counter() - start


class PlannedEpoch(Epoch):
    """The same epoch with a plan per step: each worker has a copy of the model, and its last loss is fetched."""

    def __init__(self, *workers: Any) -> None:
        from syft_core.plans.plan import Plan  # noqa: PLC0415  # the ancestor's Python has none

        super().__init__(*workers)
        shapes, dtypes = [(-1, 784), (-1,)], [torch.float32, torch.int64]
        plan = Plan("step", self.train, args_shape=shapes, args_dtypes=dtypes)
        self.plan = plan.build().send(*workers)
        for data, target in self.batches:
            self.plan(data, target)  # The first calls learn the forms of the results.

    def __call__(self) -> float:
        start = perf_counter()
        losses = {data.location.id: self.plan(data, target) for data, target in self.batches}
        for loss in losses.values():
            loss.get()
        return perf_counter() - start


def protected_clocks(hook: Any) -> dict[str, Callable[[], float]]:
    """Return clocks for an addition and an SGD step, with and without quotas, on plain and on private data."""
    from syft_core.workers.party.virtual import VirtualWorker  # noqa: PLC0415  # the ancestor's Python has none

    hook.local_worker.user = "ann"
    owner = VirtualWorker(hook, id="zoe's program")
    owner.user = "zoe"
    found: dict[str, Callable[[], float]] = {}
    for quotas in (False, True):
        for private in (False, True):
            name = f"{'quotas' if quotas else 'no quotas'}, {'private' if private else 'plain'}"
            worker = VirtualWorker(hook, id=name)
            if quotas:
                worker.guard = make_guard(worker)
            x, y = place([torch.rand(ELEMENTS), torch.rand(ELEMENTS)], worker, owner if private else None)
            found[f"add: {name}"] = Clock("x + y", {"x": x, "y": y})
            data, target = place(
                [torch.rand(BATCH, 784), torch.randint(10, (BATCH,))], worker, owner if private else None
            )
            model = Epoch().model.send(worker)
            names = {"train": train, "model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.01)}
            names.update({"data": data, "target": target})
            found[f"step: {name}"] = Clock("train(model, optimizer, data, target)", names, block=0.004)
    return found


def make_guard(worker: Any) -> Any:
    """Return the guard of a served worker, with a record of what it executes."""
    import os  # noqa: PLC0415

    from syft_worker.activity import SIZE, Activity  # noqa: PLC0415
    from syft_worker.allowances import limit_bytes  # noqa: PLC0415
    from syft_worker.quotas import QuotaGuard  # noqa: PLC0415

    record = os.memfd_create("activity")
    os.truncate(record, SIZE)
    return QuotaGuard(worker, limit_bytes({}, 8 << 30), activity=Activity(record))


def place(tensors: list[Any], worker: Any, owner: Any) -> list[Any]:
    """Send tensors or, if they are private, let their owner publish them and find them."""
    if owner is None:
        return [tensor.send(worker) for tensor in tensors]
    found = []
    for tensor in tensors:
        tag = f"#{len(worker._objects)}"
        owner.send(tensor.private_tensor([owner.user]).tag(tag), worker).publish()
        found += worker.search(tag)
    return found


def main() -> None:
    from syft_core.workers.party.virtual import VirtualWorker  # noqa: PLC0415  # the ancestor's Python has none
    from syft_torch.hook import TorchHook  # noqa: PLC0415

    hook = TorchHook(torch)
    hook.attributes.warm_up()

    def create(purpose: str, serialize: bool = False) -> list[Any]:  # Each with the objects of one measurement only.
        return [VirtualWorker(hook, id=f"{name} {purpose}", serialize=serialize) for name in ("bob", "alice")]

    planned = {
        "planned epoch": PlannedEpoch(*create("planned")),
        "planned epoch by wire": PlannedEpoch(*create("by wire", serialize=True)),
    }
    serve({}, {**clocks(*create("")), **planned, **protected_clocks(hook)})


if __name__ == "__main__":
    main()
