"""What a handler asks for when it needs another party, and the loop that gets it the answer.

Handlers are sans-IO: one that needs another party is a generator that yields a request and is resumed with the answer.
No lock of its worker is held meanwhile, so two workers that need each other at the same time both go on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from syft_core.location import Location
from syft_core.messages import Message
from syft_core.peer import Peer, acting_for


@dataclass(slots=True)
class Ask:
    """Ask another party, and be resumed with its reply."""

    location: Location
    message: Message
    behalf: tuple[Peer, ...] = ()
    """For whom the worker asks; set by the worker that runs the handler, for every request."""

    def perform(self) -> Any:
        """Ask, and wait for the reply."""
        with acting_for(self.behalf):
            return self.location.ask(self.message)


@dataclass(slots=True)
class Elsewhere:
    """Run a function that may wait for other parties, such as an operation on pointers that are stored here."""

    function: Callable[[], Any]
    behalf: tuple[Peer, ...] = ()

    def perform(self) -> Any:
        """Run the function."""
        with acting_for(self.behalf):
            return self.function()


Request: TypeAlias = Ask | Elsewhere
Process: TypeAlias = Generator[Request, Any, Any]
"""A handler at work: it yields requests, is resumed with answers, and returns its reply."""


def drive(process: Process, request: Request | None = None) -> Any:
    """Run a process to its end, waiting for every answer that it needs; ``request`` is the first, if it was made."""
    try:
        if request is None:
            request = next(process)
        while True:
            try:
                answer = request.perform()
            except Exception as error:  # noqa: BLE001, PERF203  # the process decides what follows from it
                request = process.throw(error)
            else:
                request = process.send(answer)
    except StopIteration as end:
        return end.value
