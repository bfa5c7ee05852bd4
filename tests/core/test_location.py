from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from syft_core.exceptions import WorkerNotPicklableError
from syft_core.location import Location, raise_error
from syft_core.messages import Fetch, Message, Store
from syft_core.workers.party.base import BaseWorker


class Recording(Location):
    """The address of a worker that answers with the messages it gets, or fails from the ``fails_at``-th on."""

    def __init__(self, client: Any, id: Any, fails_at: int = 1000) -> None:
        super().__init__(client, id)
        self.told: list[Any] = []
        self.fails_at = fails_at

    def ask(self, message: Message) -> Any:
        self.tell(message)
        return message

    def tell(self, message: Message) -> None:
        if len(self.told) >= self.fails_at:
            raise ConnectionError("the worker is gone")
        self.told.append(message)

    def flush(self) -> None: ...

    def drop(self, id: Any, lender: Any = None) -> None: ...

    def describe(self, ids: Sequence[Any], attr: str | None = None) -> list[Any]:
        return [None if id == "without" else "form" for id in ids]


@pytest.fixture
def me() -> BaseWorker:
    return BaseWorker(id="me")


def test_an_answer_that_is_there_is_returned_when_it_is_waited_for(me: BaseWorker) -> None:
    location = Recording(me, "bob")

    wait = location.submit(Fetch(1))

    assert location.told == [Fetch(1)]
    assert wait() == Fetch(1)


def test_the_error_of_a_request_is_raised_when_its_answer_is_waited_for(me: BaseWorker) -> None:
    wait = Recording(me, "bob", fails_at=0).submit(Fetch(1))

    with pytest.raises(ConnectionError, match="the worker is gone"):
        wait()


def test_objects_that_are_given_away_are_removed_as_they_are_sent(me: BaseWorker) -> None:
    location = Recording(me, "bob")
    objects = ["a", "b"]

    location.give((7, 8), objects)

    assert objects == []
    assert location.told == [Store(7, "a", given=True), Store(8, "b", given=True)]


def test_objects_that_were_not_sent_are_left(me: BaseWorker) -> None:
    location = Recording(me, "bob", fails_at=1)
    objects = ["a", "b", "c"]

    with pytest.raises(ConnectionError):
        location.give((7, 8, 9), objects)

    assert objects == ["b", "c"]
    assert [message.id for message in location.told] == [7]


def test_an_object_has_a_gradient_if_its_attribute_has_a_form(me: BaseWorker) -> None:
    location = Recording(me, "bob")

    assert location.has_gradient("with", "grad")
    assert not location.has_gradient("without", "grad")


def test_what_is_known_is_forgotten_separately(me: BaseWorker) -> None:
    location = Recording(me, "bob")
    histories = location.histories

    location.forget_forms()
    assert (location.form_epoch, location.gradient_epoch) == (1, 0)
    location.forget_gradients()
    assert (location.form_epoch, location.gradient_epoch) == (1, 1)
    location.forget_histories()
    assert not histories.are_complete
    assert location.histories.are_complete


def test_locations_of_one_worker_are_equal_for_one_client(me: BaseWorker) -> None:
    ann = BaseWorker(id="ann")

    assert Recording(me, "bob") == Recording(me, "bob")
    assert hash(Recording(me, "bob")) == hash(Recording(me, "bob"))
    assert Recording(me, "bob") != Recording(me, "alice")
    assert Recording(me, "bob") != Recording(ann, "bob")
    assert Recording(me, "bob") != "bob"


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_location_belongs_to_its_process(me: BaseWorker, act: Any) -> None:
    with pytest.raises(WorkerNotPicklableError, match="cannot pickle or copy the worker 'bob'"):
        act(Recording(me, "bob"))


def test_a_location_shows_its_worker(me: BaseWorker) -> None:
    location = Recording(me, "bob")

    assert repr(location) == "<Recording of 'bob'>"
    assert location.face is location
    assert location.client_id == "me"


def test_an_error_that_was_raised_keeps_no_local_variables_alive() -> None:
    class Large: ...

    def fail() -> weakref.ref[Large]:
        large = Large()
        with contextlib.suppress(ValueError):
            raise_error(ValueError("mine"))
        return weakref.ref(large)

    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()
