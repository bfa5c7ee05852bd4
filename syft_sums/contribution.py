"""A worker's part in one round: it masks its vector for a list, and reveals the mask of one list.

Sans-IO: it neither sends messages nor writes a ledger. Every check that needs nothing but the statements is made here;
``handlers.py`` checks what the owner's rule and the ledger say.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.hazmat.backends import openssl as _openssl  # noqa: F401  # a served worker may not import it later
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from syft_core.values import Nested
from syft_sums import masks
from syft_sums.encoding import Encoded
from syft_sums.keys import MemberKey, write_fingerprint
from syft_sums.roster import Roster
from syft_sums.shamir import PRIME, share
from syft_sums.statements import NONCE_BYTES, MaskedVector, Proof, Ready, Revealed, hash_list, hash_parts

MAX_LISTS = 8
"""Maximum number of lists for which a worker masks in one round."""
_ROOT_BYTES, _COEFFICIENT_BYTES = 32, 48


class StatementError(ValueError):
    """A list or a proof is not valid; the text is the reason."""


@dataclass
class _Attempt:
    """A list for which the worker has masked."""

    statements: tuple[Ready, ...]
    root: bytes
    """The random number from which its own seed and the coefficients of the shares are derived; it never leaves."""
    secrets: dict[bytes, bytes]
    """The secret with each other worker, by its key; forgotten when the mask is revealed."""
    openers: dict[bytes, bytes]
    """The keys that open the shares from each other worker."""
    proof: Proof | None = None


class Contribution:
    """The vector of a worker in one round, its statement, and the lists for which it has masked.

    Args:
        key: the key of the worker.
        roster: the workers of the study.
        round: the number of the round.
        task: the digest of what must be the same at all workers.
        vector: the encoded numbers.
        masked: for how many sums the worker has masked before.
        head: the hash of the last line of its ledger.
        noise: what the noise in the update promises.

    """

    def __init__(
        self,
        key: MemberKey,
        roster: Roster,
        round: int,
        task: bytes,
        vector: Encoded,
        masked: int = 0,
        head: bytes = bytes(32),
        noise: str = "none",
    ) -> None:
        self.roster, self._key = roster, key
        self._vector: Encoded | None = vector
        self._secret: X25519PrivateKey | None = X25519PrivateKey.generate()
        public, nonce = self._secret.public_key().public_bytes_raw(), secrets.token_bytes(NONCE_BYTES)
        ready = Ready(key.public, roster.study, round, task, public, nonce, len(vector), masked, head, noise)
        self.ready = ready.sign(key)
        self._attempts: dict[bytes, _Attempt] = {}
        self.revealed: bytes | None = None
        """The list of which the mask was revealed."""

    # --- masking

    def read_list(self, received: Iterable[Nested]) -> tuple[Ready, ...]:
        """Return a received list; raise ``StatementError`` unless it is one for which this worker may mask."""
        try:
            statements = tuple(map(Ready.read, received))
        except (TypeError, ValueError):
            raise StatementError("a statement is malformed, or of another release") from None
        keys = [statement.key for statement in statements]
        if keys != sorted(set(keys)):
            raise StatementError("the list is not in the order of the keys, or has a worker twice")
        if any(key not in self.roster.keys for key in keys):
            raise StatementError("a worker of the list is not in the roster of the study")
        if len(keys) < self.roster.quorum:
            why = f"the list has {len(keys)} workers, and {self.roster.quorum} of {self.roster.size} must take part"
            raise StatementError(why)
        for statement in statements:
            self._require_fitting(statement)
        if self.ready not in statements:
            raise StatementError("the list does not have the last statement of this worker")
        return statements

    def _require_fitting(self, statement: Ready) -> None:
        own, who = self.ready, write_fingerprint(statement.key)
        if not statement.is_signed:
            raise StatementError(f"the signature of {who} is wrong")
        if (statement.study, statement.round) != (own.study, own.round):
            raise StatementError(f"the statement of {who} is of another study or round")
        if (statement.task, statement.length) != (own.task, own.length):
            raise StatementError(f"{who} has another task: another model, other settings, or data with other tags")

    def prepare(self, statements: tuple[Ready, ...]) -> bytes:
        """Return the digest of a list that ``read_list`` has returned; raise if this worker may not mask for it."""
        if self.revealed is not None:
            raise StatementError("a sum of this round has left")
        digest = hash_list(statements)
        if digest not in self._attempts:
            if len(self._attempts) >= MAX_LISTS:
                raise StatementError(f"the limit is {MAX_LISTS} lists in a round")
            found = self._exchange(statements)
            own = self.ready.key
            openers = {key: masks.key_of_seal(secret, digest, key, own) for key, secret in found.items()}
            self._attempts[digest] = _Attempt(statements, secrets.token_bytes(_ROOT_BYTES), found, openers)
        return digest

    def mask(self, digest: bytes) -> MaskedVector:
        """Return the masked vector for a list that ``prepare`` has returned; for the same list, the same bytes."""
        attempt = self._attempts[digest]
        statements, secret_by_key, own = attempt.statements, attempt.secrets, self._own_seed(attempt)
        if self._vector is None:
            raise StatementError("a sum of this round has left")
        vector = self._vector.copy()
        pairs = [(masks.mask_of_seed(own, digest), 1)]
        for key, secret in secret_by_key.items():
            pairs.append((masks.mask_of_pair(secret, digest, self.ready.key, key), 1 if key > self.ready.key else -1))
        masks.add_masks(vector, pairs)
        shares = share(
            int.from_bytes(own, "big"), self._make_coefficients(attempt), list(range(1, len(statements) + 1))
        )
        sealed = tuple(
            [
                masks.seal(masks.key_of_seal(secret_by_key[other.key], digest, self.ready.key, other.key), part, digest)
                if other.key in secret_by_key
                else b""
                for other, part in zip(statements, shares, strict=True)
            ]
        )
        values = vector.astype("<u8", copy=False).tobytes()
        digests = hashlib.sha256(values).digest(), hashlib.sha256(own).digest(), hash_parts(*sealed)
        attempt.proof = Proof(self.ready.key, digest, *digests).sign(self._key)
        return MaskedVector(attempt.proof, values, sealed)

    def _exchange(self, statements: Sequence[Ready]) -> dict[bytes, bytes]:
        """Return the secret that this worker has with each other one of a list."""
        found = {}
        for other in statements:
            if other.key != self.ready.key and self._secret is not None:
                try:
                    found[other.key] = self._secret.exchange(X25519PublicKey.from_public_bytes(other.public))
                except ValueError:  # The secret would be zero, whatever the own key is.
                    raise StatementError(f"the X25519 key of {write_fingerprint(other.key)} is not valid") from None
        return found

    @staticmethod
    def _own_seed(attempt: _Attempt) -> bytes:
        return masks.derive(attempt.root, b"own seed", masks.SEED_BYTES)

    def _make_coefficients(self, attempt: _Attempt) -> list[int]:
        names = [b"coefficient" + place.to_bytes(4, "big") for place in range(1, self.roster.quorum)]
        return [int.from_bytes(masks.derive(attempt.root, name, _COEFFICIENT_BYTES), "big") % PRIME for name in names]

    # --- revealing

    def require_masked(self, digest: bytes, received: Iterable[Nested]) -> None:
        """Raise ``StatementError`` unless all workers of a list have signed that they masked for it."""
        attempt = self._attempts.get(digest)
        if self.revealed not in (None, digest):
            raise StatementError("another sum of this round has left")
        if attempt is None or attempt.proof is None:
            raise StatementError("this worker has not masked for this list")
        try:
            proofs = list(map(Proof.read, received))
        except (TypeError, ValueError):
            raise StatementError("a proof is malformed, or of another release") from None
        if [proof.key for proof in proofs] != [statement.key for statement in attempt.statements]:
            raise StatementError("the signatures of all workers of the list are needed, and one is missing")
        if not all(proof.list == digest and proof.is_signed for proof in proofs):
            raise StatementError("a signature is wrong, or for another list")
        if attempt.proof not in proofs:
            raise StatementError("the proof of this worker is not the one that it has signed")

    def open_shares(self, digest: bytes, gone: Sequence[bytes], sealed: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return the shares that those who have gone have sealed for this worker, after ``require_masked``."""
        attempt = self._attempts[digest]
        if len(gone) != len(sealed) or len(set(gone)) != len(gone) or not attempt.openers.keys() >= set(gone):
            raise StatementError("those who have gone are not workers of the list, or their shares are missing")
        shares = []
        for key, part in zip(gone, sealed, strict=True):
            found = masks.unseal(attempt.openers[key], part, digest)
            if found is None:
                raise StatementError("a share was not sealed for this worker and this list")
            shares.append(found)
        return tuple(shares)

    def list_workers(self, digest: bytes) -> tuple[Ready, ...]:
        """Return the statements of a list for which this worker has masked."""
        return self._attempts[digest].statements

    def reveal(self, digest: bytes, shares: tuple[bytes, ...] = ()) -> Revealed:
        """Return the own seed for a list, with shares of the seeds of those that have gone.

        After ``require_masked``. From now on the worker reveals nothing for other lists, and has forgotten its vector,
        its key of the round, and the seeds for the other lists.
        """
        attempt = self._attempts[digest]
        self.revealed, self._vector, self._secret = digest, None, None
        self._attempts = {digest: attempt}
        attempt.secrets = {}
        return Revealed(self._own_seed(attempt), shares)
