"""Studies: what a worker keeps for sums: its key, the members and rules of its owner, and the rounds in progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syft_core.exceptions import LedgerError
from syft_core.ledgers.entry import Entry, Event
from syft_core.peer import Id, Peer
from syft_core.pictures.tables import one_line, text_table, to_moment
from syft_core.values import Json, Table
from syft_core.workers.party.derivations import Derivation, Maker
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker
from syft_sums.errors import SumRuleError
from syft_sums.history import RoundKey, SumHistory, data_of
from syft_sums.keys import MemberKey, write_fingerprint
from syft_sums.release import RULE
from syft_sums.roster import Roster
from syft_sums.rules import SumCandidate, SumRule, read_conditions, read_members, read_privacy

if TYPE_CHECKING:
    from syft_sums.contribution import Contribution

MAX_OPEN = 4
"""How many rounds of a user may be open at a time; a new one ends the oldest, with or without a sum."""
ROUND_SECONDS = 3600.0


@dataclass(eq=False)
class OpenRound:
    """A round for which this worker has an update."""

    contribution: Contribution
    peer: Peer
    maker: Maker
    derivation: Derivation
    entry: Stored
    """What would leave, as the ledger describes it."""
    roster: Roster
    weights: str
    ends: float
    recorded: set[bytes]
    """The lists that are in the ledger."""

    @property
    def key(self) -> RoundKey:
        """The user, the study and the number of the round."""
        return self.peer.user or "", self.roster.study.hex(), self.contribution.ready.round

    @property
    def use(self) -> str:
        """The id of the use of a rule: one for each round."""
        return f"{self.roster.study.hex()}-{self.contribution.ready.round}"

    @property
    def candidate(self) -> SumCandidate:
        """What the rules are asked about."""
        return SumCandidate(self.peer, self.maker, self.derivation, self.roster, self.weights)

    @property
    def data(self) -> list[str]:
        """The tags of the data, for each object that was used."""
        return sorted({data_of(operand.tags) for operand in self.maker.operands})


class Studies:
    """The sums of one worker: ``worker.studies``. It prints as a table."""

    HEADER = ("when", "study", "round", "user", "workers", "data", "noise", "state")

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        history = worker.ledger.histories.get(RULE)
        self.history = history if isinstance(history, SumHistory) else SumHistory()
        self.members: dict[str, tuple[bytes, ...]] = {}
        """The keys of each member whom the owner counts, by name."""
        self.rules: dict[str, SumRule] = {}
        self.rounds: dict[RoundKey, OpenRound] = {}
        self.round_seconds = ROUND_SECONDS
        self.key_file: Path | None = None
        """Where the key is kept; None keeps it in memory."""
        self._key: MemberKey | None = None
        for name, (conditions, by) in self.history.granted.items():
            self.rules[name] = SumRule(name, conditions, by, uses=self.history.uses.setdefault(name, {}))

    # --- the owner

    @property
    def key(self) -> MemberKey:
        """The key with which the worker signs."""
        if self._key is None:
            self._key = MemberKey() if self.key_file is None else MemberKey.load(self.key_file)
        return self._key

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the key, for the other owners."""
        return self.key.fingerprint

    def set_members(self, members: Mapping[str, str | Sequence[str]]) -> None:
        """Set whom the owner counts: the fingerprint of each member's worker, or of each of them, by name."""
        self.members = read_members(members)

    def allow(self, conditions: Mapping[str, Json], name: str = RULE, by: str = "the owner") -> SumRule:
        """Add a rule from now on; raise if it is wrong, or could never be used."""
        if name in self.rules:
            raise SumRuleError.taken(name)
        return self._add(name, conditions, by)

    def grant(self, name: str, conditions: Mapping[str, Json], by: str) -> SumRule:
        """Add a rule that the ledger keeps: it is here again after a restart."""
        rule = self.allow(conditions, name, by)
        try:
            self._record(rule, "standing", by)
        except LedgerError:
            del self.rules[name]
            raise
        self.history.granted[name] = dict(rule.conditions), by
        return rule

    def revoke(self, name: str = RULE, by: str = "the owner") -> SumRule:
        """Let a rule approve nothing any more: rounds that are open end before they mask again."""
        if name not in self.rules:
            raise SumRuleError.unknown(name, str(self._worker.id))
        if name in self.history.granted:
            self._record(self.rules[name], "revoked", by)
            del self.history.granted[name]
        return self.rules.pop(name)

    def _record(self, rule: SumRule, event: Event, by: str) -> None:
        facts = {"conditions": dict(rule.conditions)}
        entry = Entry(time.time(), str(rule["user"]), "", "", (), "", rule.describe(), event=event, sum=facts)
        self._worker.ledger.record(entry._replace(approver=by, rule=rule.name))

    def configure(self, members: Mapping[str, str | Sequence[str]], table: Mapping[str, Json] | None) -> None:
        """Use the members and the rule of the configuration file."""
        self.set_members(members)
        if table is None:
            if RULE in self.rules and self.rules[RULE].is_configured:
                del self.rules[RULE]
            return
        self._add(RULE, table, "the configuration").is_configured = True

    def _add(self, name: str, conditions: Mapping[str, Json], by: str) -> SumRule:
        if self._worker.ledger.file is None:
            raise SumRuleError.ledger(str(self._worker.id))
        rule = SumRule(name, read_conditions(name, conditions), by)
        own = self.name_of(self.key.public)
        size = len({*self.members, own})
        if rule["at_least"] > size:
            why = f"it wants at least {rule['at_least']} workers, and there are {size} members, this one included"
            raise SumRuleError.condition(name, why)
        rule.uses = self.history.uses.setdefault(name, {})
        self.rules[name] = rule
        return rule

    def name_of(self, key: bytes) -> str | None:
        """Return the member to whom a key belongs; the worker itself is one, whether it is listed or not."""
        for name, keys in self.members.items():
            if key in keys:
                return name
        return str(self._worker.id) if self._key is not None and key == self._key.public else None

    # --- rounds

    def find_rule(
        self, candidate: SumCandidate, use: str = "", refuse: Callable[[SumRule], str | None] = lambda _rule: None
    ) -> SumRule | str:
        """Return the first rule that covers something, and that ``refuse`` does not refuse; or why none does."""
        reasons = []
        for rule in self.rules.values():
            why = rule.refuse(candidate, use) or self._refuse_epsilon(rule, candidate) or refuse(rule)
            if why is None:
                return rule
            reasons.append(f"the rule {rule.name!r} does not cover it: {why}")
        return "; ".join(reasons) or "this worker's owner has no rule for sums"

    def _refuse_epsilon(self, rule: SumRule, candidate: SumCandidate) -> str | None:
        if not rule.has_noise:
            return None
        spent, most = read_privacy(candidate.maker).get("epsilon"), rule["noise"]["epsilon"]
        if type(spent) not in (int, float) or not spent <= most:
            return f"its epsilon is {spent}, and the rule permits {most}"
        return None

    def refuse_roster(self, roster: Roster) -> str | None:
        """Return why this worker takes no part in a study."""
        names = [self.name_of(key) for key in roster.keys]
        if self.key.public not in roster.keys:
            return "its key is not in the roster"
        for key, name in zip(roster.keys, names, strict=True):
            if name is None:
                return f"{write_fingerprint(key)} of the roster is not a member whom its owner counts"
            if names.count(name) > 1:
                return f"the member {name!r} is in the roster with several workers"
        return None

    def open(self, round: OpenRound) -> None:
        """Add a round; the oldest of the user ends if there are too many: first those that were revealed."""
        self.rounds.pop(round.key, None)
        mine = [found for found in self.rounds.values() if found.key[0] == round.key[0]]
        mine.sort(key=lambda found: (found.contribution.revealed is None, found.ends))
        for found in mine[: max(len(mine) + 1 - MAX_OPEN, 0)]:
            del self.rounds[found.key]
        self.rounds[round.key] = round

    def expire(self) -> None:
        """Forget rounds that have ended."""
        now = time.monotonic()
        for key in [key for key, found in self.rounds.items() if found.ends <= now]:
            del self.rounds[key]

    def forget(self, peer: Id) -> None:
        """Forget the rounds of a client that has left."""
        for key in [key for key, found in self.rounds.items() if found.peer.id == peer]:
            del self.rounds[key]

    def note(self, facts: Table, is_revealed: bool = False) -> None:
        """Take note of a line that was written to the ledger."""
        self.history.add(facts, is_revealed, time.time())

    # --- what the owner sees

    def name_all(self, keys: Iterable[str]) -> list[str]:
        """Return the names of members, given their keys as hexadecimal digits."""
        return [self.name_of(bytes.fromhex(key)) or key[:8] for key in keys]

    def cells(self) -> list[tuple[str, ...]]:
        """Return one row for each line about a sum, the last ones."""
        rows = []
        for facts in self.history.rounds:
            texts = facts["name"], str(facts["round"]), facts["user"], ", ".join(self.name_all(facts["list"]))
            data, state = ", ".join(facts["data"]), "revealed" if facts["revealed"] else "masked"
            rows.append((to_moment(facts["when"]), *map(one_line, (*texts, data, facts["noise"])), state))
        return rows

    def describe_changes(self) -> list[tuple[str, ...]]:
        """Return one row for each data: its tags, and over how many different lists its results were summed."""
        return [(one_line(data), str(len(lists))) for data, lists in self.history.lists.items()]

    def __str__(self) -> str:
        lines = [f"key of {self._worker.id!r}: {self.fingerprint}"]
        lines += [f"member {name!r}: {', '.join(map(write_fingerprint, keys))}" for name, keys in self.members.items()]
        for rule in self.rules.values():
            lines.append(
                f"rule {rule.name!r}: {rule.describe()}; used {len(rule.uses)} times; hides each result among "
                f"{rule.hides_among} workers"
            )
        for data, count in self.describe_changes():
            lines.append(f"results of {data}: summed over {count} different list{'s'[: count != '1']} of workers")
        rows = self.cells()
        return "\n".join([*lines, text_table(self.HEADER, rows) if rows else "no sums yet"])

    __repr__ = __str__


