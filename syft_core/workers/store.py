"""ObjectStore: what a worker holds, who may have it, and what it was computed from."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.peer import Id, Peer
from syft_core.tensors.private import get_allowed_users

MOST_SOURCES = 64
"""How many sources the lineage of one object names; beyond that it says that there are more."""
MOST_REMEMBERED = 1024
"""How many ends of objects are remembered, for the error that says what became of one."""

NOTHING: frozenset[Any] = frozenset()
MORE = "…"


class Failure(NamedTuple):
    """Stands among the sources of what an operation failed to compute, and of everything computed from that."""

    op: str
    kind: str
    """The type of the error; its text may quote values."""

    def __str__(self) -> str:
        return f"{self.op} that failed with {self.kind}"


class Stored:
    """One object with what its worker knows of it."""

    leases = 1
    """How many pointers its holder has to it."""
    others: dict[Any, int] | None = None
    """How many pointers others have, by worker."""
    published = False
    touched = False
    """Whether an operation has changed it since it was published."""
    giver: Peer | None = None
    """Who sent it; None when it was made here."""
    access: frozenset[str] | None = None
    """The users who may have it; None when nothing restricts it."""
    sources: frozenset[Any] = NOTHING
    """The ids of the objects it was computed from, itself when it came from outside; and what failed on the way."""
    origin: Any = None
    """A pointer to the object that it is a copy of, to which its gradient goes back."""
    tags: frozenset[str] = NOTHING
    description: str | None = None

    is_plain = False
    """Whether it is a plain tensor, and not a chain or anything else."""

    def __init__(self, value: Any, holder: Any) -> None:
        self.value = value
        self.holder = holder
        """The id of the worker for which it was stored or computed."""

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

    def lease(self, holder: Any) -> None:
        """Count one more pointer of ``holder``."""
        if holder == self.holder:
            self.leases += 1
        else:
            self.others = {**(self.others or {}), holder: (self.others or {}).get(holder, 0) + 1}

    def release(self, holder: Any) -> bool:
        """Count one pointer of ``holder`` less, if it has one; say whether nobody needs the object any more."""
        if holder == self.holder:
            self.leases = max(self.leases - 1, 0)
        elif self.others and holder in self.others:
            self.others[holder] -= 1
            if not self.others[holder]:
                del self.others[holder]
        return not (self.leases or self.others or self.published)

    def is_needed_by_others(self, holder: Any) -> bool:
        """Say whether the worker itself or somebody but ``holder`` counts on the object."""
        if self.published or (self.leases and holder != self.holder):
            return True
        return bool(self.others) and any(other != holder for other in self.others or ())

    def is_leased_to(self, holder: Any) -> bool:
        """Say whether ``holder`` has a pointer to it."""
        return bool(self.leases) if holder == self.holder else holder in (self.others or ())

    def give_up(self, holder: Any) -> None:
        """Forget all pointers of ``holder``."""
        if holder == self.holder:
            self.leases = 0
        elif self.others:
            self.others.pop(holder, None)


class ObjectStore:
    """Objects by id, with an index of their tags."""

    def __init__(self, owner_id: Any) -> None:
        self._owner_id = owner_id
        self._entries: dict[Id, Stored] = {}
        self.get = self._entries.get
        """Return what is kept under an id, or None."""
        self._tagged: dict[str, set[Id]] = {}
        self._ended: OrderedDict[Id, str] = OrderedDict()
        self._released: deque[tuple[Id, float]] = deque(maxlen=MOST_REMEMBERED)
        self.has_private = False
        """Whether an object has been here that is not for everybody."""
        self.learning: dict[Id, Stored] = {}
        """The objects that may get gradients in a backward pass."""

    def put(self, id: Id, entry: Stored) -> None:
        """Keep ``entry`` under an id that is free."""
        if id in self._entries:
            raise IdNotUniqueError.of(id)
        if not entry.sources:  # It was computed from nothing that is here: it is a source itself.
            entry.sources = frozenset((id,))
            entry.access = get_allowed_users(entry.value)
        self._entries[id] = entry
        self.has_private = self.has_private or entry.access is not None
        value = entry.value
        entry.is_plain = is_framework_tensor(type(value))
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
        self._stop_learning(id)
        self._unindex(id, entry)
        self._ended[id] = f"{why} at {_clock(time.time())}"
        if len(self._ended) > MOST_REMEMBERED:
            self._ended.popitem(last=False)
        return entry

    def release(self, leases: deque[tuple[Id, Any]]) -> None:
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
                self._released.append((id, now))
                if entry.tags:
                    self._unindex(id, entry)

    def learners(self) -> list[Stored]:
        """Return what may get gradients: objects, and those that are gone but whose gradients still are shown here."""
        for id in [id for id in self.learning if id not in self._entries]:
            self._stop_learning(id)
        return list(self.learning.values())

    def _stop_learning(self, id: Id) -> None:
        """Forget an object that is gone, unless another one here shows its gradient: that may still change."""
        entry = self.learning.get(id)
        if entry is None:
            return
        plain = plain_below(entry.value)
        gradient = plain.grad if getattr(plain, "is_leaf", False) else None
        if gradient is None or not framework_of(plain).is_shared(gradient):
            del self.learning[id]

    def tag(self, id: Id, tags: Iterable[str], description: str | None = None) -> None:
        """Add tags and a description to an object."""
        entry = self.entry(id)
        entry.tags = entry.tags.union(tags)
        self._index(id, tags)
        if description is not None:
            entry.description = description

    def names_of(self, ids: Sequence[Any]) -> tuple[str, ...]:
        """Return the tags of each object, nothing for one that has none or is gone; empty when none has any."""
        if not self._tagged:
            return ()
        entries = [self._entries.get(id) for id in ids]
        names = tuple([" ".join(sorted(entry.tags)) if entry is not None else "" for entry in entries])
        return names if any(names) else ()

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
        history = self._ended.get(id)
        for released, moment in self._released:
            if released == id:
                history = f"its last pointer was dropped at {_clock(moment)}"
        if history is None:
            return ObjectNotFoundError.on(id, self._owner_id)
        return ObjectNotFoundError.on(id, self._owner_id, history)

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
        found |= {id for id in self._entries if id == part or str(id) == str(part)}
        found |= {id for id, entry in self._entries.items() if entry.description and str(part) in entry.description}
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
            sources = _union(sources, parent.sources)
    return access, sources


def derive(results: Iterable[Stored], parents: Sequence[Stored]) -> None:
    """Let ``results`` take over what restricts their parents and what those were computed from."""
    access, sources = lineage_of(parents)
    for result in results:
        result.access, result.sources = access, sources


def _union(some: frozenset[Any], others: frozenset[Any]) -> frozenset[Any]:
    """Join sources. Of too many, those in both stay: data recurs in each step of a loop, and what passes does not.

    Failures come first: no number of sources makes up for one.
    """
    joined = some | others
    if len(joined) <= MOST_SOURCES:
        return joined
    common = some & others
    named = [s for s in (*_failures_in(joined), *common, *(joined - common)) if s != MORE]
    return frozenset([*list(dict.fromkeys(named))[: MOST_SOURCES - 1], MORE])


def _failures_in(sources: Iterable[Any]) -> list[Failure]:
    return [source for source in sources if type(source) is Failure]


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))
