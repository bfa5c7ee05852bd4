"""Visits leave nothing behind: the memory of a worker does not grow with how many there were.

``SYFT_SOAK_SECONDS`` sets how long each kind of visit is repeated: not at all by default, and minutes at night.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("resource")

from syft_core.plugins.manager import load_backend  # noqa: E402  # torch may be missing
from syft_torch.federated.training import MAX_OPERATIONS  # noqa: E402

from .soak import VISITS, Soaked, serve, train  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests rely on the isolation of Linux")

SECONDS = float(os.environ.get("SYFT_SOAK_SECONDS", "0"))
KEPT = 9
"""Rounds after which as many sessions of a user are kept without a connection as may be."""


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soaked]:
    with load_backend("torch")(torch) as hook, serve(hook, tmp_path_factory.mktemp("soaked")) as soaked:
        yield soaked


@pytest.mark.slow
def test_visits_of_all_kinds_leave_only_what_is_remembered_of_the_last_ones(soaked: Soaked) -> None:
    soaked.fill_requests()
    soaked.visit([train] * MAX_OPERATIONS)
    growth = soaked.soak(VISITS, count=8, warm_up=KEPT)

    # Of the last 10,000 departures, each round adds eleven and, of the last ends of objects, about thirty.
    assert growth.objects < 50, f"{growth}\n{soaked.explain()}"
    assert growth.bytes < 15_000, f"{growth}\n{soaked.explain()}"


def visit_for(soaked: Soaked, kind: list[Any], seconds: float) -> int:
    """Make visits for some seconds, and return how many."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        soaked.visit(kind)
        count += 1
    return count


@pytest.mark.skipif(not SECONDS, reason="takes an hour; the nightly environment runs it (SYFT_SOAK_SECONDS=300)")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("visit", VISITS, ids=lambda visit: str(visit.__name__))
def test_no_kind_of_visit_leaves_anything_behind(soaked: Soaked, visit: object) -> None:
    soaked.fill_histories()
    soaked.fill_requests()
    kind = [known for known in VISITS if known is visit]
    soaked.soak(kind, count=1, warm_up=70)
    visit_for(soaked, kind, SECONDS / 2)  # The process takes memory in large steps, most of them at first.
    before = soaked.measure()
    count = visit_for(soaked, kind, SECONDS / 2)

    growth = (soaked.measure() - before) / count

    name, found = getattr(visit, "__name__", ""), growth.round(1).tolist()
    sys.stdout.write(f"{name}: {count} visits, {found} bytes, objects and bytes of the process for each\n")
    assert growth[1] < 0.5, soaked.explain()
    assert growth[2] < 2_000, soaked.explain()
