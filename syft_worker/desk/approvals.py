"""Rules of the owner, which approve releases in advance.

A rule is a table of conditions, all of which must hold. ``CONDITIONS`` has one entry per key; a further condition is
one more entry. Every use is recorded in the ledger with the name of the rule, and counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from syft_core.conditions import DAY, read_count, read_moment, read_tags, read_text, read_until
from syft_core.exceptions import StorageError, suggest
from syft_core.ledgers.entry import Entry, Event
from syft_core.ledgers.journal import MAX_TEXT
from syft_core.pictures.tables import one_line, text_table
from syft_core.registry import Registry
from syft_core.values import Json, Table
from syft_core.workers.party.store import MORE, Source, Sources
from syft_core.workers.seeing.ledger import Grant
from syft_worker.desk import programs
from syft_worker.desk.errors import ApprovalError
from syft_worker.desk.patterns import cover, describe_forms, parse_forms
from syft_worker.desk.programs import NUMBERS_PER_ROW, ROWS_BEHIND, Computed, require_program
from syft_worker.desk.requests import ID_BYTES, Keeper, ReleaseRequest, is_of
from syft_worker.desk.rules_in_words import describe_any_program, shorten_programs
from syft_worker.desk.terms import suggest_study_conditions

if TYPE_CHECKING:
    from syft_core.messages import Message
    from syft_core.peer import Peer
    from syft_core.workers.party.worker import Worker
    from syft_worker.desk.history import ReleaseHistory

_log = logging.getLogger(__name__)
MAX_NAMED = 20
"""How many users an error names."""
MAX_TIMES = 1_000
"""How many uses of the last day are remembered one by one, if the rule limits no more than that in a day."""
MAX_APPROVALS = 1000
"""How many rules a worker has at most."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Candidate(NamedTuple):
    """What would leave with one message: to whom, the forms of all its objects, and what they were computed from."""

    peer: Peer
    forms: str
    sources: Sources
    results: tuple[Computed, ...] = ()
    """How the objects were computed that only a rule lets leave."""
    free: tuple[str, ...] = ()
    """The supplied inputs that may be anything, as the rule says."""


class Uses:
    """How often a rule was used; those that are in progress count."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        """When it was used in the last day, by the id of the use."""
        self.earlier = 0
        """How often it was used before."""
        self.last: float | None = None

    @property
    def total(self) -> int:
        """How often it was used."""
        return self.earlier + len(self.times)

    def count_since(self, moment: float) -> int:
        """Return how often it was used since a moment in the last day."""
        return sum(when >= moment for when in self.times.values())

    def add(self, id: str, when: float, per_day: int = 0) -> None:
        """Count a use; keep the times of those of the last day, as many as ``per_day`` needs."""
        self.times[id] = when
        self.last = when
        limit, most = time.time() - DAY, max(per_day, MAX_TIMES)
        while (oldest := next(iter(self.times))) != id:
            if self.times[oldest] >= limit and len(self.times) <= most:
                break
            del self.times[oldest]
            self.earlier += 1

    def remove(self, id: str) -> None:
        """Take back a use with which nothing has left."""
        self.times.pop(id, None)


@dataclass(frozen=True)
class Condition:
    """One key of a rule.

    ``read`` returns the value of the key as JSON can express it, or raises ``ValueError`` with the reason; ``refuse``
    returns why something is not covered, or None.
    """

    read: Callable[[Json], Json]
    refuse: Callable[[Json, Candidate, Uses], str | None]
    text: Callable[[Json, Mapping[str, Json]], str]
    """Returns the condition in words, given all conditions of the rule."""


CONDITIONS: Registry[str, Condition] = Registry("conditions", advice="choose another key")


@dataclass(eq=False)
class StandingApproval:
    """A rule of the owner: what a user may have without a decision for each request."""

    name: str
    conditions: Mapping[str, Json]
    made_by: str = ""
    made_at: float = field(default_factory=time.time)
    is_configured: bool = False
    """Whether it comes from the configuration file."""
    is_revoked: bool = False
    uses: Uses = field(default_factory=Uses)

    @property
    def digest(self) -> str:
        """A digest of the name and the conditions."""
        return hashlib.sha256(json.dumps([self.name, self.conditions], sort_keys=True).encode()).hexdigest()

    def refuse(self, candidate: Candidate) -> str | None:
        """Return why something is not covered, or None."""
        if self.is_revoked:
            return "it was revoked"
        candidate = candidate._replace(free=tuple(self.conditions.get("free", ())))
        for key, value in self.conditions.items():
            if (why := CONDITIONS[key].refuse(value, candidate, self.uses)) is not None:
                return why
        return None

    @property
    def state(self) -> str:
        """Whether it can be used: "standing", "revoked", "expired" or "used up"."""
        if self.is_revoked:
            return "revoked"
        if "until" in self.conditions and read_moment(self.conditions["until"]) <= time.time():
            return "expired"
        return "used up" if self.uses.total >= self.conditions.get("count", float("inf")) else "standing"

    @property
    def per_day(self) -> int:
        """How often it can be used within 24 hours; 0 if that is not limited."""
        most: int = self.conditions.get("per_day", 0)
        return most

    def describe(self) -> str:
        """Return the conditions in words."""
        texts = [CONDITIONS[key].text(value, self.conditions) for key, value in self.conditions.items()]
        return "; ".join(filter(None, texts))

    def to_table(self) -> Table:
        """Return the rule and its uses, as JSON can express them."""
        return {
            "name": self.name,
            "state": self.state,
            **self.conditions,
            "used": self.uses.total,
            "used_today": self.uses.count_since(time.time() - DAY),
            "last_used": self.uses.last,
            "made_by": self.made_by,
            "made": self.made_at,
            "configured": self.is_configured,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table row."""
        limit = f" of {self.conditions['count']}" if "count" in self.conditions else ""
        used = f"{self.uses.total}{limit}"
        return self.name, self.state, one_line(self.describe()), used, one_line(self.made_by)


