"""Each test runs in exactly one environment of CI, or CI fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "tests/core/test_a.py": "def test_core(): pass",
    "tests/test_b.py": "import pytest\n"
    "@pytest.mark.parametrize('framework', ['numpy', 'torch'])\n"
    "def test_both(framework): pytest.importorskip(framework)\n"
    "def test_other(): pass\n"
    "@pytest.mark.torch\n"
    "@pytest.mark.parametrize('framework', ['numpy'])\n"
    "def test_compared(framework): pass",
    "tests/test_numpy_words.py": "import pytest\ntorch = pytest.importorskip('os')\ndef test_needs_torch(): pass",
}
PARTS = {
    "core": ["core/test_a.py::test_core"],
    "numpy": ["test_b.py::test_both[numpy]"],
    "torch": [
        "test_b.py::test_both[torch]",
        "test_b.py::test_other",
        "test_b.py::test_compared[numpy]",
        "test_numpy_words.py::test_needs_torch",
    ],
}


def run(folder: Path, part: str, files: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run tests in an environment of CI, with the settings of all tests."""
    for name, text in {**files, "tests/conftest.py": (ROOT / "tests" / "conftest.py").read_text()}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    minute\n    torch\n")
    own = {"SYFT_PART": part, "SYFT_ALL_PACKAGES": "", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    environment = {**os.environ, **own}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder / "tests")]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("part", PARTS)
def test_a_test_runs_in_the_smallest_environment_that_has_what_it_needs(tmp_path: Path, part: str) -> None:
    done = run(tmp_path, part, FILES, "--collect-only")

    found = [line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line]
    assert found == PARTS[part]


def test_without_a_name_of_an_environment_all_tests_run(tmp_path: Path) -> None:
    done = run(tmp_path, "", FILES, "--collect-only")

    assert "6 tests collected" in done.stdout


@pytest.mark.parametrize(
    ("skip", "why"),
    [
        ("def test_a(): pytest.skip('lost')", "skipped in the only environment that runs it: Skipped: lost"),
        ("@pytest.mark.skipif(True, reason='lost')\ndef test_a(): pass", "skipped in the only environment"),
        ("pytest.importorskip('not_installed_anywhere')\ndef test_a(): pass", "no other environment runs all of it"),
    ],
    ids=["in the test", "by a mark", "the file"],
)
def test_a_test_that_is_skipped_in_its_environment_fails(tmp_path: Path, skip: str, why: str) -> None:
    done = run(tmp_path, "torch", {"tests/test_c.py": f"import pytest\n{skip}"})

    assert why in done.stdout
    assert done.returncode != 0


def test_what_a_machine_cannot_do_may_be_skipped(tmp_path: Path) -> None:
    skip = "import pytest\ndef test_a(): pytest.skip('no browser: `apt-get install chromium` installs one')"

    assert run(tmp_path, "torch", {"tests/test_c.py": skip}).returncode == 0
