"""Measure and compare: the timing, pairing and printing that every benchmark here shares.

How a ratio is computed. Absolute times drift with whatever else the machine does, so two things are never timed one
after the other but in many short rounds, each in the order A B B A, which cancels a steady drift. Each of the four is
the fastest of five blocks of 0.4 ms. A round gives one ratio ``(B + B) / (A + A)``; the result is the median over all
rounds, with the interval in which the true median lies with 95 % confidence (from the order of the rounds' ratios, so a
few disturbed rounds do not move it). Times next to a ratio are medians of the same rounds, for orientation
only: their quotient need not be the ratio.

Python 3.7 can run this file: the ancestor's script imports it.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "benchmarks" / "README.md"
sys.path.insert(0, str(ROOT))  # measure this checkout, whether it is installed or not


class Clock:
    """Time one statement: each call returns the seconds of one execution, in the fastest of five short blocks."""

    def __init__(self, statement: str, names: dict[str, Any], block: float = 0.0004) -> None:
        self.timer = timeit.Timer(statement, globals=names)
        self.block = block
        self.number = 0

    def __call__(self) -> float:
        if not self.number:
            self.settle()
            self.number = max(1, int(self.block * 10 / min(self.timer.repeat(5, 10))))
        return min(self.timer.repeat(5, self.number)) / self.number

    def settle(self) -> None:
        """Run until the interpreter has specialised the code again, after types or modules were changed."""
        self.timer.timeit(80)


class Comparison(NamedTuple):
    """What came out of comparing B with A."""

    a: float
    b: float
    ratio: float
    low: float
    high: float

    def interval(self) -> str:
        return f"{self.low:.3f} to {self.high:.3f}"


def compare(a: Callable[[], float], b: Callable[[], float], rounds: int) -> Comparison:
    """Compare B with A in ``rounds`` rounds of A B B A; each function returns seconds."""
    times_a, times_b = [], []
    for _ in range(rounds):
        first, *both, last = a(), b(), b(), a()
        times_a.append((first + last) / 2)
        times_b.append(sum(both) / 2)
    ratios = sorted(b / a for a, b in zip(times_a, times_b))  # noqa: B905  # Python 3.7 has no strict=
    reach = 0.98 * rounds**0.5  # of ranks around the middle: 95 % of a binomial distribution
    low, high = max(0, round(rounds / 2 - reach)), min(rounds - 1, round(rounds / 2 + reach))
    return Comparison(median(times_a), median(times_b), median(ratios), ratios[low], ratios[high])


class Process:
    """A process of its own that first prints its ``facts`` and then times statements on request.

    Its script ends in ``serve``. Between requests it sleeps, so several can be compared with each other in turns.
    """

    def __init__(self, *command: Any) -> None:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            universal_newlines=True,
        )
        self.facts = self._answer()

    def clock(self, name: str) -> Callable[[], float]:
        """Return a function that lets the process time ``name`` once."""

        def ask() -> float:
            self._process.stdin.write(f"{name}\n")
            self._process.stdin.flush()
            return self._answer()

        return ask

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            self._process.communicate()
            raise RuntimeError(f"{self._process.args} ended with code {self._process.returncode}: see its error above")
        return json.loads(line)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_error: Any) -> None:
        self._process.communicate()  # the end of its input ends it


def serve(facts: Any, clocks: dict[str, Clock]) -> None:
    """Print ``facts``, then run the clock of each name that comes in; whatever else is printed goes nowhere."""
    answers, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115  # as long as the process
    print(json.dumps(facts), file=answers, flush=True)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(
            0, {max(os.sched_getaffinity(0))}
        )  # compared processes take turns on one and the same core
    for line in sys.stdin:
        print(json.dumps(clocks[line.strip()]()), file=answers, flush=True)


def verdict(value: float, limit: float) -> str:
    """Return whether a value that should be small is small enough."""
    return "met" if value <= limit else "**not met**"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> str:
    """Describe the machine in one line."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    cpu = model.group(1) if model else platform.processor() or platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores of {cpu}{load}, Python {platform.python_version()}"


def update_readme(marker: str, text: str) -> None:
    """Put ``text`` between ``<!-- marker -->`` and ``<!-- /marker -->`` of the README."""
    start, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, _, rest = README.read_text(encoding="utf-8").partition(start)
    _, _, after = rest.partition(end)
    README.write_text(f"{before}{start}\n{text.strip()}\n{end}{after}", encoding="utf-8")
