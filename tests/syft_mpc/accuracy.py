"""The functions of shared numbers with their domains and errors: ``python -m tests.syft_mpc.accuracy`` measures them.

It prints the table of docs/encrypted-functions.md, with the largest error found at each precision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

import syft_core as sy
from syft_mpc.group import count

Function = Callable[[torch.Tensor], torch.Tensor]
SCALES = [(10, 3), (10, 5), (2, 16), (2, 20)]
"""Base and number of digits."""


@dataclass(frozen=True)
class Case:
    """A function, and what is promised of it: the error is at most 2 units (3 with 20 bits) and a relative part."""

    name: str
    function: Function
    inputs: torch.Tensor
    domain: str
    outside: str = ""
    relative: float = 0.0
    units: int = 2

    def bound(self, scale: int, exact: torch.Tensor) -> torch.Tensor:
        """Return the largest error that is promised, for results."""
        return (self.units + (scale > 1 << 17)) / scale + self.relative * exact.abs()


def _around(high: float) -> torch.Tensor:
    """Return numbers in and far outside of an interval."""
    inner = torch.linspace(-high * 1.2, high * 1.2, 400)
    return torch.cat([inner, torch.linspace(-1000, 1000, 41), torch.tensor([0.0, high, -high])])


def _sizes(low: float, high: float) -> torch.Tensor:
    """Return numbers of all sizes."""
    return torch.logspace(low, high, 400, 2)


_LOGITS = torch.randn(60, 10, generator=torch.Generator().manual_seed(0)) * 5
_MATRICES = torch.linalg.qr(torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0)))[0] * torch.linspace(
    1, 4, 5
)
_ALL = "all numbers"
_POSITIVE = "one unit to 16^9 units (2^20 with 16 bits)"

CASES = [
    Case("sigmoid", torch.sigmoid, _around(14), _ALL),
    Case("tanh", torch.tanh, _around(7), _ALL),
    Case("erf", torch.erf, _around(3.6), _ALL),
    Case("gelu", functional.gelu, _around(5.2), _ALL),
    Case("gelu, tanh", lambda x: functional.gelu(x, approximate="tanh"), _around(5.2), _ALL),
    Case("silu", functional.silu, _around(17), _ALL),
    Case("softplus", functional.softplus, _around(14), _ALL),
    Case("logsigmoid", functional.logsigmoid, _around(14), _ALL),
    Case("sin", torch.sin, _around(20), "&#124;x&#124; < 2^16", "the error grows with x"),
    Case("cos", torch.cos, _around(20), "&#124;x&#124; < 2^16", "the error grows with x"),
    Case("exp", torch.exp, torch.linspace(-30, 12, 400), "x <= 12", "e^12", relative=2e-6),
    Case("log", torch.log, _sizes(-9, 15.9), _POSITIVE, "that of the nearest number in the domain"),
    Case("sqrt", torch.sqrt, _sizes(-9, 15.9), _POSITIVE, "0 below, that of 16^9 units above", relative=1e-6),
    Case("rsqrt", torch.rsqrt, _sizes(-9, 15.9), _POSITIVE, "0 below, that of 16^9 units above", relative=2e-6),
    Case(
        "reciprocal",
        torch.reciprocal,
        torch.cat([_sizes(-9, 15), -_sizes(-9, 15)]),
        "the same, positive or negative; with more than 19 bits, from 16 units on",
        "0",
        relative=5e-6,
    ),
    Case("softmax of 10", lambda x: torch.softmax(x, -1), _LOGITS, _ALL),
    Case("softmax of 60", lambda x: torch.softmax(x, 0), _LOGITS, _ALL),
    Case("log_softmax of 10", lambda x: torch.log_softmax(x, -1), _LOGITS, _ALL),
    Case("log_softmax of 60", lambda x: torch.log_softmax(x, 0), _LOGITS, _ALL),
    Case("var of 60", lambda x: x.var(0), _LOGITS, "products that fit into the ring", units=3),
    Case("std of 60", lambda x: x.std(0), _LOGITS, "variances up to 16^9 units", units=3),
    Case("inverse of 5 x 5", torch.inverse, _MATRICES, "condition below 100", "not the inverse", units=40),
]


@dataclass(frozen=True)
class Found:
    """What a run of a case showed."""

    error: float
    """The largest error."""
    excess: float
    """The largest error, divided by what is promised."""
    rounds: int
    sent: float
    """Bytes from one party to another, for each element."""


def run(case: Case, workers: list[Any], provider: Any, base: int, digits: int, field: str = "long") -> Found:
    """Compute a case on shares, and compare it with torch; without workers, on numbers that are not shared."""
    scale = base**digits
    encoded = case.inputs.fix_prec(base=base, precision_fractional=digits, field=field, dtype=torch.float64)
    exact = case.function(encoded.float_prec())
    if not workers:
        error = (case.function(encoded).float_prec() - exact).abs()
        return Found(error.max().item(), (error / case.bound(scale, exact)).max().item(), 0, 0)
    shared = encoded.share(*workers, crypto_provider=provider)
    with count() as counted:
        result = case.function(shared)
    error = (result.get().float_prec() - exact).abs()
    pairs = len(workers) * (len(workers) - 1)
    sent = counted.bytes / pairs / case.inputs.numel()
    return Found(error.max().item(), (error / case.bound(scale, exact)).max().item(), counted.rounds, sent)


def make_table(workers: list[Any], provider: Any) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| function | domain | outside | error | rounds | bytes |"
    yield "|---|---|---|---|---|---|"
    for case in CASES:
        found = run(case, workers, provider, 2, 16)
        relative = f" and {case.relative:.0e} of the result" if case.relative else ""
        units = f"{case.units} units{relative}"
        cells = (f"`{case.name}`", case.domain, case.outside or "-", units, str(found.rounds), f"{found.sent:.0f}")
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, and the errors found."""
    with sy.TorchHook(torch) as hook:
        *workers, provider = [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "carol")]
        sys.stdout.write("\n".join(make_table(workers, provider)) + "\n\n")
        for case in CASES:
            errors = [f"{run(case, workers, provider, *scale).error:.1e}" for scale in SCALES]
            sys.stdout.write(f"{case.name:20}{'  '.join(errors)}\n")


if __name__ == "__main__":
    main()
