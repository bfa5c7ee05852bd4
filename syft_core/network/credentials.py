"""Credentials: what a client presents when it connects, and the TLS context that checks its certificate."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syft_core.exceptions import WorkerError
from syft_core.network.identity import Identity


@dataclass(frozen=True)
class Credentials:
    """What a client presents when it connects."""

    token: str | None = field(repr=False)
    """The secret in the ``Authorization`` header."""
    certificate: Any
    """The verified client certificate, as returned by ``ssl``, or None."""


Authenticate = Callable[[Credentials], Identity | None]
"""Returns the identity of the credentials, or None if they are not valid."""


def make_server_context(
    cert: str | Path, key: str | Path | None, client_ca: str | Path | None = None
) -> ssl.SSLContext:
    """Return the TLS context of a server; with ``client_ca``, clients may present certificates signed by it."""
    for file in (cert, key, client_ca):
        if file is not None:
            _require_readable(file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    used = f"the certificate {cert} with the key {key or cert}"
    try:
        # Without a password, OpenSSL would ask for one.
        context.load_cert_chain(str(cert), None if key is None else str(key), lambda: " ")
        used = f"the certificates of clients' authorities in {client_ca}"
        if client_ca is not None:
            context.load_verify_locations(str(client_ca))
            context.verify_mode = ssl.CERT_OPTIONAL
    except ssl.SSLError as error:
        why = _CERTIFICATE_ERRORS.get(error.reason or "", "they are not in PEM format, or the key is encrypted")
        raise WorkerError(f"cannot use {used}: {why}; `syft-core certs` makes certificates") from None
    return context


_CERTIFICATE_ERRORS = {
    "KEY_VALUES_MISMATCH": "the key belongs to another certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there are none in the file",
}


def _require_readable(file: str | Path) -> None:
    try:
        Path(file).read_bytes()
    except OSError as error:
        raise WorkerError(f"cannot read {file}: {error.strerror}; `syft-core certs` makes certificates") from None


def read_authorization(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the kind of authorization and its secret; the secret of a malformed header is empty, hence invalid."""
    kind, _, secret = headers.get("Authorization", "").partition(" ")
    return kind.lower(), secret.strip() if secret.isascii() else ""


def read_certificate(sock: socket.socket) -> Any:
    """Return the verified certificate of the other end, or None."""
    return sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
