"""Parties in processes of their own compute on shares, and talk to each other without the client."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, ObjectNotFoundError  # noqa: E402
from syft_core.network.connection import MAX_FRAME  # noqa: E402
from syft_core.plugins.manager import load_backend  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc.checking import checking  # noqa: E402
from syft_mpc.comparison import relu  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.group import find_group  # noqa: E402
from syft_mpc.kernels import size_of  # noqa: E402
from syft_mpc.payloads import PIECE  # noqa: E402
from syft_mpc.protocol import Spec, rehearse  # noqa: E402
from syft_mpc.spdz import spdz_mul  # noqa: E402
from syft_torch.differential_privacy.votes import REFUSED, GNMax  # noqa: E402
from syft_worker.errors import QuotaExceededError  # noqa: E402
from tests.waiting import wait_for_end, wait_until  # noqa: E402

from ..network.proxy import Proxy  # noqa: E402
from ..network.supervised import supervise  # noqa: E402
from .conftest import NUMPY, Parties  # noqa: E402


@pytest.fixture(scope="module")
def workers(parties: Parties) -> dict[str, Any]:
    return {name: parties.connect(name) for name in ("bob", "alice", "dora", "carol")}


def test_results_of_workers_on_the_network_are_not_checked(workers: dict[str, Any]) -> None:
    x = torch.tensor([1.5]).fix_precision()
    x = x.share(workers["bob"], workers["alice"], crypto_provider=workers["carol"])

    with checking(), pytest.raises(ProtocolError, match="cannot check results: worker 'bob' is not a virtual worker"):
        x + x
    assert (x + x).get().float_precision().tolist() == [3.0]


def test_an_idle_client_does_not_hold_up_the_parties(parties: Parties, workers: dict[str, Any]) -> None:
    observer = VirtualWorker(parties.hook, id="observer", auto_add=False)
    bob = parties.connect("bob", client=observer)
    y = torch.arange(5).share(workers["bob"], workers["alice"], crypto_provider=workers["carol"]) * 3
    y = torch.relu(y * y)

    # The client sends nothing any more; the result appears all the same.
    id = y.child.child["bob"].id_at_location

    def find_form() -> Any:
        with contextlib.suppress(ObjectNotFoundError):
            return bob.describe([id])[0]

    assert wait_until(find_form, pause=0.05).shape == (5,)


def test_workers_in_processes_of_their_own_vote(workers: dict[str, Any]) -> None:
    method = GNMax(3, sigma=1e-3, threshold=5, threshold_sigma=1e-3)
    table = torch.tensor([[0, 1, 2, label % 3] for label in range(9)])
    labels = [table[place::3].send(workers[name]) for place, name in enumerate(("bob", "alice", "dora"))]

    assert method.vote(labels, workers["carol"]).get().tolist() == [0, 1, 2, REFUSED]


def test_numpy_clients_compute_with_numpy_workers() -> None:
    np = pytest.importorskip("numpy")
    with load_backend("numpy")(np) as hook:
        parties = Parties(hook, NUMPY)
        try:
            parties.start("nora", "nick", "nils")
            nora, nick, nils = (parties.connect(name) for name in ("nora", "nick", "nils"))
            x, y = (hook.array(v).share(nora, nick, crypto_provider=nils) for v in ([1, -2, 3], [4, 5, -6]))

            assert (x * y).get().tolist() == [4, -10, -18]
            assert (x < y).get().tolist() == [1, 1, 0]
        finally:
            parties.close()


# --- what the client sees


def test_the_client_receives_no_masked_values(parties: Parties, hook: Any) -> None:
    names = ("bob", "alice", "carol")
    proxies = {name: Proxy(parties.ports[name]) for name in names}
    client = VirtualWorker(hook, id="watched", auto_add=False)
    bob, alice, carol = (parties.connect(name, client=client, port=proxies[name].port) for name in names)
    group = find_group(client, [bob, alice], carol, hook.attributes)
    shares = {location.id: client.send(torch.arange(50_000), location) for location in (bob, alice)}
    for location in (bob, alice, carol):
        location.flush()
    for proxy in proxies.values():
        proxy.seen = (bytearray(), bytearray())

    group.run(spdz_mul, shares, shares)
    for location in (bob, alice, carol):
        location.flush()

    # The parties have opened 800,000 bytes of masked values.
    assert all(len(seen) < 4_000 for proxy in proxies.values() for seen in proxy.seen or ())
    for proxy in proxies.values():
        proxy.close()


def find_free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


# --- failures


@pytest.mark.slow
def test_a_party_that_is_killed_ends_the_protocol_with_an_error_that_names_it(
    parties: Parties, workers: dict[str, Any]
) -> None:
    parties.start("erik")
    erik = parties.connect("erik", timeout=2)
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    x = torch.arange(100_000).share(bob, erik, crypto_provider=carol)
    y = x * x
    (y * x).get()
    for _ in range(50):
        y = torch.relu(y * x)

    os.kill(parties.processes["erik"].pid, signal.SIGKILL)
    with pytest.raises(ProtocolError, match="party 'erik' cannot be reached"):
        bob.flush()

    z = torch.arange(5).share(bob, alice, crypto_provider=carol)
    assert torch.equal((z * z).get(), torch.arange(5) ** 2)
    assert torch.equal((torch.ones(2).send(bob) + 1).get(), torch.ones(2) + 1)


@pytest.mark.slow
def test_a_new_worker_takes_the_place_of_one_that_is_gone(parties: Parties, workers: dict[str, Any]) -> None:
    bob, carol = workers["bob"], workers["carol"]
    parties.start("fred")
    fred = parties.connect("fred", timeout=2)
    x = torch.arange(4).share(bob, fred, crypto_provider=carol)
    assert torch.equal((x * x).get(), torch.arange(4) ** 2)
    os.kill(parties.processes["fred"].pid, signal.SIGKILL)
    parties.processes["fred"].join(30)
    parties.start("gina")

    gina = parties.connect("gina")
    y = torch.arange(4).share(bob, gina, crypto_provider=carol)

    assert torch.equal((y * y).get(), torch.arange(4) ** 2)


@pytest.mark.slow
def test_a_link_between_parties_that_breaks_is_made_again(parties: Parties, hook: Any) -> None:
    parties.start("hans")
    proxy = Proxy(parties.ports["hans"])
    port, parties.ports["hans"] = parties.ports["hans"], proxy.port
    parties.start("ines")
    parties.ports["hans"] = port
    hans, ines, carol = (parties.connect(name) for name in ("hans", "ines", "carol"))
    x = torch.tensor([1, -1, 1]).share(ines, hans, crypto_provider=carol)
    y = x
    for number in range(60):
        y = y * x
        if number in (10, 30):
            y.refresh()
            proxy.cut()

    assert torch.equal(y.get(), torch.tensor([1, -1, 1]))
    assert proxy.connections > 1
    proxy.close()


def test_the_cause_of_a_failure_at_one_party_is_raised(parties: Parties, workers: dict[str, Any]) -> None:
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    x, y = (torch.arange(4).share(bob, alice, crypto_provider=carol) for _ in range(2))
    lost = x.child.child["alice"]
    lost.drop("for the test")
    lost.gone = None
    alice.flush()

    z = x * y
    with pytest.raises(Exception, match="cannot find object"):
        z.get()

    assert torch.equal((y * y).get(), torch.arange(4) ** 2)


def test_the_provider_deals_more_than_one_message_may_hold(workers: dict[str, Any]) -> None:
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    plain = torch.arange(3 << 19) - (1 << 19)
    x = plain.share(bob, alice, crypto_provider=carol)
    needs = rehearse(bob.client.hook.attributes.kernels, "relu", (Spec(tuple(x.shape)),), (), 2).demands
    assert sum(size_of(*spec) for demand in needs for spec in demand.forms[1]) > MAX_FRAME

    assert torch.equal(torch.relu(x).get(), torch.relu(plain))


def test_parties_send_each_other_large_values_in_pieces(parties: Parties, workers: dict[str, Any], hook: Any) -> None:
    x = torch.arange(1 << 20).share(workers["bob"], workers["alice"], crypto_provider=workers["carol"])
    assert x.numel() * 8 > PIECE

    assert torch.equal((x * x).get(), torch.arange(1 << 20) ** 2)


def test_two_clients_compute_at_the_same_time(parties: Parties, hook: Any) -> None:
    found: dict[str, Any] = {}

    def compute(user: str) -> None:
        client = VirtualWorker(hook, id=f"client of {user}", auto_add=False)
        bob, alice, carol = (parties.connect(name, user, client) for name in ("bob", "alice", "carol"))
        group = find_group(client, [bob, alice], carol, hook.attributes)
        values = {bob.id: torch.full((50,), 3), alice.id: torch.full((50,), 4)}
        shares = {id: client.send(values[id], id) for id in values}
        for _ in range(20):
            (result,) = group.run(spdz_mul, shares, shares)
        found[user] = sum(pointer.get() for pointer in result.values())

    threads = [threading.Thread(target=compute, args=(user,)) for user in ("ben", "cleo")]
    for thread in threads:
        thread.start()
    wait_for_end(*threads)

    assert all(torch.equal(result, torch.full((50,), 49)) for result in found.values())
    assert len(found) == 2


def test_parties_in_this_process_and_elsewhere_cannot_share(workers: dict[str, Any], hook: Any) -> None:
    near = VirtualWorker(hook, id="near")
    with pytest.raises(ProtocolError, match="cannot share among workers of this process and others"):
        torch.arange(3).share(workers["bob"], near, crypto_provider=workers["carol"])
    hook.local_worker.remove_worker_from_registry("near")


@pytest.mark.slow
def test_served_workers_whose_owners_trust_each_other_compute_on_private_data(hook: Any, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "ages.npy", np.array([30, 40, 50]))
    names = ("bert", "anna", "cora")
    ports = dict(zip(names, find_free_ports(3), strict=True))
    with ExitStack() as stack:
        served = {}
        for name in names:
            others = [other for other in names if other != name]
            lines = [f'id = "{name}"', f"trusted = {others}", 'data = ["ages.npy#ages:private=boss"]']
            lines += [f'[peers.{other}]\nurl = "ws://127.0.0.1:{ports[other]}"' for other in others]
            lines += ["[users.default]", "bytes = 1_000_000"]
            (tmp_path / f"{name}.toml").write_text("\n".join(lines))
            served[name] = stack.enter_context(
                supervise(str(tmp_path / f"{name}.toml"), "--port", str(ports[name]), "--framework", "torch")
            )
        bert, anna, cora = (served[name].connect(hook, served[name].read_token()) for name in names)
        for location in (bert, anna, cora):
            stack.callback(hook.local_worker.remove_worker_from_registry, location.id)
            stack.callback(location.close)
        (ages,) = bert.search("#ages")
        group = find_group(hook.local_worker, [bert, anna], cora, hook.attributes)
        shares = {"bert": ages.child, "anna": torch.zeros(3).long().send(anna).child}

        (squares,) = group.run(spdz_mul, shares, shares)
        with pytest.raises(GetNotPermittedError, match="it is private"):
            squares["bert"].get()
        (positive,) = group.run(relu, squares)
        positive["anna"].get()

        wide = torch.zeros(400, 1).long().share(bert, anna, crypto_provider=cora)
        with pytest.raises(QuotaExceededError, match="bytes on the worker, and the limit is 1,000,000"):
            (wide * wide.reshape(1, 400)).get()
        x = torch.arange(3).share(bert, anna, crypto_provider=cora)
        assert torch.equal((x * x).get(), torch.arange(3) ** 2)


@pytest.fixture(autouse=True)
def _settle(workers: dict[str, Any]) -> Iterator[None]:
    """Let no error of one test appear in the next."""
    yield
    for worker in workers.values():
        with contextlib.suppress(ProtocolError):
            worker.flush()
