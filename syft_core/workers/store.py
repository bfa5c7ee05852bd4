"""ObjectStore: what a worker holds, who may have it, and what it was computed from."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import framework_of
from syft_core.hook.ranks import framework_types, is_framework_tensor
from syft_core.peer import Id, Peer
from syft_core.tensors.private import get_allowed_users

MOST_SOURCES = 64
"""How many sources the lineage of one object names; beyond that it says that there are more."""
MOST_REMEMBERED = 1024
"""How many ends of objects are remembered, for the error that says what became of one."""

NOTHING: frozenset[Any] = frozenset()
MORE = "…"
_serials = itertools.count()


class Source:
    """An object from which others were computed, as their lineage names it, also when the object itself is gone.

    Ids can be used again, so lineage is never compared by id.
    """

    __slots__ = ("id", "published", "serial", "tags")

    def __init__(self, id: Id) -> None:
        self.serial = next(_serials)
        self.id = id
        self.tags: frozenset[str] = NOTHING
        self.published = False

    def __str__(self) -> str:
        return str(self.id)


class Failure(NamedTuple):
    """Stands among the sources of what an operation failed to compute, and of everything computed from that."""

    op: str
    kind: str
    """The type of the error; its text may quote values."""

    def __str__(self) -> str:
        return f"{self.op} that failed with {self.kind}"


Holder: TypeAlias = "Id | tuple[Id, Id]"
"""Whose lease it is: that of a worker, or of a worker to which another one, named second, gave it."""


class Stored:
    """One object with what its worker knows of it."""

    id: Id = ""
    leases = 1
    """How many pointers its holder has to it."""
    others: dict[Holder, int] | None = None
    """How many pointers others have, by holder."""
    writers: frozenset[Id] = NOTHING
    """The workers that were given a pointer by somebody who may change the object; so may they."""
    published = False
    publisher: Peer | None = None
    """Who published it; None when that was the worker itself."""
    touched = False
    """Whether an operation has changed it since it was published."""
    fetched_by: Peer | None = None
    """To whom a reply hands it over that is not yet written."""
    giver: Peer | None = None
    """Who sent it, or for whom a worker had it computed; None when it was made for its holder."""
    guard: Stored | None = None
    """An object of somebody else's whose memory it shares: to change one is to change the other."""
    access: frozenset[str] | None = None
    """The users who may have it; None when nothing restricts it."""
    sources: frozenset[Any] = NOTHING
    """What it was computed from, itself when it came from outside; and what failed on the way."""
    source: Source | None = None
    """What stands for it in the lineage of others, if anything does."""
    root: frozenset[Any] | None = None
    """Its sources when it came from outside: as long as it has these, nothing was written into it."""
    origin: Any = None
    """A pointer to the object that it is a copy of, to which its gradient goes back."""
    lent: frozenset[tuple[Id, Peer]] = NOTHING
    """The workers that have a copy whose gradient comes back, each with the peer that sent the copy there."""
    tags: frozenset[str] = NOTHING
    description: str | None = None

    is_plain = False
    """Whether it is a plain tensor, and not a chain or anything else."""

    def __init__(self, value: Any, holder: Any) -> None:
        self.value = value
        self.holder = holder
        """The id of the worker for which it was stored or computed; None for an argument that came with a command."""

    def hold(self, value: Any) -> None:
        """Hold another value from now on."""
        self.value = value
        self.is_plain = is_framework_tensor(type(value))

    @property
    def pointers(self) -> int:
        """How many pointers there are to it."""
        return self.leases + sum(self.others.values()) if self.others else self.leases

    @property
    def failures(self) -> list[Failure]:
        """What failed on the way to it: it does not hold what it was meant to."""
        return _failures_in(self.sources)

    def lease(self, holder: Holder) -> None:
        """Count one more pointer of ``holder``."""
        if holder == self.holder:
            self.leases += 1
        else:
            self.others = {**(self.others or {}), holder: (self.others or {}).get(holder, 0) + 1}

    def release(self, holder: Holder) -> bool:
        """Count one pointer of ``holder`` less, if it has one; say whether nobody needs the object any more."""
        if holder == self.holder:
            self.leases = max(self.leases - 1, 0)
        elif self.others and holder in self.others:
            self.others[holder] -= 1
            if not self.others[holder]:
                del self.others[holder]
        return not (self.leases or self.others or self.published)

    def is_needed_by_others(self, worker: Id) -> bool:
        """Return whether the worker itself or somebody but ``worker`` counts on the object."""
        if self.published or (self.leases and worker != self.holder):
            return True
        return any(_worker_of(holder) != worker for holder in self.others or ())

    def is_leased_to(self, worker: Id) -> bool:
        """Return whether ``worker`` has a pointer to it."""
        if worker == self.holder and self.leases:
            return True
        return any(_worker_of(holder) == worker for holder in self.others or ())

    def give_up(self, worker: Id) -> None:
        """Forget all pointers of ``worker``."""
        if worker == self.holder:
            self.leases = 0
        if self.others:
            self.others = {holder: n for holder, n in self.others.items() if _worker_of(holder) != worker}

    def publish(self, publisher: Peer | None) -> None:
        """Keep it for good; from now on the lineage of what is computed from it names it."""
        self.published, self.publisher, self.touched = True, publisher, False
        if self.source is None:
            self.source = Source(self.id)
            self.source.tags = self.tags
            self.sources = self.sources | {self.source}
        self.source.published = True


