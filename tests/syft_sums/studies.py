"""Members of a study without workers: the protocol alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from syft_sums.contribution import Contribution
from syft_sums.encoding import encode
from syft_sums.keys import MemberKey
from syft_sums.roster import Roster
from syft_sums.statements import hash_parts
from syft_sums.tally import Tally

TASK = hash_parts(b"a task")


class Study:
    """The members of a roster, each with a vector; the driver's keys are its own to use."""

    def __init__(self, vectors: list[Any], colluding: int = 1, round: int = 1, task: bytes = TASK) -> None:
        self.keys = sorted([MemberKey() for _ in vectors], key=lambda key: key.public)
        self.vectors = dict(zip([key.public for key in self.keys], vectors, strict=True))
        self.roster = Roster("icu", tuple([key.public for key in self.keys]), colluding)
        self.members = {key.public: self.join(key, round, task) for key in self.keys}

    def join(self, key: MemberKey, round: int = 1, task: bytes = TASK) -> Contribution:
        encoded, _ = encode([np.asarray(self.vectors[key.public])], 1.0, 1.0, self.roster.size)
        return Contribution(key, self.roster, round, task, encoded)

    @property
    def ready(self) -> list[Any]:
        return [self.members[key].ready for key in self.roster.keys]

    def mask(self, statements: list[Any], gone: tuple[bytes, ...] = ()) -> Tally:
        """Let all workers of a list mask for it, except those that have gone."""
        tally = Tally(self.roster, statements)
        for statement in tally.statements:
            if statement.key not in gone:
                member = self.members[statement.key]
                masked = member.mask(member.prepare(member.read_list([tuple(each) for each in tally.statements])))
                tally.add_masked(statement.key, masked.to_wire())
        return tally

    def reveal(self, tally: Tally, gone: tuple[bytes, ...] = (), by: list[bytes] | None = None) -> None:
        """Let the workers of a list reveal, except those that have gone."""
        for statement in tally.statements:
            if statement.key not in gone and (by is None or statement.key in by):
                reveal(self.members[statement.key], tally, gone)

    def sum(self, gone: tuple[bytes, ...] = ()) -> Any:
        tally = self.mask(self.ready)
        self.reveal(tally, gone)
        tally.rebuild()
        return tally.open()


def reveal(member: Contribution, tally: Tally, gone: tuple[bytes, ...] = ()) -> None:
    member.require_masked(tally.digest, [tuple(proof) for proof in tally.proofs])
    shares = member.open_shares(tally.digest, gone, tally.sealed_for(member.ready.key, gone))
    revealed = member.reveal(tally.digest, shares)
    tally.add_revealed(member.ready.key, gone, tuple(revealed))
