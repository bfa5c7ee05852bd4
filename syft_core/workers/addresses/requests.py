"""Requests by handlers to other parties, and the loop that performs them.

Handlers are sans-IO: a handler that needs another party is a generator that yields a request and is resumed with the
answer. The worker's lock is not held meanwhile, so two workers that need each other do not deadlock.
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
    """Send a message to another party and wait for its reply."""

    location: Location
    message: Message
    behalf: tuple[Peer, ...] = ()
    """The peers on whose behalf the request is made; set by the worker that runs the handler."""

    def perform(self) -> Any:
        """Send the message, and return the reply."""
        with acting_for(self.behalf):
            return self.location.ask(self.message)


@dataclass(slots=True)
class Elsewhere:
    """Run a function that may wait for other parties, such as an operation on stored pointers."""

    function: Callable[[], Any]
    behalf: tuple[Peer, ...] = ()

    def perform(self) -> Any:
        """Run the function."""
        with acting_for(self.behalf):
            return self.function()


Request: TypeAlias = Ask | Elsewhere
Process: TypeAlias = Generator[Request, Any, Any]
"""A running handler: it yields requests, is resumed with answers, and returns the reply."""


def drive(process: Process, request: Request | None = None) -> Any:
    """Run a process to completion, performing its requests; ``request`` is the first, if already yielded."""
    try:
        if request is None:
            request = next(process)
        while True:
            try:
                answer = request.perform()
            except Exception as error:  # noqa: BLE001, PERF203  # the process handles it
                request = process.throw(error)
            else:
                request = process.send(answer)
    except StopIteration as end:
        return end.value
