"""Guarantees in (ε, δ): those that may be published, and those that depend on data and may not."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Literal, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from syft_privacy.arguments import Floats, to_delta, to_order, to_positive
from syft_privacy.noise import LARGEST_SIGMA, discrete_gaussian

Conversion = Literal["improved", "classic"]
"""How a Rényi bound becomes (ε, δ): Mironov 2017 (classic), or Canonne, Kamath and Steinke 2020 (improved)."""
ORDERS: Floats = 1 + np.exp(np.linspace(math.log(1e-2), math.log(1e6), 500))
"""The Rényi orders among which the best is searched for: each is 4% further from 1 than the one before."""
_GRID = 2.0**13
"""Minimum standard deviation of released noise, in steps; large enough that one step does not matter."""

_MARGIN = 3
"""Number of standard deviations of the noise that are added to a released value."""


class Guarantee(NamedTuple):
    """(ε, δ)-differential privacy, with the Rényi order and the conversion that gave it."""

    epsilon: float
    delta: float
    order: float
    conversion: Conversion

    def __str__(self) -> str:
        return f"ε = {self.epsilon:.4g} at δ = {self.delta:.2g} ({self.conversion} conversion, order {self.order:.4g})"


def convert(rdp: Floats, orders: Floats, delta: float, conversion: Conversion) -> Floats:
    """Return the ε that each Rényi bound gives at δ."""
    if conversion == "classic":
        found = rdp - math.log(delta) / (orders - 1)
    elif conversion == "improved":
        found = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    else:
        raise ValueError("cannot use 'conversion': expected 'improved' or 'classic'")
    return np.maximum(found, 0.0)


def find_epsilon(rdp: Callable[[Floats], Floats], delta: float, conversion: Conversion) -> Guarantee:
    """Return the least ε of all ``ORDERS``.

    The orders are fixed, so another query never makes ε smaller, and others get the same number.
    """
    delta = to_delta(delta)
    found = convert(rdp(ORDERS), ORDERS, delta, conversion)
    best = int(np.argmin(found))
    return Guarantee(float(found[best]), delta, float(ORDERS[best]), conversion)


class Curve(NamedTuple):
    """Bounds on a loss that depends on data."""

    rdp: Callable[[Floats], Floats]
    """The Rényi bound at each order."""
    smooth: Callable[[float, float], float] | None
    """The smooth sensitivity of the bound, for β and an order; None if none is proven."""
    independent: Callable[[Floats], Floats]
    """The bound for all data."""


def _compute(function: Callable[[float, float], float]) -> Callable[[NotForRelease, object], NotForRelease]:
    def compute(self: NotForRelease, other: object) -> NotForRelease:
        return NotForRelease(function(float(self), float(other))) if isinstance(other, Real) else NotImplemented

    return compute


def _compare(function: Callable[[float, float], bool]) -> Callable[[NotForRelease, object], bool]:
    def compare(self: NotForRelease, other: object) -> bool:
        return function(float(self), float(other)) if isinstance(other, Real) else NotImplemented

    return compare


def _swap(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda x, y: function(y, x)


class NotForRelease:
    """A number that depends on private data: it computes and compares as a float, and does not print.

    It is not a float, because libraries that store, send or print floats would do so with this one: JSON, numpy,
    formats. ``float(x)`` is the deliberate way to look at it; ``"%.2f" % x`` asks for that, too. To format or to round
    it in any other way raises an error that says so.
    """

    __slots__ = ("_value",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # a hash would reveal the number

    def __init__(self, value: float) -> None:
        self._value = float(value)

    def __float__(self) -> float:
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: depends on private data, not for release; float(...) looks at it>"

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        raise TypeError(
            f"cannot format a {type(self).__name__}: it depends on private data, not for release; write "
            f"`f'{{float(x):{spec}}}'` if you may look at it"
        )

    def __reduce_ex__(self, _protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"cannot store or send a {type(self).__name__}: it depends on private data, not for release")

    def __array__(self, *_args: object, **_options: object) -> NoReturn:
        raise TypeError(
            f"cannot make an array of a {type(self).__name__}: it depends on private data, not for release; "
            "write `float(...)` if you may look at it"
        )

    __add__, __radd__ = _compute(operator.add), _compute(_swap(operator.add))
    __sub__, __rsub__ = _compute(operator.sub), _compute(_swap(operator.sub))
    __mul__, __rmul__ = _compute(operator.mul), _compute(_swap(operator.mul))
    __truediv__, __rtruediv__ = _compute(operator.truediv), _compute(_swap(operator.truediv))
    __floordiv__, __rfloordiv__ = _compute(operator.floordiv), _compute(_swap(operator.floordiv))
    __mod__, __rmod__ = _compute(operator.mod), _compute(_swap(operator.mod))
    __pow__, __rpow__ = _compute(operator.pow), _compute(_swap(operator.pow))
    __eq__, __lt__, __le__ = _compare(operator.eq), _compare(operator.lt), _compare(operator.le)
    __gt__, __ge__ = _compare(operator.gt), _compare(operator.ge)

    def __round__(self, _digits: SupportsIndex | None = None) -> NoReturn:
        raise TypeError(
            f"cannot round a {type(self).__name__}: it depends on private data, not for release; write "
            f"`round(float(x), 2)` if you may look at it"
        )

    def __int__(self) -> NoReturn:
        raise TypeError(
            f"cannot make a whole number of a {type(self).__name__}: it depends on private data, not for release; "
            "write `int(float(x))` if you may look at it"
        )

    __trunc__ = __int__

    def __neg__(self) -> NotForRelease:
        return NotForRelease(-self._value)

    def __pos__(self) -> NotForRelease:
        return NotForRelease(self._value)

    def __abs__(self) -> NotForRelease:
        return NotForRelease(abs(self._value))


Real.register(NotForRelease)


class DataDependentEpsilon(NotForRelease):
    """The ε of given votes, which is itself private: it reveals something about the votes.

    ``independent`` is the guarantee for all votes, which may be published. ``release`` publishes an estimate of the
    smaller one, with noise.
    """

    delta: float
    order: NotForRelease
    """The order that gave it; the best one depends on the votes, too."""
    conversion: Conversion
    independent: Guarantee
    _curve: Curve

    @classmethod
    def of(
        cls, curve: Curve, delta: float, conversion: Conversion, found: Guarantee | None = None
    ) -> DataDependentEpsilon:
        """Return the ε of a curve at the best order, or one that was ``found``."""
        found = find_epsilon(curve.rdp, delta, conversion) if found is None else found
        self = cls(found.epsilon)
        self.delta, self.order, self.conversion, self._curve = delta, NotForRelease(found.order), conversion, curve
        self.independent = find_epsilon(curve.independent, delta, conversion)
        return self

    def release(self, *, order: float, noise: float, beta: float | None = None) -> Guarantee:
        """Return an ε that may be published: with noise in proportion to the smooth sensitivity, and its own cost.

        The mechanism is GNSS of Papernot et al. 2018: it adds Gaussian noise, with a standard deviation of ``noise``
        times the smooth sensitivity, to the Rényi bound at ``order``; and three times this, so that what is published
        is below the exact number with a probability of 0.14% only. Choose all three without looking at the votes. A
        second release costs as much again: publish the sum of both.
        """
        order, noise = to_order(order), to_positive(noise, "noise")
        beta = 0.2 / order if beta is None else to_positive(beta, "beta")
        if self._curve.smooth is None:
            raise ValueError("cannot release: no smooth sensitivity is proven for LNMax; use GNMax and `epsilon_gnmax`")
        if noise > LARGEST_SIGMA // 4:
            raise ValueError(f"cannot release: 'noise' is above {LARGEST_SIGMA // 4}; use less")
        cost = bound_release(order, noise, beta + 1 / _GRID)  # Rounding the standard deviation is a part of beta.
        at = np.asarray([order])
        limit = float(self._curve.independent(at)[0])
        # Public numbers determine the steps. Rounding to them adds one at most to what a vote changes.
        step = (limit or 1.0) * noise / (LARGEST_SIGMA // 2)
        scale = math.ceil((float(self._curve.smooth(beta, order)) / step + 1) * noise + _GRID)
        steps = round(float(self._curve.rdp(at)[0]) / step) + _MARGIN * scale + int(discrete_gaussian(scale, (1,))[0])
        rdp = np.asarray([min(max(steps * step, 0.0), limit) + cost])
        return Guarantee(float(convert(rdp, at, self.delta, self.conversion)[0]), self.delta, order, self.conversion)


def bound_release(order: float, noise: float, beta: float) -> float:
    """Bound the Rényi divergence of what GNSS publishes for neighbouring votes.

    Both are Gaussians. The divergence is largest if the smooth sensitivity S of one is e^β times that of the other, S',
    and the bounds are S' apart: that of N(0, S²σ²) from N(S' + 3σ(S - S'), S'²σ²), where σ is ``noise``. The published
    code (Theorem 23) has a term λe^(2β)/σ² instead, which is too small if β is near 1/(2λ), also without the 3σ.
    """
    rest = 1 + order * math.expm1(-2 * beta)
    if rest <= 0:
        raise ValueError("cannot release: 'order' is too high for this 'beta'; use a beta below 1 / (2 order)")
    apart = math.exp(-beta) - _MARGIN * noise * math.expm1(-beta)
    return order * apart**2 / (2 * noise**2 * rest) - (0.5 * math.log(rest) + order * beta) / (order - 1)
