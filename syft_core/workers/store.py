"""ObjectStore: the objects of a worker, with their leases, restrictions and lineage."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import ReferenceType

from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError, WorkerError
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import framework_of, frameworks, frameworks_of_types
from syft_core.hook.ranks import is_framework_tensor
from syft_core.hook.rules import resolve
from syft_core.peer import Id, Peer
from syft_core.tensors.private import get_allowed_users
from syft_core.values import Tensor

MAX_SOURCES = 64
"""How many sources the lineage of one object lists; the rest is summarized as ``MORE``."""
MAX_REMEMBERED = 1024
"""How many removed objects are remembered, for the error that says why one is missing."""
MAX_QUERY = 32
"""How many parts a query may have: each is looked for in every description."""

Sources: TypeAlias = frozenset[Any]
"""What an object was computed from: other objects, failures, and sources that are not stored here."""
NOTHING: Sources = frozenset()
MORE = "…"
_id = id  # Methods have parameters of that name.
_serials = itertools.count(time.time_ns())  # Sources of objects that outlive the process keep their numbers.


class Source:
    """An object in the lineage of others; it outlives the object itself.

    Ids can be reused, so sources are compared by identity.
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
    """A failed operation, in the lineage of its substitute result and of everything computed from it."""

    op: str
    kind: str
    """The type of the error; its text may quote values."""

    def __str__(self) -> str:
        return f"{self.op} that failed with {self.kind}"


Holder: TypeAlias = "Id | tuple[Id, Id]"
"""The holder of a lease: a worker, or a pair of a worker and the worker that gave it the pointer."""


class Stored:
    """A stored object with its metadata."""

    id: Id = ""
    leases = 1
    """How many pointers the holder has."""
    others: dict[Holder, int] | None = None
    """How many pointers others have, by holder."""
    writers: set[Id] | None = None
    """The workers that may change the object because a peer who may change it gave them a pointer."""
    published = False
    publisher: Peer | None = None
    """The peer that published it; None if the worker itself did."""
    touched = False
    """Whether an operation has changed it since it was published."""
    fetched_by: Peer | None = None
    """The peer that is fetching it, until the reply has been encoded."""
    giver: Peer | None = None
    """The peer that sent it, or on whose behalf it was computed; None if it was computed for its holder."""
    guard: Stored | None = None
    """An object of another peer that shares its memory, so that changing one changes the other."""
    access: frozenset[str] | None = None
    """The users who may have it; None if it is not restricted."""
    sources: Sources = NOTHING
    """The sources it was computed from (itself, if it was sent or loaded), and failures on the way."""
    source: Source | None = None
    """Its entry in the lineage of others, if it has one."""
    root: Sources | None = None
    """Its initial ``sources`` if it was sent or loaded; they are replaced when something is written into it."""
    state: dict[Id, ReferenceType[Stored]] | None = None
    """The objects that are the state of a plan; others may use their ids when they are gone."""
    origin: Any = None
    """A pointer to the object it was copied from, which receives its gradient."""
    lent: frozenset[tuple[Id, Peer]] = NOTHING
    """The workers with a copy whose gradient comes back, each with the peer that sent the copy."""
    tags: frozenset[str] = NOTHING
    description: str | None = None

    is_plain = False
    """Whether the value is a plain tensor."""
    key = 0
    """See ``key_of``."""

    def __init__(self, value: Any, holder: Any) -> None:
        self.value = value
        self.holder = holder
        """The id of the worker for which it was stored or computed; None for an argument of a command."""
        # Every command reads these, and attributes of an instance are found faster than those of its class.
        self.leases = 1
        self.others = self.access = self.guard = None
        self.published = False
        self.sources = self.tags = NOTHING

    @property
    def pointers(self) -> int:
        """The number of pointers to it."""
        return self.leases + sum(self.others.values()) if self.others else self.leases

    @property
    def holders(self) -> set[Id]:
        """The workers with pointers to it."""
        holders = {holder[0] if isinstance(holder, tuple) else holder for holder in self.others or ()}
        return holders | {self.holder} if self.leases else holders

    @property
    def failures(self) -> list[Failure]:
        """The failed operations in its lineage; if there are any, the value is a substitute."""
        sources = self.sources
        return [source for source in sources if type(source) is Failure] if Failure in map(type, sources) else []

    def lease(self, holder: Holder) -> None:
        """Add a lease of ``holder``."""
        if holder == self.holder:
            self.leases += 1
        else:
            self.others = self.others or {}
            self.others[holder] = self.others.get(holder, 0) + 1

    def release(self, holder: Holder) -> bool:
        """Remove a lease of ``holder``, if there is one; return whether the object is no longer needed."""
        if holder == self.holder:
            self.leases = max(self.leases - 1, 0)
        elif self.others and holder in self.others:
            self.others[holder] -= 1
            if not self.others[holder]:
                del self.others[holder]
        return not (self.leases or self.others or self.published)

    def is_needed_by_others(self, worker: Id) -> bool:
        """Return whether the object is published, or leased to anyone except ``worker``."""
        if self.published or (self.leases and worker != self.holder):
            return True
        return bool(self.others) and any(worker_of(holder) != worker for holder in self.others or ())

    def is_leased_to(self, worker: Id) -> bool:
        """Return whether ``worker`` has a lease on it."""
        if worker == self.holder and self.leases:
            return True
        return any(worker_of(holder) == worker for holder in self.others or ())

    def remove_leases(self, worker: Id) -> None:
        """Remove all leases of ``worker``."""
        if worker == self.holder:
            self.leases = 0
        if self.others:
            self.others = {holder: n for holder, n in self.others.items() if worker_of(holder) != worker}

    def publish(self, publisher: Peer | None) -> None:
        """Keep it permanently, and name it in the lineage of everything computed from it."""
        self.published, self.publisher, self.touched = True, publisher, False
        if self.source is None:
            self.source = Source(self.id)
            self.source.tags = self.tags
            self.sources = self.sources | {self.source}
        self.source.published = True


