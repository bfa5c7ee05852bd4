"""The study of examples/consortium: three workers, the notebook of the data scientist, and the owners' one click."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syft_core.cli import main
from syft_core.ledgers.entry import DEPARTURES
from syft_core.workers.seeing.ledger import read_ledger
from syft_worker.checks import find_problems
from syft_worker.config import read_config
from tests.waiting import wait_until

from ..network.processes import find_port

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "consortium"
NAMES = ("north", "east", "south")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example whose workers have ports that are free."""
    folder = tmp_path / "consortium"
    shutil.copytree(EXAMPLE, folder)
    ports = {str(port): str(find_port()) for start in (8777, 8787) for port in range(start, start + 3)}
    for file in (folder / "run.py", folder / "scientist.ipynb", *folder.glob("owners/*.toml")):
        file.write_text(re.sub(r"\b87[78]\d\b", lambda found: ports[found[0]], file.read_text()))
    return folder


def environment(study: Path) -> dict[str, str]:
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    modules = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return {**os.environ, "PATH": path, "PYTHONPATH": modules, "SYFT_STUDY": str(study)}


@pytest.fixture
def study(example: Path) -> Iterator[Path]:
    """The folder of a study whose workers are served."""
    folder = example / "study"
    with (example / "log").open("w") as log:
        command = [sys.executable, str(example / "run.py"), str(folder)]
        served = subprocess.Popen(command, stdout=log, stderr=log, env=environment(folder))
        try:
            wait_until(lambda: "are served" in (example / "log").read_text() or served.poll() is not None, 120, 0.2)
            assert served.poll() is None, (example / "log").read_text()
            yield folder
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait(60)


def approve(folder: Path, config: Any, done: threading.Event) -> None:
    """Approve the study as its owner, as soon as it is asked for."""
    desk = ["--url", f"wss://127.0.0.1:{config.port}", "--ca", str(folder / "scientist" / f"{config.id}.pem")]
    desk += ["--token-from", str(folder / config.id / "owner.token"), "--state", "open", "--json"]
    command = [sys.executable, "-m", "syft_core", "requests", "list", *desk]

    def is_asked() -> bool:
        listed = subprocess.run(command, capture_output=True, env=environment(folder), check=True, timeout=60)
        return done.is_set() or bool(json.loads(listed.stdout))

    wait_until(is_asked, 240, 0.5)
    if not done.is_set():
        script = ["sh", str(folder.parent / "owner.sh"), str(folder), config.id, str(config.port)]
        subprocess.run(script, check=True, env=environment(folder), timeout=60, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_the_notebook_runs_with_one_click_of_each_owner_and_only_sums_leave(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    configs = [read_config(study / name / "worker.toml") for name in NAMES]
    assert [find_problems(config, peers=False) for config in configs] == [[], [], []]
    notebook = nbformat.read(study.parent / "scientist.ipynb", as_version=4)
    nbformat.validate(notebook)
    for name, value in environment(study).items():
        monkeypatch.setenv(name, value)
    done = threading.Event()
    owners = [threading.Thread(target=approve, args=(study, config, done)) for config in configs]
    for owner in owners:
        owner.start()
    try:
        resources = {"metadata": {"path": str(study.parent)}}
        nbclient.NotebookClient(notebook, timeout=240, resources=resources).execute()
    finally:
        done.set()
        for owner in owners:
            owner.join(60)

    shown = "".join(str(cell.get("outputs", "")) for cell in notebook.cells)
    assert shown.count("'granted'") == 3
    assert "it is private, or was computed from something private" in shown
    for name in NAMES:
        entries = list(read_ledger(study / name / "records" / "ledger.jsonl"))
        mocks = [entry.form for entry in entries if entry.event == "departed"]
        assert mocks == (["Tensor[100, 4]"] if name == "north" else [])
        left = [entry for entry in entries if entry.event in DEPARTURES and entry.event != "departed"]
        assert len(left) == 13  # two statistics of columns, ten rounds, one evaluation
        assert all(entry.sum is not None and len(entry.sum["list"]) == 3 for entry in left)
        assert [entry.event for entry in entries if entry.event in ("approved", "standing")] == ["standing", "approved"]
    assert main(["verify", str(study.parent / "study.syft"), "--at-least", "3"]) == 0
    assert capsys.readouterr().out.count("3 of 3") == 13


def test_the_containers_serve_the_same_workers() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((EXAMPLE / "compose.yaml").read_text())["services"]

    assert list(services) == ["setup", *NAMES]
    for place, name in enumerate(NAMES):
        text = (EXAMPLE / "owners" / f"{name}.toml").read_text()
        assert f"port = {8777 + place}\npage_port = {8787 + place}\n" in text
        assert services[name]["ports"] == [f"127.0.0.1:{8777 + place}:8777", f"127.0.0.1:{8787 + place}:8778"]
        assert services[name]["command"][:2] == ["worker", f"/study/{name}/worker.toml"]


def test_the_readme_lists_every_file() -> None:
    text = (EXAMPLE / "README.md").read_text()

    files = [path.name for path in EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [name for name in files if name != "README.md" and f"`{name}`" not in text and f"/{name}`" not in text] == []
