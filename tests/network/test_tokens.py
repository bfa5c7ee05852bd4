"""Tokens are checked before they are sent, and no error or log contains one."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import AuthenticationError, ConfigurationError, SyftError
from syft_core.network.address import Address
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import Credentials
from syft_core.network.server import Server
from syft_core.network.tokens import MAX_TOKEN, conceal, find_token, read_token
from syft_core.network.websocket_worker import WebsocketServerWorker
from syft_worker import requests
from syft_worker.notices import _explain
from syft_worker.tokens import TokenFile

from .processes import find_port

torch = pytest.importorskip("torch")
SECRET = "syft-1f0e9d8c7b6a59483726150f1e2d3c4b"


@pytest.mark.parametrize("text", [f"{SECRET}\n", f" {SECRET} ", f"{SECRET}\r\n", f"\t{SECRET}\n\n"])
def test_spaces_and_line_breaks_around_a_token_are_dropped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYFT_TOKEN", text)

    assert find_token(text) == find_token() == SECRET


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        (f"{SECRET}\n{SECRET}", "it has line breaks, or characters that are not ASCII"),
        (f"{SECRET}\rX-Header: a", "it has line breaks"),
        (f"{SECRET}\0", "it has line breaks"),
        (f"{SECRET}ü", "not ASCII"),
        (f"{SECRET}\udcff", "not ASCII"),
        (SECRET * 200, f"it has more than {MAX_TOKEN:,} characters"),
        (SECRET.encode(), "it is a bytes, not a text"),
        (7, "it is a int, not a text"),
    ],
)
def test_a_token_that_cannot_be_one_is_refused_before_it_is_sent(hook: Any, given: Any, why: str) -> None:
    with pytest.raises(AuthenticationError, match=f"cannot use the token: .*{why}") as caught:
        WebsocketClientWorker(hook, "127.0.0.1", find_port(), token=given, timeout=3600)

    assert SECRET not in tell_all(caught.value)


def test_an_empty_variable_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYFT_TOKEN", " ")
    assert find_token() is None

    monkeypatch.setenv("SYFT_TOKEN", f"{SECRET}\n{SECRET}")
    with pytest.raises(
        AuthenticationError, match="cannot use the token in the variable SYFT_TOKEN: it has line breaks"
    ):
        find_token()


def test_a_token_in_a_file_is_checked_and_never_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n", encoding="utf-8")
    assert read_token(requests._read(tmp_path / "token"), "the token") == SECRET

    with pytest.raises(ConfigurationError, match="cannot read the file with the token: No such file") as caught:
        requests._read(Path(SECRET))  # The token itself, instead of a file.
    assert SECRET not in tell_all(caught.value)


def test_texts_of_others_are_shown_without_the_secret_and_in_one_line() -> None:
    assert conceal(f"what you sent was {SECRET}\n", SECRET) == r"what you sent was ...\n"
    assert conceal("the token is wrong", "wrong") == "the token is wrong"


# --- no error, log or picture


def tell_all(error: BaseException | None) -> str:
    """Return everything that an error says: its texts, notes, attributes and causes."""
    told = []
    while error is not None:
        told += [str(error), repr(error), repr(error.args), *getattr(error, "__notes__", ()), repr(vars(error))]
        told += traceback.format_exception_only(error)
        error = error.__cause__ or error.__context__
    return "\n".join(told)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Collect what errors say; no line of it and no log line of any library may contain the secret."""
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    yield told
    assert told
    assert SECRET not in "\n".join(told)
    for record in caplog.records:
        assert SECRET not in record.getMessage()
        assert SECRET not in repr(record.__dict__)


def drive(told: list[str], hook: Any, port: int, **options: Any) -> None:
    """Connect, and collect the error."""
    given = {"token": SECRET, "timeout": 1, **options}
    try:
        location = WebsocketClientWorker(hook, given.pop("host", "127.0.0.1"), port, **given)
    except (SyftError, OSError) as error:
        told.append(tell_all(error))
    else:
        told += [repr(location), repr(location._address), location.url]
        location.close()
        hook.local_worker._known_workers.pop(location.id, None)


