"""Workers on the network reach each other for a client by tickets, never with their own authority."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from syft_core.exceptions import GetNotPermittedError, TicketError, WorkerNotFoundError
from syft_core.messages import Batch, Fetch, Run, Search, Store
from syft_core.network.client import WebsocketClientWorker
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here
from syft_core.workers.addresses.tickets import Mandate, Tickets
from syft_core.workers.party.store import ObjectStore

from .processes import start_worker

torch = pytest.importorskip("torch")
TORCH = "torch syft_torch.hook TorchHook"


class Three(NamedTuple):
    """The data scientist's view of two workers, each in a process of its own."""

    bob: WebsocketClientWorker
    alice: WebsocketClientWorker


@pytest.fixture(scope="module")
def three(hook: Any) -> Iterator[Three]:
    with (
        start_worker(TORCH, "bob") as (_, port_of_bob, add_peers_of_bob),
        start_worker(TORCH, "alice") as (_, port_of_alice, add_peers_of_alice),
    ):
        add_peers_of_bob({"alice": port_of_alice})
        add_peers_of_alice({"bob": port_of_bob})
        ports = port_of_bob, port_of_alice
        workers = [WebsocketClientWorker(hook, "127.0.0.1", port, token="secret of ana") for port in ports]
        yield Three(*workers)
        for worker in workers:
            worker.close()
            hook.local_worker.remove_worker_from_registry(worker.id)


def test_an_object_moves_directly_from_one_worker_to_another(three: Three) -> None:
    x = torch.arange(100_000).send(three.bob)
    moved_before = three.bob.bytes_moved + three.alice.bytes_moved

    y = x.move(three.alice)

    assert three.bob.bytes_moved + three.alice.bytes_moved - moved_before < 10_000
    assert torch.equal((y + 1).get(), torch.arange(100_000) + 1)


def test_a_worker_keeps_a_pointer_to_an_object_of_another(three: Three) -> None:
    x = torch.tensor([1.0, 2.0]).send(three.alice)

    there = x.send(three.bob)
    doubled = there + there

    assert doubled.get().get().tolist() == [2.0, 4.0]


def test_a_worker_sends_an_object_on_and_fetches_it_back(three: Three) -> None:
    x = torch.tensor([1.0, 2.0]).send(three.bob)

    x.remote_send(three.alice)
    x.remote_get()

    assert x.get().tolist() == [1.0, 2.0]


def test_a_split_network_trains_across_three_processes(three: Three) -> None:
    torch.manual_seed(0)
    first, second = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
    whole = torch.nn.Sequential(first.copy(), torch.nn.Tanh(), second.copy())
    data, target = torch.rand(8, 4), torch.rand(8, 1)
    at_alice, at_bob = data.send(three.alice), target.send(three.bob)
    first.send(three.alice)
    second.send(three.bob)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (first, second)]
    reference = torch.optim.SGD(whole.parameters(), lr=0.1)
    for _ in range(3):
        for optimizer in (*optimizers, reference):
            optimizer.zero_grad()
        hidden = torch.tanh(first(at_alice)).move(three.bob, requires_grad=True)
        loss = ((second(hidden) - at_bob) ** 2).mean()
        loss.backward()
        ((whole(data) - target) ** 2).mean().backward()
        for optimizer in (*optimizers, reference):
            optimizer.step()

    parameters = [*first.get().parameters(), *second.get().parameters()]

    assert [p.tolist() for p in parameters] == [p.tolist() for p in whole.parameters()]


def test_an_object_that_its_client_may_not_have_does_not_move(three: Three, hook: Any) -> None:
    (secret,) = hook.local_worker.request_search("#secret", three.bob)

    with pytest.raises(GetNotPermittedError):
        (secret + 1).move(three.alice)


def test_a_worker_that_the_owner_did_not_name_is_not_reached(three: Three, hook: Any) -> None:
    with start_worker(TORCH, "carol") as (_, port, _):
        carol = WebsocketClientWorker(hook, "127.0.0.1", port, token="secret of ana")
        with pytest.raises(WorkerNotFoundError, match="cannot find worker 'carol'"):
            torch.ones(2).send(three.bob).move(carol)
        carol.close()
        hook.local_worker.remove_worker_from_registry("carol")


# --- the tickets themselves

ANA, EVE = Peer("me@ana", "ana"), Peer("me@eve", "eve")


def test_a_ticket_can_be_used_once() -> None:
    tickets = Tickets()
    secret = tickets.issue(ANA, "bob", (1,))
    tickets.redeem(secret, "bob")

    with pytest.raises(TicketError, match="cannot accept the ticket of worker 'bob': it was used before, has expired"):
        tickets.redeem(secret, "bob")


def test_a_ticket_is_valid_for_one_worker() -> None:
    tickets = Tickets()
    secret = tickets.issue(ANA, "bob", (1,))

    with pytest.raises(TicketError):
        tickets.redeem(secret, "mallory")
    with pytest.raises(TicketError):
        tickets.redeem(secret, "bob")


def test_a_ticket_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_core.workers.addresses.tickets.LIFETIME", -1)
    tickets = Tickets()

    with pytest.raises(TicketError):
        tickets.redeem(tickets.issue(ANA, "bob", (1,)), "bob")


def test_unused_tickets_are_bounded() -> None:
    tickets = Tickets()
    for _ in range(256):
        tickets.issue(ANA, "bob", (1,))

    with pytest.raises(TicketError, match="it has 256 unused tickets"):
        tickets.issue(ANA, "bob", (1,))
    tickets.issue(EVE, "bob", (1,))


@pytest.mark.parametrize(
    "command",
    [Fetch(2), Store(2, torch.ones(1)), Run("torch", "torch.Tensor.add", (), {}, 5), Search(("#x",))],
    ids=lambda command: type(command).__name__,
)
def test_a_ticket_is_valid_for_named_objects(command: Any) -> None:
    if type(command) is Run:
        command.args = (Here(_id_at_location=2, point_to_attr=None), 1)
    tickets = Tickets()
    mandate = Mandate(tickets.redeem(tickets.issue(ANA, "bob", (1,)), "bob"))

    with pytest.raises(TicketError, match="its ticket does not cover it"):
        mandate.check(command, ObjectStore("alice"))


def test_a_worker_cannot_claim_to_act_for_another_peer() -> None:
    tickets = Tickets()
    mandate = Mandate(tickets.redeem(tickets.issue(ANA, "bob", (1,)), "bob"))

    admitted = mandate.admit(Batch(1, (Fetch(1),), True, (EVE,)), tickets)

    assert admitted.behalf == (ANA,)
