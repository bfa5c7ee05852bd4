"""Torch's kernels for real functions of encoded numbers, and for their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

from syft_core.values import Function
from syft_mpc import integers
from syft_mpc.errors import PrecisionError
from syft_mpc.integers import Integers
from syft_mpc.numbers import Numbers
from syft_mpc.real_functions import function_rule, inverse, tanh_chebyshev


def sigmoid(numbers: Numbers, x: Integers, *, method: str = "series") -> Integers:
    """Compute 1/(1 + e^-x). The other methods are for comparison: "chebyshev", "exp", "maclaurin"."""
    if method == "series" or not integers.is_shared(x):
        return numbers.compute("sigmoid", x)
    if method == "chebyshev":
        return numbers.over(numbers.plus(tanh_chebyshev(numbers, numbers.over(x, 2)), 1), 2)
    if method == "exp":
        return numbers.compute("reciprocal", numbers.plus(numbers.compute("exp", integers.neg(x)), 1))
    if method != "maclaurin":
        raise PrecisionError.unknown_method("sigmoid", method)
    square = numbers.square(x)
    inner = numbers.plus(numbers.times(square, 4.20690803e-5), -0.00458667307)
    factor = numbers.plus(numbers.mul(square, inner), 0.191204779)
    return numbers.plus(numbers.mul(x, factor), 0.5)


def sigmoid_backward(numbers: Numbers, gradient: Integers, result: Integers) -> Integers:
    """Compute the gradient:  y(1 - y)."""
    return numbers.mul(gradient, numbers.mul(result, integers.sub(numbers.scale, result)))


def tanh_backward(numbers: Numbers, gradient: Integers, result: Integers) -> Integers:
    """Compute the gradient:  1 - y²."""
    return numbers.mul(gradient, integers.sub(numbers.scale, numbers.square(result)))


def gelu(numbers: Numbers, x: Integers, *, approximate: str = "none") -> Integers:
    """Compute x·Φ(x), or torch's variant with tanh."""
    return numbers.compute("gelu" if approximate == "none" else "gelu_tanh", x)


def gelu_backward(numbers: Numbers, gradient: Integers, x: Integers, *, approximate: str = "none") -> Integers:
    """Compute the gradient."""
    return numbers.mul(gradient, numbers.compute("gelu_slope" if approximate == "none" else "gelu_tanh_slope", x))


def softplus(numbers: Numbers, x: Integers, beta: float = 1, threshold: float = 20) -> Integers:
    """Compute log(1 + e^(beta·x)) / beta; where beta·x is above the threshold, it is x."""
    smooth = numbers.over(numbers.compute("softplus", numbers.times(x, beta)), beta)
    return _replace_above(numbers, x, beta, threshold, smooth, x)


def softplus_backward(numbers: Numbers, gradient: Integers, x: Integers, beta: float, threshold: float) -> Integers:
    """Compute the gradient:  sigmoid(beta·x), or 1 where that is above the threshold."""
    slope = numbers.compute("sigmoid", numbers.times(x, beta))
    return _replace_above(numbers, x, beta, threshold, numbers.mul(gradient, slope), gradient)


def _replace_above(
    numbers: Numbers, x: Integers, beta: float, threshold: float, value: Integers, other: Integers
) -> Integers:
    """Return the other value where beta·x is above the threshold, unless the two are the same there anyway."""
    if threshold >= math.log(2 * numbers.scale):
        return value
    above = integers.greater(integers.multiply(x, 1 if beta > 0 else -1), numbers.of(threshold / abs(beta)))
    return integers.select(above, other, value)


def log_sigmoid(numbers: Numbers, x: Integers) -> tuple[Integers, Integers]:
    """Compute log(sigmoid(x)) = -softplus(-x); the second result is not needed."""
    return integers.neg(numbers.compute("softplus", integers.neg(x))), x


