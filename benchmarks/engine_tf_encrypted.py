"""tf-encrypted 0.9.1 with ABY3 for ``encrypted.py``: three players in one process, in graph mode.

Its times include the reveal: a graph returns plain tensors.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from engines import Engine, serve
from tasks import Task

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
# Its converter of ONNX models needs a version of onnx that conflicts with TensorFlow's; nothing here converts models.
sys.modules["tf_encrypted.convert"] = types.ModuleType("tf_encrypted.convert")

import tensorflow as tf  # noqa: E402
import tf_encrypted as tfe  # noqa: E402

POOL = {"pool_size": (2, 2), "strides": (2, 2), "padding": "VALID"}


class TFEncrypted(Engine):
    """All players."""

    version = f"0.9.1 on TensorFlow {tf.__version__}"

    def __init__(self) -> None:
        tfe.set_protocol(tfe.protocol.ABY3())
        self.functions = list_functions()

    def load(self, task: Task) -> Callable[[], Any]:
        function = self.functions.get(task.kind)
        if function is None:
            raise NotImplementedError(f"there is no {task.kind} for tf-encrypted here")
        inputs = [tfe.define_private_variable(array) for array in task.inputs()]
        graph = tfe.function(lambda *shares: function(*shares).reveal())
        graph(*inputs)  # traces and compiles, which takes up to a minute
        return lambda: graph(*inputs).to_native()

    def reveal(self, result: Any) -> np.ndarray:
        return np.asarray(result, np.float64)


def linear(x: Any, w: Any, b: Any) -> Any:
    return tfe.matmul(x, tfe.transpose(w)) + b


def conv2d(x: Any, w: Any, padding: str = "VALID") -> Any:
    return tfe.conv2d(x, tfe.transpose(w, [2, 3, 1, 0]), (1, 1), padding)


def max_pool2d(x: Any) -> Any:
    return tfe.maxpool2d(x, **POOL)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return linear(tfe.relu(linear(x, w1, b1)), w2, b2)


def cnn(x: Any, *layers: Any) -> Any:
    c1, cb1, c2, cb2, w1, b1, w2, b2, w3, b3 = layers
    x = max_pool2d(tfe.relu(conv2d(x, c1, "SAME") + tfe.reshape(cb1, [-1, 1, 1])))
    x = max_pool2d(tfe.relu(conv2d(x, c2) + tfe.reshape(cb2, [-1, 1, 1])))
    x = tfe.reshape(x, [int(x.shape[0]), 400])
    return linear(tfe.relu(linear(tfe.relu(linear(x, w1, b1)), w2, b2)), w3, b3)


def list_functions() -> dict[str, Callable[..., Any]]:
    """Return the function of each kind of task; the protocol adds them to the module when it is set."""
    return {
        "mul": lambda x, y: x * y,
        "matmul": tfe.matmul,
        "relu": tfe.relu,
        "lt": tfe.less_than,
        "conv2d": conv2d,
        "max_pool2d": max_pool2d,
        "sigmoid": tfe.sigmoid,
        "softmax": tfe.softmax,
        "mlp": mlp,
        "cnn": cnn,
    }


if __name__ == "__main__":
    serve(TFEncrypted)
