"""Run the examples: each is a script that asserts its own claims."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from syft_core.hook.hook import attached_hooks  # noqa: E402  # torch may be missing

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.fixture(autouse=True)
def _unhook() -> Iterator[None]:
    """Unhook torch after the example; a script ends with its process, a test does not."""
    yield
    for hook in attached_hooks():
        hook.unhook()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs_and_its_assertions_hold(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "from sklearn" in script.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn")
    state = torch.random.get_rng_state()
    runpy.run_path(str(script), run_name="__main__")
    torch.random.set_rng_state(state)

    assert len(capsys.readouterr().out.splitlines()) > 5


@pytest.mark.slow
def test_hospitals_and_a_data_scientist_run_in_processes_of_their_own() -> None:
    script = EXAMPLES / "network" / "run.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    options = {"capture_output": True, "text": True, "encoding": "utf-8", "timeout": 300, "env": environment}
    done = subprocess.run([sys.executable, str(script)], check=False, **options)

    assert done.returncode == 0, done.stderr
    shown = done.stdout
    assert "owner denied request " in shown
    assert " (patients do not leave)" in shown
    assert "accuracy on new patients: 0.9" in shown
    for name in ("st-mary", "st-john"):
        left = shown.partition(f"what left {name}:\n")[2].partition("what was asked")[0]
        assert left.count("Parameter[") == left.count(f"approved by Dr. Noor of {name}") == 2
        assert "Tensor[" not in left
    assert shown.endswith("all three have stopped\n")


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")

    assert "`network/run.py`" in listed
    assert [script.name for script in SCRIPTS if f"`{script.name}`" not in listed] == []
    assert len(SCRIPTS) >= 7
