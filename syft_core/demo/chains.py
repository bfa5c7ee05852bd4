"""The part of the demo about chains and layers."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from syft_core.demo.screen import Screen
from syft_core.hook.hook import FrameworkHook
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor


def show_chains(screen: Screen, hook: FrameworkHook, name: str) -> None:
    """Show how a call goes down a chain of layers, and the result comes back up."""
    screen.title("6. How it works: a chain")
    show_chain(screen, hook, name)
    show_meaning(screen, hook)
    show_polynomials(screen, hook)


def show_chain(screen: Screen, hook: FrameworkHook, name: str) -> None:
    """Show calls that pass through a LoggingTensor."""
    x = LoggingTensor().on(hook.create_tensor([1.0, -2.0, 3.0]))
    screen.text(
        f"You hold what looks like an ordinary {name} value. It is a wrapper around a chain of layers; pointers are "
        f"layers too:"
    )
    screen.chain(["(Wrapper)", "LoggingTensor", repr(x.child.child)])
    screen.text("Every call goes down the chain. The LoggingTensor logs it, and the result is wrapped again.")
    with _LogLines(screen):
        for source, call in (
            ("x + x", lambda: x + x),
            ("x.sum()", x.sum),
            ("(x * 2)[1:]", lambda: (x * 2)[1:]),
        ):
            screen.code(source, str(call()))


def show_meaning(screen: Screen, hook: FrameworkHook) -> None:
    """Show a layer that changes what an operation means."""
    plain = hook.create_tensor([1.0, -2.0, 3.0])
    odd = PlusIsMinusTensor().on(hook.create_tensor([1.0, -2.0, 3.0]))
    screen.text("A layer can change what an operation means, however it is called. This one swaps plus and minus:")
    rows = [
        ("x + 1", str(plain + 1), str((odd + 1).child.child)),
        ("x - 1", str(plain - 1), str((odd - 1).child.child)),
        ("x * 2", str(plain * 2), str((odd * 2).child.child)),
    ]
    screen.table(("", "plain", "under PlusIsMinusTensor"), rows)


def show_polynomials(screen: Screen, hook: FrameworkHook) -> None:
    """Compare polynomials with the function that they approximate."""
    points = [-3.0, -1.5, 0.0, 1.5, 3.0]
    x = PolynomialTensor().on(hook.create_tensor(points))
    answers = [float(value) for value in x.child.tanh().child]
    screen.text("Another one approximates exp, log, sigmoid and tanh by polynomials, which only add and multiply:")
    rows = [
        (f"{point:+.1f}", f"{math.tanh(point):+.6f}", f"{answer:+.6f}", _bar(answer))
        for point, answer in zip(points, answers, strict=True)
    ]
    screen.table(("x", "tanh(x)", "polynomial", ""), rows)


def _bar(value: float, width: int = 10) -> str:
    filled = round(abs(value) * width)
    return ("█" * filled).rjust(width) + "|" if value < 0 else " " * width + "|" + "█" * filled


class _LogLines:  # used like a function
    """Show the log lines of the LoggingTensor on a screen."""

    def __init__(self, screen: Screen) -> None:
        self._log = logging.getLogger(LoggingTensor.__module__)
        self._handler = _ScreenHandler(screen.log_line)

    def __enter__(self) -> None:
        self._before = (self._log.level, self._log.propagate)
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self._handler)
        level, self._log.propagate = self._before
        self._log.setLevel(level)


class _ScreenHandler(logging.Handler):
    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())
