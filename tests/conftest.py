"""Settings of every process of tests."""

from __future__ import annotations

import os
import threading

# One thread for each process: those of torch and of several processes would wait for one another.
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # which a framework reads when it is imported, here and in child processes


def pytest_runtest_logreport() -> None:
    """Wait for the imports of torch's meta device: they create loggers, while pytest iterates over all loggers."""
    for thread in threading.enumerate():
        if thread.name == "prepare the meta device":
            thread.join()
