"""CrypTen 0.4.1 for ``encrypted.py``: two processes on loopback, the first of which deals the triples."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from engines import Engine, serve_parties
from tasks import HEADS, LEARNING_RATE, Task, run_resnet

# Its converter of ONNX models needs parts of torch that no longer exist; nothing here converts models.
converter = types.ModuleType("crypten.nn.onnx_converter")
converter.from_onnx = converter.from_pytorch = converter.from_tensorflow = converter.TF_AND_TF2ONNX = None
sys.modules[converter.__name__] = converter

import crypten  # noqa: E402
import torch  # noqa: E402
from crypten import communicator  # noqa: E402


class CrypTen(Engine):
    """One party."""

    version = f"{crypten.__version__} on torch {torch.__version__}"

    def __init__(self, rank: int, rendezvous: str) -> None:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", RENDEZVOUS=rendezvous)
        torch.set_num_threads(1)
        crypten.init()
        self.link = communicator.get()

    def load(self, task: Task) -> Callable[[], Any]:
        inputs = [crypten.cryptensor(torch.from_numpy(array), src=0) for array in task.inputs()]
        function = FUNCTIONS[task.kind]
        if task.kind == "train":
            return lambda: function(*inputs)

        def run() -> Any:
            with crypten.no_grad():
                return function(*inputs)

        return run

    def reveal(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self.reveal(part) for part in result]
        return result.get_plain_text().numpy().astype(np.float64)

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        with crypten.cfg.temp_override({"communicator.verbose": True}):
            crypten.reset_communication_stats()
            run()
        counted = self.link.get_communication_stats()
        return {"rounds": counted["rounds"], "bytes": int(counted["bytes"] / 2)}  # it counts what it sends and receives

    def synchronize(self) -> None:
        self.link.barrier()


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return (x.matmul(w1.t()) + b1).relu().matmul(w2.t()) + b2


def cnn(x: Any, *layers: Any) -> Any:
    c1, cb1, c2, cb2, w1, b1, w2, b2, w3, b3 = layers
    x = (x.conv2d(c1, padding=2) + cb1.view(-1, 1, 1)).relu().max_pool2d(2)
    x = (x.conv2d(c2) + cb2.view(-1, 1, 1)).relu().max_pool2d(2).flatten(start_dim=1)
    return ((x.matmul(w1.t()) + b1).relu().matmul(w2.t()) + b2).relu().matmul(w3.t()) + b3


def train(x: Any, *rest: Any) -> list[Any]:
    *parameters, labels = rest
    for parameter in parameters:
        parameter.requires_grad = True
        parameter.grad = None
    loss = (mlp(x, *parameters) - labels).square().mean()
    loss.backward()
    with crypten.no_grad():
        return [parameter - parameter.grad * LEARNING_RATE for parameter in parameters]


def resnet(x: Any, *layers: Any) -> Any:
    def conv(x: Any, w: Any, b: Any, padding: int, stride: int) -> Any:
        return x.conv2d(w, padding=padding, stride=stride) + b.view(-1, 1, 1)

    def finish(x: Any, w: Any, b: Any) -> Any:
        return x.mean((2, 3)).matmul(w.t()) + b

    return run_resnet(x, layers, conv, lambda x: x.relu(), lambda x: x.max_pool2d(3, padding=1, stride=2), finish)


def norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).inv_sqrt() * weight + bias


def encoder(x: Any, *layers: Any) -> Any:
    inner, inner_b, out, out_b, w1, b1, w2, b2, n1, nb1, n2, nb2 = layers
    tokens = x.size(0)
    heads = (x.matmul(inner.t()) + inner_b).view(tokens, 3, HEADS, -1).permute(1, 2, 0, 3)
    q, k, v = heads[0], heads[1], heads[2]
    scores = q.matmul(k.transpose(1, 2)) * q.size(-1) ** -0.5
    mixed = scores.softmax(-1).matmul(v).permute(1, 0, 2).reshape(tokens, -1)
    x = norm(x + mixed.matmul(out.t()) + out_b, n1, nb1)
    return norm(x + mlp(x, w1, b1, w2, b2), n2, nb2)


def regression(x: Any, w: Any, b: Any, labels: Any) -> list[Any]:
    errors = ((x.matmul(w) + b).sigmoid() - labels) / len(x)
    return [w - x.t().matmul(errors) * LEARNING_RATE, b - errors.sum(0) * LEARNING_RATE]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mul": lambda x, y: x * y,
    "matmul": lambda x, y: x.matmul(y),
    "relu": lambda x: x.relu(),
    "lt": lambda x, y: x < y,
    "conv2d": lambda x, w: x.conv2d(w),
    "max_pool2d": lambda x: x.max_pool2d(2),
    "sigmoid": lambda x: x.sigmoid(),
    "softmax": lambda x: x.softmax(1),
    "mlp": mlp,
    "cnn": cnn,
    "train": train,
    "regression": regression,
    "encoder": encoder,
    "resnet": resnet,
}

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        serve_parties(CrypTen, f"file://{folder}/rendezvous")
