"""A worker that trains, and the same loop without one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from syft_core.hook.forms import form
from syft_core.messages import FetchAll, Store
from syft_core.pointers.object_pointer import new_id

torch = pytest.importorskip("torch")
from syft_torch.federated import losses, optimizers  # noqa: E402
from syft_torch.federated.layout import Layout  # noqa: E402
from syft_torch.federated.training import Train  # noqa: E402

cross_entropy = torch.nn.functional.cross_entropy


SAMPLES, SIZE = 50, 8


class Setting:
    """A model, data on a worker, and a recorded loss there."""

    def __init__(
        self, hook: Any, worker: Any, private: bool = False, model: Any = None, loss: Any = cross_entropy
    ) -> None:
        torch.manual_seed(0)
        self.hook, self.worker = hook, worker
        self.location = hook.local_worker.location_of(worker)
        self.model = model or torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        self.x, self.y = torch.randn(SAMPLES, 4), torch.randint(0, 3, (SAMPLES,))
        parts = [self.x.clone(), self.y.clone()]
        stored = [part.private_tensor(["board"]) for part in parts] if private else parts
        worker.load_data([part.tag(tag) for part, tag in zip(stored, ("#x", "#y"), strict=True)])
        self.data = tuple([worker.search(tag)[0].child for tag in ("#x", "#y")])
        self.make = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)
        self.record(loss)

    def record(self, loss: Any) -> None:
        forms = [form((SAMPLES, 4), None, torch.float32), form((SAMPLES,), None, torch.int64)]
        compute = lambda model, x, y: loss(model(x), y)  # noqa: E731  # short
        self.recorded = losses.record(self.model, compute, forms, [SIZE, SAMPLES % SIZE], (loss,))
        self.weights = Layout(self.recorded.trained).join(self.recorded.trained)
        programs = self.recorded.programs.find([SIZE, SAMPLES % SIZE])
        self.plans = tuple([self.store(program) for program in programs])

    def store(self, program: Any) -> int:
        id = new_id()
        self.location.tell(Store(id, program))
        return id

    @property
    def settings(self) -> dict[str, Any]:
        name, groups = optimizers.describe(self.make, self.model)
        return {"epochs": 2, "batch_size": SIZE, "optimizer": name, "groups": groups}

    def message(self, **changes: Any) -> Train:
        fixed = tuple([tensor.detach().send(self.worker).child for tensor in self.recorded.fixed])
        sent = Train(self.plans, self.weights, fixed, self.data, 2, self.settings, new_id(), seed=5)
        return replace(sent, **changes)

    def train(self, **changes: Any) -> list[Any]:
        message = self.message(**changes)
        self.location.tell(message)
        found: list[Any] = self.location.ask(FetchAll((message.result, message.result + 1)))
        return found

    def train_here(self, seed: int | None = 5) -> tuple[Any, float]:
        """Train with a plain loop of torch; return the difference and the mean loss."""
        optimizer, total = self.make(self.model.parameters()), 0.0
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        for _ in range(2):
            order = torch.arange(SAMPLES) if generator is None else torch.randperm(SAMPLES, generator=generator)
            for rows in order.split(SIZE):
                optimizer.zero_grad()
                loss = cross_entropy(self.model(self.x[rows]), self.y[rows])
                loss.backward()
                optimizer.step()
                total += loss.item() * len(rows)
        return Layout(self.recorded.trained).join(self.recorded.trained) - self.weights, total / 2 / SAMPLES
