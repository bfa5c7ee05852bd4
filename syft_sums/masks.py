"""Masks, and seals for shares: pseudorandom integers from seeds, added to vectors of 64-bit integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from syft_sums.encoding import BLOCK, Encoded

SEED_BYTES = 32
_ONCE = bytes(12)
"""The nonce of a key that seals one share."""
_ZEROS = bytes(8 * BLOCK)


def derive(secret: bytes, info: bytes, length: int = 48) -> bytes:
    """Return key material of a secret for one purpose."""
    return HKDF(hashes.SHA256(), length, None, info).derive(secret)


def add_masks(vector: Encoded, masks: Sequence[tuple[bytes, int]]) -> None:
    """Add the pseudorandom integers of 48 bytes each, or subtract them for the sign -1, in place."""
    streams = [(Cipher(algorithms.AES(key[:32]), modes.CTR(key[32:])).encryptor(), sign) for key, sign in masks]
    buffer = bytearray(8 * BLOCK + 16)
    numbers = np.frombuffer(buffer, "<u8", BLOCK)
    for start in range(0, len(vector), BLOCK):
        block = vector[start : start + BLOCK]
        for stream, sign in streams:
            stream.update_into(memoryview(_ZEROS)[: block.nbytes], buffer)
            (np.add if sign > 0 else np.subtract)(block, numbers[: len(block)], out=block)


def mask_of_seed(seed: bytes, list: bytes) -> bytes:
    """Return the key of the mask that a worker's own seed gives for a list."""
    return derive(seed, b"own" + list)


def mask_of_pair(secret: bytes, list: bytes, one: bytes, other: bytes) -> bytes:
    """Return the key of the mask of two workers.

    It is bound to the keys of both: otherwise a worker that signs the X25519 key of another one as its own would make
    two masks of a third one cancel.
    """
    return derive(secret, b"pair" + list + min(one, other) + max(one, other))


def key_of_seal(secret: bytes, list: bytes, sender: bytes, receiver: bytes) -> bytes:
    """Return the key with which one share is sealed: one for each direction, used once."""
    return derive(secret, b"seal" + list + sender + receiver, 32)


def seal(key: bytes, share: bytes, list: bytes) -> bytes:
    """Return an encrypted share."""
    return ChaCha20Poly1305(key).encrypt(_ONCE, share, list)


def unseal(key: bytes, sealed: bytes, list: bytes) -> bytes | None:
    """Return a share; None if it was not sealed for this list with this key."""
    try:
        return ChaCha20Poly1305(key).decrypt(_ONCE, sealed, list)
    except InvalidTag:
        return None
