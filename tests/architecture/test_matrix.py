"""docs/compatibility.md has a row for each claimed environment, whether it could run or not."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .. import matrix
from ..matrix_page import CHANGELOG, PAGE, ROOT, Row, find_release, put_section, read_rows, section_of, write_rows
from ..matrix_row import COMMIT, find_versions, name_of, read_reason

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
from tests.matrix_row import main
folder, *arguments = sys.argv[1:]
sys.exit(main([*arguments], pathlib.Path(folder), pathlib.Path(folder, "page.md")))
"""


def record(folder: Path, *arguments: str, **environment: str) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Run the tests of a folder as an environment of the matrix; return the page afterwards."""
    pytest.importorskip("numpy")
    (folder / "test_few.py").write_text(TESTS)
    (folder / "page.md").write_text(START)
    own = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "TOX_ENV_NAME": "", COMMIT: "abc1234"}
    command = [sys.executable, "-c", PROGRAM, str(folder), "-n", "0", *arguments]
    settings = {**os.environ, **own, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=settings, timeout=120)
    return (folder / "page.md").read_text(), done


def put(page: Path, row: Row, **reasons: int) -> None:
    rows, skips = read_rows(page)
    write_rows(page, {**rows, row.environment: row}, {**skips, row.environment: reasons})


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(START)
    return path


# --- the page


def test_a_row_replaces_the_older_one_of_its_environment_and_nothing_else(page: Path) -> None:
    put(page, Row("py310-torch2.4", passed="1"), old=3)
    put(page, Row("numpy2.0", passed="2"), kept=1)
    put(page, Row("py310-torch2.4", passed="3"), new=2)

    rows, skips = read_rows(page)
    assert {name: row.passed for name, row in rows.items()} == {"numpy2.0": "2", "py310-torch2.4": "3"}
    assert skips == {"numpy2.0": {"kept": 1}, "py310-torch2.4": {"new": 2}}
    assert page.read_text().startswith(START.rstrip())
    before = page.read_text()
    write_rows(page, rows, skips)
    assert page.read_text() == before


def test_a_section_is_written_between_the_others(page: Path) -> None:
    put(page, Row("numpy2.0"))

    text = put_section(page.read_text(), "## Third-party programs", "| c |")

    assert section_of(text, "## Third-party programs").strip() == "| c |"
    assert section_of(text, "## Others").strip() == "words"


@pytest.mark.parametrize(
    ("date", "state", "expected"),
    [
        ("2026-01-01", "", "stale"),
        ("2026-01-01", "stale; not run on 2026-02-01: why", "stale; not run on 2026-02-01: why"),
        ("2026-01-02", "stale", ""),
        ("-", "never run", "never run"),
    ],
)
def test_a_row_is_stale_if_it_is_older_than_the_release(date: str, state: str, expected: str) -> None:
    assert Row("a", date=date, state=state).mark(datetime.date(2026, 1, 2)).state == expected


def test_the_newest_release_is_that_of_the_changelog() -> None:
    text = "## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n## 0.1.0 (2026-11-19)\n"

    assert find_release(text) == datetime.date(2026, 12, 1)


# --- one environment


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_whole_run_writes_its_row_and_the_reasons_of_skipped_tests(tmp_path: Path, processes: str) -> None:
    _text, done = record(tmp_path, "-n", processes)

    versions = find_versions()
    rows, skips = read_rows(tmp_path / "page.md")
    row = rows[name_of(versions)]
    assert (row.python, row.torch, row.numpy) == (versions["Python"], versions.get("torch", "-"), versions["numpy"])
    assert (row.commit, row.passed, row.failed, row.skipped) == ("abc1234", "2", "2", "1")
    assert skips == {row.environment: {"why": 1}}
    assert "recorded in" in done.stdout
    assert done.returncode == 1


def test_the_tests_of_one_folder_have_the_name_of_their_environment(tmp_path: Path) -> None:
    record(tmp_path, "--folder", str(tmp_path), TOX_ENV_NAME="ray")

    assert read_rows(tmp_path / "page.md")[0]["ray"].passed == "2"


@pytest.mark.parametrize(
    ("arguments", "environment", "why"),
    [
        (["-k", "one"], {}, "pytest got the options -k one"),
        ([], {"PYTEST_ADDOPTS": "-x"}, "pytest got the options -x"),
        ([], {COMMIT: ""}, "`python -m tests.matrix` records its runs only"),
        (
            [],
            {"CONFTEST": "def pytest_runtest_setup(item): item.session.shouldstop = 'x'"},
            "some tests did not run",
        ),
    ],
    ids=["argument", "setting", "outside", "stop"],
)
def test_a_run_that_left_tests_out_writes_nothing(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], why: str
) -> None:
    (tmp_path / "conftest.py").write_text(environment.pop("CONFTEST", ""))

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


def test_a_reason_is_one_short_cell() -> None:
    assert read_reason(("file.py", 3, "Skipped: needs a | b\n or c")) == "needs a / b or c"
    assert len(read_reason("x" * 500)) == 100


# --- all environments


def fake_tox(folder: Path, program: str) -> str:
    """Write a program with the command line of tox, and return its path."""
    path = folder / "tox"
    text = f"""#!{sys.executable}
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.matrix_page import Row, read_rows, write_rows
name, commit, page = sys.argv[3], os.environ["{COMMIT}"], Path({str(folder / "page.md")!r})
def passed(**cells):
    rows, skips = read_rows(page)
    write_rows(page, {{**rows, name: Row(name, commit=commit, date="2999-01-01", **cells)}}, skips)
{program}
"""
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_each_environment_writes_its_row_and_all_are_of_one_commit(tmp_path: Path, page: Path) -> None:
    tox = fake_tox(
        tmp_path, "assert sys.argv[1:] == ['run', '-e', name, '--skip-missing-interpreters', 'false']\npassed()"
    )

    assert matrix.main([], page, tox) == 0

    rows, _skips = read_rows(page)
    assert list(rows) == sorted(matrix.list_claimed())
    assert {row.commit for row in rows.values()} == {matrix.find_commit()}
    assert {row.state for row in rows.values()} == {""}


def test_a_missing_interpreter_keeps_the_row_and_says_why(
    tmp_path: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(page, Row("py310-torch2.4", passed="7", commit="old", date="2999-01-01"), why=1)
    said = "py310-torch2.4: failed with could not find python interpreter matching any of the specs py310"
    tox = fake_tox(tmp_path, f"print({said!r}); sys.exit(1)")

    assert matrix.main(["py310-torch2.4"], page, tox) == 1

    rows, skips = read_rows(page)
    row = rows["py310-torch2.4"]
    assert (row.passed, row.commit, row.date) == ("7", "old", "2999-01-01")
    assert row.state.startswith("not run on ")
    assert row.state.endswith(": could not find python interpreter matching any of the specs py310")
    assert skips == {"py310-torch2.4": {"why": 1}}
    assert "not: py310-torch2.4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('not recorded: some tests did not run'); sys.exit(1)", "some tests did not run"),
        ("print('numpy2.0: exit 1 (3.2 seconds)> pip install numpy; x | y'); sys.exit(1)", "pip install numpy, x / y"),
        ("sys.exit(3)", "tox ended without a result"),
        ("print('all green')", "tox ended without a result"),
    ],
    ids=["stopped", "installation", "silence", "no row"],
)
def test_an_environment_without_a_result_has_a_row_that_says_so(
    tmp_path: Path, page: Path, program: str, why: str
) -> None:
    assert matrix.main(["numpy2.0"], page, fake_tox(tmp_path, program)) == 1

    rows, _skips = read_rows(page)
    assert rows["numpy2.0"].state.endswith(why)
    assert rows["ray"].state == "never run"


def test_failed_tests_are_recorded_and_fail_the_command(tmp_path: Path, page: Path) -> None:
    assert matrix.main(["ray"], page, fake_tox(tmp_path, "passed(failed='2'); sys.exit(1)")) == 1

    assert (read_rows(page)[0]["ray"].failed, read_rows(page)[0]["ray"].state) == ("2", "")


def test_an_environment_that_is_not_claimed_is_refused_and_its_row_goes(tmp_path: Path, page: Path) -> None:
    put(page, Row("py39-torch1.0"))

    with pytest.raises(SystemExit, match="cannot run py39-torch1.0: not in the matrix; there are py310"):
        matrix.main(["py39-torch1.0"], page)
    matrix.main(["--mark"], page, "no-such-program")

    assert "py39-torch1.0" not in read_rows(page)[0]


# --- the page of this repository


@pytest.mark.skipif(COMMIT in os.environ, reason="the rows are being written")
def test_every_claimed_environment_has_a_row_without_failures_and_old_ones_are_marked() -> None:
    rows, _skips = read_rows(PAGE)
    release = find_release(CHANGELOG.read_text(encoding="utf-8"))

    assert sorted(rows) == sorted(matrix.list_claimed())
    assert {row.failed for row in rows.values()} <= {"0", "-"}
    assert list(rows.values()) == [row.mark(release) for row in rows.values()], "run `python -m tests.matrix --mark`"
