"""The demo: a model learns from data that its author never sees, and the workers say what left them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from syft_core.demo.chains import show_chains
from syft_core.demo.line import tell
from syft_core.demo.stage import PAUSE, RichStage, Stage, make_stage
from syft_core.hook.hook import FrameworkHook
from syft_core.plugins.backend import Backend

__all__ = ["PAUSE", "RichStage", "Stage", "farewell", "make_stage", "perform", "storytellers"]


def storytellers(backends: Sequence[Backend]) -> list[Backend]:
    """Return the backends that can be shown here, those with a story of their own first."""
    return sorted([backend for backend in backends if backend.is_installed()], key=lambda backend: backend.demo is None)


def perform(stage: Stage, backend: Backend) -> None:
    """Tell the story on one framework, and leave the framework as it was."""
    framework = backend.import_framework()
    story: Callable[[Stage, FrameworkHook], None] = tell if backend.demo is None else backend.resolve(backend.demo)
    stage.title(f"Data you never see, on {backend.name} {framework.__version__}")
    with backend.load()(framework, verbose=False) as hook:
        story(stage, hook)
        show_chains(stage, hook, backend.name)
    stage.say(f"The hook is off again: {backend.name} is exactly as it was.")


def farewell(stage: Stage, others: Sequence[str], page: Path | None = None) -> None:
    """Write the page with the pictures, and say where it is and what to read next."""
    stage.title("Where to go from here")
    if len(stage.page):
        path = stage.page.save(page or Path(tempfile.mkdtemp(prefix="syft-core-")) / "demo.html")
        stage.say("The pictures of this run, who computed what where and what left, for your browser:")
        stage.show(f"   {path.as_uri()}")
    stage.say(
        "Your own data and model, step by step: docs/README.md. Who is trusted with what: docs/security.md. "
        "Programs to start from: examples/README.md."
    )
    if others:
        stage.say(f"The same on {' and on '.join(others)}: " + ", ".join(f"`syft-core demo {name}`" for name in others))
