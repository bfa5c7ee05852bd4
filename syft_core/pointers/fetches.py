"""Fetches: calls that wait for workers, written as generators, so that several can wait at the same time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from syft_core.location import Location, raise_error
from syft_core.messages import Message
from syft_core.values import Outcome

FetchRequest: TypeAlias = "tuple[Location, Message] | None"
"""A message and its receiver; None to wait until the requests of other fetches have been sent."""
FetchSteps: TypeAlias = Generator[FetchRequest, Outcome, Outcome]
"""A call that yields what it requests, is resumed with the answer, and returns its result."""


def complete(fetch: FetchSteps) -> Outcome:
    """Make the requests of a fetch one by one, and return its result."""
    try:
        request = next(fetch)
        while True:
            request = fetch.send(None if request is None else request[0].ask(request[1]))
    except StopIteration as end:
        return end.value


def complete_all(fetches: Sequence[FetchSteps], keep: Callable[[int, Outcome], None]) -> list[Outcome]:
    """Make the requests of several fetches at the same time, and return their results.

    If one cannot begin, nothing is requested. If one fails later, the others are completed, ``keep`` is called with the
    position and the last answer of each, and then the first error is raised.
    """
    running = [_Running(fetch) for fetch in fetches]
    for each in running:
        each.request()
    waiting = running
    while waiting:
        waiting = [each for each in waiting if each.resume()]
    errors = [each.error for each in running if each.error is not None]
    if errors:
        for place, each in enumerate(running):
            if each.error is None:
                keep(place, each.answer)
        running.clear()
        raise_error(errors.pop(0))
    return [each.result for each in running]


class _Running:
    def __init__(self, fetch: FetchSteps) -> None:
        self.result: Outcome = None
        self.answer: Outcome = None
        self.error: Exception | None = None
        self._fetch = fetch
        self._request: FetchRequest = None
        self._wait: Callable[[], Outcome] | None = lambda: None
        self._advance(lambda: next(fetch))

    def request(self) -> None:
        """Send the next request, if there is one."""
        if self._request is not None and self._wait is not None:
            location, message = self._request
            try:
                self._wait = location.submit(message)
            except Exception as error:  # noqa: BLE001  # raised when all are complete
                self._fail(error)

    def resume(self) -> bool:
        """Wait for the answer, and continue until the next request; return whether there is one."""
        if self._wait is None:
            return False
        try:
            self.answer = self._wait()
            self._advance(lambda: self._fetch.send(self.answer))
            self.request()
        except Exception as error:  # noqa: BLE001  # raised when all are complete
            self._fail(error)
        return self._wait is not None

    def _fail(self, error: Exception) -> None:
        self.error, self._wait = error.with_traceback(None), None

    def _advance(self, step: Callable[[], FetchRequest]) -> None:
        try:
            self._request, self._wait = step(), lambda: None
        except StopIteration as end:
            self.result, self._wait = end.value, None
