"""One thread for each process of tests: those of torch and of several processes would wait for one another."""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # which a framework reads when it is imported, here and in child processes
