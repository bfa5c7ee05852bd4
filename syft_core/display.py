"""Display: one line that a program updates while it works or waits, in a terminal, a notebook or the log."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, Protocol

WIDTH = 100
LOG_SECONDS = 60.0
"""The shortest time between two lines in the log."""


class Display(Protocol):
    """Shows a line in place of the one before."""

    def show(self, text: str) -> None:
        """Replace the line."""

    def end(self) -> None:
        """Keep the line, and begin another one."""


class Terminal:
    """Shows a line in a terminal."""

    def __init__(self) -> None:
        self._is_begun = False

    def show(self, text: str) -> None:
        """Replace the line."""
        sys.stderr.write(f"\r{text[:WIDTH]:<{WIDTH}}")
        sys.stderr.flush()
        self._is_begun = True

    def end(self) -> None:
        """End the current line, if there is one."""
        if self._is_begun:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._is_begun = False


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


class Log:
    """Writes the line to a log, at most once a minute: for programs without a terminal or a notebook."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._next = log, 0.0

    def show(self, text: str) -> None:
        """Write the line, unless one was written just now."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + LOG_SECONDS
            self._log.warning(text)

    def end(self) -> None:
        """Let the next line be written at once."""
        self._next = 0.0


class Nowhere:
    """Shows nothing."""

    def show(self, text: str) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""


def find_display() -> Display | None:
    """Return where this program shows a line to its user, if it has such a place."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        return Notebook()
    return Terminal() if sys.stderr is not None and sys.stderr.isatty() else None
