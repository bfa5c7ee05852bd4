"""The page for framework authors works as printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-hour-framework-author.md").read_text(encoding="utf-8")


def test_the_first_hour_of_a_framework_author_works_as_printed(tmp_path: Path) -> None:
    before, after = [
        re.findall(r"^\$ (.*)$", block, re.MULTILINE) for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    ]
    (test,) = re.findall(r"Save it as `mine/test_conformance.py`:\n\n```\n(.*?)```", PAGE, re.DOTALL)
    make, copy, install = before
    enter, check = after

    (tmp_path / shlex.split(make)[1]).mkdir()
    *sources, target = shlex.split(copy)[2:]
    subprocess.run(
        ["cp", "-r", *[str(ROOT / source) for source in sources], str(tmp_path / target)], check=True, timeout=120
    )
    (tmp_path / "mine" / "test_conformance.py").write_text(test)
    _python, *options = shlex.split(check)
    done = subprocess.run(
        [sys.executable, *options, "-p", "no:cacheprovider"],
        cwd=tmp_path / shlex.split(enter)[1],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert install == "pip install -q pytest"
    assert done.returncode == 0, done.stdout
    assert " failed" not in done.stdout
