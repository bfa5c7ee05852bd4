"""Settings of every process of tests."""

from __future__ import annotations

import gc
import importlib
import os
import threading
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

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
    "architecture/test_imports",
    "core/",
    "serde/test_builtin",
    "serde/test_message",
    "workers/test_attacks",
    "workers/party/",
    "workers/test_in_process",
    "workers/running/test_changes",
    "workers/seeing/test_visibility",
    "workers/test_private",
    "plans/test_training",
    "syft_mpc/test_fixed_precision",
    "syft_worker/desk/test_requests",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``pytest -m minute`` runs."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.relative_to(folder).as_posix().startswith(MINUTE):
            item.add_marker(pytest.mark.minute)


def pytest_collection_finish() -> None:
    """Exempt what exists before the tests from garbage collection: many tests collect, and would visit all of it."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport() -> None:
    """Wait for the imports of torch's meta device: they create loggers, while pytest iterates over all loggers."""
    for thread in threading.enumerate():
        if thread.name == "prepare the meta device":
            wait_for_end(thread)
