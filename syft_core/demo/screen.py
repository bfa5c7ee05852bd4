"""Screen: show a demo on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence

from syft_core.demo.page import DemoPage
from syft_core.pictures.tables import text_table

PAUSE = 0.4
"""Seconds between two steps, so that readers can follow."""
MAX_WIDTH = 100
"""The maximum text width, in columns."""
BOLD, CYAN, GREEN, MAGENTA, RED = "1", "1;36", "32", "35", "31"


class Screen:
    """Shows the demo on a terminal, in colour if it supports that, and collects pictures for the page."""

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
        self._colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.page = DemoPage()

    def title(self, text: str) -> None:
        """Show the title of a section."""
        self.show(f"\n== {text} ==", CYAN)

    def text(self, text: str) -> None:
        """Show a paragraph of text."""
        self.show("\n" + self._wrap(text, ""))
        self.wait()

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, outermost link first."""
        self.show("   " + "  ->  ".join(f"[ {link} ]" for link in links), MAGENTA)

    def code(self, source: str, answer: str) -> None:
        """Show a line of code and its result."""
        self.show(f"   >>> {source}", BOLD)
        self.show(self._wrap(answer, "   "))
        self.wait()

    def source(self, text: str) -> None:
        """Show a block of code that is about to run."""
        self.show(textwrap.indent(text.rstrip(), "   | "), BOLD)
        self.wait()

    def log_line(self, line: str) -> None:
        """Show a line that a layer has logged."""
        self.show(f"       | {line}", MAGENTA)

    def refusal(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self.show(f"   >>> {source}", BOLD)
        self.show(f"   x  {self._wrap(reason, '      ').lstrip()}", RED)
        self.wait()

    def progress(self, label: str, share: float, text: str) -> None:
        """Show progress as one line with a bar of 20 characters."""
        filled = round(max(0.0, min(1.0, share)) * 20)
        self.show(f"   {label}  {'█' * filled}{'░' * (20 - filled)}  {text}", GREEN)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        self.show(textwrap.indent(text_table(header, rows), "   "))
        self.wait()

    def show(self, text: str, colour: str = "") -> None:
        """Print text."""
        shown = f"\x1b[{colour}m{text}\x1b[0m" if colour and self._colours else text
        print(shown, flush=True)  # noqa: T201  # the demo prints to the terminal

    def wait(self) -> None:
        """Pause, so that readers can follow."""
        time.sleep(self._pause)

    def _wrap(self, text: str, indent: str) -> str:
        lines = [
            textwrap.wrap(line, self._width, initial_indent=indent, subsequent_indent=indent) or [""]
            for line in text.split("\n")
        ]
        return "\n".join(part for line in lines for part in line)
