"""Who may connect to a served worker."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from syft_core.exceptions import AuthenticationError
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import Credentials
from syft_core.network.identity import Identity
from syft_core.network.server import Server
from syft_core.network.session import CLIENT, PROTOCOL, SESSION
from syft_worker.config import WorkerConfig, parse_config
from syft_worker.serving import Authentication
from syft_worker.tokens import TokenFile

torch = pytest.importorskip("torch")

CERTIFICATE = {"subject": ((("commonName", "bo"),),)}


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[TokenFile]:
    path = tmp_path / "tokens.json"
    path.write_text('{"format": 1, "tokens": []}')
    path.chmod(0o600)
    return TokenFile(path)


def authenticate(config: WorkerConfig, token: str | None = None, certificate: Any = None, secret: Any = None) -> Any:
    return Authentication(config, secret).authenticate(Credentials(token, certificate))


def test_users_are_known_by_token_or_certificate_or_both(tokens: TokenFile) -> None:
    _, secret = tokens.add("ana", None)
    by_token = parse_config({"token_file": str(tokens.path)})
    by_certificate = parse_config({"client_ca": "ca.pem"})
    by_both = parse_config({"token_file": str(tokens.path), "client_ca": "ca.pem"})

    assert authenticate(by_token, secret) == authenticate(by_both, secret) == Identity("ana", name="ana-1")
    assert authenticate(by_certificate, None, CERTIFICATE) == authenticate(by_both, None, CERTIFICATE) == Identity("bo")
    for config in (by_token, by_certificate, by_both):
        assert authenticate(config) is None
    assert authenticate(by_token, None, CERTIFICATE) is None
    assert authenticate(by_both, "wrong", CERTIFICATE) is None


def test_without_authentication_only_the_new_secret_gives_access() -> None:
    assert authenticate(WorkerConfig(), "right", None, "right") == Identity("user", admin=True)
    for token in ("wrong", "", "ä", None):
        assert authenticate(WorkerConfig(), token, CERTIFICATE, "right") is None


def test_a_revoked_token_ends_open_connections(hook: Any, far: Any, tokens: TokenFile) -> None:
    _, secret = tokens.add("ana", None)
    known = Authentication(parse_config({"token_file": str(tokens.path)}), None)
    server = Server(far, "127.0.0.1", 0, known.authenticate, heartbeat=0.05, is_valid=known.is_valid)
    server.start()
    location = WebsocketClientWorker(hook, "127.0.0.1", server.port, token=secret)
    assert location.remote.torch.zeros(1).get().tolist() == [0]

    tokens.revoke("ana-1")

    with pytest.raises(AuthenticationError, match="wrong, expired or revoked"):
        deque(iter(lambda: location.remote.torch.zeros(1).get(), None), maxlen=0)  # Until it is disconnected.
    location.close()
    server.stop()


def test_the_name_of_a_client_does_not_keep_a_connection_with_a_revoked_token_open(
    hook: Any, far: Any, tokens: TokenFile
) -> None:
    stolen, own = [tokens.add("ana", None)[1] for _ in range(2)]
    known = Authentication(parse_config({"token_file": str(tokens.path)}), None)
    server = Server(far, "127.0.0.1", 0, known.authenticate, heartbeat=0.05, is_valid=known.is_valid)
    server.start()
    name = WebsocketClientWorker(hook, "127.0.0.1", server.port, token=own)._name  # A search returns it, for instance.
    headers = {CLIENT: name, SESSION: "0" * 32, "Authorization": f"Bearer {stolen}"}

    with (
        pytest.raises(InvalidStatus, match="HTTP 400"),
        connect(f"ws://127.0.0.1:{server.port}", additional_headers=headers, subprotocols=[PROTOCOL]),
    ):
        pass

    hook.local_worker.get_worker("far").close()
    server.stop()


def test_a_client_continues_its_session_with_another_token(hook: Any, far: Any, tokens: TokenFile) -> None:
    first, second = [tokens.add("ana", None)[1] for _ in range(2)]
    known = Authentication(parse_config({"token_file": str(tokens.path)}), None)
    server = Server(far, "127.0.0.1", 0, known.authenticate, heartbeat=0.05, is_valid=known.is_valid)
    server.start()
    location = WebsocketClientWorker(hook, "127.0.0.1", server.port, token=first)
    x = torch.ones(1).send(location)
    location.flush()

    location.close()
    location._authorization = f"Bearer {second}"
    location.connect()

    assert x.get().tolist() == [1.0]
    location.close()
    server.stop()


@pytest.mark.parametrize(
    ("then", "code"), [("stopping.wait(); os._exit(3)", 3), ("threading.Event().wait()  # An operation never ends.", 1)]
)
def test_a_process_whose_supervisor_is_gone_ends(then: str, code: int) -> None:
    program = (
        "import os, threading; from syft_worker import serving; serving.STOP_SECONDS = 2; "
        "stopping = threading.Event(); "
        f"threading.Thread(target=serving._wait_for_supervisor, args=(stopping, print), daemon=True).start(); {then}"
    )

    assert (
        subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL, check=False, timeout=120).returncode
        == code
    )


def test_health_is_answered_on_the_port_of_the_worker_without_a_token(server: Server) -> None:
    refused = server.connections_refused
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/health")
    answer = connection.getresponse()

    assert (answer.status, answer.read(), server.connections_refused) == (200, b"ok\n", refused)
    connection.close()
    connection.request("GET", "/anything")
    assert connection.getresponse().status == 401
    connection.close()
