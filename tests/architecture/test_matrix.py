"""docs/compatibility.md has a row for each version on which the whole suite ran."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..matrix import HEADING, PAGE, RECORDING, ROOT, find_versions, name_of, put_row, put_section, section_of

START = "# Compatibility\n\n## Third-party programs\n\n| a | b |\n\n## Others\n\nwords\n"
TESTS = """
import pytest
def test_one(): pass
def test_two(): pass
def test_three(): assert False
def test_four(): pytest.skip("why")
@pytest.fixture
def broken(): raise ValueError
def test_five(broken): pass
"""
PROGRAM = """
import pathlib, sys
from tests.matrix import main
folder, *arguments = sys.argv[1:]
sys.exit(main([*arguments], pathlib.Path(folder), pathlib.Path(folder, "page.md")))
"""


def rows_of(page: str) -> dict[str, list[str]]:
    lines = [line for line in section_of(page, HEADING).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    return {name: rest for name, *rest in cells}


def record(folder: Path, *arguments: str, **environment: str) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Run the tests of a folder as an environment of the matrix; return the page afterwards."""
    pytest.importorskip("numpy")
    (folder / "test_few.py").write_text(TESTS)
    (folder / "page.md").write_text(START)
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "TOX_ENV_NAME": "", **environment}
    command = [sys.executable, "-c", PROGRAM, str(folder), "-n", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=settings, timeout=120)
    return (folder / "page.md").read_text(), done


def test_a_row_replaces_the_older_one_of_its_environment_and_nothing_else() -> None:
    page = START
    for name, text in (("py310-torch2.4", "old"), ("numpy2.0", "its own"), ("py310-torch2.4", "new")):
        page = put_row(page, name, f"| {name} | {text} |")

    assert rows_of(page) == {"numpy2.0": ["its own"], "py310-torch2.4": ["new"]}
    assert page.startswith(START.rstrip())
    assert put_row(page, "py310-torch2.4", "| py310-torch2.4 | new |") == page


def test_a_section_is_written_between_the_others() -> None:
    page = put_section(put_row(START, "numpy2.0", "| numpy2.0 | x |"), "## Third-party programs", "| c |")

    assert section_of(page, "## Third-party programs").strip() == "| c |"
    assert section_of(page, "## Others").strip() == "words"
    assert rows_of(page) == {"numpy2.0": ["x"]}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_whole_run_writes_its_row(tmp_path: Path, processes: str) -> None:
    page, done = record(tmp_path, "-n", processes)

    versions = find_versions()
    (name, cells), *_others = rows_of(page).items()
    assert name == name_of(versions)
    assert cells[:3] == [versions["Python"], versions.get("torch", "-"), versions["numpy"]]
    assert cells[3:6] == ["2", "2", "1"]
    assert "recorded in" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "why"),
    [
        (["-k", "one"], {}, "pytest got the options -k one"),
        ([], {"PYTEST_ADDOPTS": "-x"}, "pytest got the options -x"),
        (
            [],
            {"CONFTEST": "def pytest_runtest_setup(item): item.session.shouldstop = 'x'"},
            "some tests did not run",
        ),
    ],
    ids=["argument", "setting", "stop"],
)
def test_a_run_that_left_tests_out_writes_nothing(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], why: str
) -> None:
    (tmp_path / "conftest.py").write_text(environment.get("CONFTEST", ""))

    page, done = record(tmp_path, *arguments, **environment)

    assert page == START
    assert f"not recorded: {why}" in done.stdout


def test_an_environment_with_other_versions_than_its_name_says_is_refused(tmp_path: Path) -> None:
    page, done = record(tmp_path, TOX_ENV_NAME="py310-torch1.4")

    assert page == START
    assert "cannot test py310-torch1.4: this is " in done.stderr


def test_the_versions_name_the_environment() -> None:
    assert name_of({"Python": "3.10.13", "torch": "2.4.1+cu121", "numpy": "2.2.6"}) == "py310-torch2.4"
    assert name_of({"Python": "3.11.7", "numpy": "1.26.4"}) == "numpy1.26"


@pytest.mark.skipif(RECORDING in os.environ, reason="the rows are being written")
def test_every_claimed_environment_has_a_row_without_failures() -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    labels = dict(line.split(" = ") for line in settings["tox"]["labels"].strip().splitlines())
    claimed, rows = labels["matrix"].split(", "), rows_of(PAGE.read_text(encoding="utf-8"))

    assert len(claimed) == 6
    assert {name: cells[4] for name, cells in rows.items()} == dict.fromkeys(claimed, "0")
