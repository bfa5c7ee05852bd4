"""Ledger: one entry for every object that left a worker and, in its file, for refusals and release requests."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from html import escape
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from syft_core.exceptions import LedgerError
from syft_core.files import has_room
from syft_core.hook.ranks import framework_types
from syft_core.peer import Id, Peer
from syft_core.pictures import describe_form, form_of, html_table, one_line, text_table
from syft_core.workers.journal import Journal, iter_lines

if TYPE_CHECKING:
    from syft_core.workers.release import ReleaseRequest
    from syft_core.workers.store import Sources, Stored
    from syft_core.workers.worker import Worker

Event: TypeAlias = Literal["departed", "released", "refused", "requested", "approved", "denied", "opened", "recovered"]
"""What an entry records. An object that was "released" departed with the approval of the owner."""
_log = logging.getLogger(__name__)
DEPARTURES = frozenset({"departed", "released"})
Departure: TypeAlias = "tuple[Stored, Any, ReleaseRequest | None]"
"""An object, its value or the attribute that leaves, and the request that permits it."""
Sync: TypeAlias = Literal["departures", "always", "never"]
"""Which entries must be on disk, not only handed to the operating system, before the worker goes on."""
MAX_NAME = 256
"""How many characters of the tags of a source an entry contains: peers choose them."""
MAX_REMEMBERED = 10_000
"""How many departures are in memory: peers cause them."""


class Entry(NamedTuple):
    """Who took which object and when, its form, and what it was computed from; never a value."""

    when: float
    user: str
    id: Id
    form: str
    sources: tuple[Any, ...]
    to: str
    reason: str = ""
    names: tuple[str, ...] = ()
    """The tags of each source at that time, "" for a source without tags; empty if no source had any."""
    peer: Id = ""
    """The id of the worker that sent the request."""
    event: Event = "departed"
    request: int | None = None
    """The number of the release request, if there is one."""
    approver: str = ""
    """Who decided on it."""

    def cells(self) -> tuple[str, ...]:
        """Return the escaped cells of a table row; sources are shown by their tags, if they have any."""
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.when))
        sources = [name or str(id) for name, id in zip_longest(self.names, self.sources)]
        return moment, one_line(self.user), one_line(str(self.id)), one_line(self.form), _join(sources), *self._end()

    def kind(self) -> tuple[str, ...]:
        """Return the cells that are equal for repetitions of the same departure."""
        names = sorted(set(filter(None, self.names)))
        others = "" if names and all(self.names) else " and others" if names else f"{len(self.sources)} untagged"
        return one_line(self.user), one_line(self.form), _join(names) + others, *self._end()

    def to_line(self) -> dict[str, Any]:
        """Return the entry as it is written to a file, without empty fields."""
        moment = datetime.fromtimestamp(self.when, timezone.utc).isoformat(timespec="microseconds")
        fields = {"time": moment, "event": self.event, **self._asdict()}
        del fields["when"]
        return {name: value for name, value in fields.items() if value not in ("", (), None)}

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Entry:
        """Invert ``to_line``."""
        fields = {"user": "", "id": "", "form": "", "sources": (), "to": "", **line}
        fields["when"] = datetime.fromisoformat(line["time"]).timestamp()
        fields.update({name: tuple(fields[name]) for name in ("sources", "names") if name in fields})
        return cls(**{name: fields[name] for name in cls._fields if name in fields})

    def _end(self) -> tuple[str, str]:
        return one_line(self.to), one_line(self.reason)


Outline: TypeAlias = "tuple[Id, type, Any, Sources]"
"""The id, type, shape and sources of a plain object that left."""


class Outlined(NamedTuple):
    """Plain objects that left with one message."""

    when: float
    peer: Peer
    to: str
    reason: str
    objects: list[Outline]

    def describe(self) -> Iterator[Entry]:
        """Yield the entry of each object."""
        who = str(self.peer)
        for id, cls, shape, sources in self.objects:
            lineage = _lineage(sources, self.to, self.reason)
            yield Entry(self.when, who, id, describe_form(cls.__name__, shape), *lineage, self.peer.id)._replace(
                names=()
            )


def _join(sources: Iterable[str]) -> str:
    """Join names of sources, escaping commas within them."""
    return ", ".join([one_line(source).replace(",", r"\x2c") for source in sources])


def record(worker: Worker, entry: Stored, peer: Peer, to: str, reason: str, value: object = None) -> None:
    """Record in the worker's ledger that an object leaves, or ``value``, which is an attribute of it."""
    record_all(worker, [(entry, value, None)], peer, to, reason)


