"""Machine: how much memory and how many processors this process may use, with the limits of its control groups.

Both versions of control groups are read, where the system has mounted them. A limit of a group applies to all groups in
it, so the smallest one on the way up counts. A missing or unreadable limit is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path, PurePosixPath

ROOT = Path("/")
MEMORY_SHARE = 0.75
"""The share of the memory that a worker uses by default; the rest is for the supervisor and the system."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""The variables of the environment from which frameworks read the number of their threads when they are imported."""
_V1, _V2 = "cgroup", "cgroup2"


def find_memory(root: Path = ROOT) -> int:
    """Return the bytes of memory of this machine or, if that is less, of the control group of this process."""
    return min([_read_machine_memory(root), *_limit_memory(root)])


def choose_memory(root: Path = ROOT) -> int:
    """Return how many bytes of memory a worker uses by default."""
    return int(find_memory(root) * MEMORY_SHARE)


def find_processors(root: Path = ROOT) -> int | None:
    """Return how many processors the control group of this process may use, or None if it has no such limit."""
    quotas = list(_limit_processors(root))
    return max(ceil(min(quotas)), 1) if quotas else None


def choose_threads(environment: Mapping[str, str], root: Path = ROOT) -> int | None:
    """Return how many threads compute one operation by default; None leaves that to the frameworks.

    They see the processors of the machine, and not the quota of the control group: with more threads than that, each
    waits for the others.
    """
    quota = find_processors(root)
    if quota is None or quota >= (os.cpu_count() or 1) or any(environment.get(name) for name in THREADS):
        return None
    return quota


def _read_machine_memory(root: Path) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", _read(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit_memory(root: Path) -> Iterator[int]:
    for kind, group in _find_groups(root, "memory"):
        for name in ("memory.max", "memory.high") if kind == _V2 else ("memory.limit_in_bytes",):
            if (text := _read(group / name).strip()).isdecimal():  # Otherwise it is "max".
                yield int(text)


def _limit_processors(root: Path) -> Iterator[float]:
    for kind, group in _find_groups(root, "cpu"):
        if kind == _V2:
            quota, _, period = _read(group / "cpu.max").strip().partition(" ")
        else:
            quota, period = (_read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        if quota.isdecimal() and period.isdecimal() and int(period):  # Otherwise it is "max", or -1.
            yield int(quota) / int(period)


def _find_groups(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    """Yield the version and the folder of each group of this process that a controller may limit, innermost first."""
    paths = _read_paths(root)
    for kind, controllers, top, mount in _read_mounts(root):
        path = paths.get("" if kind == _V2 else controller)
        if path is None or (kind == _V1 and controller not in controllers):
            continue
        # In a container, the mount may begin at the group of the container, or the path may lead out of the mount.
        # The inner groups cannot be found then.
        inner = path.relative_to(top) if path.is_relative_to(top) else PurePosixPath()
        inner = PurePosixPath() if ".." in inner.parts else inner
        folder = root / mount.relative_to("/")
        for place in (inner, *inner.parents):
            yield kind, folder / place


def _read_paths(root: Path) -> dict[str, PurePosixPath]:
    lines = [line.split(":", 2) for line in _read(root / "proc/self/cgroup").splitlines()]
    return {name: PurePosixPath(line[2]) for line in lines if len(line) == 3 for name in line[1].split(",")}


def _read_mounts(root: Path) -> Iterator[tuple[str, list[str], PurePosixPath, PurePosixPath]]:
    for line in _read(root / "proc/self/mountinfo").splitlines():
        mount, _, source = line.partition(" - ")
        fields, options = mount.split(" "), source.split(" ")
        if len(fields) >= 5 and len(options) >= 3 and options[0] in (_V1, _V2) and fields[4].startswith("/"):
            top, folder = (PurePosixPath(re.sub(r"\\(\d{3})", _unescape, text)) for text in fields[3:5])
            yield options[0], options[2].split(","), top, folder


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 8))


def _read(path: Path) -> str:
    with suppress(OSError, ValueError):
        return path.read_text(encoding="utf-8")
    return ""
