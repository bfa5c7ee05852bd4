"""Measure the hook: ``python benchmarks/hook.py [--rounds N] [--ancestor PYTHON] [--update]``.

Three questions, each with its targets: does plain torch pay for being hooked, how long does it take to start, and what
does one operation through a chain cost compared with minimal hand-written code. The ancestor answers the same
questions where its environment exists (``benchmarks/make_ancestor.sh``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from handwritten import FlatArray, FlatTensor, NestedTensor
from measure import ROOT, Clock, Comparison, Process, compare, machine, table, update_readme, verdict
from torch_workloads import CHAIN, PLAIN, chain_clocks, plain_clocks

from syft_core.tensors.logging import LoggingTensor
from syft_numpy.hook import NumpyHook
from syft_torch.hook import TorchHook

HERE = Path(__file__).resolve().parent
ANCESTOR = HERE / ".venvs" / "ancestor" / "bin" / "python"
PLAIN_LIMIT, CHAIN_LIMIT, HOOK_LIMIT, IMPORT_LIMIT = 1.02, 3.0, 0.050, 0.080
NO_TARGET = {"torch.tensor"}
"""``torch.tensor`` is the one function that hooking replaces; it is shown, and nothing was promised for it."""
STARTS = 9
ANCESTOR_STARTS = 3
PAIRS = 4


def main() -> None:
    options = parse()
    ancestor = options.ancestor if options.ancestor.exists() else None
    torch.set_num_threads(1)
    text = "\n\n".join(
        [
            *plain(options.rounds, ancestor),
            *start(ancestor),
            *chain(options.rounds, ancestor),
            footer(ancestor),
        ]
    )
    print(text)
    if options.update:
        update_readme("hook", text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=120, help="rounds of A B B A per comparison (120)")
    parser.add_argument("--ancestor", type=Path, default=ANCESTOR, help="the Python of the ancestor's environment")
    parser.add_argument("--update", action="store_true", help="write the tables into benchmarks/README.md")
    return parser.parse_args()


# --- plain torch


def plain(rounds: int, ancestor: Path | None) -> Iterator[str]:
    """Yield the parts on plain torch after hooking."""
    toggled = {name: compare_toggled(clock, rounds) for name, clock in plain_clocks().items()}
    apart = compare_processes(sys.executable, HERE / "own_hook.py", rounds)
    theirs = compare_processes(ancestor, HERE / "ancestor_hook.py", rounds) if ancestor else {}
    rows = []
    for name in PLAIN:
        ours, fresh, old = toggled[f"plain {name}"], apart[name], theirs.get(name)
        limited = name not in NO_TARGET
        rows.append(
            [
                name,
                micro(ours.a),
                micro(ours.b),
                f"**{ours.ratio:.3f}**",
                ours.interval(),
                spread(fresh),
                f"≤ {PLAIN_LIMIT}" if limited else "-",
                verdict(ours.ratio, PLAIN_LIMIT) if limited else "-",
                f"{median(old):.2f}" if old else "-",
                f"{ours.ratio / median(old):.2f}" if old else "-",
            ]
        )
    yield "**Plain torch after hooking**, compared with before"
    yield table(
        ["", "before µs", "after µs", "ratio", "95 %", "fresh processes", "target", "", "ancestor", "ours / ancestor"],
        rows,
    )


def compare_toggled(clock: Clock, rounds: int) -> Comparison:
    """Compare torch hooked with torch unhooked, in this process."""
    hooks: list[TorchHook] = []

    def run_unhooked() -> float:
        if hooks:
            hooks.pop().unhook()
            clock.settle()
        return clock()

    def run_hooked() -> float:
        if not hooks:
            hooks.append(TorchHook(torch))
            clock.settle()
        return clock()

    found = compare(run_unhooked, run_hooked, rounds)
    run_unhooked()
    return found


def compare_processes(python: Any, script: Path, rounds: int) -> dict[str, list[float]]:
    """Compare fresh processes that hook torch with fresh ones that do not: one ratio for each pair of processes."""
    ratios: dict[str, list[float]] = {name: [] for name in PLAIN}
    for _ in range(PAIRS):
        with Process(python, HERE / "torch_workloads.py") as before, Process(python, script) as after:
            for name in PLAIN:
                request = f"plain {name}"
                found = compare(before.clock(request), after.clock(request), max(1, rounds // PAIRS))
                ratios[name].append(found.ratio)
    return ratios


# --- start


def start(ancestor: Path | None) -> Iterator[str]:
    """Yield the parts on the time to start."""
    core, own, old = [], [], []
    import_core()  # writes the byte code, which later starts only read
    for turn in range(STARTS):
        core.append(import_core())
        own.append(facts_of(sys.executable, HERE / "own_hook.py"))
        if ancestor and turn < ANCESTOR_STARTS:
            old.append(facts_of(ancestor, HERE / "ancestor_hook.py"))
    figures = [
        ("`import syft_core` (loads neither torch nor numpy)", core, IMPORT_LIMIT, [f["import"] for f in old]),
        ("`TorchHook(torch)`", [f["hook"] for f in own], HOOK_LIMIT, [f["hook"] for f in old]),
        (
            "`import syft_torch.hook` and `TorchHook(torch)`",
            [f["import"] + f["hook"] for f in own],
            HOOK_LIMIT,
            [f["import"] + f["hook"] for f in old],
        ),
    ]
    yield f"**Start**, {STARTS} fresh processes, torch imported before where it is needed"
    yield table(
        ["", "median ms", "fastest to slowest", "target ms", "", "ancestor ms", "ours / ancestor"],
        [start_row(*figure) for figure in figures],
    )


def start_row(name: str, times: list[float], limit: float, old: list[float]) -> list[str]:
    middle = median(times)
    return [
        name,
        f"**{middle * 1e3:.1f}**",
        f"{min(times) * 1e3:.1f} to {max(times) * 1e3:.1f}",
        f"≤ {limit * 1e3:.0f}",
        verdict(middle, limit),
        f"{median(old) * 1e3:.0f}" if old else "-",
        f"{middle / median(old):.3f}" if old else "-",
    ]


def import_core() -> float:
    """Return the seconds of ``import syft_core`` in a fresh process, which must not load a framework."""
    code = (
        "import sys, time; start = time.perf_counter(); import syft_core; print(time.perf_counter() - start); "
        "sys.exit([name for name in ('torch', 'numpy') if name in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return float(json.loads(done.stdout))


def facts_of(python: Any, script: Path) -> dict[str, Any]:
    with Process(python, script) as process:
        return process.facts


# --- one operation


def chain(rounds: int, ancestor: Path | None) -> Iterator[str]:
    """Yield the parts on one operation through a chain."""
    theirs = compare_with_ancestor(ancestor, rounds) if ancestor else {}
    rows = []
    for name, found in compare_by_hand(rounds).items():
        old = theirs.get(name)
        rows.append(
            [
                name,
                micro(found.a),
                micro(found.b),
                f"**{found.ratio:.2f}**",
                found.interval(),
                f"≤ {CHAIN_LIMIT:g}",
                verdict(found.ratio, CHAIN_LIMIT),
                micro(old.a) if old else "-",
                f"{old.ratio:.2f}" if old else "-",
            ]
        )
    yield "**One operation through wrapper > LoggingTensor > four floats**, compared with a hand-written subclass"
    yield table(
        ["", "by hand µs", "ours µs", "ratio", "95 %", "target", "", "ancestor µs", "ours / ancestor"],
        rows,
    )


def compare_by_hand(rounds: int) -> dict[str, Comparison]:
    """Compare chains with the hand-written peers, in this process."""
    flat, nested = chain_clocks(FlatTensor), chain_clocks(NestedTensor)
    by_hand = {"add": flat, "relu": flat, "shape": nested, "cat": nested}
    with TorchHook(torch):
        ours = chain_clocks(log)
        found = {name: compare(by_hand[name][f"chain {name}"], ours[f"chain {name}"], rounds) for name in CHAIN}
    with NumpyHook(np):
        found["numpy add"] = compare(numpy_clock(FlatArray), numpy_clock(log), rounds)
    return found


def compare_with_ancestor(ancestor: Path, rounds: int) -> dict[str, Comparison]:
    """Compare our chains with the ancestor's, each in a process of its own."""
    with Process(ancestor, HERE / "ancestor_hook.py") as old, Process(sys.executable, HERE / "own_hook.py") as own:
        return {name: compare(old.clock(f"chain {name}"), own.clock(f"chain {name}"), rounds) for name in CHAIN}


def log(value: Any) -> Any:
    return LoggingTensor().on(value)


def numpy_clock(put_on: Callable[[Any], Any]) -> Clock:
    return Clock("np.add(x, y)", {"np": np, "x": put_on(np.ones(4)), "y": put_on(np.ones(4))})


# --- text


def footer(ancestor: Path | None) -> str:
    """Say where the figures come from."""
    lines = [f"{machine()}, torch {torch.__version__}, numpy {np.__version__}, one thread."]
    if ancestor:
        versions = facts_of(ancestor, HERE / "ancestor_hook.py")["versions"]
        lines.append(
            f"Ancestor: {versions}; its Python and torch are not ours, so its columns are orders of magnitude."
        )
    return "\n".join(lines)


def spread(ratios: list[float]) -> str:
    return f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.2f}" if seconds < 1e-4 else f"{seconds * 1e6:.0f}"


if __name__ == "__main__":
    warnings.simplefilter("error")  # a hook that is left on would warn, and spoil the comparison
    main()
