"""How much memory and how many processors a worker uses by default, in all kinds of containers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from syft_worker.config import WorkerConfig, WorkerLimits
from syft_worker.machine import ROOT, choose_memory, choose_threads, find_memory, find_processors
from syft_worker.serving import _find_memory

GB = 2**30
V2 = "31 23 0:28 {top} {mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "32 31 0:29 {top} {mount} rw,relatime shared:9 - cgroup cgroup rw,{controllers}\n"


def build(root: Path, files: dict[str, str]) -> Path:
    """Write the files of a machine with 16 GB of memory."""
    for name, text in {"proc/meminfo": f"MemTotal:       {16 * GB // 1024} kB\nMemFree: 3 kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def build_v2(root: Path, group: str, limits: dict[str, str], top: str = "/", mount: str = "/sys/fs/cgroup") -> Path:
    files = {"proc/self/cgroup": f"0::{group}\n", "proc/self/mountinfo": V2.format(top=top, mount=mount)}
    return build(root, {**files, **{f"{mount[1:]}/{name}": text for name, text in limits.items()}})


def build_v1(root: Path, group: str, limits: dict[str, str], top: str = "/") -> Path:
    mounts = [("memory", "/sys/fs/cgroup/memory"), ("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct")]
    text = "".join(V1.format(top=top, mount=mount, controllers=names) for names, mount in mounts)
    files = {
        "proc/self/cgroup": f"9:name=systemd:/\n4:memory:{group}\n3:cpu,cpuacct:{group}\n",
        "proc/self/mountinfo": text,
    }
    return build(root, {**files, **{f"sys/fs/cgroup/{name}": text for name, text in limits.items()}})


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("/a.slice/w.service", {"a.slice/w.service/memory.max": f"{2 * GB}\n"}, 2 * GB),
        ("/a.slice/w.service", {"a.slice/w.service/memory.max": "max\n", "a.slice/memory.max": f"{3 * GB}\n"}, 3 * GB),
        (
            "/a/b/c",
            {"a/b/c/memory.max": f"{5 * GB}", "a/b/memory.max": f"{4 * GB}", "a/memory.max": f"{6 * GB}"},
            4 * GB,
        ),
        ("/a", {"a/memory.max": f"{5 * GB}\n", "a/memory.high": f"{GB}\n"}, GB),
        ("/a", {"a/memory.max": f"{64 * GB}\n"}, 16 * GB),
        ("/a", {"a/memory.max": "max\n", "a/memory.high": "max\n"}, 16 * GB),
        ("/a", {}, 16 * GB),
        ("/a", {"a/memory.max": ""}, 16 * GB),
        ("/a", {"b/memory.max": f"{GB}\n"}, 16 * GB),
        ("/", {"memory.max": f"{GB}\n"}, GB),  # In a container with a namespace of its own.
        ("/../../other", {"memory.max": f"{GB}\n"}, GB),  # The process was moved out of that.
        ("/a:b c/d", {"a:b c/d/memory.max": f"{GB}\n"}, GB),
    ],
)
def test_the_smallest_limit_of_version_2_on_the_way_up_counts(
    tmp_path: Path, group: str, limits: dict[str, str], expected: int
) -> None:
    assert find_memory(build_v2(tmp_path, group, limits)) == expected


@pytest.mark.parametrize(
    ("top", "group"),
    [("/docker/0123", "/docker/0123"), ("/docker/0123", "/docker/0123/init"), ("/../..", "/"), ("/docker/0123", "/")],
)
def test_a_mount_that_shows_a_part_of_the_groups_is_understood(tmp_path: Path, top: str, group: str) -> None:
    root = build_v2(tmp_path, group, {"memory.max": f"{GB}\n"}, top)

    assert find_memory(root) == GB


def test_a_mount_at_another_place_is_found(tmp_path: Path) -> None:
    root = build_v2(tmp_path, "/a", {"a/memory.max": f"{GB}\n"}, mount="/mnt/my groups")
    (root / "proc/self/mountinfo").write_text(V2.format(top="/", mount=r"/mnt/my\040groups"))

    assert find_memory(root) == GB


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"memory/d/1/memory.limit_in_bytes": f"{GB}\n"}, GB),
        ({"memory/d/1/memory.limit_in_bytes": "9223372036854771712\n"}, 16 * GB),
        ({"memory/d/1/memory.limit_in_bytes": f"{4 * GB}\n", "memory/d/memory.limit_in_bytes": f"{GB}\n"}, GB),
        ({"cpu,cpuacct/d/1/memory.limit_in_bytes": f"{GB}\n"}, 16 * GB),
        ({}, 16 * GB),
    ],
)
def test_limits_of_version_1_count(tmp_path: Path, limits: dict[str, str], expected: int) -> None:
    assert find_memory(build_v1(tmp_path, "/d/1", limits)) == expected


def test_in_a_container_of_version_1_the_mount_is_the_group(tmp_path: Path) -> None:
    root = build_v1(tmp_path, "/docker/01", {"memory/memory.limit_in_bytes": f"{GB}\n"}, top="/docker/01")

    assert find_memory(root) == GB


def test_with_both_versions_both_count(tmp_path: Path) -> None:
    build_v1(tmp_path, "/d", {"memory/d/memory.limit_in_bytes": f"{3 * GB}\n", "unified/u/memory.max": f"{2 * GB}\n"})
    for name, more in (("cgroup", "0::/u\n"), ("mountinfo", V2.format(top="/", mount="/sys/fs/cgroup/unified"))):
        with (tmp_path / "proc/self" / name).open("a") as file:
            file.write(more)

    assert find_memory(tmp_path) == 2 * GB


@pytest.mark.parametrize("broken", ["", "0::", "nonsense\n\n0:1\n", "\x00\xff\n", "0::/a\n" * 3])
def test_files_that_cannot_be_read_limit_nothing(tmp_path: Path, broken: str) -> None:
    root = build(tmp_path, {"proc/self/cgroup": broken, "proc/self/mountinfo": broken})

    assert find_memory(root) == 16 * GB
    assert find_processors(root) is None


def test_without_any_of_the_files_the_memory_of_the_machine_counts(tmp_path: Path) -> None:
    assert find_memory(tmp_path) > 1 << 26
    assert find_processors(tmp_path) is None


def test_a_worker_uses_three_quarters_of_the_memory_unless_its_owner_says_otherwise(tmp_path: Path) -> None:
    root = build_v2(tmp_path, "/a", {"a/memory.max": f"{2 * GB}\n"})

    assert choose_memory(root) == 1.5 * GB
    assert _find_memory(WorkerConfig(limits=WorkerLimits(memory=5))) == 5
    assert _find_memory(WorkerConfig()) == choose_memory(ROOT) == int(find_memory(ROOT) * 0.75)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"a/cpu.max": "200000 100000\n"}, 2),
        ({"a/cpu.max": "150000 100000\n"}, 2),
        ({"a/cpu.max": "10000 100000\n"}, 1),
        ({"a/cpu.max": "max 100000\n"}, None),
        ({"a/cpu.max": "400000 100000\n", "cpu.max": "300000 100000\n"}, 3),
        ({"a/cpu.max": "100000 0\n"}, None),
        ({"a/cpu.max": "100000\n"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_processors_is_found(tmp_path: Path, limits: dict[str, str], expected: int | None) -> None:
    assert find_processors(build_v2(tmp_path, "/a", limits)) == expected


@pytest.mark.parametrize(("quota", "expected"), [("250000\n", 3), ("-1\n", None)])
def test_the_quota_of_processors_of_version_1_is_found(tmp_path: Path, quota: str, expected: int | None) -> None:
    limits = {"cpu,cpuacct/d/cpu.cfs_quota_us": quota, "cpu,cpuacct/d/cpu.cfs_period_us": "100000\n"}

    assert find_processors(build_v1(tmp_path, "/d", limits)) == expected


def test_threads_follow_the_quota_unless_the_environment_says_otherwise(tmp_path: Path) -> None:
    root = build_v2(tmp_path, "/a", {"a/cpu.max": "50000 100000\n"})

    assert choose_threads({}, root) == 1
    assert choose_threads({"OMP_NUM_THREADS": ""}, root) == 1
    assert choose_threads({"OMP_NUM_THREADS": "7"}, root) is None
    (root / "sys/fs/cgroup/a/cpu.max").write_text("99999999 100000\n")
    assert choose_threads({}, root) is None


@pytest.fixture
def group() -> Iterator[tuple[Path, str]]:
    """Return a new control group of this machine, and the name of the file with its limit."""
    unique = f"syft-core-test-{os.getpid()}"
    for path in (Path("/sys/fs/cgroup/memory") / unique, Path("/sys/fs/cgroup") / unique):
        with suppress(OSError):
            path.mkdir()
            name = next((n for n in ("memory.limit_in_bytes", "memory.max") if (path / n).exists()), None)
            if name is not None:
                yield path, name
            path.rmdir()
            if name is not None:
                return
    pytest.skip("this user may not make control groups with a limit of memory here")


def test_the_limit_of_a_real_control_group_counts(group: tuple[Path, str]) -> None:
    path, name = group
    (path / name).write_text(str(GB // 2))
    program = (
        "import os, pathlib, sys\n"
        "from syft_worker.machine import choose_memory\n"
        "(pathlib.Path(sys.argv[1]) / 'cgroup.procs').write_text(str(os.getpid()))\n"
        "print(choose_memory())\n"
    )

    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True, timeout=60)

    assert int(done.stdout) == GB // 2 * 3 // 4
