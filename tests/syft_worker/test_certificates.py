"""Certificates that TLS accepts, for a worker and its users."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from syft_core import cli
from syft_core.exceptions import AuthenticationError, ConnectionLostError, WorkerError
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import make_server_context
from syft_worker.authority import Authority
from syft_worker.certificates import check_validity, user_in
from tests.waiting import wait_for_end

from ..network.served import serve


def make(folder: Path, *options: str) -> int:
    return cli.main(["certs", str(folder), *options])


def shake_hands(folder: Path, client: ssl.SSLContext, name: str) -> Any:
    """Return the client's certificate as a server sees it that requires one."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
    server.load_cert_chain(folder / "server.pem", folder / "server.key")
    server.verify_mode = ssl.CERT_REQUIRED
    near, far = socket.socketpair()
    seen: list[Any] = []

    def serve() -> None:
        try:
            with server.wrap_socket(far, server_side=True) as secure:
                seen.append(secure.getpeercert())
                secure.recv(1)
        except OSError as error:
            seen.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(near, server_hostname=name) as secure, suppress(OSError):
            secure.send(b"x")  # The server may have refused already.
    finally:
        near.close()
        wait_for_end(thread)
    return seen[0]


def make_trusting_context(folder: Path, user: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if user is not None:
        context.load_cert_chain(folder / f"client-{user}.pem", folder / f"client-{user}.key")
    return context


def test_tls_accepts_the_certificates_and_the_worker_learns_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make(tmp_path, "--host", "hospital.example", "127.0.0.1", "--client", "ana", "bo") == 0

    shown = capsys.readouterr().out
    for name in ("hospital.example", "127.0.0.1"):
        assert user_in(shake_hands(tmp_path, make_trusting_context(tmp_path, "ana"), name)) == "ana"
    assert "server.pem, server.key: for the worker at hospital.example, 127.0.0.1 (--cert, --key)" in shown
    assert "ca.key: keep it offline" in shown
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tmp_path, make_trusting_context(tmp_path, "ana"), "other.example")


def test_a_client_of_another_authority_is_refused(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    make(ours, "--host", "localhost")
    make(theirs, "--client", "ana")
    client = make_trusting_context(ours, None)
    client.load_cert_chain(theirs / "client-ana.pem", theirs / "client-ana.key")

    assert isinstance(shake_hands(ours, client, "localhost"), ssl.SSLCertVerificationError)


def test_a_client_certificate_is_not_a_server_certificate(tmp_path: Path) -> None:
    make(tmp_path, "--host", "localhost", "--client", "localhost")
    for suffix in (".pem", ".key"):
        (tmp_path / f"client-localhost{suffix}").replace(tmp_path / f"server{suffix}")

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tmp_path, make_trusting_context(tmp_path, None), "localhost")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no host and no user is named; add --host or --client"),
        (["--host", "https://x:1"], "it is neither a name nor an IP address"),
        (["--client", "../../ana"], "cannot use '../../ana' as a user"),
        (["--host", "x", "--days", "0"], "cannot make certificates for 0 days"),
        (["--host", "x", "--days", "-1"], "cannot make certificates for -1 days"),
        (["--host", "x", "--days", "9999"], "choose 1 to 3650"),
        (["--host", "x", "--days", "9" * 99], "choose 1 to 3650"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make(tmp_path / "new", *options) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ()}, {"subject": ((("commonName", ""),),)}])
def test_a_certificate_without_a_user_names_nobody(certificate: Any) -> None:
    assert user_in(certificate) is None
    assert user_in({"subject": ((("commonName", "ana"),), (("commonName", "bo"),))}) is None


def test_a_client_with_the_owners_authority_uses_tls_on_the_same_machine_too(torch_hook: Any, tmp_path: Path) -> None:
    make(tmp_path, "--host", "127.0.0.1")
    make(tmp_path / "other", "--host", "127.0.0.1")
    with serve(torch_hook, tls=make_server_context(tmp_path / "server.pem", tmp_path / "server.key")) as served:
        assert served.connect(ca=tmp_path / "ca.pem").url.startswith("wss://")
        with pytest.raises(
            AuthenticationError, match=r"the certificate of the worker is not valid \(.*\); get `ca.pem`"
        ):
            served.connect("other", ca=tmp_path / "other" / "ca.pem")
        with pytest.raises(ConnectionLostError, match=r"cannot connect to ws://.*: .* one end uses TLS"):
            WebsocketClientWorker(torch_hook, "127.0.0.1", served.server.port, token="other", timeout=0.2)


@pytest.mark.parametrize(
    ("cert", "key", "ca", "why"),
    [
        ("none.pem", "server.key", None, "cannot read .*none.pem: No such file or directory; `syft-core certs`"),
        ("server.pem", "none.key", None, "cannot read .*none.key: No such file"),
        ("server.pem", "server.key", "none.pem", "cannot read .*none.pem: No such file"),
        ("server.pem", "client-ana.key", None, "cannot use the certificate .*server.pem with the key .*client-ana.key: "
         "the key belongs to another certificate"),
        ("server.key", "server.key", None, "server.key: they are not in PEM format"),
        ("server.pem", None, None, "with the key .*server.pem: they are not in PEM format"),
        ("server.pem", "encrypted.key", None, "or the key is encrypted"),
        ("server.pem", "server.key", "ca.key", "cannot use .* authorities in .*ca.key: there are none in the file"),
    ],
)  # fmt: skip
def test_certificates_that_cannot_be_used_are_named(
    tmp_path: Path, cert: str, key: str | None, ca: str | None, why: str
) -> None:
    assert make(tmp_path, "--host", "localhost", "--client", "ana") == 0
    plain = serialization.load_pem_private_key((tmp_path / "server.key").read_bytes(), None)
    encrypted = plain.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    (tmp_path / "encrypted.key").write_bytes(encrypted)

    with pytest.raises(WorkerError, match=why):
        make_server_context(tmp_path / cert, key and tmp_path / key, ca and tmp_path / ca)


def test_the_owner_is_warned_of_a_certificate_that_clients_refuse_now_or_soon(tmp_path: Path) -> None:
    assert make(tmp_path, "--host", "localhost", "--days", "10") == 0
    Authority(tmp_path).issue("old", "localhost", ["localhost"], -1 / (24 * 60))  # type: ignore[arg-type]  # for a test

    assert "expires at" in (check_validity(tmp_path / "server.pem") or "")
    assert check_validity(tmp_path / "server.pem", days=9) is None
    assert check_validity(tmp_path / "ca.pem") is None
    assert "UTC, so clients refuse it" in (check_validity(tmp_path / "old.pem") or "")
