"""The command ``syft-core certs``: certificates for a worker and its users, and the user in one."""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from syft_core.exceptions import ConfigurationError
from syft_worker.tokens import require_user_name


def make_certificates(folder: Path, hosts: Sequence[str], users: Sequence[str], days: int = 365) -> list[str]:
    """Write certificates for hosts and users; return a line for each file that says where it belongs.

    The certificate authority is made once: later calls sign with it. No file is overwritten.
    """
    from syft_worker.authority import MAX_DAYS, Authority  # noqa: PLC0415  # loads a large library

    for user in users:
        require_user_name(user)
    for host in hosts:
        require_host(host, "make a certificate for the host")
    if not (hosts or users):
        raise ConfigurationError("cannot make certificates: no host and no user is named; add --host or --client")
    if not 0 < days <= MAX_DAYS:
        raise ConfigurationError(
            f"cannot make certificates for {days} days: a certificate is valid for at least one day, and not longer "
            f"than its authority; choose 1 to {MAX_DAYS}"
        )
    names = ["server"] * bool(hosts) + [f"client-{user}" for user in users]
    for path in [folder / f"{name}{suffix}" for name in names for suffix in (".pem", ".key")]:
        if path.exists():
            raise ConfigurationError(
                f"cannot write {path}: it exists, and is not overwritten; move it away, or choose another folder"
            )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = []
    if not (folder / "ca.pem").exists():
        Authority.create(folder)
        made.append("ca.key: keep it offline, because it can sign certificates for any user")
    authority = Authority(folder)
    made.append("ca.pem: for every client, which verifies the worker with it, and for the worker (--client-ca)")
    if hosts:
        authority.issue("server", hosts[0], hosts, days)
        made.append(f"server.pem, server.key: for the worker at {', '.join(hosts)} (--cert, --key)")
    for user in users:
        authority.issue(f"client-{user}", user, (), days)
        made.append(f"client-{user}.pem, client-{user}.key: for {user}; the worker takes the user name from it")
    return made


def renew_certificates(folder: Path, days: int = 365) -> list[str]:
    """Replace the certificates in a folder by new ones with the same names and keys; return a line for each.

    The authority signs them, so clients need nothing new. A worker uses them after SIGHUP.
    """
    from syft_worker.authority import MAX_DAYS, Authority  # noqa: PLC0415  # loads a large library

    if not 0 < days <= MAX_DAYS:
        raise ConfigurationError(f"cannot renew certificates for {days} days: choose 1 to {MAX_DAYS}")
    found = sorted([*folder.glob("server.pem"), *folder.glob("client-*.pem")])
    if not found or not (folder / "ca.key").exists():
        raise ConfigurationError(
            f"cannot renew certificates in {folder}: it has no certificates, or not the key of their authority; "
            f"make new ones with --host and --client"
        )
    authority = Authority(folder)
    return [f"{path.name}: {authority.renew(path, days)}" for path in found]


def user_in(certificate: Mapping[str, Any] | None) -> str | None:
    """Return the user in a verified client certificate, as ``ssl.SSLSocket.getpeercert()`` returns it, or None."""
    names = [value for rdn in (certificate or {}).get("subject", ()) for name, value in rdn if name == "commonName"]
    return names[0] if len(names) == 1 and names[0] else None


def names_in(file: Path) -> list[str]:
    """Return the host names and addresses in a certificate."""
    from cryptography import x509  # noqa: PLC0415  # loads a large library

    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):  # It has a form that only OpenSSL reads, or no names.
        return []
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]


def read_validity(file: Path) -> tuple[datetime, datetime] | None:
    """Return from when and until when a certificate is valid; None if it has a form that only OpenSSL reads."""
    from cryptography import x509  # noqa: PLC0415  # loads a large library

    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except ValueError:
        return None
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def check_validity(file: Path, days: int = 14) -> str | None:
    """Return why clients do not accept a certificate, or will not in some days; None if they will."""
    validity = read_validity(file)
    if validity is None:
        return None
    now, (begin, end) = datetime.now(timezone.utc), validity
    if now < begin:
        return f"the certificate {file} is not valid before {begin:%Y-%m-%d %H:%M} UTC, so clients refuse it"
    if now > end:
        return f"the certificate {file} expired at {end:%Y-%m-%d %H:%M} UTC, so clients refuse it; make a new one"
    if end - now < timedelta(days=days):
        return f"the certificate {file} expires at {end:%Y-%m-%d %H:%M} UTC; make a new one"
    return None


def require_host(host: str, purpose: str) -> None:
    """Raise unless ``host`` is the name or the IP address of a machine."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if not re.fullmatch(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", host):
            raise ConfigurationError(
                f"cannot {purpose} {host!r}: it is neither a name nor an IP address; "
                f"give what clients connect to, without scheme and port"
            ) from None


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core certs``."""
    parser = commands.add_parser("certs", help="make a private certificate authority, and certificates for TLS")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", nargs="+", default=[], help="the names and IP addresses that clients connect to")
    parser.add_argument("--client", nargs="+", default=[], metavar="USER", help="the users who get a certificate")
    parser.add_argument(
        "--renew", action="store_true", help="replace the certificates that are there, keeping their keys"
    )
    parser.add_argument("--days", type=int, default=365, help="how long they are valid (default: 365)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> str:
    """Write the certificates, and return what goes where."""
    if args.renew:
        if args.host or args.client:
            raise ConfigurationError("cannot renew and make certificates at once: leave --host and --client out")
        lines = renew_certificates(args.folder, args.days)
    else:
        lines = make_certificates(args.folder, args.host, args.client, args.days)
    return "\n".join([f"in {args.folder}:", *(f"  {line}" for line in lines)])
