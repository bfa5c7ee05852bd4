"""Let several workers sum results, so that only the sum leaves them.

    study = SumStudy("icu", [north, south, east], colluding=1)       # asks each worker for its key
    study.members                                                    # the fingerprint of each worker, by id
    result = study.sum(study.next_round, {"north": [id, id], "south": [id, id], "east": [id, id]})
    result.vector                                                    # the numbers of all results in order, then samples

The results are those of one loop of each worker (training, evaluation, a statistic), by their ids there. Results that
are means are multiplied by the number of samples of the worker (``weights="samples"``), or summed as they are
(``"equal"``). A worker that fails is left out, if enough others are left, and is named in ``result.lost``. The plans,
weights and settings must be the same for all workers: a worker that was given others is refused by the others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from syft_core.exceptions import SyftError
from syft_core.location import Location, WorkerLike
from syft_core.messages import Message
from syft_core.peer import Id
from syft_core.values import Nested, Table
from syft_sums.contribution import MAX_LISTS
from syft_sums.errors import SumError
from syft_sums.evidence import describe_round
from syft_sums.keys import KEY_BYTES, write_fingerprint
from syft_sums.messages import AskMember, JoinSum, MaskSum, RevealSum
from syft_sums.roster import Roster
from syft_sums.statements import Ready
from syft_sums.tally import FalseStatementError, Tally

if TYPE_CHECKING:
    from syft_sums.encoding import Decoded

Weights: TypeAlias = Literal["samples", "equal"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SumResult:
    """The sum of a round."""

    vector: Decoded
    """The sums of all numbers in order; the last one is the number of samples, or of workers for equal weights."""
    members: tuple[Id, ...]
    """The workers that are in the sum."""
    lost: dict[Id, str]
    """Why each other worker is not."""
    evidence: Table
    """What the workers have signed: see ``evidence.write_evidence``."""

    @property
    def samples(self) -> float:
        """The number of samples in the sum, or of workers for equal weights."""
        return float(self.vector[-1])


class SumStudy:
    """The rounds of one study: the same workers, asked by one client.

    Args:
        name: the name of the study, which the owners see.
        locations: its workers.
        colluding: how many of them may work together with this client; the owners' rules may ask for more.
        patience: seconds to wait for a worker before it is left out; None waits until its connection is lost.

    """

    def __init__(
        self, name: str, locations: Iterable[Location], colluding: int = 1, patience: float | None = None
    ) -> None:
        self.locations = {location.id: location for location in locations}
        self._patience = patience
        answers, failed = self._ask_all({id: AskMember() for id in self.locations})
        for id, error in failed.items():
            raise error if isinstance(error, SyftError) else SumError.roster(name, f"{id!r}: {error}", "try again")
        self._keys = {id: _read_key(name, id, answer) for id, answer in answers.items()}
        self._ids = {key: id for id, key in self._keys.items()}
        self.roster = Roster(name, tuple(sorted(self._keys.values())), colluding)
        problem = self.roster.find_problem()
        if problem is not None:
            why, advice = problem
            raise SumError.roster(name, why, advice)
        self._open: dict[int, _Round] = {}

    @property
    def members(self) -> dict[Id, str]:
        """The fingerprint of each worker, which its owner can confirm."""
        return {id: write_fingerprint(key) for id, key in self._keys.items()}

    @property
    def size(self) -> int:
        """The number of workers."""
        return self.roster.size

    @property
    def quorum(self) -> int:
        """How many workers must take part in each sum, to its end."""
        return self.roster.quorum

    @property
    def next_round(self) -> int:
        """The first number that no worker has used for a round of this study."""
        answers, _ = self._ask_all({id: AskMember(self.roster.study) for id in self.locations})
        last = [answer[2] for answer in answers.values() if type(answer) is tuple and type(answer[2]) is int]
        return 1 + max([0, *last])

    def sum(
        self,
        round: int,
        results: Mapping[Id, Sequence[int | str]],
        weights: Weights = "samples",
        at_least: int = 0,
    ) -> SumResult:
        """Return the sum of results, by the ids of the workers and of the results there.

        Raise ``SumError`` if too few workers are left, fewer than the quorum or ``at_least``; then nothing has left
        them, or ``resume`` may still find the sum when one of those that are lost is back.
        """
        found = self._open[round] = _Round(self, round, at_least)
        found.join(results, weights)
        found.mask()
        return self.resume(round)

    def resume(self, round: int) -> SumResult:
        """Ask the workers again to reveal a round for which all of its list have masked, and return the sum."""
        if round not in self._open:
            raise SumError.roster(self.roster.name, f"round {round} was not begun here, or has a sum", "begin a round")
        result = self._open[round].reveal()
        del self._open[round]
        return result

    # --- asking

    def _ask_all(self, messages: Mapping[Id, Message]) -> tuple[dict[Id, Nested], dict[Id, Exception]]:
        """Send a message to each worker; return the answers and the errors. Those on a network answer in threads."""
        outcomes: SimpleQueue[_Outcome] = SimpleQueue()
        for id, message in messages.items():
            if self.locations[id].is_parallel:
                work = partial(self._ask, id, message, outcomes)
                threading.Thread(target=work, name=f"sum at {id}", daemon=True).start()
        for id, message in messages.items():
            if not self.locations[id].is_parallel:
                self._ask(id, message, outcomes)
        end = None if self._patience is None else monotonic() + self._patience
        found: dict[Id, _Outcome] = {}
        with suppress(Empty):
            while len(found) < len(messages):
                outcome = outcomes.get(timeout=None if end is None else max(end - monotonic(), 0.001))
                found[outcome.id] = outcome
        late = TimeoutError("it did not answer in time")
        outcome_of = {id: found.get(id, _Outcome(id, None, late)) for id in messages}  # In the order of the messages.
        failed = {id: each.error for id, each in outcome_of.items() if each.error is not None}
        return {id: each.answer for id, each in outcome_of.items() if each.error is None}, failed

    def _ask(self, id: Id, message: Message, outcomes: SimpleQueue[_Outcome]) -> None:
        try:
            outcomes.put(_Outcome(id, self.locations[id].ask(message)))
        except Exception as error:  # noqa: BLE001  # reported for this worker
            outcomes.put(_Outcome(id, None, error.with_traceback(None)))


class _Outcome(NamedTuple):
    """The answer of a worker, or its error."""

    id: Id
    answer: Nested
    error: Exception | None = None


class _Round:
    """A round of a study: joined, masked for one list or several, and revealed."""

    def __init__(self, study: SumStudy, number: int, at_least: int) -> None:
        self._study, self._number, self._least = study, number, max(study.quorum, at_least)
        self._ready: dict[Id, Ready] = {}
        self._tally: Tally | None = None
        self._lost: dict[Id, str] = {}

    def join(self, results: Mapping[Id, Sequence[int | str]], weights: Weights) -> None:
        """Ask the workers for their statements."""
        study, roster = self._study, self._study.roster
        unknown = [id for id in results if id not in study.locations]
        if unknown:
            raise SumError.roster(roster.name, f"{unknown[0]!r} is not one of its workers", "name workers of the study")
        fields = roster.name, roster.keys, roster.colluding, self._number
        messages = {id: JoinSum(*fields, tuple(ids), weights) for id, ids in results.items()}
        self._lost = {id: "it has no result" for id in study.locations if id not in results}
        answers = self._ask(messages)
        for id, answer in answers.items():
            with self._naming(id):
                ready = Ready.read(answer)
            expected = study._keys[id], roster.study, self._number
            if (ready.key, ready.study, ready.round) != expected or not ready.is_signed:
                why = "its signature is wrong, or it is about another key or round"
                raise SumError.false_statement(self._number, id, why)
            self._ready[id] = ready
        self._require_quorum("find out why they failed")

    def mask(self) -> None:
        """Let all workers of a list mask; if some fail, try shorter lists."""
        for _ in range(MAX_LISTS):
            tally = Tally(self._study.roster, list(self._ready.values()))
            listed = tuple(map(tuple, tally.statements))
            message = MaskSum(self._study.roster.study, self._number, listed)
            answers = self._ask(dict.fromkeys(self._ready, message))
            for id, answer in answers.items():
                with self._naming(id):
                    tally.add_masked(self._study._keys[id], answer)
            if len(answers) == len(self._ready):
                self._tally = tally
                return
            self._ready = {id: self._ready[id] for id in self._ready if id in answers}
            self._require_quorum("begin a new round when they are back")
            _log.info("round %d: masking again for %d workers", self._number, len(self._ready))
        raise SumError.too_few(
            self._number, len(self._ready), self._study.size, self._least, self._list_lost(), "try again"
        )

    def reveal(self) -> SumResult:
        """Ask the workers of the list for their masks, and for shares of the masks of those that have gone."""
        tally, study = self._tally, self._study
        if tally is None:
            raise SumError.roster(study.roster.name, f"round {self._number} was given up", "begin a new round")
        asked = [id for id in self._ready if study._keys[id] in tally.unopened]
        self._ask_to_reveal(asked, ())
        if tally.unopened:
            gone = tuple(tally.unopened)
            here = [id for id in self._ready if study._keys[id] not in gone]
            if len(here) >= study.quorum:
                self._ask_to_reveal(here, gone)
        try:
            tally.rebuild()
        except FalseStatementError as error:
            raise SumError.lost_seed(self._number, study._ids[error.key]) from None
        if tally.unopened:
            left = len(self._ready) - len(tally.unopened)
            advice = f"`resume({self._number})` when one of them is back, or begin a new round"
            raise SumError.too_few(self._number, left, study.size, study.quorum, self._list_lost(), advice)
        evidence = describe_round(study.roster, tally.statements, tally.proofs)
        lost = {id: why for id, why in self._lost.items() if id not in self._ready}
        return SumResult(tally.open(), tuple(self._ready), lost, evidence)

    def _ask_to_reveal(self, ids: Iterable[Id], gone: tuple[bytes, ...]) -> None:
        study, tally = self._study, self._tally
        if tally is None:
            return
        proofs = tuple(map(tuple, tally.proofs))
        fields = study.roster.study, self._number, tally.digest, proofs, gone
        answers = self._ask({id: RevealSum(*fields, tally.sealed_for(study._keys[id], gone)) for id in ids})
        for id, answer in answers.items():
            with self._naming(id):
                tally.add_revealed(study._keys[id], gone, answer)

    @contextmanager
    def _naming(self, id: Id) -> Iterator[None]:
        """Return a block whose errors are about the answer of a worker."""
        try:
            yield
        except (TypeError, ValueError) as error:
            raise SumError.false_statement(self._number, id, str(error)) from None

    def _ask(self, messages: Mapping[Id, Message]) -> dict[Id, Nested]:
        """Return the answers of the workers; note why others have none."""
        answers, failed = self._study._ask_all(messages)
        for id, error in failed.items():
            self._lost[id] = str(error) if isinstance(error, SyftError) else f"{type(error).__name__}: {error}"
        return answers

    def _require_quorum(self, advice: str) -> None:
        if len(self._ready) < self._least:
            left, size, needed = len(self._ready), self._study.size, self._least
            raise SumError.too_few(self._number, left, size, needed, self._list_lost(), advice)

    def _list_lost(self) -> str:
        return "".join([f"; {id}: {why}" for id, why in self._lost.items()])


def find_locations(client: Nested, workers: Iterable[WorkerLike]) -> list[Location]:
    """Return the locations of workers, as a client sees them."""
    return [client.location_of(worker) for worker in workers]


def _read_key(name: str, id: Id, answer: Nested) -> bytes:
    if type(answer) is tuple and len(answer) == 3 and type(answer[0]) is bytes and len(answer[0]) == KEY_BYTES:
        return answer[0]
    raise SumError.roster(name, f"the answer of {id!r} is malformed, or of another release", "update that worker")
