"""A private certificate authority, which signs certificates for a worker and its users."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syft_core.exceptions import ConfigurationError
from syft_core.files import require_secrecy, write_file

MAX_DAYS = 3650
"""How long the authority is valid, and so the longest time for anything that it signs."""
_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


class Authority:
    """The certificate and the key in ``ca.pem`` and ``ca.key`` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            require_secrecy(folder / "ca.key")
            self._key: Any = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
            self._name = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()).subject
        except ConfigurationError:
            raise
        except (OSError, ValueError, TypeError):
            raise ConfigurationError(
                f"cannot sign certificates with {folder / 'ca.key'}: it is missing or damaged; "
                f"put the key of ca.pem there, or choose another folder"
            ) from None

    @classmethod
    def create(cls, folder: Path) -> None:
        """Write a new authority to a folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(f"syft-core authority {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S}")
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = _build(name, key.public_key(), name, key, MAX_DAYS, constraints, "key_cert_sign", "crl_sign")
        _write(folder / "ca", builder, key, key)

    def issue(self, file: str, name: str, hosts: Sequence[str], days: int) -> None:
        """Write ``file``.pem and ``file``.key: a server's certificate if there are hosts, otherwise a user's."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._build(_name(name[:64]), key.public_key(), days)
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_general_name, hosts)), critical=False)
        _write(self._folder / file, builder, key, self._key)

    def renew(self, path: Path, days: int) -> str:
        """Replace a certificate by one with the same names and key; return how long it is valid."""
        try:
            old = x509.load_pem_x509_certificate(path.read_bytes())
        except ValueError:
            raise ConfigurationError(f"cannot renew {path}: it is not a certificate; make a new one") from None
        builder = self._build(old.subject, old.public_key(), days)
        for extension in old.extensions:
            if isinstance(extension.value, x509.ExtendedKeyUsage | x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        write_file(path, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)
        return f"valid until {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"

    def _build(self, name: x509.Name, public: Any, days: int) -> x509.CertificateBuilder:
        constraints = x509.BasicConstraints(ca=False, path_length=None)
        return _build(name, public, self._name, self._key, days, constraints, "digital_signature")


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _build(
    name: x509.Name,
    public: Any,
    issuer: x509.Name,
    signer: Any,
    days: int,
    constraints: x509.BasicConstraints,
    *uses: str,
) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # Clocks differ.
        .not_valid_after(now + timedelta(days=days))
        .add_extension(constraints, critical=True)
        .add_extension(x509.KeyUsage(**{usage: usage in uses for usage in _USAGES}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write(path: Path, builder: x509.CertificateBuilder, key: Any, signer: Any) -> None:
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    certificate = builder.sign(signer, hashes.SHA256()).public_bytes(pem)
    write_file(path.with_name(f"{path.name}.key"), secret, replace=False)
    write_file(path.with_name(f"{path.name}.pem"), certificate, mode=0o644, replace=False)
