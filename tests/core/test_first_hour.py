"""The page for framework authors works as printed, without a clone."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-hour-framework-author.md").read_text(encoding="utf-8")


def run(folder: Path, *command: str, **settings: str) -> str:
    """Run a command of the page, with the tools of this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**kept, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_first_hour_of_a_framework_author_works_as_printed(tmp_path: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    before, after = [re.findall(r"^\$ (.*)$", block, re.MULTILINE) for block in blocks]
    make, enter, install = map(shlex.split, before)
    test, check = map(shlex.split, after)
    (printed,) = re.findall(r"and a test:\n\n```\n(.*?)```", PAGE, re.DOTALL)

    run(tmp_path, "-m", "syft_core", *make[1:])
    package = tmp_path / enter[1]
    # What `pip install -e` writes, without a network: where the package is, and its entry point.
    info = tmp_path / "site" / "syft_mine-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: syft-mine\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[syft_core]\nmine = syft_mine.plugin\n")
    settings = {"PYTHONPATH": os.pathsep.join([str(package), str(tmp_path / "site")])}

    assert install == ["pip", "install", "-q", "-e", ".[test]"]
    assert (package / "tests" / "test_conformance.py").read_text().endswith(printed)
    assert " failed" not in run(package, *test[1:], "-p", "no:cacheprovider", **settings)
    assert "broken" not in run(package, "-m", "syft_core", *check[1:], **settings)
