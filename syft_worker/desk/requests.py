"""Release: peers request objects they may not have, and the owner of the worker decides.

A request holds a copy of each object, made when it arrives. The owner reviews that copy, and exactly that copy is
released, whatever the peer does with the object in the meantime. The id of a request is random and never used again,
and a decision can carry a digest of what its owner reviewed.

Requests outlive the process. The ledger file says what was asked and decided; the copies are in the store, if there is
one. A change is written to the store first and to the ledger second, and is made in memory only then: if one of them
fails, nothing has changed. At the start, the ledger is right where the two differ. A copy that has left stays in the
store until the client has acknowledged it, so that a crash in between loses nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from syft_core.departures import on_arrival
from syft_core.exceptions import LedgerError, StorageError
from syft_core.ledgers.entry import Entry, describe_failed
from syft_core.peer import Peer
from syft_core.pictures.tables import html_table, one_line, text_table
from syft_core.printing import printable
from syft_core.values import Table
from syft_core.workers.seeing.ledger import (
    describe_form,
    describe_how,
    describe_lineage,
    join_sources,
    split_failures,
    tags_of,
)
from syft_worker.desk.errors import ReleaseDeniedError, ReleaseError, ReleasePendingError, require_not_denied
from syft_worker.desk.handle import RequestHandle
from syft_worker.desk.history import MAX_CLOSED, RecordedRequest, ReleaseHistory
from syft_worker.desk.messages import FollowRequests
from syft_worker.desk.programs import Computed, describe_result
from syft_worker.desk.terms import Terms

if TYPE_CHECKING:
    from syft_core.ledgers.entry import Event
    from syft_core.messages import Message
    from syft_core.workers.party.derivations import Maker
    from syft_core.workers.party.store import Sources, Stored
    from syft_core.workers.party.worker import Worker
    from syft_worker.desk.approvals import StandingApproval

MAX_OPEN = 64
"""How many open requests a user may have on one worker: each of them holds copies."""
ID_BYTES = 8
"""How many random bytes the id of a request has: it cannot be guessed, and no request gets the id of another."""
LIFETIME = 30 * 86_400.0
"""After how many seconds a request expires if its owner does not decide, and an approval that is not used."""
RequestState: TypeAlias = Literal["open", "approved", "granted", "denied", "released", "expired", "lapsed"]
"""A request for a study is granted by a rule. A request expires with time, and lapses if its worker is started again
without the copy to release.
"""
STATES: tuple[RequestState, ...] = get_args(RequestState)
LIVE = frozenset({"open", "approved"})
Decision: TypeAlias = Literal["approve", "deny", "withdraw"]
TRANSITIONS: dict[Decision, tuple[RequestState, RequestState, Event]] = {
    "approve": ("open", "approved", "approved"),
    "deny": ("open", "denied", "denied"),
    "withdraw": ("approved", "open", "withdrawn"),
}
"""The state before a decision, the state after it, and what the ledger records."""
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Requested:
    """One object of a request, and the copy to release."""

    find: Callable[[], Stored | None]
    """Returns the object if it still exists; a request does not keep it in memory."""
    attr: str | None
    copy: Stored
    """The copy, with the lineage of the object when it was made: the peer may write into the object later."""
    taken_by: Message | None = None
    """The message with whose answer the copy leaves, until it has left: no other message gets it meanwhile."""
    has_left: bool = False
    """Whether it has left, and is kept only until the client has acknowledged it."""
    label: str = ""
    """What the asker calls it."""

    @property
    def value(self) -> Any:
        """The value to release; None after it was denied."""
        return self.copy.value

    @property
    def name(self) -> str:
        """The id of the object, with the attribute that is asked for; commas are escaped, as names are listed."""
        name = f"{self.copy.id}" if self.attr is None else f"{self.copy.id}.{self.attr}"
        return name.replace(",", r"\x2c")

    def is_for(self, entry: Stored, attr: str | None) -> bool:
        """Return whether this is a request for an object, or for an attribute of one."""
        return self.find() is entry and self.attr == attr

    def is_free_for(self, message: Message) -> bool:
        """Return whether the copy is still here and not reserved by another message."""
        return not self.has_left and (self.taken_by is None or self.taken_by is message)


@dataclass(eq=False)
class ReleaseRequest:
    """A request by a peer, and the decision."""

    id: str
    peer: Peer
    reason: str
    objects: list[Requested]
    forms: str
    sources: str
    names: str
    """The ids of the objects, each with the attribute that is asked for."""
    labels: tuple[str, ...] = ()
    """What the asker calls the objects, in the same order; empty if the asker does not say."""
    parties: tuple[str, ...] = ()
    """The workers that hold the shares of the value, if the asker says that the object is one of them."""
    line: str = ""
    """The line of the asker's program, as the asker says."""
    terms: Terms | None = None
    """What a request for a study asks for: a rule; the objects are examples, which do not leave with it."""
    results: tuple[Computed, ...] = ()
    """What rules ask about the objects, also when they have left; empty if the worker was started again since."""
    how: tuple[str, ...] = ()
    """How each object was computed, with the digest of its program."""
    lineage: Sources = frozenset()
    """What the objects were computed from, also when they have left."""
    state: RequestState = "open"
    decided_by: str = ""
    answer: str = ""
    """What the owner says about the decision."""
    asked_at: float = field(default_factory=time.time)
    decided_at: float | None = None
    released_at: float | None = None
    is_of_owner: bool = False
    """Whether it was made with the credentials of an owner, who could decide on it."""
    is_repeated: bool = False
    """Whether it left before a crash, and was not acknowledged: it may be fetched again."""
    lifetime: float | None = None
    """After how many seconds it expires; None if never."""

    @property
    def expires_at(self) -> float | None:
        """When it expires if nothing happens until then."""
        if self.lifetime is None or self.state not in LIVE:
            return None
        return (self.decided_at or self.asked_at) + self.lifetime

    @property
    def values(self) -> list[Any]:
        """The copies to release, for the owner to review."""
        return [requested.value for requested in self.objects if not requested.has_left]

    @property
    def made_by(self) -> list[Maker | None]:
        """The protocols that computed the objects, where they limit what an object reveals.

        It is None for any other object, and for one that was changed since.
        """
        return [requested.copy.made_by for requested in self.objects]

    @property
    def digest(self) -> str:
        """A digest of everything that the owner is shown about the request; values are bound to it by the id."""
        claims = self.labels, self.parties, self.line, self.how
        shown = self.id, *self.peer[:2], self.names, self.forms, self.sources, self.reason, claims, self._terms
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()

    @property
    def _terms(self) -> Table | None:
        return None if self.terms is None else self.terms.to_table()

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table row; never a value."""
        texts = str(self.peer), self.forms, self.sources, self.reason, self.answer
        return self.id, self.state, *map(one_line, texts)

    def to_table(self) -> Table:
        """Return what the owner may know without the values, as JSON can express it."""
        return {
            "id": self.id,
            "state": self.state,
            "user": self.peer.user or "",
            "peer": str(self.peer.id),
            "objects": self.names,
            "form": self.forms,
            "computed_from": self.sources,
            "how": list(self.how),
            "reason": self.reason,
            "line": self.line,
            "labels": list(self.labels),
            "parties": list(self.parties),
            "terms": self._terms,
            "asked": self.asked_at,
            "decided": self.decided_at,
            "decided_by": self.decided_by,
            "answer": self.answer,
            "released": self.released_at,
            "expires": self.expires_at,
            "digest": self.digest,
            "asked_by_owner": self.is_of_owner,
        }

    def to_asker(self) -> Table:
        """Return what the peer who asked may know."""
        table = self.to_table()
        known = ("id", "state", "objects", "form", "reason", "answer", "asked", "decided", "expires")
        return {name: table[name] for name in known}

    def require_approval(self, worker: str) -> None:
        """Raise unless the copies may be fetched."""
        if self.state == "open":
            raise ReleasePendingError.still(self.id, worker)
        if self.state == "granted":
            raise ReleaseDeniedError.granted(self.id, worker)
        if self.state == "released":
            raise ReleaseDeniedError.used(self.id, worker)
        require_not_denied(self.state, self.answer, self.id, worker)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<ReleaseRequest {self.id} of {printable(str(self.peer))!r}: {self.state}>"


class Keeper(Protocol):
    """Keeps live requests and rules on disk; each call returns when that is done, or raises."""

    def save_request(self, request: ReleaseRequest) -> None:
        """Write a request with its copies."""

    def remove_request(self, id: str) -> None:
        """Remove a request that is denied, or was fetched."""

    def save_approvals(self, approvals: Iterable[StandingApproval]) -> None:
        """Write all rules, with their uses."""


class ReleaseRequests:
    """The requests to one worker. It prints as a table and renders in a notebook."""

    HEADER = ("id", "state", "who", "form", "computed from", "reason", "answer")

    def __init__(self, worker: Worker) -> None:
        self.owner = str(worker.id)
        self._worker = worker
        self.keeper: Keeper | None = None
        self.settle: Callable[[ReleaseRequest], object] = bool
        """Is called with each new request, and approves it if a rule of the owner covers it."""
        self.grant: Callable[[ReleaseRequest, str], object] = lambda _request, _by: None
        """Is called with a request for a study that an owner approves; makes a rule, which settles it."""
        self.on_request: Callable[[ReleaseRequest], None] | None = None
        """Is called with each new request that waits for a decision."""
        self.lifetime: float | None = LIFETIME
        """After how many seconds requests expire; None if never."""
        self._requests: dict[str, ReleaseRequest] = {}
        self._recorded: dict[str, RequestState] = {}
        """The states of earlier requests according to the ledger, of which the copies are missing so far."""

    def __call__(self) -> list[RequestHandle]:
        """Return handles of the requests that this program has made, as ``requests()`` of a remote worker does."""
        worker = self._worker
        asking = worker.hook.local_worker if worker.hook is not None else worker
        location = asking.location_of(worker)
        return [RequestHandle(location, found["id"]) for found in location.ask(FollowRequests())]

    def __iter__(self) -> Iterator[ReleaseRequest]:
        return iter(list(self._requests.values()))

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> ReleaseRequest:
        return list(self._requests.values())[index]

    def __str__(self) -> str:
        return text_table(self.HEADER, self._cells()) if self._requests else self._nothing()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self._requests:
            return f"<div>{escape(self._nothing())}</div>"
        return html_table(f"requests to {self.owner}", self.HEADER, self._cells())

    def _cells(self) -> list[tuple[str, ...]]:
        return [request.cells() for request in self]

    def _nothing(self) -> str:
        return f"no requests to {self.owner!r}"

    # --- new requests and decisions

    def add(self, peer: Peer, reason: str, objects: list[Requested], **claims: Any) -> ReleaseRequest:
        """Add a request; raise, and add nothing, if it cannot be kept or recorded.

        ``claims`` are what the peer says about the request: ``parties`` and ``line``.
        """
        forms = ", ".join([describe_form(requested.copy) for requested in objects])
        sources = _describe_sources([requested.copy for requested in objects], peer)
        names = ", ".join([requested.name for requested in objects])
        id = secrets.token_hex(ID_BYTES)
        request = ReleaseRequest(id, peer, reason, objects, forms, sources, names, **claims)
        if any(labels := tuple([requested.label for requested in objects])):
            request.labels = labels
        request.lineage = frozenset([source for requested in objects for source in requested.copy.sources])
        request.results = self._describe_results(objects)
        request.how = tuple([describe_how(requested.copy.derivation) for requested in objects])
        request.is_of_owner, request.lifetime = self._worker.is_owner(peer), self.lifetime
        if self.keeper is not None:
            self.keeper.save_request(request)
        try:
            record_request(self._worker, request, "requested")
        except LedgerError:
            self._remove_copy(id)
            raise
        self._requests[id] = request
        self._forget()
        if request.is_of_owner:
            why = "was made with an owner's token: the requester could approve their own request"
            _log.warning("request %s to worker %r %s", id, self.owner, why)
        self.settle(request)
        if self.on_request is not None and request.state == "open":
            self.on_request(request)
        return request

    def decide(
        self, decision: Decision, wanted: object, answer: str, by: str, digest: str | None, rule: str = ""
    ) -> ReleaseRequest:
        """Change the state of a request as its owner decides; raise, and change nothing, if that is not possible.

        ``rule`` is the name of the rule that decides.
        """
        before, after, event = TRANSITIONS[decision]
        found = self.find(wanted, digest)
        if found.state != before:
            raise ReleaseError.decided(found.id, self.owner, found.state)
        if decision == "withdraw" and any(r.taken_by is not None or r.has_left for r in found.objects):
            raise ReleaseError.being_fetched(found.id, self.owner)
        if decision == "approve" and found.terms is not None:
            if not rule:
                self.grant(found, by)
                return found
            after = "granted"
        is_open = after == "open"
        changes: Table = {
            "state": after,
            "answer": "" if is_open else answer,
            "decided_by": "" if is_open else by,
            "decided_at": None if is_open else time.time(),
        }
        is_kept = self.keeper is not None and after in LIVE
        if self.keeper is not None and is_kept:
            self.keeper.save_request(replace(found, **changes))
        try:
            record_request(self._worker, found, event, by, answer, rule)
        except LedgerError:
            if self.keeper is not None and is_kept:
                with suppress(StorageError):  # At the start, the ledger is right.
                    self.keeper.save_request(found)
            raise
        vars(found).update(changes)
        if after in ("denied", "granted"):
            self._drop_values(found)
        if by and by == found.peer.user:
            _log.warning("request %s to worker %r was decided by %r, who asked", found.id, self.owner, by)
        return found

    def expire(self) -> None:
        """Close the requests on which nothing has happened for their lifetime."""
        now = time.time()
        for request in self:
            due = request.expires_at
            if due is None or now < due or any(requested.taken_by is not None for requested in request.objects):
                continue
            try:
                record_request(self._worker, request, "expired")
            except LedgerError:  # The journal has logged it; the next one who asks tries again.
                return
            request.state = "expired"
            self._drop_values(request)

    def set_lifetime(self, seconds: float | None) -> None:
        """Choose after how many seconds requests expire; also those that are there."""
        self.lifetime = seconds
        for request in self:
            request.lifetime = seconds

    def _drop_values(self, request: ReleaseRequest) -> None:
        for requested in request.objects:
            requested.copy.value = None
        self._remove_copy(request.id)

    def find(self, wanted: object, digest: str | None = None) -> ReleaseRequest:
        """Return a request, given itself, its handle or its id; raise if ``digest`` is that of something else."""
        found = self._requests.get(str(wanted))
        if found is None:
            raise ReleaseError.unknown(str(wanted), self.owner)
        if digest is not None and not hmac.compare_digest(digest.encode(), found.digest.encode()):
            raise ReleaseError.differs(found.id, self.owner)
        return found

    def of(self, entry: Stored, attr: str | None, peer: Peer) -> ReleaseRequest | None:
        """Return the latest request by a peer for an object."""
        for request in reversed(self._requests.values()):
            if request.peer == peer and any(r.is_for(entry, attr) for r in request.objects):
                return request
        return None

    def made_by(self, peer: Peer) -> list[ReleaseRequest]:
        """Return the requests of the user of a peer; a peer without a user is a user of its own."""
        return [r for r in self if (r.peer == peer if peer.user is None else r.peer.user == peer.user)]

    # --- departures

    def use_up(self, message: Message) -> list[ReleaseRequest]:
        """Use up the approvals with which objects have left, each is valid for one departure; return the requests."""
        used = []
        for request in list(self._requests.values()):
            taken = [requested for requested in request.objects if requested.taken_by is message]
            if taken:
                used.append(request)
                for requested in taken:
                    requested.taken_by, requested.has_left = None, True
                if all(requested.has_left for requested in request.objects):
                    request.state, request.released_at = "released", time.time()
                if self.keeper is None:
                    self._drop_copies(request)
                else:  # If the process ends before they arrive, the user can fetch them again.
                    on_arrival(partial(self._drop_copies, request))
        return used

    def _drop_copies(self, request: ReleaseRequest) -> None:
        """Drop the copies that have left."""
        request.objects = [requested for requested in request.objects if not requested.has_left]
        if not request.objects:
            self._remove_copy(request.id)

    def give_back(self, messages: Iterable[Message]) -> None:
        """Let approvals be used again if nothing has left with the answers to these messages."""
        taking = set(map(id, messages)) if self._requests else set()
        for requested in [requested for request in self._requests.values() for requested in request.objects]:
            if id(requested.taken_by) in taking:
                requested.taken_by = None

    # --- earlier processes

    def recall(self, history: ReleaseHistory) -> None:
        """Remember the requests in the ledger; those that were live lapse, unless ``restore`` finds their copies."""
        for recorded in history.requests.values():
            request = _from_record(recorded)
            request.lifetime = self.lifetime
            self._recorded[request.id] = request.state
            request.state = "lapsed" if request.state in LIVE else request.state
            self._requests[request.id] = request
        self._forget()

    def _describe_results(self, objects: Iterable[Requested]) -> tuple[Computed, ...]:
        return tuple([describe_result(self._worker, requested.copy) for requested in objects])

    def restore(self, request: ReleaseRequest) -> None:
        """Take over a request from the store; where the ledger differs, it is right."""
        request.results = self._describe_results(request.objects)
        recorded = self._recorded.pop(request.id, None)
        request.lifetime = self.lifetime
        if recorded in ("denied", "granted", "expired"):
            self._remove_copy(request.id)
            return
        if recorded is None:  # The worker was killed before it was recorded, or the ledger is a new one.
            record_request(self._worker, request, "requested")
        elif recorded == "released":
            request.state, request.is_repeated = "approved", True
        else:
            request.state = recorded
        known = self._requests.get(request.id)
        if known is not None and request.state == "approved":
            request.decided_by, request.decided_at, request.answer = known.decided_by, known.decided_at, known.answer
        self._requests[request.id] = request

    def _remove_copy(self, id: str) -> None:
        if self.keeper is not None:
            try:
                self.keeper.remove_request(id)
            except OSError as error:  # The ledger says that it is closed.
                _log.error("cannot remove request %s of worker %r from the store: %s", id, self.owner, error.strerror)

    def _forget(self) -> None:
        """Forget the oldest closed requests if there are too many."""
        if len(self._requests) > MAX_CLOSED:
            closed = [id for id, request in self._requests.items() if request.state not in LIVE and not request.objects]
            for id in closed[: max(len(closed) - MAX_CLOSED, 0)]:
                del self._requests[id]


def record_request(
    worker: Worker, request: ReleaseRequest, event: Event, by: str = "", answer: str = "", rule: str = ""
) -> None:
    """Record that a peer requested a release, that the owner or a rule decided on it, or that the owner saw it."""
    entries = [requested.copy for requested in request.objects]
    lineage = describe_lineage(join_sources(entries), str(request.peer.id), answer or request.reason)
    noted = Entry(time.time(), str(request.peer), request.names, request.forms, **lineage, peer=request.peer.id)
    noted = noted._replace(event=event, request=request.id, approver=by, digest=request.digest, rule=rule)
    if request.terms is not None:
        noted = noted._replace(terms=request.terms.to_table())
    noted = noted._replace(how=" | ".join(dict.fromkeys(request.how)))
    worker.ledger.record(noted)


def _describe_sources(entries: Iterable[Stored], peer: Peer) -> str:
    """Return what objects were computed from: by tags, and how many others, which of them are of the user of a peer."""
    sources, failed = split_failures(join_sources(entries))
    tagged = dict.fromkeys(tags for source in sources if (tags := tags_of(source)))
    untagged = [source for source in sources if not tags_of(source)]
    own = [source for source in untagged if is_of(getattr(source, "giver", None), peer)]
    counts = ((len(own), f"of {peer}"), (len(untagged) - len(own), "of others"))
    parts = [*tagged, *[f"{n} unnamed {'object' if n == 1 else 'objects'} {whose}" for n, whose in counts if n]]
    text = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return " ".join(filter(None, (text, describe_failed(failed))))


def is_of(giver: Peer | None, peer: Peer) -> bool:
    """Return whether a source is of the user of a peer."""
    original = None if giver is None else giver.original
    return original is not None and (original.user == peer.user if peer.user is not None else original.id == peer.id)


def _from_record(recorded: RecordedRequest) -> ReleaseRequest:
    """Return a request of which only the entries in the ledger are left."""
    asked, decided = recorded.asked, recorded.decided
    user = None if asked.user == f"worker {asked.peer}" else asked.user
    sources = asked.describe_sources()
    request = ReleaseRequest(
        str(asked.request), Peer(asked.peer, user), asked.reason, [], asked.form, sources, str(asked.id)
    )
    request.how = tuple(filter(None, asked.how.split(" | ")))
    request.terms = None if asked.terms is None else Terms(**asked.terms)
    request.state, request.asked_at = recorded.state, asked.when
    if decided is not None:
        request.decided_by, request.decided_at = decided.approver, decided.when
        request.answer = "" if decided.reason == asked.reason else decided.reason
    request.released_at = recorded.released_at
    return request
