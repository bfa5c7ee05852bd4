"""Measure PATE: ``python benchmarks/pate.py [--rounds N] [--update]``.

The analysis of 10,000 queries of 250 teachers on 10 classes at 100 orders, at once and with one call for each query and
order, of which 20,000 are made and the others extrapolated. The first call of a process takes longer than later ones.
And a private vote: 250 teachers on 3 workers of this process, 10 classes, 100 queries in one batch, compared with a
comparison of as many shared numbers as there are counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import torch
from measure import compare, machine, table, update_readme, verdict

import syft_core as sy
from syft_torch.differential_privacy.pate import rdp_gnmax
from syft_torch.differential_privacy.votes import GNMax

QUERIES, TEACHERS, CLASSES, SIGMA = 10_000, 250, 10, 40.0
ORDERS = np.linspace(1.5, 100, 100)
CALLS = 20_000
BATCH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--update", action="store_true", help="update the table in README.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [*measure_analysis(options.rounds), *measure_votes(options.rounds)]
    text = "\n".join(
        [
            table(["", "baseline ms", "ours ms", "ratio", "target", ""], rows),
            "",
            f"{machine()}, torch {torch.__version__}, numpy {np.__version__}, one thread.",
        ]
    )
    print(text)
    if options.update:
        update_readme("pate", text)


def measure_analysis(rounds: int) -> list[list[str]]:
    random = np.random.default_rng(0)
    votes = random.multinomial(TEACHERS, random.dirichlet(np.full(CLASSES, 0.3), QUERIES))
    queries = CALLS // len(ORDERS)

    def call_once_for_each() -> None:
        for row in votes[:queries]:
            for order in ORDERS:
                rdp_gnmax(row, SIGMA, order)

    first = time(lambda: rdp_gnmax(votes, SIGMA, ORDERS))  # What a program that calls it once waits for.
    at_once = median([time(lambda: rdp_gnmax(votes, SIGMA, ORDERS)) for _ in range(rounds)])
    one_by_one = time(call_once_for_each) * QUERIES / queries
    name = f"{QUERIES:,} queries, {TEACHERS} teachers, {CLASSES} classes, {len(ORDERS)} orders"
    return [
        [f"{name}, the first call", "-", f"**{1000 * first:.0f}**", "-", "≤ 1000 ms", verdict(first, 1.0)],
        *[
            [
                f"one call for each query and order (baseline), {which} at once (ours)",
                *(f"{1000 * one_by_one:.0f}", f"{1000 * spent:.0f}", f"**1 / {one_by_one / spent:.0f}**", "≤ 1 / 50"),
                verdict(spent / one_by_one, 1 / 50),
            ]
            for which, spent in (("the first call for all", first), ("later calls for all", at_once))
        ],
    ]


def measure_votes(rounds: int) -> list[list[str]]:
    hook = sy.TorchHook(torch)
    workers = [sy.VirtualWorker(hook, id=f"hospital {number}") for number in range(3)]
    provider = sy.VirtualWorker(hook, id="provider")
    labels = torch.randint(0, CLASSES, (TEACHERS, BATCH))
    pointers = [part.send(worker) for part, worker in zip(labels.tensor_split(3), workers, strict=True)]
    shared = torch.randint(-1000, 1000, (CLASSES * BATCH,)).share(*workers, crypto_provider=provider)
    plain = GNMax(CLASSES, SIGMA)
    confident = GNMax(CLASSES, SIGMA, threshold=150, threshold_sigma=100)
    rows = []
    for name, method in (("GNMax", plain), ("Confident-GNMax", confident)):
        method.vote(pointers, provider), shared < 0  # Each once, before they are timed.
        found = compare(
            lambda: time(lambda: shared < 0),
            lambda method=method: time(lambda: method.vote(pointers, provider)),
            rounds,
        )
        limit = 5.0 if method is plain else None
        rows.append(
            [
                f"a comparison of {CLASSES * BATCH:,} shared numbers (baseline), {name} on {BATCH} queries (ours)",
                *(f"{1000 * found.a:.1f}", f"{1000 * found.b:.1f}", f"**{found.ratio:.1f}**"),
                *(("≤ 5", verdict(found.ratio, limit)) if limit else ("-", "-")),
            ]
        )
    return rows


def time(function: Callable[[], object]) -> float:
    started = perf_counter()
    function()
    return perf_counter() - started


if __name__ == "__main__":
    main()
