"""A wrong address fails at once with a clear error, and changed options are used when connecting again."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import AuthenticationError, ConnectionLostError, WorkerError
from syft_core.network.address import Address
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import make_server_context
from syft_core.network.errors import AddressError
from syft_core.network.server import Server
from syft_worker.certificates import make_certificates

from .processes import authenticate, find_port
from .served import serve

torch = pytest.importorskip("torch")
LONG = 3600
"""Seconds: a test that waits for them hangs."""


def connect(hook: Any, port: int, host: str = "127.0.0.1", **options: Any) -> WebsocketClientWorker:
    return WebsocketClientWorker(hook, host, port, **{"token": "secret of ana", "timeout": LONG, **options})


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """Answer each connection with the next bytes, and close it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)

        def answer() -> None:
            for sent in answers:
                sock, _ = listener.accept()
                with sock:
                    sock.settimeout(60)
                    sock.sendall(sent)
                    while sock.recv(4096):
                        pass

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    make_certificates(tmp_path / "a", ["127.0.0.1"], [])
    make_certificates(tmp_path / "b", ["127.0.0.1"], [])
    return make_server_context(tmp_path / "a" / "server.pem", tmp_path / "a" / "server.key")


@pytest.fixture
def secure(far: Any, tls: ssl.SSLContext) -> Iterator[Server]:
    server = Server(far, "127.0.0.1", 0, authenticate, tls)
    server.start()
    yield server
    server.stop(1)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("no-such-host.invalid", r"the host 'no-such-host.invalid' cannot be found \(.*\); check the name"),
        ("wss://far", "the host 'wss://far' cannot be found"),
        ("127.0.0.1:8777", "the host '127.0.0.1:8777' cannot be found"),
        ("far..example", "the host or the port is malformed"),
        ("a\0b", "the host or the port is malformed"),
        ("x" * 300, "the host or the port is malformed"),
    ],
)
def test_a_wrong_host_fails_at_once(hook: Any, host: str, message: str) -> None:
    with pytest.raises(AddressError, match=message):
        connect(hook, 8777, host)


@pytest.mark.parametrize("port", [-1, 0, 65536, 1 << 40])
def test_a_wrong_port_fails_at_once(hook: Any, port: int) -> None:
    with pytest.raises(AddressError, match="the host or the port is malformed"):
        connect(hook, port)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 301 Moved Permanently\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: wrong\r\n\r\n",
    ],
    ids=["ssh", "tls", "404", "200", "301", "101"],
)
def test_a_server_that_is_no_worker_fails_at_once(hook: Any, answer: bytes) -> None:
    with answering(answer) as port, pytest.raises(AddressError, match="not a worker"):
        connect(hook, port)


def test_a_page_instead_of_a_worker_fails_at_once(hook: Any) -> None:
    with serve(hook) as served, pytest.raises(AddressError, match="not a worker"):
        connect(hook, served.page.port)


def test_a_proxy_whose_worker_is_being_started_is_asked_again(hook: Any) -> None:
    busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    other = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    with answering(busy, busy, other) as port, pytest.raises(AddressError, match="not a worker"):
        connect(hook, port, wait=LONG)
    with (
        answering(busy) as port,
        pytest.raises(AddressError, match="a proxy answers that it cannot reach the worker; che"),
    ):
        connect(hook, port)


def test_a_port_where_nothing_listens_fails_at_once(hook: Any) -> None:
    with pytest.raises(AddressError, match=r"nothing listens there \(connection refused\); check the address and the"):
        connect(hook, find_port())


def test_a_machine_that_does_not_answer_fails_after_the_timeout(hook: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # It accepts, and says nothing.
        port = listener.getsockname()[1]
        with pytest.raises(AddressError, match="nothing answers there within 0.3 seconds; check the address"):
            connect(hook, port, timeout=0.3)


def test_a_client_that_wants_to_waits_for_a_worker_that_is_being_started(hook: Any, far: Any) -> None:
    port = find_port()
    server = Server(far, "127.0.0.1", port, authenticate)
    timer = threading.Timer(0.3, server.start)
    timer.start()

    location = connect(hook, port, wait=60)

    assert location.search("#no-such-tag") == []
    location.close()
    server.stop(1)


def test_a_client_does_not_wait_longer_than_it_wants(hook: Any) -> None:
    with pytest.raises(ConnectionLostError, match="no connection for 0.2 seconds"):
        connect(hook, find_port(), wait=0.2)


@pytest.mark.parametrize(
    "url", ["ws://ana:hunter-2-secret@127.0.0.1:1", "ws://127.0.0.1:1/?token=hunter-2-secret", "wss://a:1/path"]
)
def test_a_url_with_more_than_a_host_and_a_port_is_refused(url: str) -> None:
    with pytest.raises(WorkerError, match="it has more than a host and a port; write `wss://host:port`") as caught:
        Address.parse(url)
    assert "hunter-2-secret" not in str(caught.value)


def test_tls_against_a_plain_worker_fails_at_once(hook: Any, server: Server, tmp_path: Path, tls: Any) -> None:
    with pytest.raises(AddressError, match="does not use TLS"):
        connect(hook, server.port, ca=tmp_path / "a" / "ca.pem")


def test_a_plain_client_of_a_worker_with_tls_fails_at_once(hook: Any, secure: Server) -> None:
    with pytest.raises(AddressError, match="one end uses TLS and the other does not|not a worker"):
        connect(hook, secure.port)


def test_a_wrong_token_and_a_wrong_authority_fail_at_once(hook: Any, secure: Server, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="the token or certificate is missing, wrong"):
        connect(hook, secure.port, ca=tmp_path / "a" / "ca.pem", token="wrong")
    with pytest.raises(AuthenticationError, match="the certificate of the worker is not valid"):
        connect(hook, secure.port, ca=tmp_path / "b" / "ca.pem")


def test_connecting_again_uses_the_new_options_and_continues_the_session(
    hook: Any, secure: Server, tmp_path: Path
) -> None:
    far = connect(hook, secure.port, ca=tmp_path / "a" / "ca.pem")
    x = torch.ones(2).send(far)
    far.flush()

    for wrong, error in (
        ({"ca": tmp_path / "b" / "ca.pem"}, AuthenticationError),
        ({"ca": tmp_path / "none.pem"}, WorkerError),
        ({"ca": tmp_path / "a" / "ca.pem", "token": "wrong"}, AuthenticationError),
        ({"ca": tmp_path / "a" / "ca.pem", "id": "near"}, AuthenticationError),
        ({"secure": False}, AddressError),
    ):
        with pytest.raises(error):
            connect(hook, secure.port, **wrong)
        assert (x + 1).get().tolist() == [2.0, 2.0]  # The options from before are in use.
    (tmp_path / "c.pem").write_bytes((tmp_path / "a" / "ca.pem").read_bytes())
    again = connect(hook, secure.port, ca=tmp_path / "c.pem", timeout=7)

    assert again is far
    assert (far.timeout, far._address.ca) == (7, tmp_path / "c.pem")
    assert x.get().tolist() == [1.0, 1.0]
    assert len(secure.sessions) == 1
    far.close()


def test_a_certificate_file_that_was_replaced_is_read_again(hook: Any, secure: Server, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes((tmp_path / "a" / "ca.pem").read_bytes())
    far = connect(hook, secure.port, ca=ca)
    far.close()
    ca.write_bytes((tmp_path / "b" / "ca.pem").read_bytes())

    with pytest.raises(AuthenticationError, match="the certificate of the worker is not valid"):
        connect(hook, secure.port, ca=ca)
