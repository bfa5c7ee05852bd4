"""Member keys: a worker signs what it says in sums with one key, which other owners list by its fingerprint."""

from __future__ import annotations

import hmac
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from syft_core.exceptions import ConfigurationError
from syft_core.files import require_secrecy, write_file

KEY_BYTES = 32
PREFIX = "ed25519:"
KEY_FILE = "key"
"""The name of the file in the store of a worker."""


class MemberKey:
    """The private key of a worker for sums."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._key = Ed25519PrivateKey.generate() if secret is None else Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw()

    @property
    def fingerprint(self) -> str:
        """The text by which other owners list it."""
        return write_fingerprint(self.public)

    def sign(self, text: bytes) -> bytes:
        """Return the signature of a text."""
        return self._key.sign(text)

    def save(self, path: Path) -> None:
        """Write the key to a file that only its owner can read."""
        write_file(path, self._key.private_bytes_raw())

    @classmethod
    def load(cls, path: Path) -> MemberKey:
        """Return the key in a file; write a new one if there is none."""
        if not path.exists():
            key = cls()
            key.save(path)
            return key
        require_secrecy(path)
        secret = path.read_bytes()
        if len(secret) != KEY_BYTES:
            raise ConfigurationError(
                f"cannot use {path} as the key of a member: it has {len(secret)} bytes, not {KEY_BYTES}; restore it, "
                f"or make a new one with `syft-core key new`"
            )
        return cls(secret)


def is_signed(key: bytes, text: bytes, signature: bytes) -> bool:
    """Return whether a signature of a text is valid."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def write_fingerprint(key: bytes) -> str:
    """Return a public key as a text.

    >>> write_fingerprint(bytes(32))[:12]
    'ed25519:0000'
    """
    return PREFIX + key.hex()


def read_fingerprint(text: object) -> bytes:
    r"""Return the public key in a text; raise ``ValueError`` if it is not one.

    >>> read_fingerprint("ed25519:" + "01" * 32) == b"\x01" * 32
    True
    """
    digits = text[len(PREFIX) :] if isinstance(text, str) and text.startswith(PREFIX) else ""
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES or not hmac.compare_digest(key.hex(), digits):
        raise ValueError(f"must be {PREFIX!r} and {2 * KEY_BYTES} hexadecimal digits, as `syft-core key` prints it")
    return key
