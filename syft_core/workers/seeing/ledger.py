"""Ledger: one entry for every object that left a worker and, in its file, for refusals and release requests."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from syft_core.departures import RULES, LedgerHistory, find_rules
from syft_core.exceptions import LedgerError
from syft_core.features import Later
from syft_core.files import has_room
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.ranks import is_framework_tensor
from syft_core.ledgers.entry import DECISIONS, DEPARTURES, Entry, EntryList, Event
from syft_core.peer import Id, Peer
from syft_core.pictures.boxes import form_of
from syft_core.pictures.tables import one_line
from syft_core.values import Table
from syft_core.workers.party.derivations import Derivation
from syft_core.workers.party.store import FailedSource

if TYPE_CHECKING:
    from syft_core.messages import Message
    from syft_core.workers.party.store import ObjectStore, Sources, Stored

__all__ = ["Entry", "Ledger", "read_ledger"]
_log = logging.getLogger(__name__)
read_ledger = Later("syft_core.ledgers.reading:read_ledger")
_JOURNAL, _READ_LAST = Later("syft_core.ledgers.journal:Journal"), Later("syft_core.ledgers.journal:read_last")


class Grant(NamedTuple):
    """The owner's approval with which an object leaves that the policy withholds."""

    request: str
    """The id of the release request or, with a rule, of this use of it."""
    approver: str
    rule: str = ""
    """The name of the rule, if it is one."""
    is_repeated: bool = False
    """Whether the object has left before without being acknowledged."""


class Departure(NamedTuple):
    """An object, the departing value or attribute, and the approval that permits it."""

    entry: Stored
    value: Any
    grant: Grant | None = None
    copy: Stored | None = None
    """The reviewed copy, with its lineage at that time, if that leaves instead."""


Sync: TypeAlias = Literal["departures", "always", "never"]
"""The entries that must be on disk, not only handed to the operating system, before the worker continues: departures
and the decisions about them, all, or none.
"""
MAX_NAME = 256
"""The maximum length of a source's tags in an entry: peers choose them."""
MAX_HOW = 200
"""The maximum length of the text that says how an object was computed."""
MAX_REMEMBERED = 10_000
"""The maximum number of departures in memory: peers cause them."""
MAX_REFUSALS = 10
"""The number of a user's refusals in ``REFUSAL_SECONDS`` that are recorded singly; one line counts the others."""
REFUSAL_SECONDS = 60.0
MAX_REFUSED = 16
"""The maximum number of objects described for one refusal."""


def describe_departure(leaving: Sequence[Departure], peer: Peer, to: str, reason: str) -> list[Entry]:
    """Return the entries to record when objects, or their attributes, leave, each with the approval that permits it."""
    now, who, entries = time.time(), str(peer), []
    lineages: dict[Sources, Table] = {}
    for found, value, grant, copy in leaving:
        entry = found if copy is None else copy
        lineage = lineages.get(entry.sources)
        if lineage is None:  # The tensors of a trained model have the same.
            lineage = lineages[entry.sources] = describe_lineage(entry.sources, to, reason)
        form = describe_value(entry.value if value is None else value) if grant is None else describe_form(entry)
        left = Entry(now, who, entry.id, form, **lineage, peer=peer.id, how=describe_how(entry.derivation))
        entries.append(left if grant is None else _add_grant(left, grant))
    return entries


def describe_form(entry: Stored) -> str:
    """Return the form of an object, and the protocol that computed it if that limits what the object reveals."""
    form = describe_value(entry.value)
    return f"{form} of {entry.made_by}" if entry.made_by else form


def describe_how(derivation: Derivation | None) -> str:
    """Return how an object was computed, in one line with the digest of its program; "" if nothing is known."""
    if derivation is None:
        return ""
    return f"{derivation.describe(MAX_HOW)}; program {derivation.find_program()}"


def describe_value(value: object) -> str:
    """Return the form of a value, with its dtype and storage unless it has dense floats of the default dtype."""
    end, form = plain_end(value), form_of(value)
    if end is None or not is_framework_tensor(type(end)):
        return form
    framework = framework_of(end)
    found, storage = getattr(end, "dtype", ""), framework.name_storage(end)
    dtype = str(getattr(found, "__name__", found)).rpartition(".")[2]
    return " ".join(filter(None, (form, dtype if storage or dtype != framework.default_float else "", storage)))


