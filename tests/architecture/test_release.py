"""One command makes a release, or leaves everything as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IDENTITY = {f"GIT_{role}_{key}": "tester@localhost" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
BASH, GIT = shutil.which("bash"), shutil.which("git")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (BASH and GIT and (ROOT / ".git").exists()), reason="this machine has no clone with git"),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone of the last commit, and programs that do not use a network in `bin` next to it."""
    git(tmp_path, "clone", "--quiet", str(ROOT), "clone")
    shutil.copy(ROOT / ".ci" / "release", tmp_path / "clone" / ".ci" / "release")
    for name in ("tests", "docs", "syft_core"):
        shutil.copytree(ROOT / name, tmp_path / "clone" / name, dirs_exist_ok=True)
    git(tmp_path / "clone", "add", "--all")
    git(tmp_path / "clone", "commit", "--quiet", "--allow-empty", "--message", "Start")
    programs = tmp_path / "bin"
    programs.mkdir()
    note = f'echo "$(basename "$0") $*" >> {tmp_path}/calls'
    write(programs / "python", f'case "$2" in build|twine) {note}; exit $FAILS;; esac\nexec {sys.executable} "$@"')
    copies = [f'cp {programs}/tool "$3/bin/{name}"' for name in ("pip", "syft-core")]
    write(programs / "python3.11", "\n".join([note, 'mkdir -p "$3/bin"', *copies]))
    write(programs / "tool", note)
    return tmp_path / "clone"


def write(path: Path, program: str) -> None:
    path.write_text(f"#!{BASH}\n{program}\n")
    path.chmod(0o755)


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, **IDENTITY}
    command = [str(GIT), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60, env=environment)
    return done.stdout.strip()


def release(clone: Path, version: str, **settings: str) -> subprocess.CompletedProcess[str]:
    path = f"{clone.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **IDENTITY, "PATH": path, "PYTEST_ADDOPTS": "", "FAILS": "0", **settings}
    command = [str(BASH), str(clone / ".ci" / "release"), version]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=240)


def test_a_release_is_a_commit_a_tag_and_tried_distributions(clone: Path) -> None:
    done = release(clone, "99.0.0")

    assert done.returncode == 0, done.stdout + done.stderr
    assert git(clone, "log", "-1", "--format=%s %D").startswith("Release 99.0.0 ")
    assert git(clone, "describe", "--exact-match") == "v99.0.0"
    assert 'version = "99.0.0"' in (clone / "pyproject.toml").read_text()
    assert "## Unreleased\n\nNothing yet.\n\n## 99.0.0 (" in (clone / "CHANGELOG.md").read_text()
    calls = (clone.parent / "calls").read_text().splitlines()
    assert [call.split()[:3] for call in calls[:2]] == [["python", "-m", "build"], ["python", "-m", "twine"]]
    assert calls[-1] == "syft-core demo --fast"
    assert done.stdout.endswith("publish them with: git push origin main v99.0.0\n")


def test_a_failed_step_undoes_the_commit_and_the_tag(clone: Path) -> None:
    before = git(clone, "rev-parse", "HEAD")

    done = release(clone, "99.0.0", FAILS="3")

    assert done.returncode != 0
    assert "a step failed; everything was undone" in done.stderr
    assert git(clone, "rev-parse", "HEAD") == before
    assert git(clone, "tag", "--list", "v99.0.0") == ""
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3; rm x"])
def test_a_version_of_another_form_is_refused(clone: Path, version: str) -> None:
    done = release(clone, version)

    assert done.returncode == 1
    assert "it is not three numbers with dots" in done.stderr


def test_a_clone_with_changes_is_refused(clone: Path) -> None:
    (clone / "new").write_text("")

    done = release(clone, "99.0.0")

    assert "files were changed since the last commit" in done.stderr
