"""The demo: train a model on data that stays with its owners, and list what left them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from syft_core.demo import line
from syft_core.demo.options import DemoOptions
from syft_core.demo.screen import PAUSE, Screen
from syft_core.hook.hook import FrameworkHook
from syft_core.plugins.backend import Backend

__all__ = ["PAUSE", "DemoOptions", "Screen", "finish_demo", "run_demo"]


def run_demo(screen: Screen, backend: Backend, options: DemoOptions | None = None) -> None:
    """Run the demo on one framework, and unhook the framework afterwards."""
    framework = backend.import_framework()
    story: Callable[[Screen, FrameworkHook, DemoOptions], None]
    story = line.run if backend.demo is None else backend.resolve(backend.demo)
    screen.title(f"Data you never see, on {backend.name} {framework.__version__}")
    with backend.load()(framework, verbose=False) as hook:
        story(screen, hook, options or DemoOptions())
    screen.text(f"The framework is unhooked: {backend.name} is exactly as it was before.")


def finish_demo(screen: Screen, others: Sequence[str], page: Path | None = None) -> None:
    """Write the page with the pictures, and show its path and what to read next."""
    screen.title("Next steps")
    if len(screen.page):
        path = screen.page.save(page or Path(tempfile.mkdtemp(prefix="syft-core-")) / "demo.html")
        screen.text("A page about this run, for your browser and for your colleagues:")
        screen.show(f"   {path.as_uri()}")
    screen.text(
        "Using your own data and model, step by step: docs/README.md. What is protected and what is not: "
        "docs/security.md. Example programs: examples/README.md."
    )
    if others:
        screen.text(
            f"The same on {' and on '.join(others)}: " + ", ".join(f"`syft-core demo {name}`" for name in others)
        )
