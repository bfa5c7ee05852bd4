"""Address: where a worker is on the network, and how to connect to it."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from syft_core.exceptions import AuthenticationError, WorkerError


def is_loopback(host: str) -> bool:
    """Return whether connections to ``host`` stay on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Address:
    """Where a worker is on the network, and how to connect to it."""

    host: str
    port: int
    secure: bool
    timeout: float = 60
    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = None

    @classmethod
    def parse(cls, url: str, **options: Any) -> Address:
        """Return the address for a URL like ``wss://host:port``."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or port is None or parts.scheme not in ("ws", "wss"):
            raise WorkerError(f"cannot use {url!r} as an address: it is not a websocket URL; write `wss://host:port`")
        return cls(host, port, parts.scheme == "wss", **options)

    @property
    def url(self) -> str:
        """The address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'wss' if self.secure else 'ws'}://{host}:{self.port}"

    def make_context(self) -> ssl.SSLContext | None:
        """Return the TLS context, or None on this machine; refuse to connect elsewhere without TLS."""
        if not self.secure:
            if is_loopback(self.host):
                return None
            raise AuthenticationError.refused(
                self.url, "without TLS, others on the network can read and change what is sent", "leave `secure` out"
            )
        try:
            context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if self.cert is not None:
                context.load_cert_chain(str(self.cert), None if self.key is None else str(self.key))
        except OSError as error:
            raise WorkerError(f"cannot read a certificate: {error}; check `ca`, `cert` and `key`") from None
        return context


def explain_certificate(error: ssl.SSLError) -> tuple[str, str] | None:
    """Return why a certificate was refused, by this end or the other, and what to do; None for other errors."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"the certificate of the worker is not valid ({error.verify_message.rstrip('.')})"
        return why, _ADVICE.get(error.verify_code, 'get `ca.pem` from its owner: `ca="ca.pem"`')
    reason = error.reason or ""
    if "ALERT" not in reason or not ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return None
    alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
    return (
        f"the worker does not accept the certificate of the client ({alert})",
        "ask the owner for another: `cert=...`",
    )


_ADVICE = {
    10: "ask its owner to renew it with `syft-core certs`",  # expired
    62: "connect by a name that the certificate has",  # the name of the host
    64: "connect by a name that the certificate has",  # its IP address
}
"""What to do, by the error code of OpenSSL."""
