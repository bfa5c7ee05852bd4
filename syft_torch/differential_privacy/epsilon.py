"""Guarantees in (ε, δ): those that may be published, and those that depend on data and may not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from syft_torch.differential_privacy.arguments import Floats, to_delta, to_order, to_positive
from syft_torch.differential_privacy.noise import LARGEST_SIGMA, discrete_gaussian

Conversion = Literal["improved", "classic"]
"""How a Rényi bound becomes (ε, δ): Mironov 2017 (classic), or Canonne, Kamath and Steinke 2020 (improved)."""
ORDERS: Floats = 1 + np.exp(np.linspace(math.log(1e-2), math.log(1e6), 500))
"""The Rényi orders among which the best is searched for: each is 4% further from 1 than the one before."""
_GRID = 2.0**10
"""The least standard deviation of released noise, in steps: so many that a step does not matter."""


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

    They are always the same: so a query never makes ε smaller, and others get the same number.
    """
    delta = to_delta(delta)
    found = convert(rdp(ORDERS), ORDERS, delta, conversion)
    best = int(np.argmin(found))
    return Guarantee(float(found[best]), delta, float(ORDERS[best]), conversion)


class Curve(NamedTuple):
    """What is known about a loss that depends on data."""

    rdp: Callable[[Floats], Floats]
    """The Rényi bound at each order."""
    smooth: Callable[[float, float], float] | None
    """The smooth sensitivity of the bound, for β and an order; None if none is proven."""
    independent: Callable[[Floats], Floats]
    """The bound for all data."""


class NotForRelease(float):
    """A number that depends on private data: it computes as a float, and does not print.

    ``float(x)`` is the deliberate way to look at it; numpy computes with it as with any float.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: depends on private data, not for release>"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, _protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"cannot store or send a {type(self).__name__}: it depends on private data, not for release")

    def __add__(self, other: float) -> NotForRelease:
        return NotForRelease(float(self) + other)

    def __sub__(self, other: float) -> NotForRelease:
        return NotForRelease(float(self) - other)

    def __rsub__(self, other: float) -> NotForRelease:
        return NotForRelease(other - float(self))

    def __mul__(self, other: float) -> NotForRelease:
        return NotForRelease(float(self) * other)

    def __truediv__(self, other: float) -> NotForRelease:
        return NotForRelease(float(self) / other)

    def __rtruediv__(self, other: float) -> NotForRelease:
        return NotForRelease(other / float(self))

    def __pow__(self, other: float, _modulus: None = None) -> NotForRelease:
        return NotForRelease(float(self) ** other)

    def __rpow__(self, other: float, _modulus: None = None) -> NotForRelease:
        return NotForRelease(other ** float(self))

    def __floordiv__(self, other: float) -> NotForRelease:
        return NotForRelease(float(self) // other)

    def __mod__(self, other: float) -> NotForRelease:
        return NotForRelease(float(self) % other)

    def __round__(self, digits: SupportsIndex | None = None) -> NotForRelease:  # type: ignore[override]  # not an int
        return NotForRelease(round(float(self), digits))

    def __neg__(self) -> NotForRelease:
        return NotForRelease(-float(self))

    def __abs__(self) -> NotForRelease:
        return NotForRelease(abs(float(self)))

    __radd__, __rmul__ = __add__, __mul__


class DataDependentEpsilon(NotForRelease):
    """The ε of given votes, which is itself private: whoever knows it learns something about the votes.

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
        times the smooth sensitivity, to the Rényi bound at ``order``. Choose all three without looking at the votes. A
        second release costs as much again: publish the sum of both.
        """
        order, noise = to_order(order), to_positive(noise, "noise")
        beta = 0.4 / order if beta is None else to_positive(beta, "beta")
        if self._curve.smooth is None:
            raise ValueError("cannot release: no smooth sensitivity is proven for LNMax; use GNMax and `epsilon_gnmax`")
        if order >= 1 / (2 * beta):
            raise ValueError("cannot release: 'order' must be below 1 / (2 beta); use a smaller beta")
        at = np.asarray([order])
        limit = float(self._curve.independent(at)[0])
        step = (limit or 1.0) * noise / (LARGEST_SIGMA // 2)
        # Public numbers determine the steps; rounding to them moves the bound by less than one.
        scale = math.ceil(float(self._curve.smooth(beta, order)) * noise / step + _GRID)
        steps = round(float(self._curve.rdp(at)[0]) / step) + int(discrete_gaussian(scale, (1,))[0])
        cost = order * math.exp(2 * beta) / noise**2
        cost += (beta * order - 0.5 * math.log1p(-2 * order * beta)) / (order - 1)
        rdp = np.asarray([min(max(steps * step, 0.0), limit) + cost])
        return Guarantee(float(convert(rdp, at, self.delta, self.conversion)[0]), self.delta, order, self.conversion)
