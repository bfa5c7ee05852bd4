"""One Ray for all tests, on this machine. Where Ray itself cannot start, the tests are skipped, and say so."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.exceptions import RayStartError
from syft_core.ray.starting import start_ray

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")

CPUS = 8
"""More than there are: tests start several actors, most of which wait."""


@pytest.fixture(scope="session", autouse=True)
def ray() -> Iterator[Any]:
    """Start Ray once."""
    import ray  # noqa: PLC0415  # after the variables are set

    try:
        start_ray(None, CPUS)
    except RayStartError as error:
        warnings.warn(f"RAY DID NOT START, SO NOTHING OF IT WAS TESTED: {error}", UserWarning, stacklevel=1)
        pytest.skip(f"RAY DID NOT START, SO NOTHING OF IT WAS TESTED: {error}")
    yield ray
    ray.shutdown()
