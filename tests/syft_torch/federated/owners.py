"""Tables of several workers."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

import syft_core as sy
from syft_torch import federated as fl
from tests.waiting import wait_for_end

NAMES = ("north", "east", "south")


COLUMNS = [
    sy.Column("age", "integer", "years"),
    sy.Column("bmi", "real", "kg/m2", nullable=True),
    sy.Column("sex", "category", categories=("f", "m")),
    sy.Column("outcome", "category", categories=("no", "yes")),
]


def make_table(number: int, rows: int = 40, gaps: bool = True) -> torch.Tensor:
    source = torch.Generator().manual_seed(number)
    table = torch.randn(rows + number, 4, generator=source) * 3 + 1000 * torch.tensor([1.0, 1, 0, 0])
    table[:, 2:] = (table[:, 2:] > 0).float()
    if gaps:
        table[:: number + 3, 1] = math.nan
    return table


def fill(
    workers: list[Any], users: list[str] | None = None, gaps: bool = True, **changes: list[sy.Column]
) -> torch.Tensor:
    """Load a table on each worker, and return all rows."""
    tables = [make_table(number, gaps=gaps) for number in range(len(workers))]
    for worker, table in zip(workers, tables, strict=True):
        named = table.clone().name_columns(*changes.get(worker.id, COLUMNS)).tag("#patients")
        worker.load_data([named if users is None else named.private_tensor(users)])
    return torch.cat(tables)


def find(workers: list[Any], **options: Any) -> fl.FederatedDataset:
    return fl.find("#patients", **{"label": "outcome", "missing": 0.0, "workers": workers, **options})


@contextmanager
def owners(workers: list[Any], decide: str = "approve") -> Iterator[None]:
    """Let the owners of workers decide on all requests."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.01):
            for worker in workers:
                for request in [each for each in worker.requests if each.state == "open"]:
                    worker.desk.decide(decide, request, "because")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        wait_for_end(thread)