class StandingApprovals:
    """The rules of one worker. It prints as a table."""

    HEADER = ("name", "state", "what", "used", "made by")

    def __init__(self, worker: Worker) -> None:
        self.owner, self._worker = str(worker.id), worker
        self.keeper: Keeper | None = None
        self.on_added: Callable[[StandingApproval], object] = bool
        """Is called with each rule that is new or was changed."""
        self.list_users: Callable[[], Iterable[str] | None] = lambda: None
        """Returns the names of all users who may connect; None if they are not known."""
        self._known: dict[str, StandingApproval] = {}
        self._taken: dict[int, tuple[StandingApproval, str, Candidate]] = {}
        """The uses in progress, by the identity of the message."""
        self._removed: dict[str, Uses] = {}
        """The uses of rules that the configuration does not have any more."""
        self._revoked: set[str] = set()
        """The digests of rules that were revoked: the configuration may still have them."""

    def __iter__(self) -> Iterator[StandingApproval]:
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def __str__(self) -> str:
        rows = [approval.cells() for approval in self]
        return text_table(self.HEADER, rows) if rows else f"no rules of {self.owner!r}"

    __repr__ = __str__

    def find(self, name: str) -> StandingApproval:
        """Return a rule by its name."""
        if name not in self._known:
            raise ApprovalError.unknown(name, self.owner, suggest(name, self._known, "list them"))
        return self._known[name]

    # --- changes

    def add(self, name: str, conditions: Mapping[str, Json], by: str) -> StandingApproval:
        """Add a rule from now on; raise if it is wrong, could never be used, or contradicts another one."""
        approval = StandingApproval(name, read_conditions(name, conditions), by)
        if name in self._known and self._known[name].state == "standing":
            raise ApprovalError.taken(name)
        if approval.state == "expired":
            raise ApprovalError.matches_nothing(name, f"{approval.conditions['until']} is in the past")
        self._require_usable(approval)
        if (why := self.explain_user(approval)) is not None:
            raise ApprovalError.matches_nothing(name, why)
        text = json.dumps(dict(approval.conditions))
        if len(text) > MAX_TEXT:  # The ledger would cut it.
            raise ApprovalError.condition(name, f"its conditions have more than {MAX_TEXT} characters")
        self._record(approval, "standing", by, text)
        self._revoked.discard(approval.digest)
        self._known.pop(name, None)  # One that was used up or revoked is replaced, with its uses.
        self._known[name] = approval
        self.save()
        self.on_added(approval)
        return approval

    def revoke(self, name: str, by: str) -> StandingApproval:
        """Revoke a rule."""
        approval = self.find(name)
        if approval.is_revoked:
            raise ApprovalError.revoked(name)
        self._record(approval, "revoked", by, "")
        approval.is_revoked = True
        self._revoked.add(approval.digest)
        self.save()
        return approval

    def configure(self, tables: Mapping[str, Mapping[str, Json]]) -> list[str]:
        """Replace the rules of the configuration file, and keep those made later; return warnings."""
        warnings = []
        for approval in [known for known in self if known.is_configured and known.name not in tables]:
            self._removed[approval.name] = self._known.pop(approval.name).uses
        for name, table in tables.items():
            new = StandingApproval(name, read_conditions(name, table), "the configuration", is_configured=True)
            old = self._known.get(name)
            # A rule that is changed, or that returns, keeps its uses.
            if old is not None:
                new.uses = self._known.pop(name).uses
            elif name in self._removed:
                new.uses = self._removed.pop(name)
            new.is_revoked = new.digest in self._revoked
            if new.state == "revoked":
                warnings.append(f"the rule {name!r} was revoked, and stays so; remove or change it")
            elif new.state == "expired":
                warnings.append(f"the rule {name!r} has expired; remove or change it")
            else:
                self._require_usable(new)
                if (why := self.explain_user(new)) is not None:
                    warnings.append(f"the rule {name!r} cannot be used: {why}; correct it")
            self._known[name] = new
            if old is None or old.digest != new.digest:
                self.on_added(new)
        return warnings

    def explain_user(self, approval: StandingApproval) -> str | None:
        """Return why nobody can use a rule, if the users are known."""
        return explain_user(approval.conditions["user"], self.list_users())

    def _require_usable(self, approval: StandingApproval) -> None:
        """Raise if a rule can never match here, or duplicates another one."""
        if len(self._known) >= MAX_APPROVALS:
            raise ApprovalError.condition(approval.name, f"a worker has at most {MAX_APPROVALS}")
        entries = self._worker.object_store.entries()
        tags = {tag for entry in entries for tag in entry.tags if _is_own(entry.source)}
        for tag in approval.conditions["computed_from"]:
            if tag not in tags:
                near = suggest(tag, tags)
                hint = f" ({near})" if near else ""
                raise ApprovalError.matches_nothing(approval.name, f"no data of this worker has the tag {tag!r}{hint}")
        for other in self:
            if other.name != approval.name and other.state == "standing" and _match_same(other, approval):
                raise ApprovalError.contradicts(approval.name, other.name)

    def _record(self, approval: StandingApproval, event: Event, by: str, text: str) -> None:
        user = str(approval.conditions["user"])
        entry = Entry(time.time(), user, "", str(approval.conditions.get("form", "")), (), "", text, event=event)
        self._worker.ledger.record(entry._replace(approver=by, digest=approval.digest, rule=approval.name))

    def save(self) -> None:
        """Write the rules and their uses to disk, if the worker has a store."""
        if self.keeper is not None:
            self.keeper.save_approvals(self)

    @property
    def revoked(self) -> list[str]:
        """The digests of rules that were revoked."""
        return sorted(self._revoked)

    # --- uses

    def has_any_for(self, peer: Peer) -> bool:
        """Return whether there is a rule for the user of a peer."""
        return any(approval.conditions["user"] == peer.user for approval in self._known.values())

    def take(self, message: Message, candidate: Candidate) -> Grant | str:
        """Return the approval with which something may leave with the answer to a message, or why there is none."""
        reasons = []
        for approval in self._known.values():
            if approval.conditions["user"] != candidate.peer.user:
                continue
            why = approval.refuse(candidate)
            if why is None:
                use = secrets.token_hex(ID_BYTES)
                approval.uses.add(use, time.time(), approval.per_day)
                self._taken[id(message)] = approval, use, candidate
                return Grant(use, approval.made_by or "the owner", approval.name)
            reasons.append(f"the rule {approval.name!r} does not cover it: {why}")
        return "; ".join(reasons)

    def find_for(self, candidate: Candidate) -> StandingApproval | None:
        """Return the first rule that covers something."""
        return next((approval for approval in self if approval.refuse(candidate) is None), None)

    def count_use(self, approval: StandingApproval, id: str) -> None:
        """Count a use that the ledger has, and write it to disk."""
        approval.uses.add(id, time.time())
        with suppress(StorageError):  # The store has logged it.
            self.save()

    def use_up(self, message: Message) -> Candidate | None:
        """Keep the use with which objects have left; return what has left with it."""
        approval, _, candidate = self._taken.pop(id(message), (None, "", None))
        if approval is not None:
            with suppress(StorageError):  # The store has logged it, and the ledger has the use.
                self.save()
        return candidate

    def give_back(self, messages: Iterable[Message]) -> None:
        """Take back uses if nothing has left with the answers to these messages."""
        if self._taken:
            for message in messages:
                approval, use, _ = self._taken.pop(id(message), (None, "", None))
                if approval is not None:
                    approval.uses.remove(use)

    # --- earlier processes

    def recall(self, history: ReleaseHistory) -> None:
        """Take over the rules in the ledger, and count their uses."""
        self._revoked |= history.revoked
        for name, entry in history.approvals.items():
            conditions = self._read_earlier(name, json.loads(entry.reason))
            if conditions is not None:
                self._known[name] = StandingApproval(name, conditions, entry.approver, entry.when)
        self._recount(history)
        for name in history.uses.keys() - self._known.keys():  # Of the configuration, which is read later.
            counted = self._removed.setdefault(name, Uses())
            for use, when in history.uses[name].items():
                counted.add(use, when, len(history.uses[name]))  # Its limit is not known yet.

    def restore(self, tables: Iterable[Mapping[str, Json]], revoked: Iterable[str], history: ReleaseHistory) -> None:
        """Take over the rules in the store; the ledger may have later uses and revocations."""
        self._revoked.update(revoked)
        for table in tables:
            conditions = self._read_earlier(table["name"], table["conditions"])
            if conditions is None:
                continue
            known = StandingApproval(table["name"], conditions, table["by"], table["made"])
            known.is_configured = table["configured"]
            known.is_revoked = known.digest in self._revoked
            known.uses.earlier, known.uses.last = table["earlier"], table["last"]
            known.uses.times = dict(table["times"])
            self._known[known.name] = known
        self._recount(history)

    def _read_earlier(self, name: str, conditions: Mapping[str, Json]) -> Table | None:
        """Return the conditions of a rule of an earlier process; None if they are wrong, as some were accepted then."""
        try:
            return read_conditions(name, conditions)
        except ApprovalError as error:
            _log.error("worker %r has dropped a rule: %s; then add it again", self.owner, error)
            return None

    def _recount(self, history: ReleaseHistory) -> None:
        """Count uses in the ledger that are later than what is known."""
        for name, uses in history.uses.items():
            known = self._known.get(name)
            if known is not None:
                since = known.uses.last or 0.0
                for use, when in uses.items():
                    if when > since and use not in known.uses.times and when >= known.made_at:
                        known.uses.add(use, when, known.per_day)


