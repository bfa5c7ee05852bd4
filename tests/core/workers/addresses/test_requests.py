from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from syft_core.location import Location
from syft_core.messages import Fetch, Message
from syft_core.peer import Peer, behalf
from syft_core.workers.addresses.requests import Ask, Elsewhere, Process, drive
from syft_core.workers.party.base import BaseWorker

ANN = Peer("laptop", "ann")


class Echo(Location):
    """The address of a worker that answers with the message and with whom it was sent for."""

    def ask(self, message: Message) -> Any:
        if message == Fetch(0):
            raise LookupError("there is no object 0")
        return message, behalf.get()

    def tell(self, message: Message) -> None: ...

    def flush(self) -> None: ...

    def drop(self, id: Any, lender: Any = None) -> None: ...

    def describe(self, ids: Sequence[Any], attr: str | None = None) -> list[Any]:
        return []


@pytest.fixture
def echo() -> Echo:
    return Echo(BaseWorker(id="me"), "bob")


def test_a_process_is_resumed_with_the_answer_to_each_request(echo: Echo) -> None:
    def process() -> Process:
        first = yield Ask(echo, Fetch(1))
        second = yield Elsewhere(lambda: 7)
        return first, second

    assert drive(process()) == ((Fetch(1), ()), 7)


def test_a_process_without_requests_returns_at_once() -> None:
    def process() -> Process:
        return 3
        yield

    assert drive(process()) == 3


def test_a_request_is_made_on_behalf_of_others_and_only_it(echo: Echo) -> None:
    assert Ask(echo, Fetch(1), (ANN,)).perform() == (Fetch(1), (ANN,))
    assert Elsewhere(behalf.get, (ANN,)).perform() == (ANN,)
    assert behalf.get() == ()


def test_a_process_may_handle_the_error_of_a_request(echo: Echo) -> None:
    def process() -> Process:
        try:
            yield Ask(echo, Fetch(0))
        except LookupError as error:
            return str(error)

    assert drive(process()) == "there is no object 0"


def test_an_error_that_a_process_does_not_handle_is_raised(echo: Echo) -> None:
    closed = []

    def process() -> Process:
        try:
            yield Ask(echo, Fetch(0))
        finally:
            closed.append(True)

    with pytest.raises(LookupError, match="there is no object 0"):
        drive(process())
    assert closed == [True]


def test_a_process_that_has_begun_continues_with_its_first_request(echo: Echo) -> None:
    def process() -> Process:
        return (yield Ask(echo, Fetch(1)))

    begun = process()
    request = next(begun)

    assert drive(begun, request) == (Fetch(1), ())