def record_all(worker: Worker, leaving: Sequence[Departure], peer: Peer, to: str, reason: str) -> None:
    """Record that objects leave, or attributes of them, each with the release request that permits it.

    Raises if that fails: what is not recorded must not leave.
    """
    outlines = None if worker.ledger.file is not None else _outline(leaving)
    if outlines is not None:
        worker.ledger.note(Outlined(time.time(), peer, to, reason, outlines))
        return
    now, who, entries = time.time(), str(peer), []
    lineages: dict[Sources, tuple[tuple[Any, ...], str, str, tuple[str, ...]]] = {}
    for found, value, request in leaving:
        entry = found if request is None else next(r.copy for r in request.objects if r.value is value)
        lineage = lineages.get(entry.sources)
        if lineage is None:  # The tensors of a trained model have the same.
            lineage = lineages[entry.sources] = _lineage(entry.sources, to, reason)
        form = form_of(entry.value if value is None else value)
        left = Entry(now, who, entry.id, form, *lineage, peer.id)
        if request is not None:
            why = ", ".join(filter(None, (reason, f"request {request.number}, approved by {request.decided_by}")))
            left = left._replace(reason=why, event="released", request=request.number, approver=request.decided_by)
        entries.append(left)
    worker.ledger.record(*entries)


def record_refusal(worker: Worker, ids: Iterable[Id], peer: Peer, reason: str) -> None:
    """Record that a peer was refused something; if that fails, the peer is refused all the same.

    Refusals do not use the last part of the disk: departures need it, and a peer can cause any number of refusals.
    """
    if worker.ledger.file is not None and not has_room(worker.ledger.file.path):
        _log.error("worker %r does not record a refusal of %s: the disk is almost full", worker.id, one_line(str(peer)))
        return
    known = [entry for id in ids if (entry := worker.object_store.get(id)) is not None]
    names, forms = ", ".join([str(id) for id in ids]), ", ".join([form_of(entry.value) for entry in known])
    lineage = _lineage(_join_sources(known), "", reason)
    refused = Entry(time.time(), str(peer), names, forms, *lineage, peer.id, "refused")
    with suppress(LedgerError):  # The journal has logged it.
        worker.ledger.record(refused)


def record_request(worker: Worker, request: ReleaseRequest, event: Event, by: str = "", answer: str = "") -> None:
    """Record that a peer requested a release, or that the owner decided on it."""
    entries = [requested.copy for requested in request.objects]
    ids = ", ".join([str(entry.id) for entry in entries])
    lineage = _lineage(_join_sources(entries), str(request.peer.id), answer or request.reason)
    noted = Entry(time.time(), str(request.peer), ids, request.forms, *lineage, request.peer.id, event)
    worker.ledger.record(noted._replace(request=request.number, approver=by))


def _outline(leaving: Sequence[Departure]) -> list[Outline] | None:
    """Return what the entries of departing objects are made from, or None if they are needed at once.

    Text is made when the ledger is read. The tags of sources may change until then.
    """
    outlines: list[Outline] = []
    sources: Sources | None = None
    for entry, value, request in leaving:
        left = entry.value if value is None else value
        if request is not None or not framework_types.get(type(left)):
            return None
        if entry.sources is not sources:
            sources = entry.sources
            for source in sources:
                if getattr(source, "tags", None):
                    return None
        outlines.append((entry.id, type(left), getattr(left, "shape", None), sources))
    return outlines


def _join_sources(entries: Iterable[Stored]) -> Sources:
    return frozenset([source for entry in entries for source in entry.sources])


def _lineage(found: Sources, to: str, reason: str) -> tuple[tuple[Any, ...], str, str, tuple[str, ...]]:
    """Return the middle fields of an entry: the sources, where the object goes, why, and the tags of the sources."""
    sources = _in_order(found) if len(found) > 1 else list(found)
    ids = tuple([getattr(source, "id", source) for source in sources])
    names = tuple(map(_tags_of, sources))
    return ids, to, reason, names if any(names) else ()


def name_sources(entry: Stored) -> list[str]:
    """Return the sources of an object, by their tags if they have any."""
    return [_tags_of(source) or str(getattr(source, "id", source)) for source in _in_order(entry.sources)]


@lru_cache(maxsize=64)
def _in_order(sources: Sources) -> list[Any]:
    numbered = [source for source in sources if hasattr(source, "serial")]
    return [*sorted(sources.difference(numbered), key=str), *sorted(numbered, key=attrgetter("serial"))]


