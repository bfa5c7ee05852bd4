"""Real functions, such as exp, sigmoid and softmax: how each is computed on floats, and on shares.

Functions of shared numbers are the protocols of ``functions.py``; docs/encrypted-functions.md lists domains and errors.
Those of numbers that are not shared are computed with floats of 64 bits, so that only the last digit is rounded. There
an argument outside the domain, such as log(0), raises an error; for shared numbers nobody can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from syft_core.values import Function
from syft_mpc import functions
from syft_mpc.kernels import Array, Kernels


class Approximation(NamedTuple):
    """The two ways to compute a function."""

    exact: Callable[..., Array]
    """With floats: takes kernels and an array."""
    protocol: Function
    """On shares; with these options."""
    options: dict[str, str] = {}  # noqa: RUF012  # never changed


def _sigmoid(kernels: Kernels, x: Array) -> Array:
    return kernels.xp.tanh(x / 2) / 2 + 0.5


def _softplus(kernels: Kernels, x: Array) -> Array:
    size = kernels.xp.abs(x)
    return (x + size) / 2 + kernels.xp.log1p(kernels.xp.exp(-size))


def _gelu_tanh(kernels: Kernels, x: Array) -> Array:
    return x * _sigmoid(kernels, 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _gelu_slope(kernels: Kernels, x: Array) -> Array:
    density = kernels.xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return (1 + kernels.erf(x / math.sqrt(2))) / 2 + x * density


def _gelu_tanh_slope(kernels: Kernels, x: Array) -> Array:
    gate = _sigmoid(kernels, 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return gate + x * gate * (1 - gate) * 2 * math.sqrt(2 / math.pi) * (1 + 0.134145 * x * x)


def _silu_slope(kernels: Kernels, x: Array) -> Array:
    gate = _sigmoid(kernels, x)
    return gate + x * gate * (1 - gate)


def _softmax(kernels: Kernels, x: Array, axis: int, log: bool = False) -> Array:
    xp = kernels.xp
    x = x - xp.amax(x, axis=axis, keepdims=True)
    powers = xp.exp(x)
    sums = powers.sum(axis=axis, keepdims=True)
    return x - xp.log(sums) if log else powers / sums


def _of(name: str) -> Callable[..., Array]:
    return lambda kernels, x: getattr(kernels.xp, name)(x)


def _activation(name: str, exact: Callable[..., Array]) -> Approximation:
    return Approximation(exact, functions.activation, {"function": name})


FUNCTIONS = {
    "sigmoid": _activation("sigmoid", _sigmoid),
    "tanh": _activation("tanh", _of("tanh")),
    "erf": _activation("erf", lambda kernels, x: kernels.erf(x)),
    "gelu": _activation("gelu", lambda kernels, x: x * (1 + kernels.erf(x / math.sqrt(2))) / 2),
    "gelu_tanh": _activation("gelu_tanh", _gelu_tanh),
    "silu": _activation("silu", lambda kernels, x: x * _sigmoid(kernels, x)),
    "softplus": _activation("softplus", _softplus),
    "gelu_slope": _activation("gelu_slope", _gelu_slope),
    "gelu_tanh_slope": _activation("gelu_tanh_slope", _gelu_tanh_slope),
    "silu_slope": _activation("silu_slope", _silu_slope),
    "sin": Approximation(_of("sin"), functions.wave, {"function": "sin"}),
    "cos": Approximation(_of("cos"), functions.wave, {"function": "cos"}),
    "exp": Approximation(_of("exp"), functions.exponential),
    "log": Approximation(_of("log"), functions.logarithm),
    "sqrt": Approximation(_of("sqrt"), functions.root, {"function": "sqrt"}),
    "rsqrt": Approximation(lambda kernels, x: 1 / kernels.xp.sqrt(x), functions.root, {"function": "rsqrt"}),
    "reciprocal": Approximation(lambda _kernels, x: 1 / x, functions.reciprocal),
    "softmax": Approximation(_softmax, functions.softmax),
}
