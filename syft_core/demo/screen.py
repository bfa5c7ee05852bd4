"""Screens: show the demo on a terminal, plain or with colours."""

from __future__ import annotations

import shutil
import textwrap
import time
from collections.abc import Sequence
from typing import Any

from syft_core.demo.page import Page
from syft_core.pictures import text_table

PAUSE = 0.4
"""Seconds between two steps, so that readers can follow."""
MAX_WIDTH = 100
"""The maximum width of text, in columns."""


class Screen:
    """Shows the demo on a plain terminal and collects pictures for the page."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
        self.page = Page()

    def title(self, text: str) -> None:
        """Show the title of a section."""
        self.show(f"\n== {text} ==")

    def text(self, text: str) -> None:
        """Show a paragraph of text."""
        self.show("\n" + self._wrap(text, ""))
        self.wait()

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, outermost link first."""
        self.show("   " + "  ->  ".join(f"[ {link} ]" for link in links))

    def code(self, source: str, answer: str) -> None:
        """Show a line of code and its result."""
        self.show(f"   >>> {source}\n{self._wrap(answer, '   ')}")
        self.wait()

    def source(self, text: str) -> None:
        """Show a block of code that is about to run."""
        self.show(textwrap.indent(text.rstrip(), "   | "))
        self.wait()

    def log_line(self, line: str) -> None:
        """Show a line that a layer has logged."""
        self.show(f"       | {line}")

    def refusal(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self.show(f"   >>> {source}\n   x  {self._wrap(reason, '      ').lstrip()}")
        self.wait()

    def progress(self, label: str, share: float, text: str) -> None:
        """Show progress as one line with a bar."""
        self.show(f"   {label}  {_bar(share)}  {text}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        self.show(textwrap.indent(text_table(header, rows), "   "))
        self.wait()

    def show(self, text: str) -> None:
        """Print text."""
        print(text, flush=True)  # noqa: T201  # the demo prints to the terminal

    def wait(self) -> None:
        """Pause, so that readers can follow."""
        time.sleep(self._pause)

    def _wrap(self, text: str, indent: str) -> str:
        lines = [
            textwrap.wrap(line, self._width, initial_indent=indent, subsequent_indent=indent) or [""]
            for line in text.split("\n")
        ]
        return "\n".join(part for line in lines for part in line)


class RichScreen(Screen):
    """Shows the demo with colours and boxes."""

    def __init__(self, pause: float, rich: Any) -> None:
        super().__init__(pause)
        self._rich = rich
        self._console = rich.console.Console(highlight=False)
        self._text_width = min(self._console.width, MAX_WIDTH)

    def title(self, text: str) -> None:
        """Show the title of a section."""
        self._console.print()
        self._console.rule(f"[bold cyan]{self._escape(text)}")

    def text(self, text: str) -> None:
        """Show a paragraph of text."""
        self._console.print(f"\n{self._escape(text)}", width=self._text_width)
        self.wait()

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, outermost link first."""
        colours = ("yellow", "magenta", "green")
        boxes: list[object] = []
        for number, link in enumerate(links):
            last = number == len(links) - 1
            boxes.append(
                self._rich.panel.Panel.fit(
                    self._escape(link), border_style=colours[-1] if last else colours[number % 2]
                )
            )
            if not last:
                boxes.append(self._rich.text.Text("\n ─▶ "))
        self._console.print(self._rich.columns.Columns(boxes))

    def code(self, source: str, answer: str) -> None:
        """Show a line of code and its result."""
        self._print_code(source)
        self._print_indented(self._escape(answer), 2)
        self.wait()

    def source(self, text: str) -> None:
        """Show a block of code that is about to run."""
        for line in text.rstrip().split("\n"):
            self._console.print(f"  [cyan]│[/cyan] [bold]{self._escape(line)}[/bold]", soft_wrap=True)
        self.wait()

    def log_line(self, line: str) -> None:
        """Show a line that a layer has logged."""
        self._console.print(f"      [magenta]▼ {self._escape(line)}[/magenta]")

    def refusal(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self._print_code(source)
        self._print_indented(f"[red]✗ {self._escape(reason)}[/red]", 2)
        self.wait()

    def progress(self, label: str, share: float, text: str) -> None:
        """Show progress as one line with a bar."""
        self._console.print(f"  {self._escape(label)}  [green]{_bar(share)}[/green]  {self._escape(text)}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        table = self._rich.table.Table(*map(self._escape, header), box=self._rich.box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*(self._escape(cell) for cell in row))
        self._console.print(table)
        self.wait()

    def show(self, text: str) -> None:
        """Print text."""
        self._console.print(self._escape(text))

    def _print_code(self, source: str) -> None:
        self._console.print(f"  [dim]>>>[/dim] [bold]{self._escape(source)}[/bold]", soft_wrap=True)

    def _print_indented(self, text: str, columns: int) -> None:
        self._console.print(self._rich.padding.Padding(text, (0, 0, 0, columns), expand=False), width=self._text_width)

    def _escape(self, text: str) -> str:
        return str(self._rich.markup.escape(text))


def make_screen(pause: float = PAUSE) -> Screen:
    """Return a screen with colours if rich is installed, otherwise a plain one."""
    try:
        import rich.box  # noqa: PLC0415  # an optional dependency
        import rich.columns  # noqa: PLC0415
        import rich.console  # noqa: PLC0415
        import rich.markup  # noqa: PLC0415
        import rich.padding  # noqa: PLC0415
        import rich.panel  # noqa: PLC0415
        import rich.table  # noqa: PLC0415
        import rich.text  # noqa: PLC0415
    except ImportError:
        return Screen(pause)
    return RichScreen(pause, rich)


def _bar(share: float, width: int = 20) -> str:
    filled = round(max(0.0, min(1.0, share)) * width)
    return "█" * filled + "░" * (width - filled)
