"""Each test runs in one environment of CI, the smallest that has all it needs; tox.ini names it in ``SYFT_PART``."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

PART = os.environ.get("SYFT_PART", "")
"""Which tests to run: those of ``core``, ``numpy`` or ``torch``; by default all."""
NEEDS_TORCH = re.compile(
    r"^(torch\b.* = |(import|from) (syft_)?torch|pytest.importorskip\(.(torch|expecttest))", re.MULTILINE
)
"""The lines by which a file of tests says that all of it needs torch."""
REASONS = re.compile(
    r"this (torch|numpy|framework|kernel|machine|user)|the kernel has no|another (version|one)|other versions"
    r"|nightly|has no node|apt-get install|[Cc]hrom|npm install|only root|RAY DID NOT START"
)
"""Why a test may be skipped in the only environment that runs it: versions, and what a machine cannot do."""


def part_of(item: pytest.Item) -> str:
    """Return the environment that runs a test."""
    place = item.nodeid.partition("::")[0]
    if place.startswith("tests/core/"):
        return "core"
    needs_numpy = "numpy" in place or "[numpy" in item.name
    needs_torch = item.get_closest_marker("torch") or NEEDS_TORCH.search(source_of(item.path))
    return "numpy" if needs_numpy and not needs_torch else "torch"


def runs_elsewhere(path: Path) -> bool:
    """Return whether another environment runs all tests of a file that is skipped in this one."""
    source = source_of(path)
    return PART != "torch" and ("numpy" not in source or bool(NEEDS_TORCH.search(source)))


def may_skip(report: tuple[str, int, str]) -> bool:
    """Return whether a test may be skipped: for one of the reasons, or by the conformance suite."""
    path, _line, reason = report
    return "testing" in (Path(path).parent.name, Path(path).stem) or bool(REASONS.search(reason))


@cache
def source_of(path: Path) -> str:
    """Return the text of a file of tests."""
    return path.read_text(encoding="utf-8")
