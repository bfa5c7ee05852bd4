"""What CI runs changes nothing on a contributor's machine without being asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash")

pytestmark = pytest.mark.skipif(BASH is None or os.getuid() != 0, reason="only root could install programs")


def run_ci(folder: Path, **settings: str) -> tuple[str, str]:
    """Run the script where nothing is installed; return its output and the calls of apt-get. It ends before Python."""
    for name in ("dirname", "id"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, then in (("apt-get", "exit 0"), ("python3.11", "exit 3")):
        (folder / name).write_text(f'#!{BASH}\necho "{name} $*" >> {folder}/calls\n{then}\n')
        (folder / name).chmod(0o755)
    env = {"PATH": str(folder), "TMPDIR": str(folder), **settings}
    done = subprocess.run(
        [str(BASH), str(ROOT / ".ci" / "run")], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3, done.stderr
    calls = (folder / "calls").read_text(encoding="utf-8")
    return done.stdout, "".join(line for line in calls.splitlines(keepends=True) if line.startswith("apt-get"))


def test_nothing_is_installed_without_being_asked(tmp_path: Path) -> None:
    said, installed = run_ci(tmp_path)

    assert installed == ""
    assert said.startswith("not installed: chromedriver nginx sshd systemd-analyze wg-quick - the tests that need them")


@pytest.mark.parametrize("settings", [{"CI": "true"}, {"SYFT_CI_INSTALL": "1"}])
def test_a_machine_of_ci_gets_what_tests_need(tmp_path: Path, settings: dict[str, str]) -> None:
    said, installed = run_ci(tmp_path, **settings)

    assert "apt-get install -y --no-install-recommends chromium" in installed
    assert said == ""
