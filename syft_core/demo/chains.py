"""The part of the demo about chains and layers."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

from syft_core.demo.screen import Screen
from syft_core.hook.hook import FrameworkHook
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor


def show_chains(screen: Screen, hook: FrameworkHook) -> None:
    """Show how a call goes down a chain of layers, and the result comes back up."""
    plain = hook.create_tensor([1.0, -2.0, 3.0])
    x, odd = LoggingTensor().on(plain), PlusIsMinusTensor().on(plain)
    screen.title("How it works: a chain")
    screen.text(
        f"You hold what looks like an ordinary {hook.name} value. It is a wrapper around a chain of layers; pointers "
        f"are layers too:"
    )
    screen.chain(["(Wrapper)", "LoggingTensor", repr(plain)])
    screen.text("Every call goes down the chain. The LoggingTensor logs it, and the result is wrapped again.")
    with _show_log(screen):
        for source, call in (("x + x", lambda: x + x), ("x.sum()", x.sum), ("(x * 2)[1:]", lambda: (x * 2)[1:])):
            screen.code(source, str(call()))
    screen.text("A layer can change what an operation means, however it is called. This one swaps plus and minus:")
    rows = [
        ("x + 1", str(plain + 1), str((odd + 1).child.child)),
        ("x - 1", str(plain - 1), str((odd - 1).child.child)),
        ("x * 2", str(plain * 2), str((odd * 2).child.child)),
    ]
    screen.table(("", "plain", "under PlusIsMinusTensor"), rows)
    screen.text("Another one approximates exp, log, sigmoid and tanh by polynomials, which only add and multiply:")
    points = [-3.0, -1.5, 0.0, 1.5, 3.0]
    answers = PolynomialTensor().on(hook.create_tensor(points)).child.tanh().child
    pairs = zip(points, map(float, answers), strict=True)
    rows = [(f"{point:+.1f}", f"{math.tanh(point):+.6f}", f"{answer:+.6f}") for point, answer in pairs]
    screen.table(("x", "tanh(x)", "polynomial"), rows)


@contextmanager
def _show_log(screen: Screen) -> Iterator[None]:
    log = logging.getLogger(LoggingTensor.__module__)
    level, propagate = log.level, log.propagate
    handler = logging.Handler()
    handler.emit = lambda record: screen.log_line(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate
