"""Run the examples: each is a script that asserts its own claims."""

from __future__ import annotations

import runpy
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
    state = torch.random.get_rng_state()
    runpy.run_path(str(script), run_name="__main__")
    torch.random.set_rng_state(state)

    assert len(capsys.readouterr().out.splitlines()) > 5


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")

    assert [script.name for script in SCRIPTS if f"`{script.name}`" not in listed] == []
    assert len(SCRIPTS) >= 7