def explain_user(user: str, users: Iterable[str] | None) -> str | None:
    """Return why nobody can use a rule for a user, given the names of all users, or None if those are not known."""
    if users is None or user in (known := sorted(set(users))):
        return None
    near = suggest(user, known, f"the users are {', '.join(known[:MAX_NAMED])}" if known else "there are no users")
    return f"no user of this worker has the name {user!r} ({near})"


def suggest_conditions(worker: Worker, request: ReleaseRequest) -> Table:
    """Return the conditions of a rule that would have covered a request; limits are for the owner to choose.

    Each source is named by the tag that the fewest objects have.
    """

    def count(tag: str) -> tuple[int, str]:
        return len(worker.object_store.search((tag,))), tag

    own = [source for source in request.lineage if _counts(source) and _is_own(source) and source.tags]
    tags = sorted({min(source.tags, key=count) for source in own})
    if request.terms is not None:
        asked = suggest_study_conditions(request.terms, request.results)
        return {"user": request.peer.user or "", "computed_from": tags, **asked}
    forms = ", ".join([result.form for result in request.results]) or request.forms
    found = {"user": request.peer.user or "", "form": forms, "computed_from": tags}
    return found | programs.suggest_program_conditions(request.results)


def read_conditions(name: str, table: Mapping[str, Json]) -> Table:
    """Return the conditions of a rule as JSON can express them; raise ``ApprovalError`` if one is wrong."""
    if not _NAME.fullmatch(name):
        raise ApprovalError.condition(name, "a name is 1 to 64 letters, digits, dots, dashes and underscores")
    read: Table = {}
    for key in table:
        if key not in CONDITIONS:
            hint = suggest(key, CONDITIONS, f"choose from {', '.join(CONDITIONS)}")
            raise ApprovalError.condition(name, f"there is no condition {key!r} ({hint})")
    for key in ("user", "computed_from"):
        if key not in table:
            raise ApprovalError.condition(name, f"{key!r} is missing")
    for key, condition in CONDITIONS.items():
        if key in table:
            try:
                read[key] = condition.read(table[key])
            except ValueError as error:
                raise ApprovalError.condition(name, f"{key} {error}") from None
    return _complete(name, read)


