"""Measure workers and pointers: ``python benchmarks/workers.py [--rounds N] [--ancestor PYTHON] [--update]``.

Three questions, each with its target: what does one operation on a pointer cost, in process, compared with one
on plain tensors; what do sending and fetching cost; and how much slower is remote training than local training. The
ancestor answers the same questions where its environment exists (``benchmarks/make_ancestor.sh``).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from measure import Comparison, Process, compare, machine, table, update_readme, verdict

HERE = Path(__file__).resolve().parent
ANCESTOR = HERE / ".venvs" / "ancestor" / "bin" / "python"
ADD_LIMIT, EPOCH_LIMIT, PLAN_LIMIT, WIRE_PLAN_LIMIT = 12.0, 2.5, 1.3, 2.0
FASTER = {"pointer add": 8.0, "send": 6.0, "get": 6.0}
"""How many times faster than the ancestor each should be."""
EPOCH_ROUNDS, ANCESTOR_EPOCH_ROUNDS = 15, 2
PROTECTED: dict[str, dict[str, float | None]] = {
    "add": {"quotas, plain": 1.3, "no quotas, private": 3.0, "quotas, private": None},
    "step": {"quotas, plain": 1.3, "no quotas, private": None, "quotas, private": None},
}
"""The targets of what protection costs."""


def main() -> None:
    options = parse()
    with Process(sys.executable, HERE / "worker_workloads.py") as own:
        if options.ancestor.exists():
            with Process(options.ancestor, HERE / "ancestor_workers.py") as old:
                text = report(own, old, options.rounds)
        else:
            text = report(own, None, options.rounds)
    print(text)
    if options.update:
        update_readme("workers", text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60, help="rounds of A B B A per comparison (60)")
    parser.add_argument("--ancestor", type=Path, default=ANCESTOR, help="the Python of the ancestor's environment")
    parser.add_argument("--update", action="store_true", help="write the tables into benchmarks/README.md")
    return parser.parse_args()


def report(own: Process, old: Process | None, rounds: int) -> str:
    parts = [
        *compare_with_plain(own, old, rounds),
        *compare_protected(own, rounds),
        *(compare_with_ancestor(own, old, rounds) if old else []),
        footer(old),
    ]
    return "\n\n".join(parts)


def compare_with_plain(own: Process, old: Process | None, rounds: int) -> Iterator[str]:
    """Yield the parts that compare remote with plain, each library in its own process."""
    adds = compare(own.clock("plain add"), own.clock("pointer add"), rounds)
    epochs = compare(own.clock("local epoch"), own.clock("remote epoch"), EPOCH_ROUNDS)
    planned = compare(own.clock("local epoch"), own.clock("planned epoch"), EPOCH_ROUNDS)
    by_wire = compare(own.clock("local epoch"), own.clock("planned epoch by wire"), EPOCH_ROUNDS)
    old_adds = compare(old.clock("plain add"), old.clock("pointer add"), rounds) if old else None
    old_epochs = compare(old.clock("local epoch"), old.clock("remote epoch"), ANCESTOR_EPOCH_ROUNDS) if old else None
    yield "**Remote compared with plain**, in process"
    yield table(
        ["", "plain ms", "remote ms", "ratio", "95 %", "target", "", "ancestor's ratio"],
        [
            plain_row("`x + y`, 10 elements, in process", adds, ADD_LIMIT, old_adds),
            plain_row("one epoch of training, two workers, in process", epochs, EPOCH_LIMIT, old_epochs),
            plain_row("the same with a plan per step, in process", planned, PLAN_LIMIT, None),
            plain_row("the same through the wire format, in process", by_wire, WIRE_PLAN_LIMIT, None),
        ],
    )


def compare_protected(own: Process, rounds: int) -> Iterator[str]:
    """Yield the parts that say what quotas and private data cost."""
    rows = []
    for what, text, times in (
        ("add", "`x + y`, 10 elements", rounds),
        ("step", "an SGD step of the MLP", EPOCH_ROUNDS),
    ):
        for name, limit in PROTECTED[what].items():
            found = compare(own.clock(f"{what}: no quotas, plain"), own.clock(f"{what}: {name}"), times)
            shown = "-" if limit is None else f"≤ {limit:g}"
            met = "-" if limit is None else verdict(found.ratio, limit)
            times_shown = milli(found.a), milli(found.b)
            rows.append([f"{text}: {name}", *times_shown, f"**{found.ratio:.2f}**", found.interval(), shown, met])
    yield "**What protection costs**, in process, compared with plain data on a worker without quotas"
    yield table(["", "without ms", "with ms", "ratio", "95 %", "target", ""], rows)


def plain_row(name: str, found: Comparison, limit: float, old: Comparison | None) -> list[str]:
    return [
        name,
        milli(found.a),
        milli(found.b),
        f"**{found.ratio:.2f}**",
        found.interval(),
        f"≤ {limit:g}",
        verdict(found.ratio, limit),
        f"{old.ratio:.1f}" if old else "-",
    ]


def compare_with_ancestor(own: Process, old: Process, rounds: int) -> Iterator[str]:
    """Yield the parts that compare us with the ancestor, in turns."""
    rows = []
    for name, least in FASTER.items():
        found = compare(own.clock(name), old.clock(name), rounds)
        rows.append(
            [
                f"{name}, 10 elements",
                milli(found.b),
                milli(found.a),
                f"**{found.ratio:.1f}**",
                found.interval(),
                f"≥ {least:g}",
                verdict(-found.ratio, -least),
            ]
        )
    yield "**How many times faster than the ancestor**, in process"
    yield table(["", "ancestor ms", "ours ms", "times faster", "95 %", "target", ""], rows)


def footer(old: Process | None) -> str:
    """Say where the figures come from."""
    lines = [f"{machine()}, torch {torch.__version__}, one thread."]
    if old:
        lines.append(f"Ancestor: {old.facts['versions']}.")
    return "\n".join(lines)


def milli(seconds: float) -> str:
    return f"{seconds * 1e3:.4f}" if seconds < 1e-3 else f"{seconds * 1e3:.0f}"


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
