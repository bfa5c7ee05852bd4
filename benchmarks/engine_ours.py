"""Our own engine for ``encrypted.py``: two workers and a provider, through the public API.

``engine_ours.py`` serves each worker in a process of its own on loopback, ``engine_ours.py --in-process`` runs all of
them in this process. Rounds and bytes are counted in process: the protocols are the same.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import Any

import measure  # noqa: F401  # makes this checkout importable
import network_servers as servers
import numpy as np
import torch
from engines import Engine, serve
from tasks import HEADS, LEARNING_RATE, Task, run_resnet
from torch.nn import functional

import syft_core as sy

PRECISION = {"base": 2, "precision_fractional": 16}
NAMES = ("bob", "alice", "carol")


class InProcess(Engine):
    """Virtual workers."""

    version = torch.__version__

    def __init__(self, hook: Any) -> None:
        self.bob, self.alice, self.carol = (sy.VirtualWorker(hook, id=f"{name} here") for name in NAMES)

    def load(self, task: Task) -> Callable[[], Any]:
        inputs = self._inputs = [self._share(torch.from_numpy(array)) for array in task.inputs()]
        self._is_product = task.kind in ("matmul", "conv2d")
        if task.kind == "train":
            return make_training(*inputs)

        def run() -> Any:
            with torch.no_grad():
                return FUNCTIONS[task.kind](*inputs)

        return run

    def _share(self, x: torch.Tensor) -> torch.Tensor:
        return x.fix_precision(**PRECISION).share(self.bob, self.alice, crypto_provider=self.carol)

    def reveal(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self.reveal(part.detach().clone()) for part in result]
        return result.get().float_precision().numpy().astype(np.float64)

    def synchronize(self) -> None:
        """Replace the second factor of a single product: otherwise its mask would be kept, as that of a weight is."""
        if self._is_product:
            self._inputs[1] = self._inputs[1] + 0

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        for _ in range(2):  # From then on, the masks of weights are kept.
            run()
        self.synchronize()
        with sy.crypto.group.count() as counted:
            run()
        return {"rounds": counted.rounds, "bytes": counted.bytes, "dealt": counted.dealt}


class TwoProcesses(InProcess):
    """Workers in processes of their own."""

    def __init__(self, hook: Any, stack: ExitStack) -> None:
        self.hook = hook
        running = {name: stack.enter_context(servers.start(servers.serve_party, name)) for name in NAMES}
        ports = {name: server.port for name, server in running.items()}
        for server in running.values():
            server.ask(ports)
        self.bob, self.alice, self.carol = (
            sy.WebsocketClientWorker(hook, "127.0.0.1", ports[name], token="local") for name in NAMES
        )

    def load(self, task: Task) -> Callable[[], Any]:
        self.task = task
        compute = super().load(task)

        def run() -> Any:
            result = compute()
            for worker in (self.bob, self.alice):
                worker.flush()  # waits until the parties are done
            return result

        return run

    def synchronize(self) -> None:
        super().synchronize()
        for worker in 2 * (self.bob, self.alice):
            worker.flush()  # The second time, it waits for the release of old results.

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        return self._here.count(self._here.load(self.task))

    @cached_property
    def _here(self) -> InProcess:
        return InProcess(self.hook)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return functional.linear(functional.relu(functional.linear(x, w1, b1)), w2, b2)


def cnn(x: Any, *layers: Any) -> Any:
    c1, cb1, c2, cb2, *dense = layers
    x = functional.max_pool2d(functional.relu(functional.conv2d(x, c1, cb1, padding=2)), 2)
    x = functional.max_pool2d(functional.relu(functional.conv2d(x, c2, cb2)), 2).flatten(1)
    w1, b1, *last = dense
    return mlp(functional.relu(functional.linear(x, w1, b1)), *last)


def resnet(x: Any, *layers: Any) -> Any:
    def conv(x: Any, w: Any, b: Any, padding: int, stride: int) -> Any:
        return functional.conv2d(x, w, b, stride=stride, padding=padding)

    def pool(x: Any) -> Any:
        return functional.max_pool2d(x, 3, 2, 1)

    def finish(x: Any, w: Any, b: Any) -> Any:
        return functional.linear(x.mean((2, 3)), w, b)

    return run_resnet(x, layers, conv, functional.relu, pool, finish)


def encoder(x: Any, *layers: Any) -> Any:
    inner, inner_b, out, out_b, w1, b1, w2, b2, n1, nb1, n2, nb2 = layers
    shape, tokens = (x.shape[-1],), len(x)
    heads = functional.linear(x, inner, inner_b).view(tokens, 3, HEADS, -1).permute(1, 2, 0, 3)
    q, k, v = heads[0], heads[1], heads[2]
    scores = torch.matmul(q, k.transpose(1, 2)) * q.shape[-1] ** -0.5
    mixed = torch.matmul(torch.softmax(scores, -1), v).permute(1, 0, 2).reshape(tokens, -1)
    x = functional.layer_norm(x + functional.linear(mixed, out, out_b), shape, n1, nb1)
    return functional.layer_norm(x + mlp(x, w1, b1, w2, b2), shape, n2, nb2)


def regression(x: Any, w: Any, b: Any, labels: Any) -> list[Any]:
    errors = (torch.sigmoid(x @ w + b) - labels) / len(x)
    return [w - LEARNING_RATE * (x.t() @ errors), b - LEARNING_RATE * errors.sum(0)]


def make_training(x: Any, *rest: Any) -> Callable[[], Any]:
    """Return a function that trains the parameters by one more step."""
    *parameters, labels = rest
    for parameter in parameters:
        parameter.requires_grad_()
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)

    def step() -> list[Any]:
        optimizer.zero_grad()
        ((mlp(x, *parameters) - labels) ** 2).mean().backward()
        optimizer.step()
        return parameters

    return step


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mul": torch.mul,
    "matmul": torch.matmul,
    "relu": torch.relu,
    "lt": torch.lt,
    "conv2d": functional.conv2d,
    "max_pool2d": lambda x: functional.max_pool2d(x, 2),
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: torch.softmax(x, 1),
    "mlp": mlp,
    "cnn": cnn,
    "regression": regression,
    "encoder": encoder,
    "resnet": resnet,
}


def main() -> None:
    logging.disable(logging.WARNING)  # Nothing here is encrypted on the way.
    in_process = "--in-process" in sys.argv
    if not in_process:
        torch.set_num_threads(1)  # The other core is for the parties.
    hook = sy.TorchHook(torch)
    hook.attributes.warm_up()
    with ExitStack() as stack:
        serve(lambda: InProcess(hook) if in_process else TwoProcesses(hook, stack))


if __name__ == "__main__":
    main()
