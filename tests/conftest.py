"""Settings of every process of tests."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from tests.hooks import detach_before
from tests.parts import PART, may_skip, part_of, runs_elsewhere
from tests.waiting import wait_for_end

# One thread for each process: those of torch and of several processes would wait for one another.
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # which a framework reads when it is imported, here and in child processes


def import_or_fail(name: str, *_args: object, **_options: object) -> ModuleType:
    """Import a package, for which a test would be skipped elsewhere."""
    return importlib.import_module(name)


if os.environ.get("SYFT_ALL_PACKAGES"):
    pytest.importorskip = import_or_fail  # type: ignore[assignment]

# How long an example takes says nothing on a machine that others use too.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


# What a developer runs after each change, in about a minute: the kernel, and the road of an operation.
MINUTE = (
    "tests/architecture/test_imports",
    "tests/core/",
    "tests/serde/test_builtin",
    "tests/serde/test_message",
    "tests/workers/test_attacks",
    "tests/workers/party/",
    "tests/workers/test_in_process",
    "tests/workers/road/test_changes",
    "tests/workers/seeing/test_visibility",
    "tests/workers/test_private",
    "tests/plans/test_training",
    "tests/syft_mpc/test_fixed_precision",
    "tests/syft_worker/desk/test_requests",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what ``pytest -m minute`` runs, and leave out the tests of other environments."""
    for item in items:
        if item.nodeid.startswith(MINUTE):
            item.add_marker(pytest.mark.minute)
    if PART:
        config.hook.pytest_deselected(items=[item for item in items if part_of(item) != PART])
        items[:] = [item for item in items if part_of(item) == PART]


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Fail a file that is skipped in the only environment that would run some of its tests."""
    report = (yield).get_result()
    if PART and report.skipped and not runs_elsewhere(collector.path):
        report.outcome = "failed"
        report.longrepr = f"{collector.path} is skipped, and no other environment runs all of it"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail a test that is skipped in the only environment that runs it."""
    report = (yield).get_result()
    if PART and report.skipped and not hasattr(report, "wasxfail") and not may_skip(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped in the only environment that runs it: {report.longrepr[-1]}"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Detach a hook that the next test does not need, and after each file exempt what it leaves from collection."""
    detach_before(item, nextitem)
    if nextitem is None or nextitem.path != item.path:
        freeze()


def pytest_collection_finish() -> None:
    """Exempt what exists before the tests from garbage collection."""
    freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Exempt what a test has imported, such as a framework's parts for a hook: there are a hundred thousand objects."""
    if len(sys.modules) > _imported[0] + 20:
        freeze()


_imported = [0]
"""How many modules there were when objects were exempted for the last time."""


def freeze() -> None:
    """Exempt all objects from garbage collection: many tests collect, and would visit all that exists."""
    gc.collect()
    gc.freeze()
    _imported[0] = len(sys.modules)


def pytest_runtest_logreport() -> None:
    """Wait for the imports of torch's meta device: they create loggers, while pytest iterates over all loggers."""
    for thread in threading.enumerate():
        if thread.name == "prepare the meta device":
            wait_for_end(thread)