def log_sigmoid_backward(numbers: Numbers, gradient: Integers, x: Integers, _buffer: Integers) -> Integers:
    """Compute the gradient:  sigmoid(-x)."""
    return numbers.mul(gradient, numbers.compute("sigmoid", integers.neg(x)))


# --- softmax


def softmax(numbers: Numbers, x: Integers, dim: int, _option: object = None, *, log: bool = False) -> Integers:
    """Compute e^x / Σ e^x along an axis, or its logarithm; encoded numbers are never infinite."""
    shape, axis = integers.shape_of(x), integers.find_axis(x, dim)
    if not math.prod(shape):
        return x
    options = {"log": True} if log else {}
    found = numbers.compute("softmax", x if shape else integers.flatten(x), axis=axis, **options)
    return found if shape else integers.reshape(found, ())


def log_softmax(numbers: Numbers, x: Integers, dim: int, half_to_float: bool = False) -> Integers:
    """Compute the logarithm of softmax."""
    return softmax(numbers, x, dim, log=True)


def softmax_backward(
    numbers: Numbers, gradient: Integers, result: Integers, dim: int, _input_dtype: object = None
) -> Integers:
    """Compute the gradient:  y·(g - Σ g·y)."""
    products = numbers.mul(gradient, result)
    return integers.sub(products, numbers.mul(result, integers.total(products, dim, keepdims=True)))


def log_softmax_backward(
    numbers: Numbers, gradient: Integers, result: Integers, dim: int, _input_dtype: object = None
) -> Integers:
    """Compute the gradient:  g - e^y·Σ g."""
    sums = integers.total(gradient, dim, keepdims=True)
    return integers.sub(gradient, numbers.mul(numbers.compute("exp", result), sums))


def logsumexp(numbers: Numbers, x: Integers, dim: int | Sequence[int] | None, keepdim: bool = False) -> Integers:
    """Compute log Σ e^x along axes: x minus the logarithm of softmax, the same for all elements of an axis."""
    rank = len(integers.shape_of(x))
    given = dim if isinstance(dim, Sequence) else [] if dim is None else [dim]
    for axis in sorted((integers.find_axis(x, axis) for axis in given or range(rank)), reverse=True):
        same = integers.sub(x, softmax(numbers, x, axis, log=True))
        if rank:
            x = numbers.over(integers.total(same, axis, keepdim), integers.shape_of(x)[axis])
    return x


# --- matrices


def invert(numbers: Numbers, x: Integers, *, check_errors: bool = False) -> tuple[Integers, Integers]:
    """Invert matrices; the second result stands for the errors, which are secret: zeros."""
    return inverse(numbers, x), integers.total(integers.multiply(x, 0), (-2, -1))


def check_nothing(_numbers: Numbers, _info: Integers, _name: str, *, is_matrix: bool) -> None:
    """Do nothing: whether a matrix has an inverse is secret."""


ACTIVATIONS: dict[str, Function] = {
    **{name: function_rule(name) for name in ("rsqrt", "erf", "silu")},
    "sigmoid": sigmoid,
    "sigmoid_backward": sigmoid_backward,
    "tanh_backward": tanh_backward,
    "erfc": lambda numbers, x: integers.sub(numbers.scale, numbers.compute("erf", x)),
    "gelu": gelu,
    "gelu_backward": gelu_backward,
    "silu_backward": lambda numbers, gradient, x: numbers.mul(gradient, numbers.compute("silu_slope", x)),
    "softplus": softplus,
    "softplus_backward": softplus_backward,
    "log_sigmoid_backward": log_sigmoid_backward,
    "_softmax": softmax,
    "_safe_softmax": softmax,
    "_log_softmax": log_softmax,
    "_softmax_backward_data": softmax_backward,
    "_log_softmax_backward_data": log_softmax_backward,
    "logsumexp": logsumexp,
    "linalg_inv_ex": invert,
    "_linalg_check_errors": check_nothing,
}