def _tags_of(source: object) -> str:
    tags = getattr(source, "tags", None)
    return _join_tags(tags) if tags else ""


@lru_cache(maxsize=1024)
def _join_tags(tags: frozenset[str]) -> str:
    text = " ".join(sorted(tags))
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}…"


def read_ledger(path: str | Path) -> Iterator[Entry]:
    """Yield all entries of a file; raise ``LedgerError`` at the first line that was changed."""
    for line in iter_lines(Path(path)):
        yield Entry.from_line(line.content)


class Ledger:
    """The departures of one worker, oldest first. It prints as a table and renders in a notebook.

    With a path, every entry is also appended to that file, before the object leaves; refusals and release requests are
    only there. What cannot be written does not leave. All entries, also of earlier runs, are in the file:
    ``read_ledger(path)``. In memory are the last departures only.
    """

    HEADER = ("when", "who", "object", "form", "computed from", "to", "reason")
    SUMMARY = ("times", "who", "form", "computed from", "to", "reason")

    def __init__(self, owner: str, path: str | Path | None = None, sync: Sync = "departures") -> None:
        self.owner = owner
        self._sync = sync
        self._described: deque[Entry] = deque()
        self._outlined: deque[Outlined] = deque()
        """Later departures, which become entries when the ledger is read."""
        self._outlined_objects = 0
        self._forgotten = 0
        """How many departures are not in memory any more."""
        self._lock = threading.Lock()
        self.file = None if path is None else Journal(path, owner)

    def record(self, *entries: Entry) -> None:
        """Add the entries of one message; raise ``LedgerError`` if the file cannot be written."""
        departed = [entry for entry in entries if entry.event in DEPARTURES]
        if self.file is not None:
            is_synced = self._sync == "always" or (bool(departed) and self._sync == "departures")
            self.file.append(*[entry.to_line() for entry in entries], sync=is_synced)
        if departed:
            with self._lock:
                self._describe()
                self._described.extend(departed)
                self._forget()

    def note(self, departed: Outlined) -> None:
        """Add the entries of plain objects, which are made when the ledger is read; only without a file."""
        with self._lock:
            self._outlined.append(departed)
            self._outlined_objects += len(departed.objects)
            self._forget()

    def _describe(self) -> None:
        """Make the entries of outlined departures."""
        while self._outlined:
            self._described.extend(self._outlined.popleft().describe())
        self._outlined_objects = 0

    def _forget(self) -> None:
        """Forget the oldest departures if there are too many."""
        while len(self._described) + self._outlined_objects > MAX_REMEMBERED:
            if self._described:
                self._described.popleft()
                self._forgotten += 1
            else:
                count = len(self._outlined.popleft().objects)
                self._outlined_objects -= count
                self._forgotten += count

    @property
    def _lines(self) -> deque[Entry]:
        """All entries in memory."""
        if self._outlined:
            with self._lock:
                self._describe()
        return self._described

    @property
    def departures(self) -> int:
        """How many objects have left since the start."""
        return self._forgotten + len(self._described) + self._outlined_objects

    def close(self) -> None:
        """Close the file: nothing can leave after that."""
        if self.file is not None:
            self.file.close()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> Entry:
        return self._lines[index]

    def kinds(self) -> list[tuple[str, ...]]:
        """Return one row per kind of departure, starting with the number of repetitions."""
        counted = Counter(line.kind() for line in self._lines)
        return [(str(times), *kind) for kind, times in counted.items()]

    def summary(self) -> str:
        """Return a table with one row per kind of departure, which stays short for long trainings."""
        return text_table(self.SUMMARY, self.kinds()) + self._earlier() if self._lines else self._nothing()

    def __str__(self) -> str:
        return text_table(self.HEADER, self._cells()) + self._earlier() if self._lines else self._nothing()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        kinds = self.kinds()
        if not kinds:
            return f"<div>{escape(self._nothing())}</div>"
        page = html_table(f"what left {self.owner}", self.SUMMARY, kinds)
        page += f"<p>{escape(self._earlier().strip())}</p>" if self._forgotten else ""
        lines = html_table("", self.HEADER, self._cells())
        return f"<div>{page}<details><summary>every departure</summary>{lines}</details></div>"

    def _cells(self) -> list[tuple[str, ...]]:
        return [line.cells() for line in self._lines]

    def _earlier(self) -> str:
        return f"\nand {self._forgotten:,} earlier departures, which are not in memory" if self._forgotten else ""

    def _nothing(self) -> str:
        return f"nothing has left {self.owner!r}"