def _complete(name: str, read: Table) -> Table:
    """Return conditions with those that a rule with programs has by default; raise if they contradict each other."""
    try:
        require_program(read)
    except ValueError as error:
        raise ApprovalError.condition(name, str(error)) from None
    if "program" in read:
        read = {"numbers_per_row": NUMBERS_PER_ROW, "rows_behind": ROWS_BEHIND, **read}
        read = {key: read[key] for key in CONDITIONS if key in read}
    if read.get("per_day", 0) > read.get("count", float("inf")):
        raise ApprovalError.condition(name, f"per_day = {read['per_day']} contradicts count = {read['count']}")
    return read


def _match_same(one: StandingApproval, other: StandingApproval) -> bool:
    """Return whether two rules are equal apart from their limits."""
    limits = {"count", "per_day", "until"}
    return all(one.conditions.get(key) == other.conditions.get(key) for key in CONDITIONS if key not in limits)


# --- conditions


def _counts(source: object) -> bool:
    """Return whether a source decides if a rule covers a result: what is neither private nor published does not."""
    if isinstance(source, Source):
        return source.private or source.published
    return type(source) is str and source != MORE


def _is_own(source: object) -> bool:
    """Return whether the worker itself loaded or published a source."""
    return isinstance(source, Source) and source.giver is None