def studies_of(worker: Worker) -> Studies:
    """Return the sums of a worker."""
    return worker.part(Studies)


def release_only_aggregates(
    worker: Worker,
    at_least: int = 3,
    *,
    computed_from: Sequence[str],
    user: str,
    members: Mapping[str, str | Sequence[str]] | None = None,
    name: str = RULE,
    by: str = "the owner",
    **conditions: Json,
) -> SumRule:
    """Let results of private data leave a worker only inside sums over at least ``at_least`` workers.

    The conditions are those of ``[aggregates]`` in the configuration file (docs/aggregates.md). ``members`` are the
    fingerprints of the workers whom the owner counts, by name; None keeps those that are known.
    """
    with worker.lock:
        studies = studies_of(worker)
        if members is not None:
            studies.set_members(members)
        table = {"at_least": at_least, "computed_from": computed_from, "user": user, **conditions}
        return studies.allow(table, name, by)


def make_revealed(round: OpenRound, facts: Table) -> Entry:
    """Return the line of the ledger for a mask that is revealed."""
    peer = round.peer
    reason = f"reveals its mask in round {facts['round']} of {facts['name']!r}"
    return Entry(
        time.time(), str(peer), round.entry.id, "", (), str(peer.id), reason, (), peer.id, "revealed", sum=facts
    )
