"""Terms: what a request for a study asks for, and the conditions of the rule that permits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from syft_core.values import Table
from syft_core.workers.party.derivations import ARRANGEMENT
from syft_sums.roster import MAX_MEMBERS, Roster
from syft_worker.desk import programs
from syft_worker.desk.programs import Computed

MAX_NUMBER = 2**31
AT_LEAST = 3
"""The number of workers in a sum that a rule from a request wants, unless the study has fewer."""


@dataclass(frozen=True)
class Terms:
    """What a request for a study asks for: a rule for its programs, instead of the results that are its examples."""

    count: int
    """How often results of these programs leave, in all."""
    study: str = ""
    """The name of the study if results leave only in sums over several workers."""
    workers: int = 0
    """The number of workers of the study."""
    colluding: int = 0
    """How many of them may work together with the asker."""

    def find_problem(self) -> str | None:
        """Return why nobody could grant them, or None."""
        numbers = self.count, self.workers, self.colluding
        if not all(type(number) is int and 0 <= number < MAX_NUMBER for number in numbers):
            return "it has a number that is negative or too large"
        if not self.count:
            return "it does not say how often results leave"
        if self.is_summed and not 2 <= self.workers - self.colluding <= MAX_MEMBERS:
            return f"a sum over {self.workers} workers, of which {self.colluding} may collude, hides nothing"
        return None

    @property
    def is_summed(self) -> bool:
        """Whether results leave only in sums."""
        return bool(self.study)

    @property
    def roster(self) -> Roster:
        """A roster of this size, for the conditions of a rule for sums: its keys are known when a round begins."""
        keys = tuple([place.to_bytes(32, "big") for place in range(self.workers)])
        return Roster(self.study, keys, self.colluding)

    def describe(self) -> str:
        """Return the terms in words."""
        times = f"up to {self.count} times"
        if not self.is_summed:
            return times
        colluding = f"of which {self.colluding} may work together with the user"
        return f"{times}, only in sums over the {self.workers} workers of {self.study!r}, {colluding}"

    def to_table(self) -> Table:
        """Return the terms as JSON can express them."""
        return asdict(self)


def suggest_study_conditions(terms: Terms, results: Sequence[Computed]) -> Table:
    """Return the conditions of a rule for the programs of a study, apart from user and data; empty if it has none."""
    free = [ARRANGEMENT]  # Means for scaling and missing values are a part of the study.
    found = sorted({each for result in results if (each := result.derivation.find_program(free)) is not None})
    if not found:
        return {}
    if not terms.is_summed:
        stated = programs.suggest_program_conditions(results)
        return {**stated, "program": found, "free": free, "count": terms.count}
    return {
        "programs": found,
        "free": free,
        "at_least": min(AT_LEAST, terms.workers),
        "colluding": min(1, terms.colluding),
        "count": terms.count,
    }
