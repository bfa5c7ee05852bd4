"""The handlers of sums at a worker: what its owner's rule and its ledger permit, and the lines of the ledger.

JoinSum      the results are kept, and the worker signs that it is ready
MaskSum      the departure: the rule, the ledger on disk, then the masked vector
RevealSum    the ledger on disk, then the mask of one list
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.ledgers.journal import Journal
from syft_core.peer import Peer
from syft_core.pictures.tables import one_line
from syft_core.values import Nested, Table
from syft_core.workers.moving.departure import Leaving, finish, leave
from syft_core.workers.party.derivations import Derivation, Maker, Operand
from syft_core.workers.party.status import ADDED
from syft_core.workers.party.store import Stored, lineage_of
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.derivation import derive_program
from syft_core.workers.seeing.ledger import Departure, Grant
from syft_core.workers.seeing.permissions import require_right_to_lease
from syft_sums.contribution import Contribution, StatementError
from syft_sums.encoding import encode, limit_of
from syft_sums.errors import SumRefusedError
from syft_sums.messages import AskMember, JoinSum, MaskSum, RevealSum
from syft_sums.roster import Roster
from syft_sums.rules import WEIGHTS, SumCandidate, SumRule, read_privacy
from syft_sums.statements import MAX_ROUND, Ready, hash_parts, write_text
from syft_sums.studies import OpenRound, Studies, make_revealed, studies_of

_log = logging.getLogger(__name__)
MAX_RESULTS = 64
"""Maximum number of results of a round."""
_PROTOCOLS = frozenset({"train", "evaluate", "statistic"})
"""The code of the worker whose results may be summed."""


def ask_member(worker: Worker, message: AskMember, sender: Peer) -> tuple[bytes, int, int]:
    """Return the key of the worker, for how many sums it has masked, and its last round of a study for the sender."""
    studies = studies_of(worker)
    last = studies.history.last_rounds.get((sender.user or "", message.study.hex()), 0)
    return studies.key.public, studies.history.masked, last


def join_sum(worker: Worker, message: JoinSum, sender: Peer) -> tuple[Nested, ...]:
    """Keep the results of a round, and return the signed statement of this worker."""
    studies = studies_of(worker)
    studies.expire()
    journal = _require_ledger(worker)
    roster = Roster(message.name, message.roster, message.colluding)
    _require_roster(worker, studies, roster, sender)
    entries = _find_results(worker, message.results, sender)
    maker, derivation = _require_maker(worker, entries)
    key = sender.user or "", roster.study.hex(), message.round
    _require_new_round(worker, studies, key)
    if message.weights not in WEIGHTS:
        raise _refuse(worker, f"there are no weights {message.weights!r}", 'use "samples" or "equal"')
    candidate = SumCandidate(sender, maker, derivation, roster, message.weights)
    rule = studies.find_rule(candidate, f"{key[1]}-{message.round}")
    if isinstance(rule, str):
        raise _refuse(worker, rule, "ask for what the owner's rule permits, or ask the owner")
    numbers = _read_results(worker, entries, maker, message.weights)
    if _clip_of(maker) * numbers.weight >= limit_of(roster.size):
        raise _refuse(worker, "a norm as large as the clip, times its samples, does not fit", "use a smaller clip")
    vector, fits = encode(*numbers, roster.size)
    if not fits:
        _note_failure(worker, rule, message)
    task = _describe_task(_describe_question(maker), list(map(len, numbers.parts)), message.weights)
    noise = _describe_noise(maker)
    contribution = Contribution(
        studies.key, roster, message.round, task, vector, studies.history.masked, bytes.fromhex(journal.head), noise
    )
    entry = _describe_result(entries, contribution)
    ends = time.monotonic() + studies.round_seconds
    studies.open(OpenRound(contribution, sender, maker, derivation, entry, roster, message.weights, ends, set()))
    return tuple(contribution.ready)


def mask_sum(worker: Worker, message: MaskSum, sender: Peer) -> tuple[Nested, ...]:
    """Mask the vector of a round for a list of workers: from now on, others can open the sum without this worker."""
    found = _find_round(worker, message.study, message.round, sender)
    contribution = found.contribution
    try:
        statements = contribution.read_list(message.statements)
        digest = contribution.prepare(statements)
        if digest not in found.recorded:
            _record_departure(worker, message, found, statements)
            found.recorded.add(digest)
        return contribution.mask(digest).to_wire()
    except StatementError as error:
        raise _refuse(worker, str(error), "begin a new round with what all workers have signed") from None


def reveal_sum(worker: Worker, message: RevealSum, sender: Peer) -> tuple[Nested, ...]:
    """Reveal the mask of one list, and shares of the masks of those that have gone."""
    found = _find_round(worker, message.study, message.round, sender)
    contribution = found.contribution
    try:
        contribution.require_masked(message.list, message.proofs)
        shares = contribution.open_shares(message.list, message.gone, message.sealed)
        if contribution.revealed is None:
            workers = contribution.list_workers(message.list)
            facts = {
                **_name_round(found),
                "list": [each.key.hex() for each in workers],
                "counters": [each.masked + 1 for each in workers],
                "data": found.data,
                "noise": contribution.ready.noise,
            }
            worker.ledger.record(make_revealed(found, facts))
            studies_of(worker).note(facts, is_revealed=True)
        return tuple(contribution.reveal(message.list, shares))
    except StatementError as error:
        raise _refuse(worker, str(error), "send what all workers of the list have signed") from None


# --- joining


def _refuse(worker: Worker, why: str, advice: str) -> SumRefusedError:
    return SumRefusedError.because(str(worker.id), why, advice)


def _require_ledger(worker: Worker) -> Journal:
    journal: Journal | None = worker.ledger.file
    if journal is None:
        advice = "give it one: `ledger=Ledger(id, path)`, or `ledger` in its configuration"
        raise _refuse(worker, "it has no ledger file, and could repeat a round after a restart", advice)
    return journal


def _require_roster(worker: Worker, studies: Studies, roster: Roster, sender: Peer) -> None:
    if sender.behalf:
        raise _refuse(worker, "the sender acts on behalf of others", "ask the worker directly")
    problem = roster.find_problem()
    if problem is not None:
        raise _refuse(worker, *problem)
    why = studies.refuse_roster(roster)
    if why is not None:
        raise _refuse(worker, why, "ask its owner to list the fingerprints of all workers of the study")


def _require_new_round(worker: Worker, studies: Studies, key: tuple[str, str, int]) -> None:
    user, study, number = key
    if not 0 < number < MAX_ROUND:
        raise _refuse(worker, f"{number} is not the number of a round", "count from 1")
    if number <= studies.history.last_rounds.get((user, study), 0):
        raise _refuse(worker, f"it has masked for round {number}, or a later one", "begin a round with a higher number")


def _find_results(worker: Worker, ids: Sequence[int | str], sender: Peer) -> list[Stored]:
    if not 0 < len(ids) <= MAX_RESULTS or len(set(ids)) < len(ids):
        raise _refuse(worker, f"a round is about 1 to {MAX_RESULTS} results, each once", "name its results")
    entries = [worker.object_store.entry(id) for id in ids]
    for entry in entries:
        require_right_to_lease(worker, entry, sender)
    return entries


def _require_maker(worker: Worker, entries: Sequence[Stored]) -> tuple[Maker, Derivation]:
    """Return how the results were computed, if by one loop of the worker."""
    makers, derivation = [entry.made_by for entry in entries], entries[0].derivation
    maker = makers[0]
    is_own = maker is not None and maker.protocol in _PROTOCOLS and all(other == maker for other in makers)
    if maker is None or derivation is None or not is_own:
        why = "the results were not computed by its own code in one training, evaluation or statistic of private data"
        raise _refuse(worker, f"{why}, or were changed since", "sum the results of one of them")
    return maker, derivation


class _Numbers(NamedTuple):
    """The numbers of the results, the factor of each, and the weight of the worker."""

    parts: list[npt.NDArray[np.generic]]
    factor: float
    weight: float


def _read_results(worker: Worker, entries: Sequence[Stored], maker: Maker, weights: str) -> _Numbers:
    options = dict(maker.options)
    samples, is_mean = float(options["samples"]), bool(options["weighted"])
    weight = samples if weights == "samples" else 1.0
    parts = [_read_numbers(worker, entry) for entry in entries]
    if options.get("privacy"):
        if len(parts) > 1:
            raise _refuse(worker, "only the parameters have noise", "sum the difference of the weights alone")
        parts = [parts[0][: options["parameters"]]]
    if any(entry.failures for entry in entries):
        parts = [np.full(len(part), np.nan) for part in parts]
    return _Numbers(parts, weight if is_mean else 1.0, weight)


def _clip_of(maker: Maker) -> float:
    return float(dict(maker.options).get("clip") or 0.0)


def _note_failure(worker: Worker, rule: SumRule, message: JoinSum) -> None:
    """Log that a result is not finite or out of range; raise if the owner permits that to be visible."""
    why = "its result is not finite, or out of range"
    if rule["failures"] == "visible":
        raise _refuse(worker, why, "leave it out")
    name = one_line(message.name)
    _log.warning("worker %r takes part in round %d of %r with zeros: %s", worker.id, message.round, name, why)


def _read_numbers(worker: Worker, entry: Stored) -> npt.NDArray[np.generic]:
    """Return the numbers of a stored tensor as a flat array, which shares its memory where possible."""
    plain = plain_end(entry.value)
    try:
        framework = framework_of(plain)
        plain = framework.detach(plain)
        if not getattr(plain, "is_cpu", True):  # An array of numpy is always in the memory of the processor.
            plain = framework.method("cpu").run(plain)
        array = np.from_dlpack(plain)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return array.reshape(-1)
    except (TypeError, RuntimeError, ValueError, BufferError, AttributeError):
        raise _refuse(worker, "a result is not a dense tensor of real numbers", "sum dense results") from None


def _describe_question(maker: Maker) -> bytes:
    """Return the digest of what the client asks of the data, whichever of the results it has summed, and how."""
    options = dict(maker.options)
    shared = [options.get(name) for name in ("program", "supplied", "parameters", "weighted", "clip")]
    operands = [_describe_operand(operand) for operand in maker.operands]
    return hash_parts(write_text("question", maker.protocol, *shared, operands))


def _describe_task(question: bytes, lengths: Sequence[int], weights: str) -> bytes:
    """Return the digest of everything that must be the same at all workers of a sum."""
    return hash_parts(write_text("task", question, list(lengths), weights, "2^-32 int64"))


def _describe_operand(operand: Operand) -> tuple[Nested, ...]:
    """Return what the data of all workers has in common: not the number of rows."""
    return operand.tags, operand.shape[1:], operand.arrangement


def _describe_noise(maker: Maker) -> str:
    privacy = read_privacy(maker)
    text = ", ".join([f"{name}={privacy[name]:g}" for name in ("clip", "multiplier", "delta", "epsilon") if privacy])
    return f"SampleDP({text}), for a record left out" if privacy else "none"


class _VectorForm(NamedTuple):
    """The form of a masked vector, for the ledger."""

    shape: tuple[int, ...]


_VectorForm.__name__ = "Tensor"


class _SumMaker(Maker):
    """How the ledger describes a sum."""

    def __str__(self) -> str:
        options = ", ".join([f"{name}={value}" for name, value in self.options])
        return f"sum({options}) among {', '.join(map(str, self.parties))}"


def _describe_result(entries: Sequence[Stored], contribution: Contribution) -> Stored:
    """Return what would leave, as an object that is not stored."""
    ready = contribution.ready
    entry = Stored(_VectorForm((ready.length,)), None, lineage_of(entries))
    for each in entries:  # A sum is restricted like its parts.
        entry.mark(each.status & ADDED)
    entry.id = f"{contribution.roster.name}:{ready.round}"
    return entry


# --- masking


def _find_round(worker: Worker, study: bytes, number: int, sender: Peer) -> OpenRound:
    studies = studies_of(worker)
    studies.expire()
    found = studies.rounds.get((sender.user or "", study.hex(), number))
    if found is None or sender.behalf:
        why = f"it has no result for round {number}: it was restarted, or the round has ended"
        raise _refuse(worker, why, "begin a new round")
    return found


def _name_round(found: OpenRound) -> Table:
    user, study, number = found.key
    return {"name": found.roster.name, "study": study, "round": number, "user": user}


def _record_departure(worker: Worker, message: MaskSum, found: OpenRound, statements: Sequence[Ready]) -> None:
    """Let the result leave by a rule, and write that to the ledger: also a shorter list has a line."""
    studies, ready = studies_of(worker), found.contribution.ready
    if ready.round < studies.history.last_rounds.get(found.key[:2], 0):
        raise StatementError("it has masked for a later round")
    keys = [statement.key.hex() for statement in statements]
    names = tuple(studies.name_all(keys))
    options = (
        ("study", json.dumps(found.roster.name, ensure_ascii=False)),
        ("round", ready.round),
        ("workers", len(keys)),
        ("noise", ready.noise),
    )
    found.entry.derivation = derive_program(_SumMaker("sum", options, names), [])
    facts = {
        **_name_round(found),
        "task": _describe_question(found.maker).hex(),
        "list": keys,
        "counters": [statement.masked for statement in statements],
        "data": found.data,
        "noise": ready.noise,
        "counts": True,
        "rule": "",
        "use": found.use,
    }
    leaving = Leaving(
        worker,
        "sum",
        message,
        found.peer,
        [Departure(found.entry, None)],
        to=found.peer.id,
        reason=f"may leave in the sum of {len(keys)}",
        kept={0: "it may only leave in a sum"},
        hides_failures=True,
        sum=facts,
    )
    leave(leaving)
    studies.note(facts)
    finish(worker, message)


def cover_sum(leaving: Leaving) -> None:
    """Cover the result of a round by a rule for sums."""
    if leaving.verb != "sum" or leaving.sum is None:
        return
    worker, facts = leaving.worker, leaving.sum
    studies = studies_of(worker)
    found = studies.rounds[facts["user"], facts["study"], facts["round"]]
    rule = studies.find_rule(found.candidate, found.use, lambda rule: _refuse_list(studies, rule, found, facts))
    if isinstance(rule, str):
        leaving.error = _refuse(worker, rule, "ask for what the owner's rule permits, or ask the owner")
        return
    facts["rule"], facts["counts"] = rule.name, not rule.has_noise
    (place,) = leaving.kept
    entry = leaving.objects[place].entry
    leaving.cover(place, Departure(entry, None, Grant(found.use, rule.made_by or "the owner", rule.name)))


def _refuse_list(studies: Studies, rule: SumRule, found: OpenRound, facts: Table) -> str | None:
    """Return why a result does not leave in the sum of a list."""
    workers, history = frozenset(facts["list"]), studies.history
    if len(workers) < rule["at_least"]:
        return f"the list has {len(workers)} workers, and the rule wants at least {rule['at_least']}"
    own = studies.key.public.hex()
    for worker, count in zip(facts["list"], facts["counters"], strict=True):
        if worker != own and (why := history.refuse_counter(worker, count)) is not None:
            return why
    why = history.refuse_task(facts["task"], found.key, workers)
    if why is None and not rule.has_noise:
        why = history.refuse_list(found.data, workers, rule["changes"])
    return why
