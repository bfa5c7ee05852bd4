"""A session survives its connections: nothing is executed twice, and nothing is lost."""

from __future__ import annotations

import dataclasses
import random
import secrets
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import ConnectionLostError, GetNotPermittedError
from syft_core.messages import Fetch
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.server import Server
from syft_core.network.session import Session
from syft_core.workers.party.virtual import VirtualWorker
from tests.waiting import wait_until

from .processes import authenticate

torch = pytest.importorskip("torch")


def _train(model: Any, data: Any, target: Any) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((model(data) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss


@pytest.mark.parametrize("seed", range(4))
def test_cut_connections_do_not_change_what_training_gives(hook: Any, connect: Any, proxy: Any, seed: int) -> None:
    torch.manual_seed(seed)
    local = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    remote, data, target = local.copy(), torch.rand(16, 4), torch.rand(16, 1)
    expected = _train(local, data, target)
    cuts = random.Random(seed)
    proxy.budgets.extend(cuts.randrange(500, 8000) for _ in range(12))
    far = connect(port=proxy.port)

    loss = _train(remote.send(far), data.send(far), target.send(far))

    assert loss.get().tolist() == expected.tolist()
    remote.get()
    assert [p.tolist() for p in remote.parameters()] == [p.tolist() for p in local.parameters()]
    assert proxy.connections > 8


@pytest.mark.slow
def test_every_command_is_executed_once_however_often_the_connection_is_cut(connect: Any, proxy: Any) -> None:
    cuts = random.Random(0)
    proxy.budgets.extend(cuts.randrange(300, 3000) for _ in range(60))
    far = connect(port=proxy.port)
    total = torch.zeros(1).send(far)

    for _ in range(500):
        total += 1
        if cuts.random() < 0.05:
            far.flush()

    assert total.get().item() == 500
    assert proxy.connections > 5


def test_a_large_object_arrives_whole_after_a_cut(connect: Any, proxy: Any) -> None:
    far = connect(port=proxy.port)
    proxy.cut()
    proxy.budgets.extend([200_000, 1_500_000])
    sent = torch.arange(1_000_000)

    pointer = sent.send(far)

    assert torch.equal(pointer.get(), sent)


def test_objects_that_are_fetched_together_arrive_after_a_cut(connect: Any, proxy: Any) -> None:
    far = connect(port=proxy.port)
    pointers = [torch.full((50_000,), float(n)).send(far) for n in range(8)]
    far.flush()
    proxy.cut()
    proxy.budgets.extend([300_000, 500_000])

    fetched = sy.get_all(*pointers)

    assert [value[-1].item() for value in fetched] == list(range(8))
    assert proxy.connections > 2


def test_a_command_that_is_refused_because_the_connection_is_closed_is_not_executed_later(connect: Any) -> None:
    far = connect()
    total, x = torch.zeros(1).send(far), torch.ones(1).send(far)
    far.flush()
    far.close()

    for use in (lambda: total.add_(1), x.get):
        with pytest.raises(ConnectionLostError, match="cannot use worker 'far': the connection was closed; call `conn"):
            use()

    far.connect()
    assert [total.get().item(), x.get().item()] == [0.0, 1.0]


def test_if_a_worker_cannot_be_reached_what_others_sent_is_not_lost(hook: Any, connect: Any) -> None:
    far = connect()
    near = VirtualWorker(hook, id="near", serialize=False)
    x, y, z = torch.ones(1).send(near), torch.ones(1).send(far), torch.zeros(1).send(near)
    far.close()

    with pytest.raises(ConnectionLostError, match="the connection was closed"):
        sy.get_all(x, y, z)

    assert [x.get().item(), z.get().item()] == [1.0, 0.0]
    far.connect()
    assert y.get().item() == 1.0


@pytest.mark.parametrize("is_executed", [False, True])
def test_an_object_whose_get_timed_out_is_not_lost(
    connect: Any, server: Any, proxy: Any, far: VirtualWorker, is_executed: bool
) -> None:
    def cut(verb: str, *_args: object) -> None:
        if verb == "read":
            proxy.close()

    location = connect(port=proxy.port, timeout=1)
    x, y, z = [torch.full((2,), value).send(location) for value in (1.0, 2.0, 3.0)]
    location.flush()
    if is_executed:
        far.policy = cut
    else:
        proxy.close()
    for use in (x.get, lambda: sy.get_all(x, y)):
        with pytest.raises(ConnectionLostError, match="cannot reach"):
            use()

    far.policy = "unless_private"
    location._address = dataclasses.replace(location._address, port=server.port)  # It can be reached again.
    location.timeout = 60

    assert (z + 1).get().tolist() == [4.0, 4.0]  # A call that continues the session, and gets all earlier replies.
    assert (x.get().tolist(), y.get().tolist()) == ([1.0, 1.0], [2.0, 2.0])
    location.flush()
    assert far.object_store.get(x.id_at_location) is None
    assert [entry.id for entry in far.ledger].count(x.id_at_location) == 1


def test_objects_whose_fetch_is_interrupted_are_not_lost(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    location = connect()
    x, y = torch.ones(2).send(location), torch.zeros(2).send(location)
    location.flush()
    monkeypatch.setattr(location._connection, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sy.get_all(x, y)

    assert (x.get().tolist(), y.get().tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_an_interrupted_fetch_of_a_published_object_leaves_no_old_copy_behind(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_args: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    location = connect()
    x = torch.ones(2).send(location).publish()
    location.flush()
    monkeypatch.setattr(location._connection, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        x.get()
    x.add_(1)

    assert x.get().tolist() == [2.0, 2.0]
    assert not location._unclaimed


def test_the_error_of_an_interrupted_fetch_is_raised_by_the_next_call(
    connect: Any, far: VirtualWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_args: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    location = connect()
    x = torch.ones(2).send(location)
    location.flush()
    far.policy = "nothing"
    monkeypatch.setattr(location._connection, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        x.get()

    with pytest.raises(GetNotPermittedError):
        location.flush()
    far.policy = "unless_private"
    assert x.get().tolist() == [1.0, 1.0]


def test_requests_of_a_lost_session_raise_instead_of_waiting(hook: Any, far: VirtualWorker, server: Server) -> None:
    location = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana", timeout=10)
    x, y = torch.ones(1).send(location), torch.ones(1).send(location)
    location.flush()
    answers = [location.submit(Fetch(p.id_at_location)) for p in (x, y)]
    location.disconnect()
    server.admission._by_key.clear()

    for answer in answers:
        with pytest.raises(ConnectionLostError, match="cannot continue the session on worker 'far'"):
            answer()

    location.close()


def test_what_a_tensor_held_when_it_was_sent_arrives_after_a_cut(connect: Any, proxy: Any) -> None:
    far = connect(port=proxy.port)
    far.flush()
    proxy.cut()
    tensor = torch.ones(10_000)

    pointer = tensor.send(far)
    tensor += 1

    assert pointer.get().tolist() == [1.0] * 10_000


def test_the_objects_of_a_client_that_is_gone_are_removed(hook: Any, far: Any) -> None:
    server = Server(far, "127.0.0.1", 0, authenticate, heartbeat=0.05, session_timeout=1)
    server.start()
    before = far.objects_count
    location = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana")
    kept = torch.ones(2).send(location).tag("#kept").publish()
    pointer = torch.ones(2).send(location)
    location.flush()
    assert far.objects_count == before + 2

    location.close()
    wait_until(lambda: not server.sessions)

    assert far.objects_count == before + 1
    server.stop(1)
    del kept, pointer


def test_a_session_that_cannot_be_ended_does_not_keep_others(
    hook: Any, far: VirtualWorker, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_session_timeout", 0.3)
    forget = far.forget_client

    def fail_once(peer: Any) -> None:
        monkeypatch.setattr(far, "forget_client", forget)
        raise RuntimeError

    monkeypatch.setattr(far, "forget_client", fail_once)
    for name in ("first", "second"):
        client = VirtualWorker(hook, id=name, auto_add=False)
        location = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana", client=client)
        location.close()

    wait_until(lambda: not server.sessions)


def test_a_session_belongs_to_its_user(hook: Any, connect: Any, server: Any) -> None:
    ana, eve = connect("ana"), connect("eve", client=VirtualWorker(hook, id="eve"))
    x = torch.ones(2).send(ana)
    ana.flush()
    eve._secret = ana._secret
    eve.close()
    eve.connect()

    assert len(server.sessions) == 3
    assert x.get().tolist() == [1.0, 1.0]


def test_a_session_that_ends_leaves_the_objects_of_another_session_of_the_client(hook: Any, far: Any) -> None:
    server = Server(far, "127.0.0.1", 0, authenticate, heartbeat=0.05, session_timeout=1)
    server.start()
    first = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana")
    first.close()
    hook.local_worker.remove_worker_from_registry("far")
    second = WebsocketClientWorker(hook, "127.0.0.1", server.port, token="secret of ana")
    x = torch.ones(2).send(second)
    second.flush()
    wait_until(lambda: len(server.sessions) == 1)

    assert x.get().tolist() == [1.0, 1.0]
    second.close()
    server.stop(1)


def test_idle_sessions_of_a_user_are_bounded(monkeypatch: pytest.MonkeyPatch, connect: Any, server: Any) -> None:
    monkeypatch.setattr("syft_core.network.admission.MAX_IDLE_SESSIONS", 3)
    location = connect()
    for _ in range(10):
        location.close()
        location._secret = secrets.token_hex(16)
        location._session = Session()
        location.connect()

    assert len(server.sessions) <= 5
