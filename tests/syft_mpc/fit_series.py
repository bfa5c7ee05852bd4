"""Fit the series of ``syft_mpc/series.py``: ``python -m tests.syft_mpc.fit_series`` prints the tables.

Each function is fitted on an interval only; outside of it the series is periodic, and not used. This needs far fewer
waves than the Fourier series of a continued function. The period, the number of waves and the cutoff of small singular
values are chosen by hand, for an error near 5e-7 and coefficients that are not large.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from math import erf, sqrt
from typing import NamedTuple

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
GELU = sqrt(2 / np.pi)


class Fit(NamedTuple):
    """A function on an interval, and the kind of series for it: parity is "odd", "even" (plus a constant) or "none"."""

    function: Function
    low: float
    high: float
    period: float
    waves: int
    parity: str
    relative: bool = False
    cutoff: float = 1e-7

    @property
    def multiples(self) -> np.ndarray:
        """The frequencies: odd multiples for functions with a parity, whose halves mirror each other."""
        numbers = np.arange(1, self.waves + 1)
        return numbers if self.parity == "none" else 2 * numbers - 1

    def solve(self) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return the constant, the coefficients of cosines and of sines, and the largest error."""
        x = (self.low + self.high) / 2 + (self.high - self.low) / 2 * np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)
        angles = 2 * np.pi / self.period * (x - (self.low + self.high) / 2)[:, None] * self.multiples
        columns = []
        if self.parity != "odd":
            columns += [np.ones((len(x), 1)), np.cos(angles)]
        if self.parity != "even":
            columns += [np.sin(angles)]
        matrix, values = np.concatenate(columns, 1), self.function(x)
        weights = 1 / np.abs(values) if self.relative else np.ones(len(x))
        solution = np.linalg.lstsq(matrix * weights[:, None], values * weights, self.cutoff)[0]
        error = np.abs((matrix @ solution - values) * weights).max()
        constant, rest = (0.0, solution) if self.parity == "odd" else (solution[0], solution[1:])
        none = np.zeros(self.waves)
        cosines = none if self.parity == "odd" else rest[: self.waves]
        sines = none if self.parity == "even" else rest[-self.waves :]
        return constant, cosines, sines, error


_erf = np.vectorize(erf)


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-x * x / 2) / sqrt(2 * np.pi)


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x / 2 * np.tanh(GELU * (x + 0.044715 * x**3))


def _gelu_tanh_slope(x: np.ndarray) -> np.ndarray:
    inner = np.tanh(GELU * (x + 0.044715 * x**3))
    return inner / 2 + x / 2 * (1 - inner**2) * GELU * (1 + 3 * 0.044715 * x**2)


FITS = {
    "sigmoid": Fit(lambda x: np.tanh(x / 2) / 2, -14, 14, 56, 20, "odd"),
    "erf": Fit(lambda x: _erf(x), -3.6, 3.6, 15, 8, "odd"),
    "gelu": Fit(lambda x: x / 2 * _erf(x / sqrt(2)), -5.2, 5.2, 20.8, 9, "even"),
    "gelu_tanh": Fit(_gelu_tanh, -5.2, 5.2, 20.8, 10, "even"),
    "silu": Fit(lambda x: x / 2 * np.tanh(x / 2), -17, 17, 64.6, 25, "even"),
    "softplus": Fit(lambda x: np.log(2 * np.cosh(x / 2)), -14, 14, 53.2, 18, "even"),
    "gelu_slope": Fit(lambda x: _erf(x / sqrt(2)) / 2 + x * _density(x), -5.6, 5.6, 23.1, 10, "odd"),
    "gelu_tanh_slope": Fit(_gelu_tanh_slope, -5.6, 5.6, 23.1, 12, "odd"),
    "silu_slope": Fit(lambda x: np.tanh(x / 2) / 2 + x / 4 / np.cosh(x / 2) ** 2, -17, 17, 66, 28, "odd"),
    "reciprocal": Fit(lambda x: 1 / x, 1, 16, 20, 26, "none", True, 1e-9),
    "sqrt": Fit(np.sqrt, 1, 16, 22.5, 16, "none", True, 1e-9),
    "rsqrt": Fit(lambda x: 1 / np.sqrt(x), 1, 16, 22.5, 20, "none", True, 1e-9),
    "log": Fit(np.log, 1, 16, 22.5, 18, "none", False, 1e-9),
}


def _format(name: str, numbers: np.ndarray) -> list[str]:
    if not numbers.any():
        return []
    text = " ".join(str(round(number * 1e9)) for number in numbers)
    lines = textwrap.wrap(text, 100)
    if len(lines) == 1:
        return [f'        {name}=_billionths("{text}"),']
    rows = [f'            "{line} "' for line in lines[:-1]]
    return [f"        {name}=_billionths(", *rows, f'            "{lines[-1]}"', "        ),"]


def make_tables() -> str:
    """Return the lines of the tables."""
    lines = []
    for name, fit in FITS.items():
        constant, cosines, sines, error = fit.solve()
        size = abs(cosines).sum() + abs(sines).sum()
        middle = (fit.low + fit.high) / 2
        lines += [
            f"    # error {error:.1e}; the coefficients add up to {size:.0f}",
            f'    "{name}": Series(',
            f"        *({fit.low}, {fit.high}, {fit.period}, {middle}, {constant:.9f}),",
            f"        odd={fit.parity != 'none'},",
            *_format("cosines", cosines),
            *_format("sines", sines),
            "    ),",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{make_tables()}\n")
