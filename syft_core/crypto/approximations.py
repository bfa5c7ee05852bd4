"""Rules of fixed-precision numbers for real functions, such as exp, sigmoid and softmax.

Functions of shared numbers are the protocols of ``functions.py``; docs/encrypted-functions.md lists domains and errors.
Those of numbers that are not shared are computed with floats of 64 bits, so that only the last digit is rounded. There
an argument without a result, such as log(0), raises an error; of a shared number nobody knows whether it has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from syft_core.crypto import functions, integers
from syft_core.crypto.integers import Integers
from syft_core.crypto.kernels import Array, Kernels
from syft_core.crypto.spdz import ELEMENTS, MATRICES
from syft_core.exceptions import PrecisionError
from syft_core.hook.overload import overloaded
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Function as Callback
from syft_core.values import Nested

if TYPE_CHECKING:
    from syft_core.crypto.numbers import Numbers


Axes: TypeAlias = int | Sequence[int] | None
"""One or several axes, or None for all."""


class Function(NamedTuple):
    """How a function is computed."""

    exact: Callable[..., Array]
    """With floats: takes kernels and an array."""
    protocol: Callback
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


def _activation(name: str, exact: Callable[..., Array]) -> Function:
    return Function(exact, functions.activation, {"function": name})


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
    "sin": Function(_of("sin"), functions.wave, {"function": "sin"}),
    "cos": Function(_of("cos"), functions.wave, {"function": "cos"}),
    "exp": Function(_of("exp"), functions.exponential),
    "log": Function(_of("log"), functions.logarithm),
    "sqrt": Function(_of("sqrt"), functions.root, {"function": "sqrt"}),
    "rsqrt": Function(lambda kernels, x: 1 / kernels.xp.sqrt(x), functions.root, {"function": "rsqrt"}),
    "reciprocal": Function(lambda _kernels, x: 1 / x, functions.reciprocal),
    "softmax": Function(_softmax, functions.softmax),
}
"""By name."""


class RealFunctions(NumericTensor):
    """The rules that ``FixedPrecisionTensor`` inherits; named as torch's kernels, or as numpy's functions."""

    numbers: Numbers

    @property
    def scale(self) -> int:
        """The integer that means 1."""
        return self.numbers.scale

    def compute(self, function: str, x: Integers, **options: int) -> Integers:
        """Compute a function of ``FUNCTIONS``: on shares with its protocol, otherwise with floats."""
        found = FUNCTIONS[function]
        if integers.is_shared(x):
            if self.scale == 1:
                raise PrecisionError.no_fractions(function)
            return x.run(found.protocol, scale=self.scale, **found.options, **options)
        kernels = integers.kernels_of(x)
        return self.encode(
            kernels.compute(found.exact, kernels.decode(x, self.scale, kernels.dtype("float64")), options)
        )

    # --- powers and logarithms

    @overloaded.method
    def exp(self, _self: Integers) -> Integers:
        """Compute e^x, for x < 12."""
        return self.compute("exp", _self)

    @overloaded.method
    def expm1(self, _self: Integers) -> Integers:
        """Compute e^x - 1, for x < 12."""
        return self.numbers.plus(self.compute("exp", _self), -1)

    @overloaded.method
    def log(self, _self: Integers) -> Integers:
        """Compute the natural logarithm, for x from one unit to 16^9 units."""
        return self.compute("log", _self)

    @overloaded.method
    def log1p(self, _self: Integers) -> Integers:
        """Compute log(1 + x)."""
        return self.compute("log", self.numbers.plus(_self, 1))

    @overloaded.method
    def log2(self, _self: Integers) -> Integers:
        """Compute the logarithm to base 2."""
        return self.numbers.times(self.compute("log", _self), 1 / math.log(2))

    @overloaded.method
    def log10(self, _self: Integers) -> Integers:
        """Compute the logarithm to base 10."""
        return self.numbers.times(self.compute("log", _self), 1 / math.log(10))

    @overloaded.method
    def sqrt(self, _self: Integers) -> Integers:
        """Compute the square root; of negative numbers 0, if they are shared."""
        return self.compute("sqrt", _self)

    @overloaded.method
    def rsqrt(self, _self: Integers) -> Integers:
        """Compute 1/√x; of numbers that are not positive 0, if they are shared."""
        return self.compute("rsqrt", _self)

    @overloaded.method
    def reciprocal(self, _self: Integers, *, method: str = "series") -> Integers:
        """Compute 1/x; of 0 it is 0, if it is shared. The other methods are for comparison: "NR", "newton", "log"."""
        if method in ("series", "division") or not integers.is_shared(_self):
            return self.compute("reciprocal", _self)
        sign = integers.sub(1, integers.multiply(integers.is_negative(_self), 2))
        size = integers.multiply(sign, _self)
        if method == "log":
            return integers.multiply(sign, self.compute("exp", integers.neg(self.compute("log", size))))
        if method not in ("NR", "newton"):
            raise PrecisionError.unknown_method("reciprocal", method)
        return integers.multiply(sign, self._invert(size, self._first_guess(size), ELEMENTS, 10))

    def _first_guess(self, x: Integers) -> Integers:
        """Return 3e^(0.5 - x) + 0.003, from which Newton's method finds 1/x (Knott et al. 2021)."""
        power = self.compute("exp", self.numbers.plus(integers.neg(x), 0.5))
        return self.numbers.plus(integers.multiply(power, 3), 0.003)

    def _invert(self, x: Integers, y: Integers, op: str, steps: int) -> Integers:
        """Improve an approximate inverse, of numbers or of matrices:  y ← 2y - y·x·y."""
        for _ in range(steps):
            product = integers.multiply(integers.multiply(y, x, self.scale, op), y, self.scale, op)
            y = integers.sub(integers.multiply(y, 2), product)
        return y

    # --- waves

    @overloaded.method
    def sin(self, _self: Integers) -> Integers:
        """Compute the sine."""
        return self.compute("sin", _self)

    @overloaded.method
    def cos(self, _self: Integers) -> Integers:
        """Compute the cosine."""
        return self.compute("cos", _self)

    # --- activations

    @overloaded.method
    def sigmoid(self, _self: Integers, *, method: str = "series") -> Integers:
        """Compute 1/(1 + e^-x). The other methods are for comparison: "chebyshev", "exp", "maclaurin"."""
        if method == "series" or not integers.is_shared(_self):
            return self.compute("sigmoid", _self)
        if method == "chebyshev":
            return self.numbers.over(self.numbers.plus(self._tanh_chebyshev(self.numbers.over(_self, 2)), 1), 2)
        if method == "exp":
            return self.compute("reciprocal", self.numbers.plus(self.compute("exp", integers.neg(_self)), 1))
        if method != "maclaurin":
            raise PrecisionError.unknown_method("sigmoid", method)
        square = self.numbers.square(_self)
        inner = self.numbers.plus(self.numbers.times(square, 4.20690803e-5), -0.00458667307)
        factor = self.numbers.plus(self.numbers.mul(square, inner), 0.191204779)
        return self.numbers.plus(self.numbers.mul(_self, factor), 0.5)

    @overloaded.method
    def sigmoid_backward(self, gradient: Integers, result: Integers) -> Integers:
        """Compute the gradient:  y(1 - y)."""
        return self.numbers.mul(gradient, self.numbers.mul(result, integers.sub(self.scale, result)))

    @overloaded.method
    def tanh(self, _self: Integers, *, method: str = "series") -> Integers:
        """Compute the hyperbolic tangent. The other methods are for comparison: "chebyshev", "sigmoid"."""
        if method == "series" or not integers.is_shared(_self):
            return self.compute("tanh", _self)
        if method == "sigmoid":
            return self.numbers.plus(integers.multiply(self.compute("sigmoid", integers.multiply(_self, 2)), 2), -1)
        if method != "chebyshev":
            raise PrecisionError.unknown_method("tanh", method)
        return self._tanh_chebyshev(_self)

    def _tanh_chebyshev(self, x: Integers, end: int = 6, terms: int = 32) -> Integers:
        """Compute a sum of Chebyshev polynomials, for the nearest number between -6 and 6 (Guo et al. 2020)."""
        numbers = self.numbers
        y = numbers.over(integers.maximum(integers.minimum(x, numbers.of(end)), numbers.of(-end)), end)
        twice = numbers.plus(integers.multiply(numbers.square(y), 4), -2)  # 2·T2
        before, now = y, y  # T-1 and T1
        total = numbers.times(y, _chebyshev_coefficient(1, end))
        for degree in range(3, terms, 2):
            before, now = now, integers.sub(numbers.mul(twice, now), before)
            total = integers.add(total, numbers.times(now, _chebyshev_coefficient(degree, end)))
        return total

    @overloaded.method
    def tanh_backward(self, gradient: Integers, result: Integers) -> Integers:
        """Compute the gradient:  1 - y²."""
        return self.numbers.mul(gradient, integers.sub(self.scale, self.numbers.square(result)))

    @overloaded.method
    def erf(self, _self: Integers) -> Integers:
        """Compute the error function."""
        return self.compute("erf", _self)

    @overloaded.method
    def erfc(self, _self: Integers) -> Integers:
        """Compute 1 - erf(x)."""
        return integers.sub(self.scale, self.compute("erf", _self))

    @overloaded.method
    def gelu(self, _self: Integers, *, approximate: str = "none") -> Integers:
        """Compute x·Φ(x), or torch's variant with tanh."""
        return self.compute("gelu" if approximate == "none" else "gelu_tanh", _self)

    @overloaded.method
    def gelu_backward(self, gradient: Integers, _self: Integers, *, approximate: str = "none") -> Integers:
        """Compute the gradient."""
        slope = self.compute("gelu_slope" if approximate == "none" else "gelu_tanh_slope", _self)
        return self.numbers.mul(gradient, slope)

    @overloaded.method
    def silu(self, _self: Integers) -> Integers:
        """Compute x·sigmoid(x)."""
        return self.compute("silu", _self)

    @overloaded.method
    def silu_backward(self, gradient: Integers, _self: Integers) -> Integers:
        """Compute the gradient."""
        return self.numbers.mul(gradient, self.compute("silu_slope", _self))

    @overloaded.method
    def softplus(self, _self: Integers, beta: float = 1, threshold: float = 20) -> Integers:
        """Compute log(1 + e^(beta·x)) / beta; the threshold is for floats only."""
        return self.numbers.over(self.compute("softplus", self.numbers.times(_self, beta)), beta)

    @overloaded.method
    def softplus_backward(self, gradient: Integers, _self: Integers, beta: float, threshold: float) -> Integers:
        """Compute the gradient:  sigmoid(beta·x)."""
        return self.numbers.mul(gradient, self.compute("sigmoid", self.numbers.times(_self, beta)))

    @overloaded.method
    def log_sigmoid_forward(self, _self: Integers) -> tuple[Integers, Integers]:
        """Compute log(sigmoid(x)) = -softplus(-x); the second result is not needed."""
        return integers.neg(self.compute("softplus", integers.neg(_self))), _self

    @overloaded.method
    def log_sigmoid_backward(self, gradient: Integers, _self: Integers, _buffer: Integers) -> Integers:
        """Compute the gradient:  sigmoid(-x)."""
        return self.numbers.mul(gradient, self.compute("sigmoid", integers.neg(_self)))

    # --- softmax

    @overloaded.method
    def _softmax(self, _self: Integers, dim: int, half_to_float: bool = False) -> Integers:
        """Compute e^x / Σ e^x along an axis."""
        return self.compute("softmax", _self, axis=integers.find_axis(_self, dim))

    @overloaded.method
    def _safe_softmax(self, _self: Integers, dim: int, _dtype: object = None) -> Integers:
        """Compute softmax; encoded numbers are never infinite."""
        return self.compute("softmax", _self, axis=integers.find_axis(_self, dim))

    @overloaded.method
    def logsumexp(self, _self: Integers, dim: Sequence[int], keepdim: bool = False) -> Integers:
        """Compute log Σ e^x along one axis: x minus the logarithm of softmax, the same for all its elements."""
        shape = integers.shape_of(_self)
        axis = integers.find_axis(_self, dim[0] if isinstance(dim, Sequence) else dim)
        if isinstance(dim, Sequence) and len(dim) > 1:
            raise ValueError(
                f"cannot compute logsumexp along the axes {tuple(dim)}: only along one; flatten them first"
            )
        same = integers.sub(_self, self.compute("softmax", _self, axis=axis, log=True))
        return self.numbers.over(integers.total(same, axis, keepdims=keepdim), shape[axis])

    @overloaded.method
    def _log_softmax(self, _self: Integers, dim: int, half_to_float: bool = False) -> Integers:
        """Compute the logarithm of softmax."""
        return self.compute("softmax", _self, axis=integers.find_axis(_self, dim), log=True)

    @overloaded.method
    def _softmax_backward_data(
        self, gradient: Integers, result: Integers, dim: int, _input_dtype: object = None
    ) -> Integers:
        """Compute the gradient:  y·(g - Σ g·y)."""
        products = self.numbers.mul(gradient, result)
        return integers.sub(products, self.numbers.mul(result, integers.total(products, dim, keepdims=True)))

    @overloaded.method
    def _log_softmax_backward_data(
        self, gradient: Integers, result: Integers, dim: int, _input_dtype: object = None
    ) -> Integers:
        """Compute the gradient:  g - e^y·Σ g."""
        sums = integers.total(gradient, dim, keepdims=True)
        return integers.sub(gradient, self.numbers.mul(self.compute("exp", result), sums))

    # --- statistics

    @overloaded.method
    def var(self, _self: Integers, *args: Nested, **options: Nested) -> Integers:
        """Compute the variance along axes; the arguments are those of torch's kernels, or of numpy."""
        return self._variance(_self, *args, **options)

    @overloaded.method
    def std(self, _self: Integers, *args: Nested, **options: Nested) -> Integers:
        """Compute the standard deviation: the square root of the variance."""
        return self.compute("sqrt", self._variance(_self, *args, **options))

    def _variance(
        self,
        x: Integers,
        dim: Axes = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        axis: Axes = None,
        ddof: float | None = None,
        keepdims: bool = False,
        **_options: object,
    ) -> Integers:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        shape = integers.shape_of(x)
        axes = dim if axis is None else axis
        axes = tuple(range(len(shape))) if axes is None or axes == [] else axes
        axes = tuple(axes) if isinstance(axes, Sequence) else (axes,)
        count = math.prod(shape[integers.find_axis(x, place)] for place in axes) if shape else 1
        given = [number for number in (correction, ddof, unbiased) if number is not None]
        lost = given[0] if given else integers.kernels_of(x).correction
        mean = self.numbers.over(integers.total(x, axes, keepdims=True), count)
        squares = self.numbers.square(integers.sub(x, mean))
        return self.numbers.over(integers.total(squares, axes, keepdim or keepdims), count - lost)

    # --- matrices

    @overloaded.method
    def inv(self, _self: Integers, steps: int = 16) -> Integers:
        """Invert square matrices of condition up to 100, with Newton's method from Aᵀ / ‖A‖²."""
        return self._inverse(_self, steps)

    @overloaded.method
    def linalg_inv_ex(self, _self: Integers, *, check_errors: bool = False) -> tuple[Integers, Integers]:
        """Do the same; the second result stands for the errors, which are secret: zeros."""
        return self._inverse(_self, 16), integers.total(integers.multiply(_self, 0), (-2, -1))

    @overloaded.method
    def _linalg_check_errors(self, _info: Integers, _name: str, *, is_matrix: bool) -> None:
        """Do nothing: whether a matrix has an inverse is secret."""

    def _inverse(self, x: Integers, steps: int) -> Integers:
        """Invert A/‖A‖, whose elements are at most 1, and divide by ‖A‖ again."""
        shape = integers.shape_of(x)
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(
                f"cannot invert matrices of shape {shape}: the last two dimensions differ; use square ones"
            )
        if not integers.is_shared(x):
            kernels = integers.kernels_of(x)
            return self.encode(kernels.xp.linalg.inv(kernels.decode(x, self.scale, kernels.dtype("float64"))))
        rank = len(shape)
        norm = self.compute("rsqrt", integers.total(self.numbers.square(x), (rank - 2, rank - 1), keepdims=True))
        matrix = self.numbers.mul(x, norm)
        start = integers.permute(matrix, (*range(rank - 2), rank - 1, rank - 2))
        return self.numbers.mul(self._invert(matrix, start, MATRICES, steps), norm)


def _chebyshev_coefficient(degree: int, end: float, points: int = 256) -> float:
    """Return the coefficient of a Chebyshev polynomial in tanh(end·x)."""
    angles = [math.pi * (place + 0.5) / points for place in range(points)]
    return 2 / points * sum(math.tanh(end * math.cos(angle)) * math.cos(degree * angle) for angle in angles)
