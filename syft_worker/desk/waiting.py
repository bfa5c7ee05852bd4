"""Waiting: one line that says for whose decisions a program waits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from syft_core.display import Display, Log, find_display
from syft_core.pictures.tables import one_line

MAX_NAMED = 3
_log = logging.getLogger(__name__)


class WaitingLine:
    """Shows one line about all requests that wait, from any thread; ``find_place`` returns where."""

    def __init__(self, find_place: Callable[[], Display]) -> None:
        self._find_place = find_place
        self._lock = threading.Lock()
        self._since: dict[str, tuple[str, float]] = {}
        """The workers and the times since when requests wait, by their ids."""
        self._display: Display | None = None

    def begin(self, request: str, worker: object) -> None:
        """Add a request that waits."""
        with self._lock:
            if not self._since:
                self._display = self._find_place()
            self._since[request] = one_line(str(worker)), time.monotonic()
        self.update()

    def update(self) -> None:
        """Show how long the requests have waited."""
        with self._lock:
            if self._display is not None and self._since:
                self._display.show(self._describe())

    def end(self, request: str) -> None:
        """Remove a request that no longer waits."""
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


LINE = WaitingLine(lambda: find_display() or Log(_log))
"""The line of this program: a terminal has only one place for it."""
