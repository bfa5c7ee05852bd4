"""The encrypted tasks: their inputs, shapes and plain answers, which every engine takes from here.

numpy only, and Python 3.9 can run this file: the peers' scripts import it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEARNING_RATE = 0.1
HEADS = 4
"""Of the attention in the encoder layer."""
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""The channels of the stages of ResNet-18, and the strides with which they begin; each has two blocks."""
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


def resnet_inputs(rng: np.random.Generator, batch: int) -> Arrays:
    """Return x and the weights and biases of ResNet-18, in which batch norms are part of the convolutions.

    Each block has two convolutions; a third one of 1 x 1 follows where the shape changes.
    """
    shapes, channels = [(64, 3, 7, 7)], 64
    for width, stride in STAGES:
        for first in (True, False):
            shapes += [(width, channels, 3, 3), (width, width, 3, 3)]
            if first and (stride > 1 or width != channels):
                shapes.append((width, channels, 1, 1))
            channels = width
    x = normal(rng, batch, 3, 32, 32)
    layers = [
        (normal(rng, *shape, scale=(2 / np.prod(shape[1:])) ** 0.5 / 2), normal(rng, shape[0], scale=0.1))
        for shape in shapes
    ]
    last = (normal(rng, 10, channels, scale=channels**-0.5), normal(rng, 10, scale=0.1))
    return [x, *(array for layer in (*layers, last) for array in layer)]


def encoder_inputs(rng: np.random.Generator, tokens: int) -> Arrays:
    """Return x, and the weights and biases of an encoder layer of 128 numbers for each token, with 512 in between.

    They are those of queries, keys and values, of the output, of two linear layers, and of two layer norms.
    """
    d, wide = 128, 512
    shapes = [(3 * d, d), (d, d), (wide, d), (d, wide)]
    layers = [(normal(rng, *shape, scale=shape[1] ** -0.5), normal(rng, shape[0], scale=0.1)) for shape in shapes]
    norms = [(1 + normal(rng, d, scale=0.1), normal(rng, d, scale=0.1)) for _ in range(2)]
    return [normal(rng, tokens, d), *(array for layer in (*layers, *norms) for array in layer)]


def regression_inputs(rng: np.random.Generator, batch: int) -> Arrays:
    """Return x, the weights and the bias of a logistic regression on 64 features, and labels."""
    x, labels = normal(rng, batch, 64), rng.integers(0, 2, (batch, 1)).astype(np.float32)
    return [x, normal(rng, 64, 1, scale=0.1), normal(rng, 1, scale=0.1), labels]


# --- plain answers


def conv2d(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, padding: int = 0, stride: int = 1) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    found = np.einsum("bchwij,ocij->bohw", windows, w, optimize=True)
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


def resnet(x: np.ndarray, *layers: np.ndarray) -> np.ndarray:
    def pool(x: np.ndarray) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))  # Nothing is negative.
        return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2].max((4, 5))

    return run_resnet(x, layers, conv2d, relu, pool, lambda x, w, b: x.mean((2, 3)) @ w.T + b)


def run_resnet(x, layers, conv, relu, pool, finish):
    """Compute ResNet-18 with the functions of any engine: conv(x, weight, bias, padding, stride) and others of x."""
    rest = iter(layers)
    x = pool(relu(conv(x, next(rest), next(rest), 3, 2)))
    channels = 64
    for width, start in STAGES:
        for stride in (start, 1):
            found = relu(conv(x, next(rest), next(rest), 1, stride))
            found = conv(found, next(rest), next(rest), 1, 1)
            if stride > 1 or width != channels:
                x = conv(x, next(rest), next(rest), 0, stride)
            x, channels = relu(found + x), width
    return finish(x, next(rest), next(rest))


def encoder(x: np.ndarray, *layers: np.ndarray) -> np.ndarray:
    def norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias

    def split(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    inner, inner_b, out, out_b, w1, b1, w2, b2, n1, nb1, n2, nb2 = layers
    q, k, v = (split(part) for part in np.split(x @ inner.T + inner_b, 3, 1))
    scores = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (powers / powers.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape)
    x = norm(x + mixed @ out.T + out_b, n1, nb1)
    return norm(x + relu(x @ w1.T + b1) @ w2.T + b2, n2, nb2)


def regression(x: np.ndarray, w: np.ndarray, b: np.ndarray, labels: np.ndarray) -> Arrays:
    """Return the weights and the bias after one step of SGD on the cross entropy."""
    errors = (1 / (1 + np.exp(-(x @ w + b))) - labels) / len(x)
    return [w - LEARNING_RATE * (x.T @ errors), b - LEARNING_RATE * errors.sum(0)]


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
    "regression": regression_inputs,
    "encoder": encoder_inputs,
    "resnet": resnet_inputs,
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
    "regression": regression,
    "encoder": encoder,
    "resnet": resnet,
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
    "regression": {"b256": 256},
    "encoder": {"t64": 64},
    "resnet": {"b1": 1},
}
TASKS = {
    f"{kind}_{label}": Task(f"{kind}_{label}", kind, size) for kind in SIZES for label, size in SIZES[kind].items()
}
