"""What others do while a command waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def meanwhile(worker: Any, do: Callable[[Any], object], kind: type | None = None) -> Iterator[list[Any]]:
    """Call ``do`` with the message of a command whenever one waits, without its lock; return the messages.

    With ``kind``, only for messages of this type.
    """
    waiting, messages = worker.waiting, []

    @contextlib.contextmanager
    def wait(is_idle: bool = False) -> Iterator[None]:
        message, _ = worker.command
        with waiting(is_idle):
            yield
            if kind is None or type(message) is kind:
                messages.append(message)
                do(message)

    worker.waiting = wait
    try:
        yield messages
    finally:
        del worker.waiting
