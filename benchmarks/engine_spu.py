"""SPU 0.9.5 with SEMI2K for ``encrypted.py``: two parties, of which the first deals the triples.

``engine_spu.py`` runs them in two processes on loopback, ``engine_spu.py --one-process`` in two threads.
"""

from __future__ import annotations

import os
import pickle
import re
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from engines import Engine, serve, serve_parties
from tasks import HEADS, LEARNING_RATE, Task, run_resnet

os.environ["OMP_THREAD_LIMIT"] = "1"  # without it up to eight times slower on two cores
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import spu
from spu import libspu
from spu.utils import frontend

SECRET = libspu.Visibility.VIS_SECRET
TRAFFIC = re.compile(r"Link details: total send bytes (\d+), .*send actions (\d+),")


class TwoProcesses(Engine):
    """One party in a process of its own."""

    version = spu.__version__

    def __init__(self, rank: int, hosts: list[str]) -> None:
        print_profiles()
        self.party = Party(rank, libspu.link.create_brpc(describe_link(hosts), rank))

    def load(self, task: Task) -> Callable[[], Any]:
        executable = compile_task(task)
        if self.party.rank == 0:
            mine, theirs = zip(*share(task), strict=True)
            self.party.link.send(1, pickle.dumps(theirs))
        else:
            mine = pickle.loads(self.party.link.recv(0))
        self.party.take(executable, mine)
        return self.party.run

    def reveal(self, result: None) -> Any:
        mine, other = self.party.give(), 1 - self.party.rank
        self.party.link.send(other, pickle.dumps(mine))
        theirs = pickle.loads(self.party.link.recv(other))
        return reconstruct([mine, theirs] if other else [theirs, mine])

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        with read_traffic() as traffic:
            self.party.run_profiled()
        return traffic[0]

    def synchronize(self) -> None:
        self.party.link.barrier()


class OneProcess(Engine):
    """Both parties, each in a thread."""

    version = spu.__version__

    def __init__(self) -> None:
        print_profiles()
        description = describe_link(["first", "second"])
        self.pool = ThreadPoolExecutor(2)
        self.parties: list[Party] = []
        self.parties = self._all(lambda rank: Party(rank, libspu.link.create_mem(description, rank)), [0, 1])

    def load(self, task: Task) -> Callable[[], Any]:
        executable = compile_task(task)
        self._all(
            lambda party, shares: party.take(executable, shares), self.parties, list(zip(*share(task), strict=True))
        )
        return lambda: self._all(Party.run, self.parties)

    def reveal(self, result: Any) -> Any:
        return reconstruct([party.give() for party in self.parties])

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        with read_traffic() as traffic:
            self._all(Party.run_profiled, self.parties)
        return {"rounds": traffic[0]["rounds"], "bytes": sum(party["bytes"] for party in traffic)}

    def _all(self, function: Callable[..., Any], *arguments: list[Any]) -> list[Any]:
        return list(self.pool.map(function, *arguments))


class Party:
    """A party with its link to the other one and its shares of one task."""

    def __init__(self, rank: int, link: Any) -> None:
        self.rank, self.link = rank, link

    def take(self, executable: Any, shares: list[Any]) -> None:
        self.executable = executable
        self.runtime = spu.Runtime(self.link.spawn(), configure())
        self.profiled = spu.Runtime(self.link.spawn(), configure(enable_pphlo_profile=True))
        for runtime in (self.runtime, self.profiled):
            for name, shared in zip(executable.input_names, shares, strict=True):
                runtime.set_var(name, shared)

    def run(self) -> None:
        self.runtime.run(self.executable)

    def run_profiled(self) -> None:
        self.profiled.run(self.executable)

    def give(self) -> list[Any]:
        """Return the shares of the results."""
        return [self.runtime.get_var(name) for name in self.executable.output_names]


def configure(**options: Any) -> Any:
    config = libspu.RuntimeConfig(protocol=libspu.ProtocolKind.SEMI2K, field=libspu.FieldType.FM64)
    for name, value in options.items():
        setattr(config, name, value)
    return config


def describe_link(hosts: list[str]) -> Any:
    description = libspu.link.Desc()
    for rank, host in enumerate(hosts):
        description.add_party(f"party {rank}", host)
    return description


def compile_task(task: Task) -> Any:
    inputs = task.inputs()
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        FUNCTIONS[task.kind],
        inputs,
        {},
        [f"in{i}" for i in range(len(inputs))],
        [SECRET] * len(inputs),
        lambda outputs: [f"out{i}" for i in range(len(outputs))],
    )
    return executable


def share(task: Task) -> list[Any]:
    """Return the shares of both parties for each input."""
    io = spu.Io(2, configure())
    return [io.make_shares(array, SECRET) for array in task.inputs()]


def reconstruct(parties: list[list[Any]]) -> Any:
    io = spu.Io(2, configure())
    results = [np.asarray(io.reconstruct(list(shares)), np.float64) for shares in zip(*parties, strict=True)]
    return results if len(results) > 1 else results[0]


def print_profiles() -> None:
    options = libspu.logging.LogOptions()
    options.system_log_path = os.devnull  # not spu.log in the current folder
    libspu.logging.setup_logging(options)


@contextmanager
def read_traffic() -> Iterator[list[dict[str, int]]]:
    """Collect the traffic of each party from what SPU prints: it has no other way to tell."""
    found: list[dict[str, int]] = []
    with TemporaryFile() as file, ExitStack() as stack:
        for number in (1, 2):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
        yield found
        file.seek(0)
        text = file.read().decode()
    found += [{"bytes": int(sent), "rounds": int(rounds)} for sent, rounds in TRAFFIC.findall(text)]


def conv2d(x: Any, w: Any, padding: str = "VALID") -> Any:
    return jax.lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def max_pool2d(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return jax.nn.relu(x @ w1.T + b1) @ w2.T + b2


def cnn(x: Any, *layers: Any) -> Any:
    c1, cb1, c2, cb2, w1, b1, w2, b2, w3, b3 = layers
    x = max_pool2d(jax.nn.relu(conv2d(x, c1, "SAME") + cb1[:, None, None]))
    x = max_pool2d(jax.nn.relu(conv2d(x, c2) + cb2[:, None, None])).reshape(len(x), -1)
    return jax.nn.relu(jax.nn.relu(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3


def train(x: Any, *rest: Any) -> list[Any]:
    *parameters, labels = rest

    def loss(parameters: list[Any]) -> Any:
        return ((mlp(x, *parameters) - labels) ** 2).mean()

    grads = jax.grad(loss)(parameters)
    return [parameter - LEARNING_RATE * grad for parameter, grad in zip(parameters, grads, strict=True)]


def resnet(x: Any, *layers: Any) -> Any:
    def conv(x: Any, w: Any, b: Any, padding: int, stride: int) -> Any:
        around = ((padding, padding),) * 2
        found = jax.lax.conv_general_dilated(x, w, (stride, stride), around, dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return found + b[:, None, None]

    def pool(x: Any) -> Any:
        padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))  # Nothing is negative.
        return jax.lax.reduce_window(padded, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")

    return run_resnet(x, layers, conv, jax.nn.relu, pool, lambda x, w, b: x.mean((2, 3)) @ w.T + b)


def norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def encoder(x: Any, *layers: Any) -> Any:
    inner, inner_b, out, out_b, w1, b1, w2, b2, n1, nb1, n2, nb2 = layers
    q, k, v = (x @ inner.T + inner_b).reshape(len(x), 3, HEADS, -1).transpose(1, 2, 0, 3)
    scores = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    mixed = (jax.nn.softmax(scores) @ v).transpose(1, 0, 2).reshape(x.shape)
    x = norm(x + mixed @ out.T + out_b, n1, nb1)
    return norm(x + mlp(x, w1, b1, w2, b2), n2, nb2)


def regression(x: Any, w: Any, b: Any, labels: Any) -> list[Any]:
    errors = (jax.nn.sigmoid(x @ w + b) - labels) / len(x)
    return [w - LEARNING_RATE * (x.T @ errors), b - LEARNING_RATE * errors.sum(0)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mul": jnp.multiply,
    "matmul": jnp.matmul,
    "relu": jax.nn.relu,
    "lt": jnp.less,
    "conv2d": conv2d,
    "max_pool2d": max_pool2d,
    "sigmoid": jax.nn.sigmoid,
    "softmax": jax.nn.softmax,
    "mlp": mlp,
    "cnn": cnn,
    "train": train,
    "regression": regression,
    "encoder": encoder,
    "resnet": resnet,
}


def main() -> None:
    if "--one-process" in sys.argv:
        serve(OneProcess)
        return
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        hosts = [f"127.0.0.1:{sock.getsockname()[1]}" for sock in sockets]
    serve_parties(TwoProcesses, hosts)


if __name__ == "__main__":
    main()
