"""PolynomialTensor: approximate exp, log, sigmoid and tanh by polynomials, for values that only add and multiply.

Functions are fitted piecewise with Chebyshev interpolation and evaluated with Clenshaw's recurrence. It needs only
additions and multiplications, so the same code works on plain and encrypted values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syft_core.exceptions import DomainError, NotRegisteredError
from syft_core.hook import hook_args
from syft_core.hook.overload import overloaded
from syft_core.serde import Codec, Context, codecs
from syft_core.serde.received import require
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import build_layer_codec
from syft_core.values import Kwargs, Payload, Tensor

Scalar = Callable[[float], float]
DEFAULT_DEGREE = 10
DEFAULT_PRECISION = 10


@dataclass(frozen=True)
class Piece:
    """A Chebyshev series that approximates a function on one interval."""

    low: float
    high: float
    coefficients: tuple[Any, ...]

    def evaluate(self, x: Tensor) -> Tensor:
        """Evaluate the series at ``x``, a number or anything with ``+`` and ``*``; ``x`` is not changed."""
        t = (x * 2 - (self.low + self.high)) * (1 / (self.high - self.low))
        first, *rest = self.coefficients
        b1 = b2 = t * 0
        for c in reversed(rest):
            b1, b2 = t * b1 * 2 - b2 + c, b1
        return t * b1 - b2 + first


def interpolate(f: Scalar, interval: Sequence[float], degree: int = DEFAULT_DEGREE) -> Piece:
    """Fit ``f`` on ``interval`` with a polynomial of the given degree.

    >>> abs(interpolate(math.exp, (0, 1), degree=8).evaluate(0.5) - math.exp(0.5)) < 1e-9
    True
    """
    low, high = float(interval[0]), float(interval[1])
    if not low < high or degree < 0:
        raise ValueError(
            f"cannot fit on [{low:g}, {high:g}] with degree {degree}: pass low < high and a degree of 0 or more"
        )
    n = degree + 1
    angles = [math.pi * (k + 0.5) / n for k in range(n)]
    samples = [f((low + high) / 2 + (high - low) / 2 * math.cos(a)) for a in angles]
    points = list(zip(samples, angles, strict=True))
    coefficients = [2 / n * math.fsum(s * math.cos(j * a) for s, a in points) for j in range(n)]
    coefficients[0] /= 2
    return Piece(low, high, tuple(coefficients))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


_WIDE = ((-10, -5), (-5, 0), (0, 5), (5, 10))
_DEFAULTS: dict[str, tuple[Scalar, tuple[tuple[float, float], ...]]] = {
    "exp": (math.exp, _WIDE),
    "log": (math.log, ((0.1, 1), (1, 10))),
    "sigmoid": (_sigmoid, _WIDE),
    "tanh": (math.tanh, _WIDE),
}


class PolynomialTensor(AbstractTensor):
    """Approximates functions by polynomials; other operations are unchanged.

    ``function`` is applied to every coefficient, for instance to encrypt it. Coefficients are rounded to ``precision``
    decimals. With the defaults the error is below 1e-3 on [-3, 3] for exp, sigmoid and tanh, and on [1, 10] for log.
    """

    def __init__(
        self,
        function: Callable[[float], Any] | None = None,
        precision: int = DEFAULT_PRECISION,
        functions: Mapping[str, tuple[Piece, ...]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.precision = precision
        self.function_attr: dict[str, tuple[Piece, ...]] = dict(functions or {})
        """The added functions; the four default functions are fitted on first use."""
        self._known: dict[str, tuple[Piece, ...]] = {}

    def get_class_attributes(self) -> Kwargs:
        """Return the options."""
        return {"function": self.function, "precision": self.precision, "functions": dict(self.function_attr)}

    def default_functions(self) -> None:
        """Fit exp, log, sigmoid and tanh now instead of on first use."""
        for name in _DEFAULTS:
            self._get_pieces(name)

    def add_function(
        self, name: str, degree: int, piecewise: Iterable[Sequence[object]], function: Scalar | None = None
    ) -> None:
        """Add an approximation called ``name``, one piece per ``[low, high, steps, degree, f]``.

        A shorter piece, ``[low, high]``, uses ``degree`` and ``function``. ``steps`` is ignored and accepted for
        compatibility.
        """
        self.function_attr[name] = self._fit(name, degree, piecewise, function)

    def _fit(
        self, name: str, degree: int, piecewise: Iterable[Sequence[Any]], function: Scalar | None
    ) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        for piece in piecewise:
            given = list(piece)
            low, high, _steps, piece_degree, f = given + [None, None, None, degree, function][len(given) :]
            if f is None:
                raise ValueError(f"cannot add {name!r}: a piece has no function; pass `function=` or a piece of five")
            pieces.append(self.apply_coefs(interpolate(f, (low, high), piece_degree)))
        pieces.sort(key=lambda piece: piece.low)
        if not pieces or any(left.high != right.low for left, right in itertools.pairwise(pieces)):
            raise ValueError(f"cannot add {name!r}: its pieces leave a gap or overlap; pass adjacent intervals")
        return tuple(pieces)

    def apply_coefs(self, piece: Piece) -> Piece:
        """Round the coefficients to ``precision`` decimals and apply ``function`` to each."""
        rounded = [round(c, self.precision) for c in piece.coefficients]
        return Piece(piece.low, piece.high, tuple([self.function(c) for c in rounded] if self.function else rounded))

    def interpolate(self, f: Scalar, interval: Sequence[float], degree: int = DEFAULT_DEGREE) -> Piece:
        """Fit ``f`` on ``interval``, with this tensor's precision."""
        return self.apply_coefs(interpolate(f, interval, degree))

    def get_val(self, name: str, x: Tensor) -> Tensor:
        """Approximate the function called ``name`` at ``x``, a number or a tensor; ``x`` is not changed."""
        pieces = self._get_pieces(name)
        low, high = pieces[0].low, pieces[-1].high
        if isinstance(x, int | float):
            if not low <= x <= high:
                raise DomainError.outside(name, low, high)
            return next(piece.evaluate(x) for piece in pieces if x <= piece.high)
        if not bool(((x >= low) & (x <= high)).all()):
            raise DomainError.outside(name, low, high)
        *inner, last = pieces
        total = last.evaluate(x) * (x >= last.low)
        for piece in inner:
            total = total + piece.evaluate(x) * ((x >= piece.low) & (x < piece.high))
        return total

    def _get_pieces(self, name: str) -> tuple[Piece, ...]:
        if name in self.function_attr:
            return self.function_attr[name]
        if name not in _DEFAULTS:
            raise NotRegisteredError.of(
                "approximations", repr(name), sorted(self.function_attr), "add it with `add_function`"
            )
        if name not in self._known:
            f, intervals = _DEFAULTS[name]
            self._known[name] = self._fit(name, DEFAULT_DEGREE, intervals, f)
        return self._known[name]

    @overloaded.method
    def exp(self, _self: Tensor) -> Tensor:
        """Approximate the exponential on [-10, 10]."""
        return self.get_val("exp", _self)

    @overloaded.method
    def log(self, _self: Tensor) -> Tensor:
        """Approximate the natural logarithm on [0.1, 10]."""
        return self.get_val("log", _self)

    @overloaded.method
    def sigmoid(self, _self: Tensor) -> Tensor:
        """Approximate the logistic function on [-10, 10]."""
        return self.get_val("sigmoid", _self)

    @overloaded.method
    def tanh(self, _self: Tensor) -> Tensor:
        """Approximate the hyperbolic tangent on [-10, 10]."""
        return self.get_val("tanh", _self)

    # The names in PySyft 0.1.
    addfunction = add_function
    applycoefs = apply_coefs
    defaultfunctions = default_functions


def _detail_piece(payload: Payload, _context: Context) -> Piece:
    low, high, *coefficients = payload
    has_interval = type(low) is float and type(high) is float and bool(coefficients)
    require(has_interval, "a piece of a polynomial: it has no interval")
    are_numbers = {int, float, complex}.issuperset(map(type, coefficients))
    require(are_numbers, "a piece of a polynomial: a coefficient is not a number")
    return Piece(low, high, tuple(coefficients))


def _valid_options(attributes: Kwargs) -> bool:
    functions = attributes["functions"]
    if attributes["function"] is not None or type(attributes["precision"]) is not int or type(functions) is not dict:
        return False
    return all(type(pieces) is tuple and {Piece}.issuperset(map(type, pieces)) for pieces in functions.values())


hook_args.default_register_tensor(PolynomialTensor)
codecs.register(build_layer_codec(PolynomialTensor, code=252, accepts=_valid_options))
codecs.register(Codec(Piece, 253, lambda piece, _: (piece.low, piece.high, *piece.coefficients), _detail_piece))
