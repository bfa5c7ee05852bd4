"""Address: the address of a worker on the network, and how to connect to it."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from syft_core.exceptions import AuthenticationError, WorkerError
from syft_core.network.errors import AddressError, ProxyError

DEFAULT_PORT = 8777
"""The default port of a worker."""


def is_loopback(host: str) -> bool:
    """Return whether connections to ``host`` stay on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_unspecified(host: str) -> bool:
    """Return whether ``host`` stands for all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


@dataclass(frozen=True)
class Address:
    """A worker's address on the network, and how to connect to it."""

    host: str
    port: int
    secure: bool
    timeout: float = 60
    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = None
    name: str | None = None
    """The name that the certificate must have, if it is not the host: a tunnel has another address than its worker."""
    wait: float = 0
    """How many seconds to wait for a worker that is starting."""

    def __post_init__(self) -> None:
        if not (self.host and self.host.isprintable() and 0 < self.port < 1 << 16):
            why, advice = _MALFORMED
            raise AddressError.wrong(_show(self.url), why, advice)
        _require_host(self.host)

    @classmethod
    def parse(cls, url: str, default_port: int | None = None, **options: Any) -> Address:
        """Return the address for a URL like ``wss://host:port``."""
        try:
            parts = urlsplit(url)
            _require_host(parts.netloc)  # `hostname` would be in lower case.
            host, port = parts.hostname, parts.port or default_port
        except ValueError:
            host, port = None, None
        shown = repr(_show(url))
        if host is None or port is None or parts.scheme not in ("ws", "wss"):
            raise WorkerError(f"cannot use {shown} as an address: it is not a websocket URL; write `wss://host:port`")
        if parts.username is not None or parts.query or parts.fragment or parts.path not in ("", "/"):
            raise WorkerError(
                f"cannot use {shown} as an address: it has more than a host and a port; write "
                f"`wss://host:port`, and give the token as `token=...`"
            )
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


_TOKEN = re.compile(r"(?=[\w-]*[A-Z])[\w-]{40,}", re.ASCII)
"""Matches anything that looks like a token: no label of a name has so many characters of both cases."""
_SHOWN = re.compile(r"((?:[a-z]{1,9}://)?)(?:.*@)?([\w.-]*|\[[0-9a-f:.]*\])((?::[0-9]{1,5}(?![\w-]))?)", re.IGNORECASE)
"""The scheme, the host and the port of an address, with a name or a password before the host."""


def _require_host(host: str) -> None:
    """Refuse a token given as the host, before it is sent to name servers."""
    if _TOKEN.search(host):
        advice = "give the address of the worker, and the token as `token=...`"
        raise AddressError.wrong(_show(host), "the host is a token", advice)


def _show(url: str) -> str:
    """Return the scheme, host and port of a text; any other part may contain a secret."""
    scheme, host, port = cast("re.Match[str]", _SHOWN.match(url)).groups()
    shown = f"{scheme}{_TOKEN.sub('', host)}{port}"
    return shown if shown == url else f"{shown}..."


def explain_certificate(error: ssl.SSLError) -> tuple[str, str] | None:
    """Return why a certificate was refused, by either end, and what to do; None for other errors."""
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


def is_cut(error: Exception) -> bool:
    """Return whether an established connection broke, so that another attempt may succeed at once."""
    is_refused = isinstance(error, ConnectionRefusedError | TimeoutError | ProxyError)
    return isinstance(error, ConnectionError | ssl.SSLEOFError | ssl.SSLSyscallError) and not is_refused


def explain_failure(error: Exception, seconds: float) -> tuple[str, str]:
    """Return why the first connection failed, and what to do about it."""
    advice = "check the address and the port, and that the worker is running; `wait=60` waits until it is"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there (connection refused)", advice
    if isinstance(error, TimeoutError):
        return f"nothing answers there within {seconds:g} seconds", f"{advice}, and that no firewall is in between"
    if isinstance(error, ProxyError):
        return "a proxy answers that it cannot reach the worker", advice
    if is_cut(error):
        return "the connection is cut before the worker answers", f"{advice}, and whether it uses TLS"
    return f"there is no connection ({getattr(error, 'strerror', None) or type(error).__name__})", advice


def explain_address(error: Exception, host: str, is_first: bool) -> tuple[str, str] | None:
    """Return why reconnecting does not help after an error, and what to do; None if it may help.

    After a first connection, a name that cannot be looked up is known to be right.
    """
    if isinstance(error, socket.gaierror) and (is_first or error.errno != socket.EAI_AGAIN):
        why = f"the host {host!r} cannot be found ({error.strerror})"
        return why, "check the name, and give it without scheme and port"
    if isinstance(error, ValueError | OverflowError):
        return _MALFORMED
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLSyscallError):
        why = f"what answers there does not use TLS, or another version ({error.reason})"
        return why, "check the port; on this machine, a worker without TLS is reached without `secure`, `ca` and `cert`"
    return None


_MALFORMED = "the host or the port is malformed", 'write for instance `"north.example.org", 8777`'
_ADVICE = {
    10: "ask its owner to renew it with `syft-core certs`",  # expired
    62: "connect by a name that the certificate has",  # the certificate has another host name
    64: "connect by a name that the certificate has",  # the certificate has another IP address
}
