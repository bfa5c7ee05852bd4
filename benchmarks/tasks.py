"""The encrypted tasks: their inputs, shapes and plain answers, which every engine takes from here.

numpy only, and Python 3.9 can run this file: the peers' scripts import it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEARNING_RATE = 0.1
Arrays = list[np.ndarray]


class Task(NamedTuple):
    """One line of the table; engines have one method or function for each ``kind``."""

    name: str
    kind: str
    size: int

    def inputs(self) -> Arrays:
        """Return the same inputs in every process."""
        return INPUTS[self.kind](np.random.default_rng(7), self.size)

    def answer(self) -> np.ndarray:
        """Compute the task on plain float64 numbers; several results come as one flat array."""
        return flatten(ANSWERS[self.kind](*(array.astype(np.float64) for array in self.inputs())))


def flatten(results: np.ndarray | Arrays) -> np.ndarray:
    """Join several results into one flat array; leave a single result as it is."""
    return np.concatenate([np.ravel(part) for part in results]) if isinstance(results, (list, tuple)) else results


# --- inputs


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def one_array(rng: np.random.Generator, size: int) -> Arrays:
    return [normal(rng, size)]


def two_arrays(rng: np.random.Generator, size: int) -> Arrays:
    return [normal(rng, size), normal(rng, size)]


def two_matrices(rng: np.random.Generator, size: int) -> Arrays:
    return [normal(rng, size, size), normal(rng, size, size)]


def scores(rng: np.random.Generator, size: int) -> Arrays:
    return [normal(rng, size // 10, 10)]


def images_and_filters(rng: np.random.Generator, batch: int) -> Arrays:
    return [normal(rng, batch, 1, 28, 28), normal(rng, 8, 1, 5, 5, scale=0.2)]


def feature_maps(rng: np.random.Generator, batch: int) -> Arrays:
    return [normal(rng, batch, 8, 24, 24)]


def mlp_inputs(rng: np.random.Generator, batch: int) -> Arrays:
    """Return x, w1, b1, w2, b2 of an MLP 784-128-10."""
    return [
        normal(rng, batch, 784, scale=0.5),
        normal(rng, 128, 784, scale=784**-0.5),
        normal(rng, 128, scale=0.1),
        normal(rng, 10, 128, scale=128**-0.5),
        normal(rng, 10, scale=0.1),
    ]


def training_inputs(rng: np.random.Generator, batch: int) -> Arrays:
    """Return the inputs of the MLP and one-hot labels."""
    return [*mlp_inputs(rng, batch), np.eye(10, dtype=np.float32)[rng.integers(0, 10, batch)]]


def cnn_inputs(rng: np.random.Generator, batch: int) -> Arrays:
    """Return x and the weights and biases of LeNet: 6 and 16 filters of 5 x 5, then 400-120-84-10."""
    shapes = [((6, 1, 5, 5), 0.2), ((16, 6, 5, 5), 0.08), ((120, 400), 0.05), ((84, 120), 0.09), ((10, 84), 0.11)]
    x = normal(rng, batch, 1, 28, 28, scale=0.5)
    layers = [(normal(rng, *shape, scale=scale), normal(rng, shape[0], scale=0.1)) for shape, scale in shapes]
    return [x, *(array for layer in layers for array in layer)]


# --- plain answers


def conv2d(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, padding: int = 0) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    found = np.einsum("bchwij,ocij->bohw", windows, w)
    return found if b is None else found + b[:, None, None]


def max_pool2d(x: np.ndarray) -> np.ndarray:
    batch, channels, height, width = x.shape
    return x.reshape(batch, channels, height // 2, 2, width // 2, 2).max((3, 5))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def softmax(x: np.ndarray) -> np.ndarray:
    exponentials = np.exp(x - x.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)


def mlp(x: np.ndarray, w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray) -> np.ndarray:
    return relu(x @ w1.T + b1) @ w2.T + b2


def train(x: np.ndarray, w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray, labels: np.ndarray) -> Arrays:
    """Return w1, b1, w2, b2 after one step of SGD on the mean squared error."""
    z = x @ w1.T + b1
    hidden = relu(z)
    output = hidden @ w2.T + b2
    grad_output = 2 * (output - labels) / output.size
    grad_z = grad_output @ w2 * (z > 0)
    grads = [grad_z.T @ x, grad_z.sum(0), grad_output.T @ hidden, grad_output.sum(0)]
    return [old - LEARNING_RATE * grad for old, grad in zip([w1, b1, w2, b2], grads)]  # noqa: B905  # Python 3.9


def cnn(x: np.ndarray, *layers: np.ndarray) -> np.ndarray:
    c1, cb1, c2, cb2, w1, b1, w2, b2, w3, b3 = layers
    x = max_pool2d(relu(conv2d(x, c1, cb1, padding=2)))
    x = max_pool2d(relu(conv2d(x, c2, cb2))).reshape(len(x), -1)
    return relu(relu(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3


INPUTS: dict[str, Callable[[np.random.Generator, int], Arrays]] = {
    "mul": two_arrays,
    "matmul": two_matrices,
    "relu": one_array,
    "lt": two_arrays,
    "conv2d": images_and_filters,
    "max_pool2d": feature_maps,
    "sigmoid": one_array,
    "softmax": scores,
    "mlp": mlp_inputs,
    "cnn": cnn_inputs,
    "train": training_inputs,
}
ANSWERS: dict[str, Callable[..., np.ndarray | Arrays]] = {
    "mul": np.multiply,
    "matmul": np.matmul,
    "relu": relu,
    "lt": np.less,
    "conv2d": conv2d,
    "max_pool2d": max_pool2d,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": softmax,
    "mlp": mlp,
    "cnn": cnn,
    "train": train,
}
SIZES = {
    "mul": {"1k": 1_000, "1M": 1_000_000},
    "matmul": {"64": 64, "256": 256, "1024": 1024},
    "relu": {"1k": 1_000, "100k": 100_000},
    "lt": {"1k": 1_000, "100k": 100_000},
    "conv2d": {"b1": 1, "b16": 16},
    "max_pool2d": {"b1": 1, "b16": 16},
    "sigmoid": {"1k": 1_000},
    "softmax": {"1k": 1_000},
    "mlp": {"b1": 1, "b64": 64},
    "cnn": {"b1": 1, "b16": 16},
    "train": {"b64": 64},
}
TASKS = {
    f"{kind}_{label}": Task(f"{kind}_{label}", kind, size) for kind in SIZES for label, size in SIZES[kind].items()
}
