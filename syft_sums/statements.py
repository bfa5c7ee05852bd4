"""What workers say in sums, as tuples for the wire, and the texts that they sign.

Every text names the protocol, its version and the kind of statement, and contains all fields of the statement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from syft_core.serde import serialize
from syft_core.values import Nested
from syft_sums.keys import KEY_BYTES, MemberKey, is_signed

VERSION = 1
DIGEST_BYTES, NONCE_BYTES, SIGNATURE_BYTES = 32, 16, 64
MAX_ROUND, MAX_LENGTH, MAX_COUNT = 1 << 40, 1 << 32, 1 << 62
MAX_NOISE = 200


def write_text(kind: str, *fields: Nested) -> bytes:
    """Return the canonical text of a statement."""
    return serialize(("syft-core sums", VERSION, kind, *fields))


def hash_parts(*parts: bytes) -> bytes:
    """Return the SHA-256 digest of parts, each preceded by its length."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()


class Ready(NamedTuple):
    """A worker has an update for a round."""

    key: bytes
    study: bytes
    round: int
    task: bytes
    """The digest of everything that must be the same at all workers."""
    public: bytes
    """Its X25519 key of this round."""
    nonce: bytes
    length: int
    """How many numbers the vector has."""
    masked: int
    """For how many sums the worker has masked before."""
    head: bytes
    """The hash of the last line of its ledger."""
    noise: str
    """The noise in the update, and what that promises; "none" without."""
    signature: bytes = b""

    @property
    def text(self) -> bytes:
        """What is signed."""
        return write_text("ready", *self[:-1])

    @property
    def is_signed(self) -> bool:
        """Whether the signature is valid."""
        return is_signed(self.key, self.text, self.signature)

    def sign(self, key: MemberKey) -> Ready:
        """Return the statement with its signature."""
        return self._replace(signature=key.sign(self.text))

    @classmethod
    def read(cls, received: Nested) -> Ready:
        """Return a received statement; raise ``ValueError`` if it is malformed. Its signature is not checked."""
        _require(type(received) is tuple and len(received) == len(cls._fields))
        found = cls(*received)
        sizes = [KEY_BYTES, DIGEST_BYTES, DIGEST_BYTES, KEY_BYTES, NONCE_BYTES, DIGEST_BYTES, SIGNATURE_BYTES]
        texts = [found.key, found.study, found.task, found.public, found.nonce, found.head, found.signature]
        _require_bytes(texts, sizes)
        numbers = (found.round, MAX_ROUND), (found.length, MAX_LENGTH), (found.masked, MAX_COUNT)
        _require(all(type(number) is int and 0 <= number <= most for number, most in numbers))
        _require(type(found.noise) is str and len(found.noise) <= MAX_NOISE)
        return found


def hash_list(statements: Sequence[Ready]) -> bytes:
    """Return the digest of a list of statements in order: ``A`` in docs/protocols/sums.md."""
    return hash_parts(b"list", *[statement.text for statement in statements])


class Proof(NamedTuple):
    """A worker has masked its update for a list: the digests of its answer, signed."""

    key: bytes
    list: bytes
    values: bytes
    seed: bytes
    sealed: bytes
    signature: bytes = b""

    @property
    def text(self) -> bytes:
        """What is signed."""
        return write_text("masked", *self[:-1])

    @property
    def is_signed(self) -> bool:
        """Whether the signature is valid."""
        return is_signed(self.key, self.text, self.signature)

    def sign(self, key: MemberKey) -> Proof:
        """Return the statement with its signature."""
        return self._replace(signature=key.sign(self.text))

    @classmethod
    def read(cls, received: Nested) -> Proof:
        """Return a received statement; raise ``ValueError`` if it is malformed. Its signature is not checked."""
        _require(type(received) is tuple and len(received) == len(cls._fields))
        _require_bytes(received, [KEY_BYTES, *[DIGEST_BYTES] * 4, SIGNATURE_BYTES])
        return cls(*received)


class MaskedVector(NamedTuple):
    """A masked update, and the shares of its seed, each sealed for one worker of the list."""

    proof: Proof
    values: bytes
    """The numbers, as little-endian integers of 64 bits."""
    sealed: tuple[bytes, ...]
    """In the order of the list; empty for the worker itself."""

    @classmethod
    def read(cls, received: Nested) -> MaskedVector:
        """Return a received answer; raise ``ValueError`` if it is malformed, or its digests are others."""
        _require(type(received) is tuple and len(received) == len(cls._fields))
        proof, values, sealed = Proof.read(received[0]), received[1], received[2]
        _require(isinstance(values, bytes) and type(sealed) is tuple and all(type(part) is bytes for part in sealed))
        _require(hashlib.sha256(values).digest() == proof.values and hash_parts(*sealed) == proof.sealed)
        return cls(proof, values, sealed)

    def to_wire(self) -> tuple[Nested, ...]:
        """Invert ``read``."""
        return tuple(self.proof), self.values, self.sealed


class Revealed(NamedTuple):
    """The seed of a worker's own mask, and its shares of the seeds of those that have gone."""

    seed: bytes
    shares: tuple[bytes, ...]

    @classmethod
    def read(cls, received: Nested) -> Revealed:
        """Return a received answer; raise ``ValueError`` if it is malformed."""
        _require(type(received) is tuple and len(received) == len(cls._fields))
        seed, shares = received
        _require(type(shares) is tuple)
        _require_bytes((seed, *shares), [32, *[33] * len(shares)])
        return cls(seed, shares)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("it is malformed, or of another release")


def _require_bytes(parts: Sequence[Nested], sizes: Sequence[int]) -> None:
    _require(all(type(part) is bytes and len(part) == size for part, size in zip(parts, sizes, strict=True)))
