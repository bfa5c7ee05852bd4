"""Stages: where the demo is shown, on a plain terminal or on one with colours."""

from __future__ import annotations

import shutil
import textwrap
import time
from collections.abc import Sequence
from typing import Any

from syft_core.demo.page import Page
from syft_core.pictures import text_table

PAUSE = 0.4
"""Seconds between two steps, so that a reader can follow."""
WIDEST = 100
"""How wide running text gets, however wide the terminal is."""


class Screen:
    """Shows things on a plain terminal, and collects pictures for the page."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._width = min(shutil.get_terminal_size().columns, WIDEST)
        self.page = Page()

    def title(self, text: str) -> None:
        """Begin a new part."""
        self.show(f"\n== {text} ==")

    def text(self, text: str) -> None:
        """Explain what comes next."""
        self.show("\n" + self._wrapped(text, ""))
        self.wait()

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, the outermost link first."""
        self.show("   " + "  ->  ".join(f"[ {link} ]" for link in links))

    def code(self, source: str, answer: str) -> None:
        """Show a line of code and what it gives."""
        self.show(f"   >>> {source}\n{self._wrapped(answer, '   ')}")
        self.wait()

    def source(self, text: str) -> None:
        """Show a block of code that is about to run."""
        self.show(textwrap.indent(text.rstrip(), "   | "))
        self.wait()

    def log_line(self, line: str) -> None:
        """Show what a layer reports while a call passes."""
        self.show(f"       | {line}")

    def refusal(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self.show(f"   >>> {source}\n   x  {self._wrapped(reason, '      ').lstrip()}")
        self.wait()

    def progress(self, label: str, share: float, words: str) -> None:
        """Show how far something has come, as one line with a bar."""
        self.show(f"   {label}  {_bar(share)}  {words}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        self.show(textwrap.indent(text_table(header, rows), "   "))
        self.wait()

    def show(self, text: str) -> None:
        """Put text on the terminal."""
        print(text, flush=True)  # noqa: T201  # the demo speaks to its reader

    def wait(self) -> None:
        """Give the reader time."""
        time.sleep(self._pause)

    def _wrapped(self, text: str, indent: str) -> str:
        lines = [
            textwrap.wrap(line, self._width, initial_indent=indent, subsequent_indent=indent) or [""]
            for line in text.split("\n")
        ]
        return "\n".join(part for line in lines for part in line)


class RichScreen(Screen):
    """Shows the same with colours and boxes."""

    def __init__(self, pause: float, rich: Any) -> None:
        super().__init__(pause)
        self._rich = rich
        self._console = rich.console.Console(highlight=False)
        self._text_width = min(self._console.width, WIDEST)

    def title(self, text: str) -> None:
        """Begin a new part."""
        self._console.print()
        self._console.rule(f"[bold cyan]{self._plain(text)}")

    def text(self, text: str) -> None:
        """Explain what comes next."""
        self._console.print(f"\n{self._plain(text)}", width=self._text_width)
        self.wait()

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, the outermost link first."""
        colours = ("yellow", "magenta", "green")
        boxes: list[object] = []
        for number, link in enumerate(links):
            last = number == len(links) - 1
            boxes.append(
                self._rich.panel.Panel.fit(self._plain(link), border_style=colours[-1] if last else colours[number % 2])
            )
            if not last:
                boxes.append(self._rich.text.Text("\n ─▶ "))
        self._console.print(self._rich.columns.Columns(boxes))

    def code(self, source: str, answer: str) -> None:
        """Show a line of code and what it gives."""
        self._line_of_code(source)
        self._indented(self._plain(answer), 2)
        self.wait()

    def source(self, text: str) -> None:
        """Show a block of code that is about to run."""
        for line in text.rstrip().split("\n"):
            self._console.print(f"  [cyan]│[/cyan] [bold]{self._plain(line)}[/bold]", soft_wrap=True)
        self.wait()

    def log_line(self, line: str) -> None:
        """Show what a layer reports while a call passes."""
        self._console.print(f"      [magenta]▼ {self._plain(line)}[/magenta]")

    def refusal(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self._line_of_code(source)
        self._indented(f"[red]✗ {self._plain(reason)}[/red]", 2)
        self.wait()

    def progress(self, label: str, share: float, words: str) -> None:
        """Show how far something has come, as one line with a bar."""
        self._console.print(f"  {self._plain(label)}  [green]{_bar(share)}[/green]  {self._plain(words)}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        table = self._rich.table.Table(*map(self._plain, header), box=self._rich.box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*(self._plain(cell) for cell in row))
        self._console.print(table)
        self.wait()

    def show(self, text: str) -> None:
        """Put text on the terminal."""
        self._console.print(self._plain(text))

    def _line_of_code(self, source: str) -> None:
        self._console.print(f"  [dim]>>>[/dim] [bold]{self._plain(source)}[/bold]", soft_wrap=True)

    def _indented(self, text: str, columns: int) -> None:
        self._console.print(self._rich.padding.Padding(text, (0, 0, 0, columns), expand=False), width=self._text_width)

    def _plain(self, text: str) -> str:
        return str(self._rich.markup.escape(text))


def make_screen(pause: float = PAUSE) -> Screen:
    """Return a screen with colours if rich is installed, a plain one if not."""
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
