"""One Ray for all tests, on this machine. Where Ray itself cannot start, the tests are skipped, and say so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from syft_ray.errors import RayStartError
from syft_ray.starting import start_ray

CPUS = 8
"""More than there are: tests start several actors, most of which wait."""
NOT_STARTED = "timed out during startup"
"""What Ray says on a busy machine; any other reason is an error."""
_reasons: list[str] = []


def skip(why: str) -> None:
    """Skip a test, because Ray does not start."""
    _reasons.append(why)
    pytest.skip(f"RAY DID NOT START: {why}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that nothing was tested."""
    for why in _reasons:
        terminalreporter.write_sep("!", "RAY DID NOT START, SO TESTS WERE SKIPPED", red=True, bold=True)
        terminalreporter.write_line(why)


@pytest.fixture(scope="session", autouse=True)
def ray() -> Iterator[Any]:
    """Start Ray once."""
    try:
        start_ray(None, CPUS)
    except RayStartError as error:
        if NOT_STARTED not in str(error):
            raise
        skip(str(error))
    import ray  # noqa: PLC0415  # after its variables are set

    yield ray
    ray.shutdown()


@pytest.fixture
def run_program() -> Callable[[str], str]:
    """Return a function that runs a program which starts a Ray of its own, and returns what it prints."""

    def run(code: str) -> str:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
        if done.returncode and NOT_STARTED in done.stderr:
            skip(done.stderr.strip().splitlines()[-1])
        return done.stdout + done.stderr

    return run
