"""Create distributions like those that pip installs: modules, and a dist-info with entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

TEMPLATE = Path(__file__).parents[3] / "syft_core" / "testing" / "template"
"""The package that `syft-core new-plugin` copies."""


def install(site: Path, name: str, entry_points: dict[str, str], **modules: str) -> None:
    """Put a distribution called ``name`` of version 1.0 into ``site``."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {place}" for point, place in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[syft_core]", *lines, ""]))
    for module, source in modules.items():
        (site / f"{module}.py").write_text(dedent(source))


def run(site: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run ``program`` in a new process that can import toy and the packages in ``site``."""
    path = os.pathsep.join([str(site), str(TEMPLATE)])
    command = [sys.executable, *options, "-c", dedent(program)]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=site, timeout=120)