def _worker_of(holder: Holder) -> Id:
    return holder[0] if type(holder) is tuple else holder  # type: ignore[return-value]  # an id, if it is no pair


class ObjectStore:
    """Objects by id, with an index of their tags."""

    def __init__(self, owner_id: Any) -> None:
        self._owner_id = owner_id
        self._entries: dict[Id, Stored] = {}
        self.get = self._entries.get
        """Return what is kept under an id, or None."""
        self._tagged: dict[str, set[Id]] = {}
        self._ended: deque[tuple[Id, str, float]] = deque(maxlen=MOST_REMEMBERED)
        self._released: deque[tuple[Id, str, float]] = deque(maxlen=MOST_REMEMBERED)
        self.has_private = False
        """Whether an object has been here that is not for everybody."""
        self.learning: dict[Id, Stored] = {}
        """The objects that may get gradients in a backward pass."""

    def put(self, id: Id, entry: Stored) -> None:
        """Keep ``entry`` under an id that is free."""
        if id in self._entries:
            raise IdNotUniqueError.of(id)
        entry.id, value = id, entry.value
        entry.is_plain = framework_types.get(type(value)) or is_framework_tensor(type(value))
        if not entry.sources:  # It was computed from nothing that is here: it is a source itself.
            entry.source = Source(id)
            entry.root = entry.sources = frozenset((entry.source,))
            entry.access = None if entry.is_plain else get_allowed_users(value)
        self._entries[id] = entry
        self.has_private = self.has_private or entry.access is not None
        if not entry.is_plain or getattr(value, "requires_grad", False):
            self.learning[id] = entry
        if entry.tags:
            self._index(id, entry.tags)

    def require_free(self, ids: Iterable[Id]) -> None:
        """Raise if one of ``ids`` is taken."""
        for id in ids:
            if id in self._entries:
                raise IdNotUniqueError.of(id)

    def entry(self, id: Id) -> Stored:
        """Return what is kept under ``id``, or say what became of it."""
        entry = self._entries.get(id)
        if entry is None:
            raise self._missing(id)
        return entry

    def remove(self, id: Id, why: str) -> Stored:
        """Drop an object and remember why."""
        entry = self.entry(id)
        del self._entries[id]
        if id in self.learning:
            self._stop_learning(id)
        if entry.tags:
            self._unindex(id, entry)
        self._ended.append((id, why, time.time()))
        return entry

    def release(self, leases: deque[tuple[Id, Holder]]) -> None:
        """Count one lease less for each pair of object and holder in ``leases``, and empty it; drop what is free."""
        entries, learning = self._entries, self.learning
        now = time.time()
        while leases:
            id, holder = leases.popleft()
            entry = entries.get(id)
            if entry is None:
                continue
            is_only = entry.leases == 1 and holder == entry.holder and not (entry.others or entry.published)
            if is_only or entry.release(holder):
                del entries[id]
                if id in learning:
                    self._stop_learning(id)
                self._released.append((id, "its last pointer was dropped", now))
                if entry.tags:
                    self._unindex(id, entry)

    def learners(self) -> list[Stored]:
        """Return what may get gradients: objects, and those that are gone but whose gradients still are shown here."""
        for id in [id for id in self.learning if id not in self._entries]:
            self._stop_learning(id)
        return list(self.learning.values())

    def _stop_learning(self, id: Id) -> None:
        """Forget an object that is gone, unless another one here shows its gradient: that may still change."""
        entry = self.learning[id]
        plain = entry.value if entry.is_plain else plain_below(entry.value)
        gradient = plain.grad if is_leaf(plain) else None
        if gradient is None or not framework_of(plain).is_shared(gradient):
            del self.learning[id]

    def tag(self, id: Id, tags: Iterable[str], description: str | None = None) -> None:
        """Add tags and a description to an object."""
        entry = self.entry(id)
        entry.tags = entry.tags.union(tags)
        if entry.source is not None:
            entry.source.tags = entry.tags
        self._index(id, tags)
        if description is not None:
            entry.description = description

    def reserved(self, tags: Iterable[str]) -> list[str]:
        """Return those of ``tags`` under which the worker itself has published something."""
        return [tag for tag in tags if any(self._is_of_worker(id) for id in self._tagged.get(tag, ()))]

    def _is_of_worker(self, id: Id) -> bool:
        return self._entries[id].published and self._entries[id].publisher is None

    def search(self, query: Iterable[Any]) -> list[Id]:
        """Return the ids of all objects that match every part of ``query``; without parts, of all tagged ones."""
        parts = list(query)
        if not parts:
            return [id for id, entry in self._entries.items() if entry.tags]
        matches = [self._matching(part) for part in parts]
        return [id for id in self._entries if all(id in found for found in matches)]

    def clear(self, why: str) -> None:
        """Drop everything."""
        for id in list(self._entries):
            self.remove(id, why)

    def values(self) -> dict[Id, Any]:
        """Return the objects by id."""
        return {id: entry.value for id, entry in self._entries.items()}

    def entries(self) -> list[Stored]:
        """Return everything that is kept."""
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Id]:
        return iter(list(self._entries))

    def __contains__(self, id: object) -> bool:
        return id in self._entries

    def _missing(self, id: Id) -> ObjectNotFoundError:
        ends = [f"{why} at {_clock(moment)}" for gone, why, moment in (*self._ended, *self._released) if gone == id]
        return ObjectNotFoundError.on(id, self._owner_id, *ends[-1:])

    def _index(self, id: Id, tags: Iterable[str]) -> None:
        for tag in tags:
            self._tagged.setdefault(tag, set()).add(id)

    def _unindex(self, id: Id, entry: Stored) -> None:
        for tag in entry.tags:
            ids = self._tagged.get(tag, set())
            ids.discard(id)
            if not ids:
                self._tagged.pop(tag, None)

    def _matching(self, part: Any) -> set[Id]:
        found = set(self._tagged.get(part, ()))
        if part in self._entries:
            found.add(part)
        if type(part) is str:
            found |= {id for id, entry in self._entries.items() if entry.description and part in entry.description}
        return found