def _refuse_user(user: str, candidate: Candidate, _uses: Uses) -> str | None:
    return None if candidate.peer.user == user and not candidate.peer.behalf else f"it is for {user!r}"


def _refuse_form(form: str, candidate: Candidate, _uses: Uses) -> str | None:
    if cover(form, candidate.forms):
        return None
    return f"it is for {describe_forms(form)}, and this is {candidate.forms}"


def _refuse_sources(tags: list[str], candidate: Candidate, _uses: Uses) -> str | None:
    decisive = [source for source in candidate.sources if _counts(source)]
    others = [s for s in decisive if not (is_of(getattr(s, "giver", None), candidate.peer) and not s.private)]
    if any(not (_is_own(source) and source.tags.intersection(tags)) for source in others):
        return f"it is for what was computed from {' and '.join(tags)}, and from no other data here"
    return None if others else f"it is for what was computed from {' and '.join(tags)}"


def _refuse_count(most: int, _candidate: Candidate, uses: Uses) -> str | None:
    return None if uses.total < most else f"all of its {most} uses are used up"


def _refuse_day(most: int, _candidate: Candidate, uses: Uses) -> str | None:
    return None if uses.count_since(time.time() - DAY) < most else f"it was used {most} times within 24 hours"


def _refuse_late(until: str, _candidate: Candidate, _uses: Uses) -> str | None:
    return None if time.time() < read_moment(until) else f"it expired on {until}"


def _read_form(value: Json) -> str:
    text = ", ".join(value) if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value) else value
    read_text(text)
    try:
        parse_forms(text)
    except ValueError as error:
        raise ValueError(f"= {text!r} is wrong: {error}") from None
    return str(text)


CONDITIONS.update(
    {
        "user": Condition(read_text, _refuse_user, lambda user, _: f"{user} may have"),
        "form": Condition(_read_form, _refuse_form, lambda form, _: describe_forms(form)),
        "computed_from": Condition(read_tags, _refuse_sources, lambda tags, _: f"computed from {', '.join(tags)}"),
        "count": Condition(read_count, _refuse_count, lambda most, _: f"up to {most}"),
        "per_day": Condition(read_count, _refuse_day, lambda most, _: f"at most {most} within 24 hours"),
        "until": Condition(read_until, _refuse_late, lambda until, _: f"until {until}"),
        "any_program": Condition(
            programs.read_true,
            lambda _value, _candidate, _uses: None,
            lambda _, conditions: f"by any program: {describe_any_program(conditions)}",
        ),
        "program": Condition(
            programs.read_programs,
            lambda wanted, candidate, _uses: programs.refuse_programs(wanted, candidate.results, candidate.free),
            lambda wanted, _: f"by program {shorten_programs(wanted)}",
        ),
        "free": Condition(
            programs.read_names,
            lambda _names, _candidate, _uses: None,
            lambda names, _: f"whatever their {' and '.join(names)} {'is' if len(names) == 1 else 'are'}",
        ),
        "samples": Condition(
            read_count,
            lambda least, candidate, _uses: programs.refuse_few_samples(least, candidate.results),
            lambda least, _: f"from at least {least:,} rows",
        ),
        "labels": Condition(
            read_text,
            lambda labels, candidate, _uses: programs.refuse_other_labels(labels, candidate.results),
            lambda labels, _: f"votes with noise on {labels} as loaded",
        ),
        "numbers_per_row": Condition(
            programs.read_share,
            lambda most, candidate, _uses: programs.refuse_many_numbers(most, candidate.results),
            lambda most, _: f"at most {most:g} numbers for each row",
        ),
        "rows_behind": Condition(
            programs.read_least,
            lambda least, candidate, _uses: programs.refuse_few_rows(least, candidate.results),
            lambda least, _: f"at least {least} rows behind each number" if least else "also numbers of single rows",
        ),
    }
)
