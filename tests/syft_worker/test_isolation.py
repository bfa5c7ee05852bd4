"""What a process may still do after it has isolated itself; each test does so in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests rely on the isolation of Linux")

START = """
import os, resource, signal, socket, subprocess, sys
from pathlib import Path
from syft_core.exceptions import ConfigurationError
from syft_worker.isolation import Isolation, isolate

def attempt(action):
    try:
        action()
    except Exception as error:
        return type(error).__name__
    return "done"

writes = Path(sys.argv[1]) / "store"
applied = isolate(Isolation(memory=1 << 33, files=10, reads=[], writes=[writes], connects=CONNECTS))
"""


def isolated(folder: Path, program: str, connects: bool = False) -> str:
    """Run a program in a process that has isolated itself; return what it prints."""
    (folder / "store").mkdir(exist_ok=True)
    code = START.replace("CONNECTS", repr(connects)) + program
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def needs(part: str, folder: Path) -> None:
    if part not in isolated(folder, "print(applied)"):
        pytest.skip(f"this kernel has no {part}")


def test_what_was_applied_is_listed(tmp_path: Path) -> None:
    assert "'limits', 'no-new-privileges'" in isolated(tmp_path, "print(applied)")


def test_limits_hold_for_memory_files_and_core_dumps(tmp_path: Path) -> None:
    program = """
print([resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_CORE)])
print(attempt(lambda: bytearray(1 << 34)))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 10 + 256)
"""
    assert isolated(tmp_path, program).splitlines() == [f"[{1 << 33}, 0]", "MemoryError", "True"]


def test_a_worker_that_needs_more_memory_than_it_may_have_does_not_start(tmp_path: Path) -> None:
    program = "try: isolate(Isolation(memory=1, files=1))\nexcept ConfigurationError as error: print(error)"

    assert "raise `limits.memory` (and the limit of its container, if it has one), or load less data" in isolated(
        tmp_path, program
    )


def test_no_program_is_started_and_no_other_process_signalled(tmp_path: Path) -> None:
    needs("seccomp", tmp_path)
    program = """
print(attempt(lambda: subprocess.run(["/bin/true"])), attempt(os.fork), attempt(lambda: os.kill(os.getppid(), 0)))
"""
    assert isolated(tmp_path, program) == "PermissionError PermissionError PermissionError"


@pytest.mark.parametrize(("connects", "result"), [(False, "PermissionError"), (True, "done")])
def test_sockets_are_opened_only_if_the_worker_has_peers(tmp_path: Path, connects: bool, result: str) -> None:
    needs("seccomp", tmp_path)

    assert isolated(tmp_path, "print(attempt(socket.socket))", connects) == result


def test_files_are_written_only_where_they_must_be(tmp_path: Path) -> None:
    needs("landlock", tmp_path)
    (tmp_path / "secret").write_text("77")
    program = """
outside = Path(sys.argv[1])
print(attempt((writes / "object").touch), attempt((outside / "other").touch), attempt((outside / "secret").read_text))
"""
    assert isolated(tmp_path, program) == "done PermissionError PermissionError"
