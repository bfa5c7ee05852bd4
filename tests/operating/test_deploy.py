"""The files in deploy/, as far as this machine can try them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from syft_core.cli import main

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("name", ["syft-worker.service", "syft-tunnel.service"])
def test_the_units_are_valid(tmp_path: Path, name: str) -> None:
    unit = tmp_path / name
    text = (DEPLOY / name).read_text().replace("/opt/syft/bin/syft-core", sys.executable)
    unit.write_text(text.replace("/usr/bin/ssh", sys.executable))

    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)

    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_the_proxy_is_valid(tmp_path: Path) -> None:
    assert main(["certs", str(tmp_path / "certs"), "--host", "hospital.example"]) == 0
    text = (DEPLOY / "nginx.conf").read_text().replace("/etc/syft", str(tmp_path))
    (tmp_path / "nginx.conf").write_text(text)

    subprocess.run(["nginx", "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], check=True)


def test_the_image_runs_the_command_without_rights_and_reports_its_health() -> None:
    text = (DEPLOY / "Dockerfile").read_text()

    assert text.index("USER syft") < text.index("ENTRYPOINT")
    (program,) = re.findall(r'HEALTHCHECK .*"-c", "(.*)"\]', text)
    compile(program, "HEALTHCHECK", "exec")
    (entry,) = re.findall(r"ENTRYPOINT (.*)", text)
    assert entry == '["syft-core", "worker", "/home/syft/worker.toml", "--log-format", "json"]'
