"""The roster of a study: its workers, by key, and how many of them must take part in a sum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from syft_sums.keys import KEY_BYTES
from syft_sums.statements import hash_parts, write_text

MAX_MEMBERS = 64
"""Maximum number of workers of a study: each masks with each other one."""
MAX_NAME = 200


def find_quorum(size: int, colluding: int) -> int:
    """Return how many workers of a roster must take part in each sum, so that only one sum of a round can be opened.

    Each worker that does not collude reveals once in a round, so two sums need at most ``size + colluding`` reveals
    together; twice the quorum is more than that. It depends on the roster, not on the list of a sum.

    >>> [find_quorum(size, 1) for size in (3, 4, 5, 7, 10, 20, 50)]
    [3, 3, 4, 5, 6, 11, 26]
    """
    return (size + colluding) // 2 + 1


@dataclass(frozen=True)
class Roster:
    """The workers of a study, by key in order; ``colluding`` of them may work together with the client."""

    name: str
    keys: tuple[bytes, ...]
    colluding: int

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self.keys)

    @property
    def quorum(self) -> int:
        """How many workers must take part in each sum."""
        return find_quorum(self.size, self.colluding)

    @cached_property
    def study(self) -> bytes:
        """The digest that identifies the study in every signature."""
        return hash_parts(write_text("study", self.name, self.keys, self.colluding))

    def find_problem(self) -> tuple[str, str] | None:
        """Return why the roster is not valid, and what to do; None if it is."""
        return self._find_fault_of_keys() or self._find_fault_of_numbers()

    def _find_fault_of_keys(self) -> tuple[str, str] | None:
        if type(self.name) is not str or not 0 < len(self.name) <= MAX_NAME:
            return f"its name is not a text of 1 to {MAX_NAME} characters", "choose another name"
        if not all(type(key) is bytes and len(key) == KEY_BYTES for key in self.keys):
            return "a key is malformed", "ask each worker for its key"
        if list(self.keys) != sorted(set(self.keys)):
            return "its keys are not in order, or one is named twice", "name each worker once"
        return None

    def _find_fault_of_numbers(self) -> tuple[str, str] | None:
        if self.size > MAX_MEMBERS:
            return f"it has {self.size} workers, and the limit is {MAX_MEMBERS}", "divide it into several studies"
        if type(self.colluding) is not int or self.colluding < 0:
            return "the number of colluding workers is not a whole number of at least 0", "write e.g. `colluding=1`"
        if self.quorum > self.size:
            why = f"{self.quorum} of its {self.size} workers would have to take part in each sum"
            return why, "use more workers, or a smaller `colluding`"
        return None
