"""Waiting: one line that says for whose decisions a program waits, in terminals and notebooks."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from syft_core.pictures.tables import one_line

WIDTH = 100
MAX_NAMED = 3
_log = logging.getLogger(__name__)


class Display(Protocol):
    """Shows a line in place of the one before."""

    def show(self, text: str) -> None:
        """Replace the line."""

    def end(self) -> None:
        """Leave the line as it is, and begin another one."""


class WaitingLine:
    """Shows one line about all requests that wait, from any thread; without a terminal or notebook, the log has them.

    ``find_display`` returns where to show it, or None.
    """

    def __init__(self, find_display: Callable[[], Display | None]) -> None:
        self._find_display = find_display
        self._lock = threading.Lock()
        self._since: dict[str, tuple[str, float]] = {}
        """The workers and the times since when requests wait, by their ids."""
        self._display: Display | None = None

    def begin(self, request: str, worker: object) -> None:
        """Add a request that waits."""
        with self._lock:
            if not self._since:
                self._display = self._find_display()
            self._since[request] = one_line(str(worker)), time.monotonic()
        _log.info("waiting for the owner of %s to decide on request %s", one_line(str(worker)), request)
        self.update()

    def update(self) -> None:
        """Show how long the requests have waited."""
        with self._lock:
            if self._display is not None and self._since:
                self._display.show(self._describe())

    def end(self, request: str) -> None:
        """Remove a request that does not wait any more."""
        with self._lock:
            self._since.pop(request, None)
            if not self._since and self._display is not None:
                self._display.end()
                self._display = None

    def _describe(self) -> str:
        workers = sorted({worker for worker, _ in self._since.values()})
        names = ", ".join(workers[:MAX_NAMED]) + (f" and {len(workers) - MAX_NAMED} more" * (len(workers) > MAX_NAMED))
        seconds = time.monotonic() - min(since for _, since in self._since.values())
        count = len(self._since)
        what = f"request {next(iter(self._since))}" if count == 1 else f"{count} requests"
        return f"waiting for the owner of {names} to decide on {what}, for {seconds:.0f} s"


class Terminal:
    """Shows a line in a terminal."""

    def show(self, text: str) -> None:
        """Replace the line."""
        sys.stderr.write(f"\r{text[:WIDTH]:<{WIDTH}}")
        sys.stderr.flush()

    def end(self) -> None:
        """Begin another line."""
        sys.stderr.write("\n")
        sys.stderr.flush()


class Notebook:
    """Shows a line below the cell of a notebook."""

    def __init__(self) -> None:
        from IPython import display  # noqa: PLC0415  # only a notebook gets here

        show: Any = display.display
        self._handle = show({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text: str) -> None:
        """Replace the line."""
        self._handle.update({"text/plain": text}, raw=True)

    def end(self) -> None:
        """Leave the line as it is."""


def find_display() -> Display | None:
    """Return where this program shows a line to its user, if it has such a place."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        return Notebook()
    return Terminal() if sys.stderr is not None and sys.stderr.isatty() else None


LINE = WaitingLine(find_display)
"""The line of this program: a terminal has only one place for it."""