def key_of(value: object) -> int:
    """Return the Python id of the owner of a tensor's memory if that is known, or of the tensor.

    Objects with the same key share memory; others may share it too, see ``is_shared`` of their framework.
    """
    plain = plain_below(value)
    if plain is None:
        return id(value)
    framework = frameworks_of_types.get(type(plain)) or resolve(frameworks, type(plain))
    return id(plain if framework is None or framework.owner_of is None else framework.owner_of(plain))


def worker_of(holder: Holder) -> Id:
    """Return the worker that holds a lease."""
    return holder[0] if type(holder) is tuple else holder  # type: ignore[return-value]  # an id, because it is not a pair


class ObjectStore:
    """Objects by id, with a tag index."""

    def __init__(self, owner_id: Any) -> None:
        self._owner_id = owner_id
        self._entries: dict[Id, Stored] = {}
        self.get = self._entries.get
        """Return the entry stored under an id, or None."""
        self._tagged: dict[str, set[Id]] = {}
        self._ended: deque[tuple[Id, str, float]] = deque(maxlen=MAX_REMEMBERED)
        self._released: deque[tuple[Id, str, float]] = deque(maxlen=MAX_REMEMBERED)
        self.has_private = False
        """Whether there was ever a private object."""
        self.uses: dict[int, int] = {}
        """How many entries have the same ``key``."""
        self._orphans: list[Stored] = []
        """Removed objects whose gradients share memory with stored objects, which a backward pass may change."""
        self.listener: Callable[[Stored, bool], None] | None = None
        """Is told which object was added, changed or removed, and whether its memory was written to."""

    def put(self, id: Id, entry: Stored) -> None:
        """Store ``entry`` under an unused id."""
        if id in self._entries:
            raise IdNotUniqueError.of(id)
        entry.id, value = id, entry.value
        framework = frameworks_of_types.get(type(value))
        entry.is_plain = framework is not None or is_framework_tensor(type(value))
        entry.key = key = key_of(value) if framework is None or framework.owner_of is not None else _id(value)
        self.uses[key] = self.uses.get(key, 0) + 1
        if not entry.sources:  # It was not computed from other objects.
            entry.source = Source(id)
            entry.root = entry.sources = frozenset((entry.source,))
        if not entry.is_plain and (users := get_allowed_users(value)) is not None:
            entry.access = users if entry.access is None else entry.access & users
        self._entries[id] = entry
        if entry.tags:
            self._index(id, entry.tags)
        if entry.access is not None or self.listener is not None:
            self.note(entry)

    def replace(self, entry: Stored, value: Any) -> None:
        """Replace the value of an entry."""
        self._uncount(entry)
        entry.value, entry.is_plain = value, is_framework_tensor(type(value))
        entry.key = key_of(value)
        self.uses[entry.key] = self.uses.get(entry.key, 0) + 1

    def note(self, entry: Stored, written: bool = False) -> None:
        """Note that an object was added or has changed, and whether its memory was written to."""
        self.has_private = self.has_private or entry.access is not None
        if self.listener is not None:
            self.listener(entry, written)

    def require_free(self, ids: Iterable[Id]) -> None:
        """Raise if one of ``ids`` is in use."""
        for id in ids:
            if id in self._entries:
                raise IdNotUniqueError.of(id)

    def entry(self, id: Id) -> Stored:
        """Return the entry stored under ``id``; if it is gone, the error says why."""
        entry = self._entries.get(id)
        if entry is None:
            raise self._explain_missing(id)
        return entry

    def remove(self, id: Id, why: str) -> Stored:
        """Remove an object and remember why."""
        entry = self.entry(id)
        self.remove_all((entry,), why)
        return entry

    def remove_all(self, entries: Iterable[Stored], why: str) -> None:
        """Remove several objects."""
        now = time.time()
        for entry in entries:
            del self._entries[entry.id]
            self._uncount(entry)
            if shares_gradient(entry):
                self._orphans.append(entry)
            if entry.tags:
                self._unindex(entry.id, entry)
            self._ended.append((entry.id, why, now))
            if self.listener is not None:
                self.listener(entry, False)

    def release(self, leases: deque[tuple[Id, Holder]]) -> None:
        """Remove one lease per pair of id and holder, emptying ``leases``; remove objects without leases."""
        entries, uses, now = self._entries, self.uses, time.time()
        while leases:
            id, holder = leases.popleft()
            entry = entries.get(id)
            if entry is None:
                continue
            is_only = entry.leases == 1 and holder == entry.holder and not (entry.others or entry.published)
            if is_only or entry.release(holder):
                del entries[id]
                if uses[entry.key] == 1:
                    del uses[entry.key]
                else:
                    uses[entry.key] -= 1
                if shares_gradient(entry):
                    self._orphans.append(entry)
                self._released.append((id, "its last pointer was dropped", now))
                if entry.tags:
                    self._unindex(id, entry)
                    self.note(entry)

    def remove_client(self, worker: Id) -> None:
        """Remove the leases of a client, and the objects that nobody else needs."""
        for id, entry in list(self._entries.items()):
            if entry.is_leased_to(worker) and not entry.is_needed_by_others(worker):
                self.remove(id, f"the session of {worker!r} ended")
            else:
                entry.remove_leases(worker)

    def may_receive_grad(self) -> list[Stored]:
        """Return the entries that may receive gradients, including removed objects whose gradients are still in use.

        Looks at every object: one tensor may be stored under several ids, and any of them can make it need gradients.
        """
        if self._orphans:
            self._orphans = [entry for entry in self._orphans if shares_gradient(entry)]
        stored = self._entries.values()
        return [e for e in stored if not e.is_plain or getattr(e.value, "requires_grad", False)] + self._orphans

    def tag(self, id: Id, tags: Iterable[str], description: str | None = None) -> None:
        """Add tags and a description to an object."""
        entry = self.entry(id)
        entry.tags = entry.tags.union(tags)
        if entry.source is not None:
            entry.source.tags = entry.tags
        self._index(id, tags)
        if description is not None:
            entry.description = description
        self.note(entry)

    def find_reserved(self, tags: Iterable[str]) -> list[str]:
        """Return those of ``tags`` under which the worker itself has published an object."""
        return [tag for tag in tags if any(self._is_of_worker(id) for id in self._tagged.get(tag, ()))]

    def _is_of_worker(self, id: Id) -> bool:
        return self._entries[id].published and self._entries[id].publisher is None

    def search(self, query: Iterable[Any]) -> list[Id]:
        """Return the ids of the objects that match every part of ``query``; of all tagged objects if it is empty."""
        parts = set(query)
        if not parts:
            return [id for id, entry in self._entries.items() if entry.tags]
        if len(parts) > MAX_QUERY:
            raise WorkerError(f"cannot search for {len(parts)} words at once: the limit is {MAX_QUERY}; use fewer")
        matches = [self._find_matches(part) for part in parts]
        return [id for id in self._entries if all(id in found for found in matches)]

    def clear(self, why: str) -> None:
        """Remove all objects."""
        for id in list(self._entries):
            self.remove(id, why)

    def values(self) -> dict[Id, Any]:
        """Return the objects by id."""
        return {id: entry.value for id, entry in self._entries.items()}

    def entries(self) -> list[Stored]:
        """Return all entries."""
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Id]:
        return iter(list(self._entries))

    def __contains__(self, id: object) -> bool:
        return id in self._entries

    def _explain_missing(self, id: Id) -> ObjectNotFoundError:
        ends = [f"{why} at {_to_clock(moment)}" for gone, why, moment in (*self._ended, *self._released) if gone == id]
        return ObjectNotFoundError.on(id, self._owner_id, *ends[-1:])

    def _uncount(self, entry: Stored) -> None:
        self.uses[entry.key] -= 1
        if not self.uses[entry.key]:
            del self.uses[entry.key]

    def _index(self, id: Id, tags: Iterable[str]) -> None:
        for tag in tags:
            self._tagged.setdefault(tag, set()).add(id)

    def _unindex(self, id: Id, entry: Stored) -> None:
        for tag in entry.tags:
            ids = self._tagged.get(tag, set())
            ids.discard(id)
            if not ids:
                self._tagged.pop(tag, None)

    def _find_matches(self, part: Any) -> set[Id]:
        found = set(self._tagged.get(part, ()))
        if part in self._entries:
            found.add(part)
        if type(part) is str:
            found |= {id for id, entry in self._entries.items() if entry.description and part in entry.description}
        return found


