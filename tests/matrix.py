"""Run the whole suite on the installed versions, and write their row to docs/compatibility.md."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from .architecture.wrapping import wrap

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
HEADING = "## Versions"
RECORDING = "SYFT_RECORDING_MATRIX"
"""A variable of the environment that says that rows are being written: they cannot be required yet."""
HEAD = """
The whole test suite on each version, in environments of `tox run -m matrix`. Each wrote its row when it ended, with
`python -m tests.matrix`. Skipped tests are about other versions, need torch, or check this table.

| environment | Python | torch | numpy | passed | failed | skipped | date | seconds |
|---|---|---|---|---|---|---|---|---|
"""


def main(arguments: list[str] | None = None, folder: Path = ROOT / "tests", page: Path = PAGE) -> int:
    """Run the tests; record them unless pytest got options, which may leave tests out."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("-n", default="2", help="how many processes run tests")
    options, others = parser.parse_known_args(arguments)
    versions = find_versions()
    if "numpy" not in versions:
        raise SystemExit("cannot test a version: no framework is installed; install numpy, or torch and numpy")
    name = name_of(versions)
    expected = os.environ.get("TOX_ENV_NAME") or name
    if expected != name:
        raise SystemExit(f"cannot test {expected}: this is {name}; correct the dependencies of the environment")
    suite = [str(folder)]
    if "torch" in versions:
        os.environ["SYFT_ALL_PACKAGES"] = "1"  # A test that needs a package fails without it, rather than be skipped.
    else:
        suite.append(f"--ignore={folder / 'syft_torch'}")
    os.environ[RECORDING] = "1"
    narrowed = [*others, *os.environ.get("PYTEST_ADDOPTS", "").split()]
    recorder = Recorder(page, name, versions)
    plugins = [] if narrowed else [recorder]
    status = pytest.main(
        ["-n", options.n, "-m", "slow or not slow", *others, *([] if others else suite)], plugins=plugins
    )
    print(f"not recorded: pytest got the options {' '.join(narrowed)}" if narrowed else recorder.outcome)  # noqa: T201
    return int(status)


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

    def __init__(self, page: Path, name: str, versions: dict[str, str]) -> None:
        self.page, self.name, self.versions = page, name, versions
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
        """Write the row, unless tests were left out."""
        counts = {name: len(reports) for name, reports in terminalreporter.stats.items()}
        if not self.all_finished or "deselected" in counts:
            return
        numbers = [counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0), counts.get("skipped", 0)]
        versions = [self.versions.get(name, "-") for name in ("Python", "torch", "numpy")]
        date, seconds = datetime.datetime.now(datetime.timezone.utc).date(), round(time.monotonic() - self.started)
        row = " | ".join(map(str, ["", self.name, *versions, *numbers, date, seconds, ""])).strip()
        self.page.write_text(put_row(self.page.read_text(encoding="utf-8"), self.name, row), encoding="utf-8")
        self.outcome = f"recorded in {self.page}: {row}"


def put_row(page: str, name: str, row: str) -> str:
    """Return the page with the row of an environment, in place of its older one."""
    rows = {line.split("|")[1].strip(): line for line in section_of(page, HEADING).splitlines() if line[:2] == "| "}
    rows.pop("environment", None)
    rows[name] = row
    return put_section(page, HEADING, HEAD + "\n".join(rows[name] for name in sorted(rows)))


def section_of(page: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level."""
    return page.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


def put_section(page: str, heading: str, text: str) -> str:
    """Return the page with another text under a heading, which is added at the end if it is missing."""
    before, _heading, rest = page.partition(f"\n{heading}\n")
    _old, following, after = rest.partition("\n## ")
    return f"{before.rstrip()}\n\n{heading}\n\n{wrap(text.strip())}{following}{after}"


if __name__ == "__main__":
    sys.exit(main())
