"""Pseudorandom streams: AES in counter mode, keyed by seeds from the operating system."""

from __future__ import annotations

import hashlib
import secrets
from functools import cache
from typing import Any

from syft_core.features import Later

SEED_BYTES = 16
_CHUNK = 1 << 16
_ZEROS = memoryview(bytes(_CHUNK))


def new_seed() -> bytes:
    """Return an unpredictable seed."""
    return secrets.token_bytes(SEED_BYTES)


def join_seeds(first: bytes, second: bytes, purpose: bytes = b"") -> bytes:
    """Return a seed that is unpredictable for everybody who lacks one of two halves, and another for each purpose."""
    return hashlib.blake2b(first + second + purpose, digest_size=SEED_BYTES).digest()


def advance_seed(seed: bytes) -> tuple[bytes, bytes]:
    """Return the seed of one use and the seed that follows; from the latter, the two before it cannot be computed."""
    digest = hashlib.sha256(b"advance" + seed).digest()
    return digest[:SEED_BYTES], digest[SEED_BYTES:]


def derive_key(seed: bytes, label: bytes, number: int) -> bytes:
    """Return the key of the stream that ``label`` and ``number`` select."""
    return hashlib.blake2b(label + number.to_bytes(8, "little"), key=seed, digest_size=SEED_BYTES).digest()


class Stream:
    """The keystream of a seed for one purpose: ``label`` and ``number`` select independent streams.

    The same seed gives the same bytes; without it, they look random.

    >>> seed = bytes(16)
    >>> Stream(seed, b"triple", 1).take(4) == Stream(seed, b"triple", 1).take(4)
    True
    >>> Stream(seed, b"triple", 1).take(4) == Stream(seed, b"triple", 2).take(4)
    False
    """

    __slots__ = ("_encryptor",)

    def __init__(self, seed: bytes, label: bytes = b"", number: int = 0) -> None:
        self._encryptor = _cipher()(derive_key(seed, label, number))

    @classmethod
    def of_key(cls, key: bytes) -> Stream:
        """Return the stream of a key that ``derive_key`` computed."""
        stream = cls.__new__(cls)
        stream._encryptor = _cipher()(key)
        return stream

    def take(self, size: int) -> bytearray:
        """Return the next ``size`` bytes."""
        taken = bytearray(size)
        with memoryview(taken) as view:
            self.fill(view)
        return taken

    def fill(self, view: memoryview) -> None:
        """Write the next bytes to a buffer of bytes."""
        size = len(view)
        if size <= _CHUNK:
            self._encryptor.update_into(_ZEROS[:size], view)
            return
        for start in range(0, size, _CHUNK):
            part = view[start : start + _CHUNK]
            self._encryptor.update_into(_ZEROS[: len(part)], part)


# Loading the library takes longer than the rest of the core, and most programs need no encryption.
_CIPHER = Later("cryptography.hazmat.primitives.ciphers:Cipher")
_AES = Later("cryptography.hazmat.primitives.ciphers.algorithms:AES")
_CTR = Later("cryptography.hazmat.primitives.ciphers.modes:CTR")


@cache
def _cipher() -> Any:
    cipher, aes, ctr = _CIPHER.found, _AES.found, _CTR.found
    return lambda key: cipher(aes(key), ctr(bytes(16))).encryptor()
