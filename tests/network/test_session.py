"""Exactly-once delivery, without a network: two ends, and connections that lose what is sent on them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network.connection import Envelope, Purpose
from syft_core.network.session import Session


class Wire:
    """A connection that keeps what is sent on it."""

    def __init__(self) -> None:
        self.sent: list[tuple[Envelope, Sequence[Any]]] = []

    def send(self, envelope: Envelope, frames: Sequence[Any]) -> None:
        self.sent.append((envelope, frames))


def test_messages_are_numbered_and_acknowledge_what_has_arrived() -> None:
    session = Session()
    assert session.accept(Envelope(Purpose.BATCH, 1, 0))

    assert session.keep([b"a"]) == Envelope(Purpose.BATCH, 1, 1)
    assert session.keep([b"b"]) == Envelope(Purpose.BATCH, 2, 1)


def test_a_message_is_kept_until_the_other_end_has_it() -> None:
    session = Session()
    for frames in ([b"abc"], [b"de", b"f"], [b"g"]):
        session.keep(frames)
    assert (session.unacknowledged, session.unacknowledged_bytes, session.acknowledged) == (3, 7, 0)

    session.acknowledge(2)
    assert (session.unacknowledged, session.unacknowledged_bytes, session.acknowledged) == (1, 1, 2)

    session.acknowledge(1)  # An old message may arrive late.
    assert session.unacknowledged == 1


def test_a_message_that_arrives_again_is_not_new() -> None:
    session = Session()

    assert session.accept(Envelope(Purpose.BATCH, 1, 0))
    assert not session.accept(Envelope(Purpose.BATCH, 1, 0))
    assert session.received == 1


def test_a_gap_is_refused() -> None:
    session = Session()
    session.accept(Envelope(Purpose.BATCH, 1, 0))

    with pytest.raises(ConnectionLostError, match="number 2 is missing"):
        session.accept(Envelope(Purpose.BATCH, 3, 0))
    assert session.received == 1


def test_a_message_that_was_never_sent_cannot_be_acknowledged() -> None:
    session = Session()
    session.keep([b"a"])

    for refuse in (
        lambda: session.acknowledge(2),
        lambda: session.accept(Envelope(Purpose.BATCH, 1, 2)),
        lambda: session.resume(Wire(), 2),  # type: ignore[arg-type]  # only its `send` is used
    ):
        with pytest.raises(ConnectionLostError, match="it acknowledges a message that was never sent"):
            refuse()
    assert session.unacknowledged == 1


def test_a_new_connection_gets_what_has_not_arrived_in_order() -> None:
    session, wire = Session(), Wire()
    for frames in ([b"a"], [b"b"], [b"c"]):
        session.keep(frames)
    session.accept(Envelope(Purpose.BATCH, 1, 0))

    session.resume(wire, 1)  # type: ignore[arg-type]  # only its `send` is used

    assert wire.sent == [(Envelope(Purpose.BATCH, 2, 1), [b"b"]), (Envelope(Purpose.BATCH, 3, 1), [b"c"])]


@pytest.mark.parametrize("seed", range(20))
def test_every_message_arrives_once_and_in_order_however_often_connections_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    one, other, arrived = Session(), Session(), []
    flight: list[tuple[Envelope, Sequence[Any]]] = []
    for number in range(50):
        frames = [str(number).encode()]
        flight.append((one.keep(frames), frames))
        for envelope, received in flight[: chance.randrange(4)]:
            flight = flight[1:]
            if other.accept(envelope):
                arrived.append(int(received[0]))
        if chance.random() < 0.2:
            wire = Wire()
            one.resume(wire, other.received)  # type: ignore[arg-type]  # only its `send` is used
            flight = wire.sent
    for envelope, received in flight:
        if other.accept(envelope):
            arrived.append(int(received[0]))

    assert arrived == list(range(50))
