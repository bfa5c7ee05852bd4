from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network import admission
from syft_core.network.admission import Admission
from syft_core.network.identity import Identity
from syft_core.network.session import LOST, RESUMED, STARTED
from syft_core.workers.party.virtual import VirtualWorker

SECRET = "s" * 32
USERS = {"of ann": Identity("ann"), "of the owner": Identity("owner", True)}


class Clients:
    """The admission of a worker, with the tokens of two users."""

    def __init__(self, hook: Any) -> None:
        self.worker = VirtualWorker(hook, id="far", auto_add=False)
        self.revoked: set[str] = set()
        self.admission = Admission(
            self.worker,
            lambda credentials: USERS.get(credentials.token or ""),
            lambda who: who.user not in self.revoked,
        )

    def open(self, sock: Any, token: str = "of ann", name: str = "laptop", begun: str | None = None) -> Any:
        """Return what a client with this token gets: a session and its state."""
        admitted = self.admission.admit("bearer", token, name, f"{name}/{SECRET}", None)
        assert admitted is not None
        return self.admission.find_session(*admitted, SECRET, begun, sock)


@pytest.fixture
def clients(hook: Any) -> Clients:
    return Clients(hook)


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


def test_a_name_belongs_to_one_token_until_it_is_revoked(clients: Clients, sock: Any) -> None:
    client, state = clients.open(sock)
    assert (client.peer.id, client.peer.user, state) == ("laptop@ann", "ann", STARTED)
    other = Identity("ann", name="another")

    assert clients.admission.refuse_name("laptop", "t" * 32, client.peer, None, other) == (
        "a client with another token has this name"
    )
    clients.revoked.add("ann")
    assert clients.admission.refuse_name("laptop", "t" * 32, client.peer, None, other) == ""


@pytest.mark.parametrize("name", ["", "a@b", "far", "line\nbreak", "x" * 129])
def test_a_name_that_could_be_mistaken_is_refused(clients: Clients, name: str) -> None:
    peer, mandate, identity = clients.admission.admit("bearer", "of ann", name, f"{name}/{SECRET}", None) or ((),) * 3

    assert "not allowed" in clients.admission.refuse_name(name, SECRET, peer, mandate, identity)  # type: ignore[arg-type]


def test_unknown_credentials_and_tickets_are_not_admitted(clients: Clients) -> None:
    assert clients.admission.admit("bearer", "guessed", "laptop", "key", None) is None
    assert clients.admission.admit("ticket", "guessed", "laptop", "key", None) is None


def test_a_session_continues_under_its_name_and_is_lost_under_any_other(clients: Clients, sock: Any) -> None:
    first, _ = clients.open(sock)

    again, state = clients.open(sock, begun=first.begun)
    lost, why = clients.open(sock, begun="of an earlier process")

    assert (again, state) == (first, RESUMED)
    assert (lost, why) == (None, LOST)
    assert clients.admission.sessions == [first]


def test_only_the_token_of_an_owner_has_their_rights_and_only_while_it_is_valid(clients: Clients, sock: Any) -> None:
    ann, _ = clients.open(sock)
    owner, _ = clients.open(sock, "of the owner", "desk")

    assert not clients.worker.is_owner(ann.peer)
    assert clients.worker.is_owner(owner.peer)
    assert not clients.worker.is_owner(owner.peer._replace(behalf=(ann.peer,)))
    clients.revoked.add("owner")
    assert not clients.worker.is_owner(owner.peer)


def test_what_is_kept_for_a_user_is_limited_over_all_of_their_sessions(
    clients: Clients, sock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_HELD", 3_000_000)
    one, _ = clients.open(sock)
    two, _ = clients.open(sock, name="desktop")
    for client in (one, two):
        client.session.keep([bytes(2_000_000)])

    with pytest.raises(ConnectionLostError, match="bytes of others wait for the client, and the limit is 3000000"):
        clients.admission.require_room(two)
    clients.admission.end_session(f"{one.peer.id}/{SECRET}", one)
    clients.admission.require_room(two)
