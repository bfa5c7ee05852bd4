"""Evidence: what workers have signed in the rounds of a study, in a file that anybody can verify offline.

Every field of the file is signed by the workers, or bound by what they sign: the roster by the digest of the study, and
a list by its digest. Verifying needs the fingerprints of the workers, and neither an account nor a connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from syft_core.files import write_file
from syft_core.values import Json, Table
from syft_sums.errors import SumError
from syft_sums.keys import write_fingerprint
from syft_sums.roster import Roster
from syft_sums.statements import Proof, Ready, hash_list

FORMAT = 1
MAX_BYTES = 1 << 28


def describe_round(roster: Roster, statements: Sequence[Ready], proofs: Sequence[Proof]) -> Table:
    """Return what the workers of a list have signed, as JSON can express it."""
    return {
        "study": roster.name,
        "roster": [key.hex() for key in roster.keys],
        "colluding": roster.colluding,
        "statements": [_to_json(statement) for statement in statements],
        "proofs": [_to_json(proof) for proof in proofs],
    }


def write_evidence(path: str | Path, rounds: Iterable[Table]) -> None:
    """Write the evidence of rounds to a file, one line for each."""
    lines = [json.dumps(each, separators=(",", ":")) for each in ({"format": FORMAT}, *rounds)]
    write_file(Path(path), "".join([f"{line}\n" for line in lines]).encode(), mode=0o644)


@dataclass(frozen=True)
class VerifiedRound:
    """A round whose signatures are all valid."""

    study: str
    round: int
    roster: tuple[str, ...]
    """The fingerprints of the workers of the study."""
    signers: tuple[str, ...]
    """Those of the workers in the sum."""
    quorum: int
    noise: tuple[str, ...]
    """What the noise in each of their updates promises."""
    heads: tuple[str, ...]
    """The hash of the last line of each of their ledgers before the round."""


def read_evidence(path: str | Path) -> list[VerifiedRound]:
    """Return the rounds in a file; raise ``SumError`` at the first that is not as the workers have signed it."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise SumError.evidence(path, "it is too large")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SumError.evidence(path, getattr(error, "strerror", None) or "it is not a text") from None
    if not lines or _read_line(path, 1, lines[0]) != {"format": FORMAT}:
        raise SumError.evidence(path, "it is not evidence of sums, or of another release")
    return [_verify(path, number, _read_line(path, number, line)) for number, line in enumerate(lines[1:], 2)]


def find_gaps(rounds: Sequence[VerifiedRound]) -> list[int]:
    """Return the numbers of rounds between the first and the last that are not in the evidence."""
    found = {each.round for each in rounds}
    return [number for number in range(min(found, default=0), max(found, default=0)) if number not in found]


def _verify(path: str | Path, number: int, line: Json) -> VerifiedRound:
    def require(holds: bool, why: str) -> None:
        if not holds:
            raise SumError.evidence(path, f"line {number}: {why}")

    try:
        roster = Roster(line["study"], tuple(map(bytes.fromhex, line["roster"])), line["colluding"])
        statements = [Ready.read(tuple(_from_json(part, Ready._fields))) for part in line["statements"]]
        proofs = [Proof.read(tuple(_from_json(part, Proof._fields))) for part in line["proofs"]]
    except (KeyError, TypeError, ValueError):
        raise SumError.evidence(path, f"line {number} is malformed") from None
    require(roster.find_problem() is None, "its roster is not valid")
    keys = [statement.key for statement in statements]
    require(keys == sorted(set(keys)) and set(keys) <= set(roster.keys), "a worker is not in the roster, or twice")
    require(len(keys) >= roster.quorum, f"it has {len(keys)} workers, and {roster.quorum} are needed")
    require(all(statement.is_signed for statement in statements), "the signature of a statement is wrong")
    require(all(statement.study == roster.study for statement in statements), "a statement is of another study")
    require(len({(each.round, each.task, each.length) for each in statements}) == 1, "the statements differ")
    require([proof.key for proof in proofs] == keys, "a worker of the list has not signed that it masked")
    digest = hash_list(statements)
    require(all(proof.list == digest and proof.is_signed for proof in proofs), "the signature of a proof is wrong")
    return VerifiedRound(
        roster.name,
        statements[0].round,
        tuple(map(write_fingerprint, roster.keys)),
        tuple(map(write_fingerprint, keys)),
        roster.quorum,
        tuple([statement.noise for statement in statements]),
        tuple([statement.head.hex() for statement in statements]),
    )


def _read_line(path: str | Path, number: int, line: str) -> Json:
    try:
        return json.loads(line)
    except ValueError:
        raise SumError.evidence(path, f"line {number} is malformed") from None


def _to_json(statement: Ready | Proof) -> Table:
    fields = statement._asdict()
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}


_TEXTS = frozenset({"noise"})


def _from_json(table: Mapping[str, Json], names: Sequence[str]) -> Iterator[Json]:
    if set(table) != set(names):
        raise ValueError("it has other fields")
    for name in names:
        value = table[name]
        yield bytes.fromhex(value) if isinstance(value, str) and name not in _TEXTS else value
