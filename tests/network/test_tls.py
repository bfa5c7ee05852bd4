"""Connections are encrypted, and certificates are verified at both ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import AuthenticationError
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import make_server_context
from syft_core.network.server import Server
from syft_worker.authority import Authority
from syft_worker.certificates import make_certificates
from syft_worker.config import WorkerConfig
from syft_worker.serving import Authentication

from .processes import authenticate
from .proxy import Proxy

torch = pytest.importorskip("torch")

MINUTE_AGO = -1 / (24 * 60)
"""For how many days an expired certificate is valid."""


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates for a worker on this machine, for ana, and expired ones."""
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, ["127.0.0.1"], ["ana"])
    authority = Authority(folder)
    authority.issue("elsewhere", "hospital.example", ["hospital.example"], 1)
    authority.issue("expired", "127.0.0.1", ["127.0.0.1"], MINUTE_AGO)  # type: ignore[arg-type]  # for a test
    authority.issue("client-old", "old", (), MINUTE_AGO)  # type: ignore[arg-type]
    return folder


@pytest.fixture
def serve(far: Any, certs: Path) -> Any:
    """Serve the worker with one of the certificates."""

    @contextmanager
    def serve(name: str = "server", client_ca: Path | None = None) -> Iterator[Server]:
        tls = make_server_context(certs / f"{name}.pem", certs / f"{name}.key", client_ca)
        config = WorkerConfig(client_ca=client_ca)
        who = authenticate if client_ca is None else Authentication(config, None).authenticate
        server = Server(far, "127.0.0.1", 0, who, tls, heartbeat=0.05)
        server.start()
        try:
            yield server
        finally:
            server.stop(1)

    return serve


@pytest.fixture
def join(hook: Any, certs: Path) -> Iterator[Any]:
    """Connect to a worker with TLS, trusting its authority."""
    with ExitStack() as stack:

        def join(port: int, user: str | None = None, **options: Any) -> WebsocketClientWorker:
            if user is not None:
                options |= {"cert": certs / f"client-{user}.pem", "key": certs / f"client-{user}.key"}
            else:
                options.setdefault("token", "secret of ana")
            options = {"secure": True, "ca": certs / "ca.pem", "timeout": 60, **options}
            location = WebsocketClientWorker(hook, "127.0.0.1", port, **options)
            stack.callback(location.close)
            return location

        yield join


def test_training_over_tls_gives_the_bits_of_home(serve: Any, join: Any) -> None:
    torch.manual_seed(0)
    local = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    remote, data, target = local.copy(), torch.rand(16, 4), torch.rand(16, 1)
    _train(local, data, target)

    with serve() as server:
        far = join(server.port)
        _train(remote.send(far), data.send(far), target.send(far))
        remote.get()

    assert far.url.startswith("wss://")
    assert [p.tolist() for p in remote.parameters()] == [p.tolist() for p in local.parameters()]


def test_large_objects_travel_over_tls(serve: Any, join: Any) -> None:
    sent = torch.arange(1_000_000)

    with serve() as server:
        assert torch.equal(sent.send(join(server.port)).get(), sent)


def test_a_session_continues_over_tls_after_cuts(serve: Any, join: Any) -> None:
    with serve() as server:
        proxy = Proxy(server.port)
        proxy.budgets.extend([6_000, 5_000, 8_000, 7_000])  # A handshake takes about 2,500.
        far = join(proxy.port)
        total = torch.zeros(1).send(far)
        for number in range(200):
            total += 1
            if number % 20 == 0:
                far.flush()

        assert total.get().item() == 200
        assert proxy.connections > 3
        proxy.close()


