"""History: what the ledger of a worker says about sums of earlier rounds, also of earlier processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from syft_core.values import Table

if TYPE_CHECKING:
    from syft_core.ledgers.entry import Entry

RoundKey: TypeAlias = tuple[str, str, int]
"""A user, the digest of a study, and the number of a round."""
WorkerList: TypeAlias = frozenset[str]
"""The keys of the workers of a list."""


def data_of(tags: tuple[str, ...]) -> str:
    """Return the text by which published data is counted: its tags."""
    return " ".join(sorted(tags))


@dataclass
class SumHistory:
    """For which sums a worker has masked. It is filled from the ledger, and by each new line."""

    masked: int = 0
    """For how many sums it has masked."""
    last_rounds: dict[tuple[str, str], int] = field(default_factory=dict)
    """The last round of each user and study for which it has masked."""
    lists: dict[str, set[WorkerList]] = field(default_factory=dict)
    """All different lists, by the tags of the data; those under a rule that demands noise do not count."""
    tasks: dict[str, dict[RoundKey, set[WorkerList]]] = field(default_factory=dict)
    """The lists for which each question was masked, by round: a task, whichever of its results are summed."""
    counters: dict[str, int] = field(default_factory=dict)
    """For how many sums each other worker had masked when it was last seen."""
    uses: dict[str, dict[str, float]] = field(default_factory=dict)
    """When each rule was used, by the id of the use."""
    granted: dict[str, tuple[Table, str]] = field(default_factory=dict)
    """The conditions of each rule that was made from a request, and who made it."""
    rounds: list[Table] = field(default_factory=list)
    """The facts of the last lines, for the owner."""

    def note(self, entry: Entry) -> None:
        """Take note of the next line of the ledger."""
        if entry.sum is not None and entry.event == "standing":
            self.granted[entry.rule] = entry.sum["conditions"], entry.approver
        elif entry.sum is not None and entry.event == "revoked":
            self.granted.pop(entry.rule, None)
        elif entry.sum is not None:
            self.add(entry.sum, entry.event == "revealed", entry.when)

    def add(self, facts: Table, is_revealed: bool, when: float) -> None:
        """Take note of a list for which the worker has masked, or has revealed."""
        self.rounds = [*self.rounds[-(MAX_SHOWN - 1) :], {**facts, "when": when, "revealed": is_revealed}]
        for worker, count in zip(facts["list"], facts["counters"], strict=True):
            self.counters[worker] = max(count, self.counters.get(worker, 0))
        if is_revealed:
            return
        workers, key = frozenset(facts["list"]), (facts["user"], facts["study"], facts["round"])
        self.masked += 1
        self.last_rounds[key[:2]] = max(facts["round"], self.last_rounds.get(key[:2], 0))
        self.tasks.setdefault(facts["task"], {}).setdefault(key, set()).add(workers)
        if facts["counts"]:
            for data in facts["data"]:
                self.lists.setdefault(data, set()).add(workers)
        self.uses.setdefault(facts["rule"], {}).setdefault(facts["use"], when)

    # --- what the rules ask

    def refuse_list(self, data: list[str], workers: WorkerList, changes: int) -> str | None:
        """Return why a list is refused, because it would be one more than the owner permits for the data."""
        for each in data:
            known = self.lists.get(each, set())
            if workers not in known and len(known) > changes:
                return (
                    f"results of {each} were summed over {len(known)} different lists of workers, and the rule permits "
                    f"changes = {changes}: the difference of two sums shows the update of one worker"
                )
        return None

    def refuse_task(self, task: str, key: RoundKey, workers: WorkerList) -> str | None:
        """Return why a list is refused, because the same task was masked for another list in another round."""
        others = [lists for found, lists in self.tasks.get(task, {}).items() if found != key]
        if any(lists != {workers} for lists in others):
            return "this task was summed over another list in another round"
        return None

    def refuse_counter(self, worker: str, count: int) -> str | None:
        """Return why a worker is refused that has masked for fewer sums than before."""
        if count >= self.counters.get(worker, 0):
            return None
        return f"ed25519:{worker} has masked for fewer sums than before: it was restored from a backup, or copied"


MAX_SHOWN = 50
"""How many rounds are kept for the owner to see."""