Lineage = tuple["frozenset[str] | None", Sources]
"""Who may have an object, and what it was computed from."""


def lineage_of(parents: Sequence[Stored]) -> Lineage:
    """Return the lineage of everything computed from ``parents``."""
    if len(parents) == 1:
        return parents[0].access, parents[0].sources
    access: frozenset[str] | None = None
    for parent in parents:
        if parent.access is not access and parent.access is not None:
            access = parent.access if access is None else access & parent.access
    return access, join_sources(parents)


def join_sources(parents: Iterable[Stored]) -> Sources:
    """Return the sources of everything computed from ``parents``."""
    sources = NOTHING
    for parent in parents:
        others = parent.sources
        if others is sources or sources <= others:
            sources = others  # The larger set itself: the next comparison is then one of identity.
        else:
            joined = sources | others
            sources = joined if len(joined) <= MAX_SOURCES else _limit_sources(joined, sources & others)
    return sources


def derive(results: Iterable[Stored], parents: Sequence[Stored]) -> None:
    """Give ``results`` the lineage of everything computed from ``parents``."""
    access, sources = lineage_of(parents)
    for result in results:
        result.access, result.sources = access, sources


def _limit_sources(joined: Sources, common: Sources) -> Sources:
    """Limit the number of sources; keep all failures and all published objects.

    Prefer common sources: in a loop, the data recurs in each step and temporary objects do not.
    """
    lasting = [s for s in joined if type(s) is Failure or getattr(s, "published", False)]
    kept = [s for s in dict.fromkeys((*lasting, *common, *(joined - common))) if s != MORE]
    return frozenset([*kept[: max(MAX_SOURCES - 1, len(lasting))], MORE])


def _to_clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def shares_gradient(entry: Stored) -> bool:
    """Return whether an object has a gradient whose memory another tensor uses."""
    if entry.is_plain and not getattr(entry.value, "requires_grad", False):
        return False
    plain = entry.value if entry.is_plain else plain_below(entry.value)
    gradient = plain.grad if keeps_gradient(plain) else None
    if gradient is None:
        return False
    framework = framework_of(plain)
    # A backward pass replaces the parts of a sparse gradient, and writes to none of them.
    return framework.is_shared(gradient) and len(framework.memory_of(gradient) or (None,)) == 1


def keeps_gradient(plain: Tensor) -> bool:
    """Return whether a backward pass may give a plain tensor a gradient."""
    if getattr(plain, "requires_grad", False) is not True:
        return False
    try:
        return bool(plain.is_leaf or plain.retains_grad)
    except RuntimeError:  # See ``is_leaf``.
        return bool(plain.retains_grad)


def is_leaf(plain: Tensor) -> bool:
    """Return whether a plain tensor is a leaf of a graph.

    Torch raises for a view that was made and changed under ``no_grad``; it is not a leaf.
    """
    try:
        return bool(getattr(plain, "is_leaf", False))
    except RuntimeError:
        return False