def test_a_client_that_gets_ahead_of_its_replies_receives_all_of_them_over_tls(
    serve: Any, join: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_core.network.admission.MAX_HELD", 5_000_000)
    with serve() as server:
        far = join(server.port)
        pointers = [torch.full((500_000,), float(value)).send(far) for value in range(12)]

        assert [value[-1].item() for value in sy.get_all(*pointers)] == list(range(12))
        assert server.admission.sessions_opened == 1


def test_heartbeats_and_messages_share_a_tls_connection(serve: Any, join: Any, far: Any) -> None:
    with serve() as server:
        location = join(server.port)
        x = torch.ones(2).send(location)
        location.flush()
        location.timeout, far.message_pending_time = 3, 4

        assert x.get().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "trusted", "why"),
    [
        ("server", "other", r"\(.*(self-signed|unable to get local issuer).*\); get `ca.pem` from its owner"),
        ("server", "system", r"\(.*(self-signed|unable to get local issuer).*\); get `ca.pem` from its owner"),
        ("elsewhere", "ours", r"\(IP address mismatch.*\); connect by a name that the certificate has"),
        ("expired", "ours", r"\(certificate has expired\); ask its owner to renew it with `syft-core certs`"),
    ],
    ids=["unknown authority", "verified by default", "wrong host", "expired"],
)
def test_a_worker_whose_certificate_is_not_valid_is_refused(
    serve: Any, join: Any, certs: Path, tmp_path: Path, name: str, trusted: str, why: str
) -> None:
    make_certificates(tmp_path, ["127.0.0.1"], [])
    ca = {"other": tmp_path / "ca.pem", "system": None, "ours": certs / "ca.pem"}[trusted]

    with (
        serve(name) as server,
        pytest.raises(
            AuthenticationError, match=rf"cannot connect to wss://127\.0\.0\.1:\d+: the certificate of .* {why}"
        ),
    ):
        join(server.port, ca=ca)


def test_the_user_of_a_client_certificate_is_its_common_name(serve: Any, join: Any, certs: Path) -> None:
    with serve(client_ca=certs / "ca.pem") as server:
        far = join(server.port, "ana")

        assert (torch.ones(2).send(far) + 1).get().tolist() == [2.0, 2.0]
        assert [session.peer.user for session in server.sessions] == ["ana"]
        assert far.client_id.endswith("@ana")


def test_an_expired_client_certificate_is_refused(serve: Any, join: Any, certs: Path) -> None:
    why = r"the worker does not accept the certificate of the client \(certificate expired\); ask the owner for another"

    with serve(client_ca=certs / "ca.pem") as server, pytest.raises(AuthenticationError, match=why):
        join(server.port, "old")

    assert server.sessions == []


def test_a_client_certificate_of_another_authority_is_refused(
    serve: Any, join: Any, certs: Path, tmp_path: Path
) -> None:
    make_certificates(tmp_path, [], ["ana"])
    own = {"cert": tmp_path / "client-ana.pem", "key": tmp_path / "client-ana.key", "token": None}

    with (
        serve(client_ca=certs / "ca.pem") as server,
        pytest.raises(AuthenticationError, match=r"does not accept the certificate of the client \(unknown ca\)"),
    ):
        join(server.port, **own)


def test_a_client_without_certificate_and_token_is_refused(serve: Any, join: Any, certs: Path) -> None:
    with (
        serve(client_ca=certs / "ca.pem") as server,
        pytest.raises(AuthenticationError, match="the token or certificate is missing, wrong, expired or revoked"),
    ):
        join(server.port, token=None)


def test_plain_connections_to_other_machines_are_refused_at_both_ends(hook: Any, far: Any) -> None:
    why = "without TLS, others on the network can read and change what is sent"

    with pytest.raises(AuthenticationError, match=f"cannot connect to ws://192.0.2.1:8777: {why}; leave `secure` out"):
        WebsocketClientWorker(hook, "192.0.2.1", 8777, secure=False)
    with pytest.raises(AuthenticationError, match=f"{why}; give a certificate and its key"):
        Server(far, "0.0.0.0", 0, authenticate)


def _train(model: Any, data: Any, target: Any) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        ((model(data) - target) ** 2).mean().backward()
        optimizer.step()


def test_behind_a_tunnel_the_name_of_the_worker_is_verified(hook: Any, certs: Path, serve: Any) -> None:
    options: dict[str, Any] = {"token": "secret of ana", "ca": certs / "ca.pem", "timeout": 5}
    with serve("elsewhere") as server, closing(Proxy(server.port)) as tunnel:
        far = WebsocketClientWorker(hook, "127.0.0.1", tunnel.port, name="hospital.example", **options)
        assert torch.ones(2).send(far).get().tolist() == [1.0, 1.0]
        far.close()
        hook.local_worker.remove_worker_from_registry("far")
        for wrong in (None, "other.example"):
            with pytest.raises(AuthenticationError, match="the certificate of the worker is not valid"):
                WebsocketClientWorker(hook, "127.0.0.1", tunnel.port, name=wrong, **options)