@contextlib.contextmanager
def echo(start: bytes, end: bytes = b"\r\n\r\n") -> Iterator[int]:
    """Answer each request with the secret that it contains."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    sock.settimeout(60)
                    with sock:
                        sock.recv(4096)
                        sock.sendall(start + SECRET.encode() + end)
                        sock.shutdown(socket.SHUT_WR)
                        sock.recv(4096)

        threading.Thread(target=answer, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nSyft-Reason: ",
        b"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\nSyft-Reason: ",
        b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nSyft-State: lost\r\nSyft-Reason: ",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nSyft-Reason: ",
        b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nSyft-State: lost\r\nSyft-Worker: ",
        b"HTTP/1.1 404 ",
        b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ",
        b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\nX: ",
        b"SSH ",
    ],
)
def test_a_server_that_repeats_the_token_does_not_get_it_into_an_error(hook: Any, told: Any, start: bytes) -> None:
    with echo(start) as port:
        drive(told, hook, port)
        drive(told, hook, port, id="north")


@pytest.mark.parametrize(
    "url",
    [
        "wss://{}@host:1", "wss://ana:{}@host:1", "wss://host:1/{}", "wss://host:1/?token={}", "wss://host:1#{}",
        "wss://host:{}", "wss://host:1;{}", "host:1/{}", " ws://host:1/{}", "http://host:1/{}", "wss://[{}]:1", "{}",
        "wss://{}", "wss://{}:8777", "{}://host", "{}.example.org", "wss://host:1/a@b/{}", "wss://host:1 {}",
    ],
)  # fmt: skip
def test_an_address_with_a_token_in_it_is_refused_without_naming_it(
    hook: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)  # No name server learns it either.
    (tmp_path / "tokens.json").write_text('{"format": 1, "tokens": []}', encoding="utf-8")
    (tmp_path / "tokens.json").chmod(0o600)
    secret = TokenFile(tmp_path / "tokens.json").add("ana", None)[1]

    with pytest.raises(SyftError, match="give the|write `wss://host:port`") as caught:
        sy.connect(url.format(secret), timeout=1)

    assert secret.lower() not in tell_all(caught.value).lower()


def test_a_long_name_of_a_host_is_no_token(hook: Any) -> None:
    for host in ("syft-worker-of-the-hospital-in-the-north-for-production.example.org", "a" * 60 + ".example.org"):
        assert Address(host, 1, True).url == f"wss://{host}:1"


def test_no_error_of_a_client_contains_the_token(hook: Any, told: Any, tmp_path: Path, server: Server) -> None:
    for options in (
        {"host": "no-such-host.invalid"},
        {"secure": True},
        {"ca": tmp_path / "none.pem"},
        {"id": "another"},
        {"token": f"{SECRET} of nobody"},
        {"token": f"secret of {SECRET}\n\n{SECRET}"},
    ):
        drive(told, hook, server.port, **options)
    drive(told, hook, find_port())
    with pytest.raises(SyftError) as caught:
        sy.connect(f"http://ana:{SECRET}@127.0.0.1:1")
    told.append(tell_all(caught.value))


def test_no_log_of_a_worker_contains_a_token(hook: Any, told: Any, tmp_path: Path) -> None:
    worker = WebsocketServerWorker(hook, id="served", auto_add=False)
    worker.token = SECRET
    worker.start(block=False)
    drive(told, hook, worker.port)
    drive(told, hook, worker.port, token=f"{SECRET}x")
    for request in (
        f"GET / HTTP/1.1\r\nAuthorization: Bearer {SECRET}\r\nAuthorization: Bearer {SECRET}\r\n\r\n",
        f"GET /{SECRET} HTTP/1.1\r\nAuthorization: Bearer {SECRET}\xff\r\n\r\n",
        f"{SECRET}\r\n\r\n",
        f"GET / HTTP/1.1\r\n{SECRET}\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", worker.port), 30) as sock:
            sock.sendall(request.encode("latin-1"))
            while sock.recv(4096):
                pass
    told += [repr(worker), repr(Credentials(SECRET, None)), repr(worker.server), repr(worker.server.sessions)]
    worker.stop()
    (tmp_path / "tokens.json").write_text('{"format": 1, "tokens": []}', encoding="utf-8")
    (tmp_path / "tokens.json").chmod(0o600)
    file = TokenFile(tmp_path / "tokens.json")
    assert file.authenticate(SECRET) is None
    told.append(repr(list(file)))


def test_a_notice_that_fails_does_not_name_its_command(told: Any) -> None:
    import subprocess  # noqa: PLC0415  # the errors of the standard library
    from urllib.error import HTTPError, URLError  # noqa: PLC0415

    told += [
        _explain(subprocess.CalledProcessError(3, ["curl", SECRET])),
        _explain(subprocess.TimeoutExpired(["curl", SECRET], 30)),
        _explain(HTTPError(f"https://x/{SECRET}", 403, "no", None, None)),  # type: ignore[arg-type]  # no headers
        _explain(URLError(OSError(111, "Connection refused"))),
        _explain(ValueError(f"unknown url type: {SECRET}")),
    ]
    assert told == [
        "the command ended with exit code 3",
        "the command took longer than 30 seconds",
        "HTTP status 403",
        "Connection refused",
        "ValueError",
    ]
