from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import TicketError
from syft_core.messages import Batch, Fetch, GetTicket, Message, Redeem, Release, Run, Store
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.workers.addresses import tickets as module
from syft_core.workers.addresses.tickets import (
    LIFETIME,
    MAX_IDS,
    MAX_TICKETS,
    Mandate,
    Ticket,
    Tickets,
    delegates_nobody,
)
from syft_core.workers.party.store import ObjectStore, Stored

ANN, EVE = Peer("laptop", "ann"), Peer("laptop", "eve")


class Clock:
    """A clock that only tests move."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def store() -> ObjectStore:
    """Objects 1 and 2 of somebody else, and 3, which bob computed for ann."""
    made = ObjectStore("alice")
    for id, giver in ((1, EVE), (2, None), (3, Peer("bob", None, (ANN,)))):
        entry = Stored(object(), "somebody")
        entry.giver = giver
        made.put(id, entry)
    return made


def mandate(*ids: int) -> Mandate:
    return Mandate(Ticket(ANN, "bob", frozenset(ids), 0.0))


# --- tickets


def test_a_ticket_says_for_whom_by_whom_and_for_what(clock: Clock) -> None:
    tickets = Tickets()

    ticket = tickets.redeem(tickets.issue(ANN, "bob", [1, 2]), "bob")

    assert ticket == Ticket(ANN, "bob", frozenset({1, 2}), clock.now + LIFETIME)


def test_a_ticket_is_used_once() -> None:
    tickets = Tickets()
    secret = tickets.issue(ANN, "bob", [1])
    tickets.redeem(secret, "bob")

    with pytest.raises(TicketError):
        tickets.redeem(secret, "bob")


def test_a_ticket_is_for_one_worker_and_lost_if_another_uses_it() -> None:
    tickets = Tickets()
    secret = tickets.issue(ANN, "bob", [1])

    for bearer in ("carol", "bob"):
        with pytest.raises(TicketError):
            tickets.redeem(secret, bearer)


def test_a_ticket_expires(clock: Clock) -> None:
    tickets = Tickets()
    in_time, late = tickets.issue(ANN, "bob", [1]), tickets.issue(ANN, "bob", [1])

    clock.now += LIFETIME
    tickets.redeem(in_time, "bob")
    clock.now += 1
    with pytest.raises(TicketError):
        tickets.redeem(late, "bob")


def test_no_two_secrets_are_equal_and_none_is_stored() -> None:
    tickets = Tickets()

    secrets = {tickets.issue(ANN, "bob", [1]) for _ in range(20)}

    assert len(secrets) == 20
    assert not any(secret in repr(vars(tickets)) for secret in secrets)


def test_unused_tickets_are_bounded_for_each_peer_until_they_expire(clock: Clock) -> None:
    tickets = Tickets()
    for _ in range(MAX_TICKETS):
        tickets.issue(ANN, "bob", [1])

    with pytest.raises(TicketError):
        tickets.issue(ANN, "bob", [1])
    tickets.issue(EVE, "bob", [1])
    clock.now += LIFETIME
    tickets.issue(ANN, "bob", [1])


def test_the_objects_of_unused_tickets_are_bounded_in_total() -> None:
    tickets = Tickets()
    tickets.issue(ANN, "bob", range(MAX_IDS - 1))

    with pytest.raises(TicketError):
        tickets.issue(ANN, "bob", [1, 2])
    tickets.issue(ANN, "bob", [1])


# --- mandates


def test_without_a_ticket_a_sender_acts_for_nobody() -> None:
    assert not delegates_nobody(ANN)


def test_a_batch_is_sent_for_the_peer_of_the_ticket_whoever_it_names() -> None:
    batch = Batch(1, (Fetch(1),), True, (EVE, Peer("carol")))

    admitted = mandate(1).admit(batch, Tickets())

    assert admitted.behalf == (ANN, Peer("carol"))
    assert admitted.commands == (Fetch(1),)
    assert batch.behalf == (EVE, Peer("carol"))


def test_a_further_ticket_adds_its_objects_and_is_not_executed(store: ObjectStore) -> None:
    tickets, holder = Tickets(), mandate(1)
    secret = tickets.issue(ANN, "bob", [2])

    admitted = holder.admit(Batch(1, (Redeem(secret), Fetch(2)), True), tickets)

    assert admitted.commands == (Fetch(2),)
    holder.check(Fetch(2), store)


def test_a_ticket_of_another_peer_adds_nothing(store: ObjectStore) -> None:
    tickets, holder = Tickets(), mandate(1)

    with pytest.raises(TicketError):
        holder.admit(Batch(1, (Redeem(tickets.issue(EVE, "bob", [2])),), True), tickets)
    with pytest.raises(TicketError):
        holder.check(Fetch(2), store)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        (Fetch(1), True),
        (Fetch(2), False),
        (Fetch(3), True),
        (Fetch(99), False),
        (Store(1, None), True),
        (Store(99, None), False),
        (Run("toy", "add", (Here(_id_at_location=1, point_to_attr=None), 5), None, 50), True),
        (Run("toy", "add", ([Here(_id_at_location=2, point_to_attr=None)],), None, 50), False),
        (Run("toy", "add", (), {"other": Here(_id_at_location=2, point_to_attr=None)}, 50), False),
        (GetTicket("carol", (1,)), False),
    ],
)
def test_a_command_uses_what_the_ticket_names_or_was_computed_with_it(
    store: ObjectStore, command: Message, allowed: bool
) -> None:
    if allowed:
        mandate(1).check(command, store)
    else:
        with pytest.raises(TicketError, match=type(command).__name__):
            mandate(1).check(command, store)


@pytest.mark.parametrize(("lender", "released"), [(None, (1, 3)), ("laptop", (1, 2, 3)), ("carol", (1, 3))])
def test_leases_of_others_are_not_released(store: ObjectStore, lender: Any, released: tuple[int, ...]) -> None:
    command = Release((1, 2, 3), lender)

    mandate(1).check(command, store)

    assert command.ids == released


def test_a_note_needs_a_ticket_that_names_all_of_it() -> None:
    assert mandate(1).names(Fetch(1))
    assert not mandate(1).names(Fetch(2))
    assert not mandate(1).names(GetTicket("carol", (1,)))
