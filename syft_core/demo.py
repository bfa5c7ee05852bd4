"""The demo: a chain at work, step by step, on whichever framework a backend brings."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from syft_core.exceptions import SyftError
from syft_core.plugins.backend import Backend
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor

PAUSE = 0.6
"""Seconds between two steps, so that a reader can follow."""


class Stage:
    """Shows things on a plain terminal."""

    def __init__(self, pause: float) -> None:
        self._pause = pause

    def title(self, text: str) -> None:
        """Begin a new part."""
        self.show(f"\n== {text} ==\n")

    def say(self, text: str) -> None:
        """Explain what comes next."""
        self.show(text)
        time.sleep(self._pause)

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, the outermost link first."""
        self.show("   " + "  ->  ".join(f"[ {link} ]" for link in links))

    def code(self, source: str, answer: str) -> None:
        """Show a line of code and what it gives."""
        self.show(f"   >>> {source}\n   {answer}")
        time.sleep(self._pause)

    def passing(self, line: str) -> None:
        """Show what a layer reports while a call passes."""
        self.show(f"       | {line}")

    def refused(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self.show(f"   >>> {source}\n   x  {reason}")
        time.sleep(self._pause)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
        for row in (header, *rows):
            self.show("   " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
        time.sleep(self._pause)

    def show(self, text: str) -> None:
        """Put text on the terminal."""
        print(text)  # noqa: T201  # the demo speaks to its reader


class RichStage(Stage):
    """Shows the same with colours and boxes."""

    def __init__(self, pause: float, rich: Any) -> None:
        super().__init__(pause)
        self._rich = rich
        self._console = rich.console.Console(highlight=False)

    def title(self, text: str) -> None:
        """Begin a new part."""
        self._console.print()
        self._console.rule(f"[bold cyan]{self._plain(text)}")

    def say(self, text: str) -> None:
        """Explain what comes next."""
        self._console.print(f"\n{self._plain(text)}")
        time.sleep(self._pause)

    def chain(self, links: Sequence[str]) -> None:
        """Draw a chain, the outermost link first."""
        colours = ("yellow", "magenta", "green")
        boxes: list[Any] = []
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
        self._console.print(f"  [dim]>>>[/dim] [bold]{self._plain(source)}[/bold]\n  {self._plain(answer)}")
        time.sleep(self._pause)

    def passing(self, line: str) -> None:
        """Show what a layer reports while a call passes."""
        self._console.print(f"      [magenta]▼ {self._plain(line)}[/magenta]")

    def refused(self, source: str, reason: str) -> None:
        """Show a line of code that is refused, and why."""
        self._console.print(
            f"  [dim]>>>[/dim] [bold]{self._plain(source)}[/bold]\n  [red]✗[/red] {self._plain(reason)}"
        )
        time.sleep(self._pause)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        table = self._rich.table.Table(*map(self._plain, header), box=self._rich.box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*(self._plain(cell) for cell in row))
        self._console.print(table)
        time.sleep(self._pause)

    def show(self, text: str) -> None:
        """Put text on the terminal."""
        self._console.print(self._plain(text))

    def _plain(self, text: str) -> str:
        return str(self._rich.markup.escape(text))


def make_stage(pause: float = PAUSE) -> Stage:
    """Return a stage with colours if rich is installed, a plain one if not."""
    try:
        import rich.box  # noqa: PLC0415  # an optional dependency
        import rich.columns  # noqa: PLC0415
        import rich.console  # noqa: PLC0415
        import rich.markup  # noqa: PLC0415
        import rich.panel  # noqa: PLC0415
        import rich.table  # noqa: PLC0415
        import rich.text  # noqa: PLC0415
    except ImportError:
        return Stage(pause)
    return RichStage(pause, rich)


def perform(stage: Stage, backend: Backend) -> None:
    """Show all acts on one framework, and leave the framework as it was."""
    framework = backend.import_framework()
    stage.title(f"A chain at work on {backend.name} {framework.__version__}")
    with backend.load()(framework, verbose=False) as hook:
        show_chain(stage, hook, backend.name)
        show_meaning(stage, hook)
        show_polynomials(stage, hook)
        show_refusals(stage, hook)
        if backend.demo is not None:
            backend.resolve(backend.demo)(stage, hook)
    stage.say(f"The hook is off again: {backend.name} is exactly as it was.")


def farewell(stage: Stage, names: Sequence[str]) -> None:
    """Say what to read next."""
    stage.title("That was a chain")
    stage.say(
        f"The same three layers, written once, worked on {' and on '.join(names)}.\n"
        "How a call goes down and the answer comes back: docs/life-of-an-operation.md"
    )


def show_chain(stage: Stage, hook: Any, name: str) -> None:
    """Send calls through a layer that only watches."""
    x = LoggingTensor().on(hook.create_tensor([1.0, -2.0, 3.0]))
    stage.say(f"You hold what looks like an ordinary {name} value. Under it hangs a chain:")
    stage.chain(["(Wrapper)", "LoggingTensor", repr(x.child.child)])
    stage.say("Every call goes down the chain; the LoggingTensor says what passes, and the answer is wrapped again.")
    with _listening(stage):
        for source, call in (
            ("x + x", lambda: x + x),
            ("x.sum()", x.sum),
            ("(x * 2)[1:]", lambda: (x * 2)[1:]),
        ):
            stage.code(source, str(call()))


def show_meaning(stage: Stage, hook: Any) -> None:
    """Compute with a layer that changes what an operation means."""
    plain = hook.create_tensor([1.0, -2.0, 3.0])
    odd = PlusIsMinusTensor().on(hook.create_tensor([1.0, -2.0, 3.0]))
    stage.say("A layer may change what an operation means, in every way to spell it. This one swaps plus and minus:")
    rows = [
        ("x + 1", str(plain + 1), str(odd + 1)),
        ("x - 1", str(plain - 1), str(odd - 1)),
        ("x * 2", str(plain * 2), str(odd * 2)),
    ]
    stage.table(("", "plain", "under PlusIsMinusTensor"), rows)


def show_polynomials(stage: Stage, hook: Any) -> None:
    """Compare a polynomial with the function it stands for."""
    points = [-3.0, -1.5, 0.0, 1.5, 3.0]
    x = PolynomialTensor().on(hook.create_tensor(points))
    answers = [float(value) for value in x.child.tanh().child]
    stage.say("Another answers exp, log, sigmoid and tanh with polynomials, which is what encrypted values can do:")
    rows = [
        (f"{point:+.1f}", f"{math.tanh(point):+.6f}", f"{answer:+.6f}", _bar(answer))
        for point, answer in zip(points, answers, strict=True)
    ]
    stage.table(("x", "tanh(x)", "polynomial", ""), rows)


def show_refusals(stage: Stage, hook: Any) -> None:
    """Show that what makes no sense is refused with a reason."""
    one = PlusIsMinusTensor().on(hook.create_tensor([1.0]))
    other = PolynomialTensor().on(hook.create_tensor([1.0]))
    stage.say("What would give a silent wrong answer elsewhere is refused, with the way out:")
    for source, call in (
        ("plus_is_minus * polynomial", lambda: one * other),
        ("polynomial_of(20).exp()", lambda: PolynomialTensor().on(hook.create_tensor([20.0]), wrap=False).exp()),
    ):
        stage.refused(source, _reason(call))


def _reason(call: Callable[[], Any]) -> str:
    try:
        call()
    except SyftError as error:
        return str(error)
    raise AssertionError("the demo shows a refusal that did not happen")


def _bar(value: float, width: int = 10) -> str:
    filled = round(abs(value) * width)
    return ("█" * filled).rjust(width) + "|" if value < 0 else " " * width + "|" + "█" * filled


class _listening:  # noqa: N801  # used like a function
    """Show the lines of the LoggingTensor on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._log = logging.getLogger(LoggingTensor.__module__)
        self._handler = _StageHandler(stage.passing)

    def __enter__(self) -> None:
        self._before = (self._log.level, self._log.propagate)
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self._handler)
        level, self._log.propagate = self._before
        self._log.setLevel(level)


class _StageHandler(logging.Handler):
    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())