def _add_grant(left: Entry, grant: Grant) -> Entry:
    name = f"rule {grant.rule}" if grant.rule else f"request {grant.request}"
    why = ", ".join(filter(None, (left.reason, f"{name}, approved by {grant.approver}")))
    event: Event = "resent" if grant.is_repeated else "released"
    return left._replace(reason=why, event=event, request=grant.request, approver=grant.approver, rule=grant.rule)


def join_sources(entries: Iterable[Stored]) -> Sources:
    """Return the joined sources of objects."""
    return frozenset([source for entry in entries for source in entry.sources])


def describe_lineage(found: Sources, to: str, reason: str) -> Table:
    """Return fields of an entry: sources, failed operations, destination, reason, and the sources' tags."""
    sources, failed = split_failures(found)
    ids = tuple([getattr(source, "id", source) for source in sources])
    names = tuple(map(tags_of, sources))
    return {"sources": ids, "to": to, "reason": reason, "names": names if any(names) else (), "failed": failed}


def split_failures(found: Sources) -> tuple[list[Any], int]:
    """Return the ordered sources, and the number of different operations that failed."""
    sources = [source for source in order_sources(found) if type(source) is not FailedSource]
    return sources, len(found) - len(sources)


@lru_cache(maxsize=64)
def order_sources(sources: Sources) -> list[Any]:
    """Return sources in order of creation; those that are not stored here come first."""
    numbered = [source for source in sources if hasattr(source, "serial")]
    return [*sorted(sources.difference(numbered), key=str), *sorted(numbered, key=attrgetter("serial"))]


def tags_of(source: object) -> str:
    """Return the tags of a source in one text, which is empty if it has none."""
    tags = getattr(source, "tags", None)
    return _join_tags(tags) if tags else ""


@lru_cache(maxsize=1024)
def _join_tags(tags: frozenset[str]) -> str:
    text = " ".join(sorted(tags))
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}…"


class _Refused(NamedTuple):
    """The refusals of a user since a moment; all but the first ones have no line of their own."""

    since: float
    peer: Peer
    kinds: Counter[str]

    def describe(self) -> list[Entry]:
        """Return the entry that counts the unrecorded refusals, if there are any."""
        more = self.kinds.total() - MAX_REFUSALS
        if more <= 0:
            return []
        seconds = max(time.monotonic() - self.since, 0.0)
        kinds = ", ".join([f"{kind} {count}" for kind, count in sorted(self.kinds.items())])
        reason = f"{more} more refusals in {seconds:.0f} seconds, which have no lines of their own; in all: {kinds}"
        return [Entry(time.time(), str(self.peer), "", "", (), "", reason, (), self.peer.id, "refused")]


