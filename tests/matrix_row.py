"""Run the tests of one environment of the matrix on the installed versions, and write its row."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
import time
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from .matrix_page import PAGE, ROOT, Row, read_rows, write_rows

COMMIT = "SYFT_MATRIX_COMMIT"
"""The variable in which `python -m tests.matrix` passes the commit under test; without it, nothing is recorded."""
VERSIONED = re.compile(r"(py3\d+-torch|numpy)\d")
"""The names of environments that state versions."""


def main(arguments: list[str] | None = None, folder: Path = ROOT / "tests", page: Path = PAGE) -> int:
    """Run the tests; record them unless pytest got options, which may leave tests out."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix_row", description=__doc__)
    parser.add_argument("-n", default="2", help="how many processes run tests")
    parser.add_argument("--folder", type=Path, help="run the tests of this folder, as `pytest FOLDER` does")
    options, others = parser.parse_known_args(arguments)
    versions = find_versions()
    if "numpy" not in versions:
        raise SystemExit("cannot test a version: no framework is installed; install numpy, or torch and numpy")
    name = os.environ.get("TOX_ENV_NAME") or name_of(versions)
    if VERSIONED.match(name) and name != name_of(versions):
        raise SystemExit(
            f"cannot test {name}: this is {name_of(versions)}; correct the dependencies of the environment"
        )
    narrowed = [*others, *os.environ.get("PYTEST_ADDOPTS", "").split()]
    recorder = Recorder(page, name, versions, options.folder is None)
    reason = find_reason(narrowed)
    status = pytest.main(
        ["-n", options.n, *(others or list_options(options.folder, folder, versions))],
        plugins=[] if reason else [recorder],
    )
    print(f"not recorded: {reason}" if reason else recorder.outcome)  # noqa: T201
    return int(status)


def find_reason(narrowed: list[str]) -> str:
    """Return why this run is not recorded, if it is not."""
    if narrowed:
        return f"pytest got the options {' '.join(narrowed)}"
    return "" if os.environ.get(COMMIT) else "`python -m tests.matrix` records its runs only"


def list_options(part: Path | None, folder: Path, versions: dict[str, str]) -> list[str]:
    """Return what pytest runs: one folder as it is, or the whole suite with the slow tests."""
    if part is not None:
        return [str(part)]
    whole = ["-m", "slow or not slow", str(folder)]
    if "torch" not in versions:
        return [*whole, f"--ignore={folder / 'syft_torch'}"]
    os.environ["SYFT_ALL_PACKAGES"] = "1"  # A test that needs a package fails without it, rather than be skipped.
    return whole


def find_versions() -> dict[str, str]:
    """Return the versions of Python and of the frameworks that are installed."""
    installed = {name: version(name) for name in ("torch", "numpy") if find_spec(name)}
    return {"Python": platform.python_version(), **installed}


def name_of(versions: dict[str, str]) -> str:
    """Return the name that tox.ini gives to an environment with these versions."""
    short = {package: ".".join(number.split(".")[:2]) for package, number in versions.items()}
    if "torch" in short:
        return f"py{short['Python'].replace('.', '')}-torch{short['torch']}"
    return f"numpy{short['numpy']}"


class Recorder:
    """A plugin of pytest that writes the row of an environment when all of its tests have run."""

    def __init__(self, page: Path, name: str, versions: dict[str, str], is_whole: bool) -> None:
        self.page, self.name, self.versions, self.is_whole = page, name, versions, is_whole
        self.started = time.monotonic()
        self.outcome = "not recorded: some tests did not run"
        self.finished, self.all_finished = 0, False

    def pytest_runtest_logfinish(self) -> None:
        """Count the tests that ran."""
        self.finished += 1

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Find out whether all tests ran: none after a first failure that ended the run, nor after an interrupt."""
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self.all_finished = ended and self.finished == session.testscollected

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the row and the reasons of skipped tests, unless tests were left out."""
        stats = terminalreporter.stats
        counts = {name: len(reports) for name, reports in stats.items()}
        if not self.all_finished or (self.is_whole and "deselected" in counts):
            return
        row = Row(
            self.name,
            *[self.versions.get(name, "-") for name in ("Python", "torch", "numpy")],
            os.environ[COMMIT],
            str(counts.get("passed", 0)),
            str(counts.get("failed", 0) + counts.get("error", 0)),
            str(counts.get("skipped", 0)),
            str(datetime.datetime.now(datetime.timezone.utc).date()),
            str(round(time.monotonic() - self.started)),
        )
        reasons = Counter(read_reason(report.longrepr) for report in stats.get("skipped", ()))
        rows, skips = read_rows(self.page)
        write_rows(self.page, {**rows, self.name: row}, {**skips, self.name: dict(reasons)})
        self.outcome = f"recorded in {self.page}: {row}"


def read_reason(longrepr: object) -> str:
    """Return why a test was skipped, without what differs from test to test."""
    text = str(longrepr[2] if isinstance(longrepr, tuple) else longrepr).removeprefix("Skipped: ")
    text = re.sub(r"\s+", " ", text).replace("|", "/")
    return text if len(text) <= 100 else f"{text[:97]}..."


if __name__ == "__main__":
    sys.exit(main())