Lineage = tuple["frozenset[str] | None", "frozenset[Any]"]
"""Who may have an object, and what it was computed from."""


def lineage_of(parents: Sequence[Stored]) -> Lineage:
    """Return what restricts everything that is computed from ``parents``, and what those were computed from."""
    if not parents:
        return None, NOTHING
    first = parents[0]
    access, sources = first.access, first.sources
    for parent in parents:
        if parent.access is not access and parent.access is not None:
            access = parent.access if access is None else access & parent.access
        if parent.sources is not sources:
            joined = sources | parent.sources
            sources = joined if len(joined) <= MOST_SOURCES else _some_of(joined, sources & parent.sources)
    return access, sources


def derive(results: Iterable[Stored], parents: Sequence[Stored]) -> None:
    """Let ``results`` take over what restricts their parents and what those were computed from."""
    access, sources = lineage_of(parents)
    for result in results:
        result.access, result.sources = access, sources


def _some_of(joined: frozenset[Any], common: frozenset[Any]) -> frozenset[Any]:
    """Choose among too many sources. Those of both stay: data recurs in each step of a loop, what passes does not.

    All failures and all published objects stay, however many they are.
    """
    lasting = [s for s in joined if type(s) is Failure or getattr(s, "published", False)]
    named = [s for s in dict.fromkeys((*lasting, *common, *(joined - common))) if s != MORE]
    return frozenset([*named[: max(MOST_SOURCES - 1, len(lasting))], MORE])


def _failures_in(sources: Iterable[Any]) -> list[Failure]:
    return [source for source in sources if type(source) is Failure] if Failure in map(type, sources) else []


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def is_leaf(plain: Any) -> bool:
    """Return whether a plain tensor is a leaf of a graph.

    A view that was made, and whose data was changed, without gradients cannot be one, and its framework may not say so.
    """
    try:
        return bool(getattr(plain, "is_leaf", False))
    except RuntimeError:
        return False