class Ledger(EntryList):
    """The departures of one worker, oldest first. It prints as a table and renders in a notebook.

    With a path, every entry is also appended to that file before the object leaves; if it cannot be written, the object
    does not leave. Refusals and release requests are recorded only in the file. ``read_ledger(path)`` yields all
    entries, including those of earlier runs; only the last departures are kept in memory.
    """

    def __init__(
        self, owner: str, path: str | Path | None = None, sync: Sync = "departures", limit: int | None = None
    ) -> None:
        super().__init__(owner, MAX_REMEMBERED)
        self._sync = sync
        self._lock = threading.Lock()
        self.held: dict[int, list[Entry]] = {}
        """The pending departures with the answers to messages, by the identity of the message."""
        self._refused: dict[str, _Refused] = {}
        self.histories: dict[str, LedgerHistory] = {}
        """The history that each rule has read from the file when it was opened, if any."""
        self.charged: list[Entry] = []
        """The charges of earlier runs in the file, for the feature that counts them."""
        self.file = None if path is None else _JOURNAL(path, owner, self._recall, limit)

    def _recall(self, line: Table) -> None:
        if line.get("event") == "charged":
            self.charged.append(Entry.from_line(line))
        if "request" not in line and "rule" not in line:
            return
        if not self.histories:
            find_rules()
            self.histories = {name: rule.make_history() for name, rule in RULES.items()}
        entry = Entry.from_line(line)
        for history in self.histories.values():
            history.note(entry)

    def record(self, *entries: Entry) -> None:
        """Add the entries of one message; raise ``LedgerError`` if the file cannot be written."""
        departed = [entry for entry in entries if entry.event in DEPARTURES]
        if self.file is not None and entries:
            decides = any(entry.event in DEPARTURES or entry.event in DECISIONS for entry in entries)
            is_synced = self._sync == "always" or (decides and self._sync == "departures")
            self.file.append(*[entry.to_line() for entry in entries], sync=is_synced)
        if departed:
            with self._lock:
                self._lines.extend(departed)
                self.departures += len(departed)

    def hold(self, message: Message, departed: list[Entry]) -> None:
        """Hold entries until the answer to a message leaves, which may still fail."""
        self.held[id(message)] = departed

    def commit(self, message: Message) -> None:
        """Record the departures with the answer to a message, which is ready; raise if that fails."""
        departed = self.held.pop(id(message), None)
        if departed is not None:
            self.record(*departed)

    def forget(self, messages: Iterable[Message]) -> None:
        """Cancel the pending departures with the answers to messages."""
        if self.held:
            for message in messages:
                self.held.pop(id(message), None)

    def withdraw(self, entries: Sequence[Entry], why: str) -> None:
        """Record that sending objects failed that are recorded as departed: they may not have arrived."""
        with self._lock:
            kept = [line for line in self._lines if all(line is not entry for entry in entries)]
            self.departures -= len(self._lines) - len(kept)
            self._lines = deque(kept, self._lines.maxlen)
        with suppress(LedgerError):  # The journal has logged it; the earlier entries say too much, not too little.
            failed = [entry._replace(reason=f"{entry.reason}: {why}", event="undelivered") for entry in entries]
            self.record(*[entry._replace(when=time.time()) for entry in failed])

    def record_refusal(self, store: ObjectStore, ids: Iterable[Id], peer: Peer, kind: str, reason: str) -> None:
        """Record that a peer was refused something; the refusal stands even if it cannot be recorded.

        A peer can cause any number of refusals, so most of them are only counted. They do not use the last space on the
        disk, which departures need.
        """
        if not self.admit_refusal(peer, kind):
            return
        if self.file is not None and not has_room(self.file.path):
            who = one_line(str(peer))
            _log.error("worker %r does not record a refusal of %s: the disk is almost full", self.owner, who)
            return
        shown = list(islice(ids, MAX_REFUSED + 1))
        known = [entry for id in shown[:MAX_REFUSED] if (entry := store.get(id)) is not None]
        names = ", ".join([*map(str, shown[:MAX_REFUSED]), *("…" for _ in shown[MAX_REFUSED:])])
        lineage = describe_lineage(join_sources(known), "", f"{kind}: {reason}")
        forms = ", ".join([form_of(entry.value) for entry in known])
        refused = Entry(time.time(), str(peer), names, forms, **lineage, peer=peer.id, event="refused")
        with suppress(LedgerError):  # The journal has logged it.
            self.record(refused)

    def admit_refusal(self, peer: Peer, kind: str) -> bool:
        """Count a refusal; return whether to record it singly."""
        self.count_refusals()
        who = peer.original.user or str(peer.original)
        known = self._refused.setdefault(who, _Refused(time.monotonic(), peer, Counter()))
        known.kinds[kind] += 1
        return known.kinds.total() <= MAX_REFUSALS

    def count_refusals(self, seconds: float = REFUSAL_SECONDS) -> None:
        """Record the number of uncounted refusals, for users whose first one is ``seconds`` old."""
        now = time.monotonic()
        for who, refused in list(self._refused.items()):
            if now - refused.since >= seconds and self._refused.pop(who, None) is not None:
                with suppress(LedgerError):  # The journal has logged it.
                    self.record(*refused.describe())

    def close(self) -> None:
        """Close the file: nothing can leave after that."""
        self.count_refusals(0)
        if self.file is not None:
            self.file.close()

    def read_last(self, size: int = 1 << 20) -> list[Entry]:
        """Return the last entries of the file, with refusals and decisions; without a file, the last departures."""
        if self.file is None:
            return list(self._lines)
        return [Entry.from_line(line) for line in _READ_LAST(self.file.path, size)]
