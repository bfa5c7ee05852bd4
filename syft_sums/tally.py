"""The client's part in one round: it adds masked vectors, and removes the masks that the workers reveal. Sans-IO."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from syft_core.values import Nested
from syft_sums import masks
from syft_sums.encoding import Decoded, Encoded, decode
from syft_sums.roster import Roster
from syft_sums.shamir import combine
from syft_sums.statements import MaskedVector, Proof, Ready, Revealed, hash_list


class FalseStatementError(ValueError):
    """An answer of a worker is not valid."""

    def __init__(self, key: bytes, why: str) -> None:
        super().__init__(why)
        self.key = key


class Tally:
    """The sum of one list of workers.

    Masked vectors are added when they arrive, so that only one vector is kept.
    """

    def __init__(self, roster: Roster, statements: Sequence[Ready]) -> None:
        self.roster = roster
        self.statements = tuple(sorted(statements))
        self.digest = hash_list(self.statements)
        self._places = {statement.key: place for place, statement in enumerate(self.statements)}
        self._total: Encoded = np.zeros(self.statements[0].length, np.uint64)
        self._proofs: dict[bytes, Proof] = {}
        self._sealed: dict[bytes, tuple[bytes, ...]] = {}
        self._seeds: dict[bytes, bytes] = {}
        self._shares: dict[bytes, dict[int, bytes]] = {}

    def add_masked(self, key: bytes, received: Nested) -> None:
        """Add the masked vector of a worker; raise ``FalseStatementError`` if the answer is not valid."""
        try:
            masked = MaskedVector.read(received)
        except (TypeError, ValueError) as error:
            raise FalseStatementError(key, str(error)) from None
        proof = masked.proof
        if (proof.key, proof.list) != (key, self.digest) or not proof.is_signed:
            raise FalseStatementError(key, "its signature is wrong, or for another list")
        if len(masked.values) != 8 * len(self._total) or len(masked.sealed) != len(self.statements):
            raise FalseStatementError(key, "it has another length")
        if key not in self._proofs:
            self._total += np.frombuffer(masked.values, "<u8")
            self._proofs[key], self._sealed[key] = proof, masked.sealed

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The signed digests of the answers, in the order of the list; for all workers when all have answered."""
        return tuple([self._proofs[each.key] for each in self.statements if each.key in self._proofs])

    @property
    def unopened(self) -> list[bytes]:
        """The workers whose seed is not known, from them or from enough shares."""
        return [each.key for each in self.statements if each.key not in self._seeds]

    def sealed_for(self, receiver: bytes, gone: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return the shares that those who have gone have sealed for a worker."""
        return tuple([self._sealed[key][self._places[receiver]] for key in gone])

    def add_revealed(self, key: bytes, gone: Sequence[bytes], received: Nested) -> None:
        """Add the seed of a worker, and its shares of other seeds; raise ``FalseStatementError`` if it is not valid."""
        try:
            revealed = Revealed.read(received)
        except (TypeError, ValueError) as error:
            raise FalseStatementError(key, str(error)) from None
        if len(revealed.shares) != len(gone):
            raise FalseStatementError(key, "it has not given the shares that were asked for")
        if hashlib.sha256(revealed.seed).digest() != self._proofs[key].seed:
            raise FalseStatementError(key, "its seed is not the one that it has masked with")
        self._seeds[key] = revealed.seed
        for other, part in zip(gone, revealed.shares, strict=True):
            self._shares.setdefault(other, {})[self._places[key] + 1] = part

    def rebuild(self) -> None:
        """Rebuild the seeds of workers that have gone, where there are enough shares.

        Raise ``FalseStatementError`` for a worker whose shares do not give its seed.
        """
        for key, shares in self._shares.items():
            if key in self._seeds or len(shares) < self.roster.quorum:
                continue
            secret = combine(_take(shares, self.roster.quorum))
            seed = secret.to_bytes(33, "big")[1:]
            if hashlib.sha256(seed).digest() != self._proofs[key].seed:
                raise FalseStatementError(key, "its seed cannot be rebuilt")
            self._seeds[key] = seed

    def open(self) -> Decoded:
        """Return the sum, when all seeds are known."""
        total = self._total.copy()
        masks.add_masks(total, [(masks.mask_of_seed(seed, self.digest), -1) for seed in self._seeds.values()])
        return decode(total)


def _take(shares: Mapping[int, bytes], count: int) -> dict[int, bytes]:
    return dict(list(shares.items())[:count])
