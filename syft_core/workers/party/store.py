"""ObjectStore: the objects of a worker, with their leases, restrictions and lineage."""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import ReferenceType

from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError, WorkerError
from syft_core.hook.chain import end_of, plain_below, plain_end
from syft_core.hook.dispatch import framework_of, frameworks, frameworks_of_types, is_form_only
from syft_core.hook.ranks import is_framework_tensor
from syft_core.hook.rules import resolve
from syft_core.peer import Id, Peer
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.tensors.private import get_allowed_users
from syft_core.tensors.schema import Schema
from syft_core.values import Tensor
from syft_core.workers.party.derivations import ARRANGE, Derivation, Maker, Operand
from syft_core.workers.party.status import (
    ADDED_INHERITED,
    ADDITIONS,
    FAILED,
    FORM_ONLY,
    GUARDED,
    INHERITED,
    LAYERED,
    LINKED,
    PRIVATE,
    PUBLISHED,
    REMOTE,
)

MAX_SOURCES = 64
"""The maximum number of sources listed in the lineage of one object; the rest is summarized as ``MORE``."""
MAX_REMEMBERED = 1024
"""The number of removed objects to remember, for the error that says why one is missing."""
MAX_QUERY = 32
"""The maximum number of parts of a query: each is searched for in every description."""

Sources: TypeAlias = frozenset[Any]
"""The origin of an object: other objects, failures, and sources that are not stored here."""
NOTHING: Sources = frozenset()
MORE = "…"
_id = id  # Methods have parameters of that name.
_numbers = itertools.count()
_serials = itertools.count(time.time_ns())  # Sources of objects that outlive the process keep their numbers.


class Source:
    """An object in the lineage of others; it outlives the object itself.

    Ids can be reused, so sources are compared by identity.
    """

    __slots__ = ("giver", "id", "private", "published", "sender", "serial", "tags")

    def __init__(self, id: Id, sender: Id | None = None, giver: Peer | None = None, private: bool = False) -> None:
        self.serial = next(_serials)
        self.id = id
        self.tags: frozenset[str] = NOTHING
        self.published = False
        self.private = private
        """Whether it was ever restricted to some users."""
        self.giver = giver
        """The peer that sent, created or published it; None for the worker itself."""
        self.sender = sender
        """The worker that sent or created it, if it has whole numbers and nobody else may have changed it since."""

    def __str__(self) -> str:
        return str(self.id)


class FailedSource(NamedTuple):
    """A failed operation, in the lineage of its substitute result and of everything computed from it."""

    op: str
    kind: str
    """The type of the error; its text may quote values."""

    def __str__(self) -> str:
        return f"{self.op} that failed with {self.kind}"


Lineage: TypeAlias = "tuple[frozenset[str] | None, Sources, int]"
"""The users who may have an object, what it was computed from, and the status bits that results inherit."""
NO_LINEAGE: Lineage = (None, NOTHING, 0)
UNRESTRICTED = None, 0
"""The ``restrictions`` of an object that everybody may have."""


Holder: TypeAlias = "Id | tuple[Id, Id]"
"""The holder of a lease: a worker, or a pair of a worker and the worker that gave it the pointer."""


class Stored:
    """A stored object with its metadata."""

    id: Id = ""
    leases = 1
    """The holder's number of pointers."""
    others: dict[Holder, int] | None = None
    """The other holders' numbers of pointers."""
    writers: set[Id] | None = None
    """The workers that may change the object because a peer with that right gave them a pointer."""
    published = False
    publisher: Peer | None = None
    """The peer that published it; None for the worker itself."""
    touched = False
    """Whether an operation has changed it since it was published."""
    derivation: Derivation | None = None
    """How it was computed; None until that is asked for, and for objects that depend on nothing restricted."""
    fetched_by: Peer | None = None
    """The peer that is fetching it, until the reply has been encoded."""
    giver: Peer | None = None
    """The peer that sent it, or on whose behalf it was computed; None if it was computed for its holder."""
    guard: Stored | None = None
    """An object of another peer that shares its memory, so that changing one changes the other."""
    access: frozenset[str] | None
    """The users who may have it; None if it is not restricted."""
    sources: Sources
    """The sources it was computed from (itself, if it was sent or loaded), and failures on the way."""
    status: int
    """See ``workers/party/status.py``."""
    source: Source | None = None
    """Its entry in the lineage of others, if it has one."""
    root: Sources | None = None
    """Its initial ``sources`` if it was sent or loaded; they are replaced when something is written into it."""
    state: dict[Id, ReferenceType[Stored]] | None = None
    """The objects that are the state of a plan; others may use their ids when they are gone."""
    origin: Any = None
    """A pointer to the original, which receives its gradient."""
    lent: frozenset[tuple[Id, Peer]] = NOTHING
    """The workers with a copy whose gradient comes back, each with the peer that sent the copy."""
    tags: frozenset[str] = NOTHING
    description: str | None = None
    schema: Schema | None = None
    number = 0
    """Its position in the order of storage."""
    is_counted = False
    """Whether a guard has counted it among its owner's objects."""
    key = 0
    """See ``key_of``."""
    memory: frozenset[int | str] = NOTHING
    """The memory that it uses, as far as the store knows it."""

    def __init__(self, value: Any, holder: Any, lineage: Lineage | None = None) -> None:
        self.value = value
        self.holder = holder
        """The id of the worker for which it was stored or computed; None for an argument of a command."""
        self.access, self.sources, self.status = lineage or NO_LINEAGE
        # Every command reads these; instance attributes are found faster than those of the class.
        self.leases = 1
        self.others = self.guard = None
        self.published = False
        self.tags = NOTHING

    @property
    def made_by(self) -> Maker | None:
        """The protocol or the program that computed it; None for anything else, and after any change."""
        return None if self.derivation is None else self.derivation.maker

    @property
    def is_plain(self) -> bool:
        """Whether the value is a plain tensor."""
        return not self.status & LAYERED

    @property
    def lineage(self) -> Lineage:
        """The users who may have it, what it was computed from, and the status that results inherit."""
        return self.access, self.sources, self.status & INHERITED

    @lineage.setter
    def lineage(self, lineage: Lineage) -> None:
        self.access, self.sources, inherited = lineage
        self.status = self.status & ~INHERITED | inherited

    @property
    def restrictions(self) -> tuple[frozenset[str] | None, int]:
        """The users who may have it, and the restrictions of features that results inherit."""
        return self.access, self.status & ADDED_INHERITED

    def restrict(self, access: frozenset[str] | None) -> None:
        """Set the users who may have the object."""
        self.access = access
        self.status = self.status & ~PRIVATE | (PRIVATE if access is not None else 0)
        if access is not None and self.source is not None:
            self.source.private = True

    def share_memory_with(self, other: Stored | None) -> None:
        """Record that it shares memory with an object of another peer, or with none."""
        self.guard = other
        self.status = self.status & ~GUARDED | (GUARDED if other is not None else 0)

    def mark(self, bits: int) -> None:
        """Set restrictions of features, by their bits."""
        if bits & ~ADDITIONS:
            raise ValueError(f"cannot mark an object: {bits:#x} has bits that `add_bit` has not returned")
        self.status |= bits

    def link(self, origin: Any = None, copy: tuple[Id, Peer] | None = None) -> None:
        """Record the object it was copied from, which receives its gradient, or a copy whose gradient comes back."""
        self.origin = origin if origin is not None else self.origin
        self.lent = self.lent if copy is None else self.lent | {copy}
        self.status |= LINKED

    def refresh_status(self) -> None:
        """Compute the status from everything it depends on."""
        self.status = (
            self.status & ADDITIONS
            | _describe(self.value)
            | (PRIVATE if self.access is not None else 0)
            | (PUBLISHED if self.published else 0)
            | (GUARDED if self.guard is not None else 0)
            | (FAILED if FailedSource in map(type, self.sources) else 0)
            | (LINKED if self.origin is not None or self.lent else 0)
        )

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
    def is_as_loaded(self) -> bool:
        """Whether the worker itself has loaded it, and it has not been written to."""
        return self.giver is None and self.root is not None and self.sources == self.root and not self.touched

    @property
    def failures(self) -> list[FailedSource]:
        """The failed operations in its lineage; if there are any, the value is a substitute."""
        return [source for source in self.sources if type(source) is FailedSource] if self.status & FAILED else []

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

    def is_known_to(self, worker: Id) -> bool:
        """Return whether it was computed only from whole numbers that ``worker`` sent and nobody else may change."""
        return self.is_plain and all(getattr(source, "sender", None) == worker for source in self.sources)

    def disown(self) -> None:
        """Note that others than the sender may change the memory of the object from now on."""
        for source in self.sources:
            if type(source) is Source:
                source.sender = None

    def publish(self, publisher: Peer | None) -> None:
        """Keep it permanently, and name it in the lineage of everything computed from it."""
        self.published, self.publisher, self.touched = True, publisher, False
        self.status |= PUBLISHED
        if self.source is None:
            self.source = Source(self.id, giver=publisher)
            self.source.tags = self.tags
            self.sources = self.sources | {self.source}
        self.source.published = True


def _find_sender(entry: Stored) -> Id | None:
    """Return the worker that knows a new object's values: it sent or created a plain tensor of whole numbers."""
    is_own = entry.is_plain and (entry.giver is None or not entry.giver.behalf)
    return entry.holder if is_own and framework_of(entry.value).is_integral(entry.value.dtype) else None


def _describe(value: object) -> int:
    """Return the status that follows from a value: whether it is a chain, where that ends, and whether it has data."""
    end = plain_end(value)
    status = FORM_ONLY if end is not None and is_form_only(end) else 0
    if is_framework_tensor(type(value)):
        return status
    is_remote = isinstance(end_of(value), ObjectPointer | MultiPointerTensor)
    return status | LAYERED | (REMOTE if is_remote else 0)


def key_of(value: object) -> int:
    """Return the Python id of the owner of a tensor's memory if that is known, or of the tensor.

    Objects with the same key share memory; others may share it too, see ``is_shared`` of their framework.
    """
    plain = plain_end(value)
    if plain is None:
        return id(value)
    framework = frameworks_of_types.get(type(plain)) or resolve(frameworks, type(plain))
    return id(plain if framework is None or framework.owner_of is None else framework.owner_of(plain))


UNKNOWN = "unknown"
"""The key of memory that a framework does not enumerate, which may belong to any other tensor of the framework."""


def memory_of(value: object) -> frozenset[int | str]:
    """Return keys that are equal for tensors that share memory: for the data of a chain and for its gradient."""
    end = plain_end(value)
    if end is None:
        return NOTHING
    framework = framework_of(end)
    found = framework.memory_of(end)
    found = _UNKNOWN if found is None else found
    if (is_leaf(end) or getattr(end, "retains_grad", False)) and end.grad is not None:
        of_gradient = framework.memory_of(end.grad)
        found |= _UNKNOWN if of_gradient is None else of_gradient
    return found


_UNKNOWN = frozenset([UNKNOWN])


def share_memory(one: object, other: object) -> bool:
    """Return whether two values may share memory.

    Tensors of one framework may, unless it enumerates the memory of each of them.
    """
    mine, theirs = memory_of(one), memory_of(other)
    if not mine.isdisjoint(theirs):
        return True
    is_unknown = (UNKNOWN in mine and theirs) or (UNKNOWN in theirs and mine)
    return bool(is_unknown) and framework_of(plain_end(one)) is framework_of(plain_end(other))


def _discard(entries: list[Stored], entry: Stored) -> None:
    for place, other in enumerate(entries):
        if other is entry:
            del entries[place]
            return


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
        self._ended: deque[tuple[Id, str, float, Id | None]] = deque(maxlen=MAX_REMEMBERED)
        """Removed objects, with the reason, the time and the holder."""
        self._released: deque[tuple[Id, str, float, Id | None]] = deque(maxlen=MAX_REMEMBERED)
        self.alike: dict[int, list[Stored]] = {}
        """The entries with the same ``key``."""
        self._by_memory: dict[int | str, list[Stored]] = {}
        """The entries that use some memory; complete after ``index_memory``."""
        self._moved: dict[int, Stored] = {}
        """The entries whose memory is unknown or may have changed, by Python id."""
        self._retaining: set[int] = set()
        """The keys of objects inside graphs that retain their gradients."""
        self._described: dict[Id, Stored] = {}
        self._held: dict[int, Stored] = {}
        """The objects that running commands refer to or have computed, by Python id; some are no longer stored."""
        self._held_again: Counter[int] = Counter()
        """The number of additional commands that hold each of them."""
        self._orphans: list[Stored] = []
        """Removed objects whose gradients share memory with stored objects, which a backward pass may change."""
        self.has_derivations = False
        """Whether anything was computed from restricted objects."""
        self.added = 0
        """The number of objects ever stored."""
        self.listener: Callable[[Stored, bool], None] | None = None
        """Called with each object that was added, changed or removed, and whether its memory was written to."""

    def put(self, id: Id, entry: Stored) -> None:
        """Store ``entry`` under an unused id."""
        if id in self._entries:
            raise IdNotUniqueError.of(id)
        entry.id = id
        self._identify(entry)
        if not entry.sources:  # It was not computed from other objects.
            giver = entry.giver or (None if entry.holder == self._owner_id else Peer(entry.holder))
            entry.source = Source(id, _find_sender(entry), giver, entry.access is not None)
            entry.root = entry.sources = frozenset((entry.source,))
        entry.number = next(_numbers)
        self.added += 1
        self._entries[id] = entry
        if entry.tags:
            self._index(id, entry.tags)
        if entry.description:
            self._described[id] = entry
        if entry.access is not None or self.listener is not None:
            self.note(entry)

    def _identify(self, entry: Stored) -> None:
        value = entry.value
        framework = frameworks_of_types.get(type(value))
        if framework is not None:
            key = _id(value if framework.owner_of is None else framework.owner_of(value))
            if framework.is_form_only is not None and framework.is_form_only(value):
                entry.status |= FORM_ONLY
        else:
            self._note_layers(entry)
            key = key_of(value)
        entry.key = key
        self.alike.setdefault(key, []).append(entry)
        self._moved[_id(entry)] = entry

    @staticmethod
    def _note_layers(entry: Stored) -> None:
        users = None if is_framework_tensor(type(entry.value)) else get_allowed_users(entry.value)
        if users is not None:
            entry.restrict(users if entry.access is None else entry.access & users)
        entry.status |= _describe(entry.value)

    def hold(self, entry: Stored) -> None:
        """Keep an object in the memory index until it is dropped, even if it is not stored, or is removed."""
        key = _id(entry)
        if key in self._held:
            self._held_again[key] += 1
            return
        if self._entries.get(entry.id) is not entry:
            self._identify(entry)
        self._held[key] = entry

    def drop(self, entry: Stored) -> None:
        """Undo ``hold``; forget the object unless it is stored, or another command holds it."""
        key = _id(entry)
        if self._held_again and key in self._held_again:
            self._held_again -= Counter([key])
        elif self._held.pop(key, None) is not None and self._entries.get(entry.id) is not entry:
            self._uncount(entry, is_gone=True)

    def replace(self, entry: Stored, value: Any) -> None:
        """Replace the value of an entry."""
        self._uncount(entry)
        entry.value, entry.derivation, entry.touched = value, None, True
        entry.refresh_status()
        self._identify(entry)

    def note(self, entry: Stored, written: bool = False) -> None:
        """Note that an object was added or changed, and whether its memory was written to."""
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
            raise self.explain_missing(id)
        return entry

    def explain_missing(self, id: Id, reader: Id | None = None) -> ObjectNotFoundError:
        """Return the error that says why an object is missing; ``reader`` only learns about its own objects."""
        ends = [
            f"{why} at {_to_clock(moment)}"
            for gone, why, moment, holder in (*self._ended, *self._released)
            if gone == id and reader in (None, holder)
        ]
        return ObjectNotFoundError.on(id, self._owner_id, *ends[-1:])

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
            if _id(entry) not in self._held:
                self._uncount(entry, is_gone=True)
            if entry.tags or entry.description:
                self._unindex(entry.id, entry)
            self._ended.append((entry.id, why, now, entry.holder))
            if self.listener is not None:
                self.listener(entry, False)

    def release(self, leases: deque[tuple[Id, Holder]]) -> None:
        """Remove one lease per pair of id and holder, emptying ``leases``; remove objects without leases."""
        entries, now = self._entries, time.time()
        while leases:
            id, holder = leases.popleft()
            entry = entries.get(id)
            if entry is None:
                continue
            is_only = entry.leases == 1 and holder == entry.holder and not (entry.others or entry.published)
            if is_only or entry.release(holder):
                del entries[id]
                if _id(entry) not in self._held:
                    self._uncount(entry, is_gone=True)
                self._released.append((id, "its last pointer was dropped", now, entry.holder))
                if entry.tags or entry.description:
                    self._unindex(id, entry)
                    self.note(entry)

    def remove_client(self, worker: Id) -> None:
        """Remove the leases of a client, and the objects that nobody else needs."""
        for id, entry in list(self._entries.items()):
            if entry.is_leased_to(worker) and not entry.is_needed_by_others(worker):
                self.remove(id, f"the session of {worker!r} ended")
            else:
                entry.remove_leases(worker)

    def may_receive_grad(self, leaves: Sequence[Tensor] | None) -> list[Stored]:
        """Return the entries that may receive gradients, including removed objects whose gradients are still in use.

        ``leaves`` are the tensors that a backward pass reaches; None if unknown.
        """
        if self._orphans:
            self._orphans = [entry for entry in self._orphans if shares_gradient(entry)]
        if leaves is None:
            found = [e for e in self.iter_all() if not e.is_plain or getattr(e.value, "requires_grad", False)]
        else:
            found = [entry for leaf in leaves for entry in self.alike.get(_id(leaf), ())]
            found += [entry for key in self._retaining for entry in self.alike[key]]
        return list({_id(entry): entry for entry in (*found, *self._orphans)}.values())

    def note_retained(self, tensor: Tensor) -> None:
        """Note that a tensor inside a graph retains its gradient."""
        if _id(tensor) in self.alike:
            self._retaining.add(_id(tensor))

    # --- memory

    def note_move(self, *entries: Stored) -> None:
        """Note that objects, or their gradients, may use other memory than before.

        So may everything that shared it, if that holds the same tensor: as an object, a gradient, or a part.
        """
        for entry in entries:
            if _id(entry) not in self._moved:
                sharing = [other for part in entry.memory for other in self._by_memory[part] if other is not entry]
                for each in (entry, *sharing):
                    self._forget_memory(each)
                    if any(each is other for other in self.alike.get(each.key, ())):
                        self._moved[_id(each)] = each

    def index_memory(self) -> None:
        """Find out which memory objects use: ``note_move`` needs that if an operation replaces the memory of one."""
        while self._moved:
            _, entry = self._moved.popitem()
            entry.memory = memory_of(entry.value)
            for part in entry.memory:
                self._by_memory.setdefault(part, []).append(entry)

    def find_sharing(self, value: object) -> list[Stored]:
        """Return the entries that may share memory with a value, for their values or their gradients."""
        self.index_memory()
        memory = memory_of(value)
        if UNKNOWN in memory:
            found: Iterable[Stored] = self.iter_all()
        else:
            found = [entry for part in (*memory, UNKNOWN) for entry in self._by_memory.get(part, ())]
        return [entry for entry in {_id(entry): entry for entry in found}.values() if share_memory(entry.value, value)]

    def _forget_memory(self, entry: Stored) -> None:
        for part in entry.memory:
            found = self._by_memory[part]
            _discard(found, entry)
            if not found:
                del self._by_memory[part]
        entry.memory = NOTHING

    def tag(self, id: Id, tags: Iterable[str], description: str | None = None) -> None:
        """Add tags and a description to an object."""
        entry = self.entry(id)
        entry.tags = entry.tags.union(tags)
        if entry.source is not None:
            entry.source.tags = entry.tags
        self._index(id, tags)
        if description is not None:
            entry.description = description
            self._described[id] = entry
        self.note(entry)

    def mark(self, id: Id, bit: int) -> None:
        """Set the restriction of a feature on an object, and on everything that shares its memory."""
        marked = self.entry(id)
        for entry in {marked, *self.find_sharing(marked.value)}:
            entry.mark(bit)
            self.note(entry)

    def find_reserved(self, tags: Iterable[str]) -> list[tuple[str, Stored]]:
        """Return the objects that the worker itself has published under any of ``tags``, with the tag."""
        tagged = [(tag, self._entries[id]) for tag in tags for id in self._tagged.get(tag, ())]
        return [(tag, entry) for tag, entry in tagged if entry.published and entry.publisher is None]

    def search(self, query: Iterable[Any]) -> list[Id]:
        """Return the ids of the objects that match every part of ``query``; of all tagged objects if it is empty."""
        parts = set(query)
        if not parts:
            return self._in_order(set().union(*self._tagged.values()))
        if len(parts) > MAX_QUERY:
            raise WorkerError(f"cannot search for {len(parts)} words at once: the limit is {MAX_QUERY}; use fewer")
        return self._in_order(set.intersection(*map(self._find_matches, parts)))

    def _in_order(self, ids: Iterable[Id]) -> list[Id]:
        return sorted(ids, key=lambda each: self._entries[each].number)

    def clear(self, why: str) -> None:
        """Remove all objects."""
        for id in list(self._entries):
            self.remove(id, why)

    def values(self) -> dict[Id, Any]:
        """Return the objects by id."""
        return {id: entry.value for id, entry in self._entries.items()}

    def iter_since(self, number: int) -> Iterator[Stored]:
        """Yield the objects stored after the one with this number, newest first."""
        return itertools.takewhile(lambda entry: entry.number > number, reversed(self._entries.values()))

    def iter_all(self) -> Iterator[Stored]:
        """Yield all entries once, including those that only running commands hold."""
        stored = self._entries
        return itertools.chain(stored.values(), [e for e in self._held.values() if stored.get(e.id) is not e])

    def entries(self) -> list[Stored]:
        """Return all entries."""
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Id]:
        return iter(list(self._entries))

    def __contains__(self, id: object) -> bool:
        return id in self._entries

    def _uncount(self, entry: Stored, is_gone: bool = False) -> None:
        """Remove an entry from all indexes of memory and gradients; a backward pass may still change its gradient."""
        found = self.alike[entry.key]
        if len(found) == 1:
            del self.alike[entry.key]
            self._retaining.discard(entry.key)
        else:
            _discard(found, entry)
        if self._moved.pop(_id(entry), None) is None:
            self._forget_memory(entry)
        if is_gone and shares_gradient(entry):
            self._orphans.append(entry)

    def _index(self, id: Id, tags: Iterable[str]) -> None:
        for tag in tags:
            self._tagged.setdefault(tag, set()).add(id)

    def _unindex(self, id: Id, entry: Stored) -> None:
        self._described.pop(id, None)
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
            found |= {id for id, entry in self._described.items() if part in (entry.description or "")}
        return found


def describe_operand(entry: Stored, operand: object = None) -> Operand:
    """Return what a maker says about an operand: an object, or an attribute of it."""
    shape = tuple(getattr(entry.value, "shape", ()))
    is_itself = operand is None or operand is plain_end(entry.value)
    maker = entry.made_by
    if maker is not None and maker.protocol == ARRANGE:
        tags = tuple(sorted({tag for each in maker.operands for tag in each.tags}))
        is_whole = is_itself and all(each.is_whole for each in maker.operands)
        return Operand(tags, shape, is_whole, str(dict(maker.options).get("program")))
    tags = tuple(sorted(entry.tags)) if entry.is_as_loaded else ()
    is_whole = is_itself and entry.is_as_loaded and entry.published and entry.publisher is None
    return Operand(tags, shape, is_whole)


def lineage_of(parents: Sequence[Stored]) -> Lineage:
    """Return the lineage of everything computed from ``parents``."""
    if len(parents) == 1:
        return parents[0].access, parents[0].sources, parents[0].status & INHERITED
    access: frozenset[str] | None = None
    sources, status = NOTHING, 0
    for parent in parents:
        status |= parent.status
        if parent.access is not access and parent.access is not None:
            access = parent.access if access is None else access & parent.access
        others = parent.sources
        if others is sources or sources <= others:
            sources = others  # The larger set itself: the next comparison is by identity.
        else:
            joined = sources | others
            sources = joined if len(joined) <= MAX_SOURCES else _limit_sources(joined, sources, others)
    return access, sources, status & INHERITED


def restrictions_of(lineage: Lineage) -> tuple[frozenset[str] | None, int]:
    """Return the ``restrictions`` of an object with this lineage."""
    access, _, status = lineage
    return access, status & ADDED_INHERITED


def derive(results: Iterable[Stored], parents: Sequence[Stored]) -> None:
    """Give ``results`` the lineage of everything computed from ``parents``."""
    lineage = lineage_of(parents)
    for result in results:
        result.lineage = lineage


def _limit_sources(joined: Sources, one: Sources, other: Sources) -> Sources:
    """Limit the number of sources; keep all failures, and all published and private objects.

    Prefer common sources: in a loop, the data recurs in each step and temporary objects do not. A full set to which
    the other adds only temporary objects stays the same object, so that the next comparison is by identity.
    """
    for full, added in ((one, other - one), (other, one - other)):
        if MORE in full and len(full) >= MAX_SOURCES and not any(map(_is_lasting, added)):
            return full
    lasting, common = list(filter(_is_lasting, joined)), one & other
    kept = [s for s in dict.fromkeys((*lasting, *common, *(joined - common))) if s != MORE]
    return frozenset([*kept[: max(MAX_SOURCES - 1, len(lasting))], MORE])


def _is_lasting(source: object) -> bool:
    if type(source) is Source:
        return source.published or source.private
    return type(source) in (FailedSource, str) and source != MORE  # A text names a source that is not stored here.


def _to_clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def shares_gradient(entry: Stored) -> bool:
    """Return whether an object has a gradient whose memory another tensor uses."""
    is_chain = entry.status & LAYERED
    if not is_chain and not getattr(entry.value, "requires_grad", False):
        return False
    plain = plain_below(entry.value) if is_chain else entry.value
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

    Torch raises for a view that was created and changed under ``no_grad``; it is not a leaf.
    """
    try:
        return bool(getattr(plain, "is_leaf", False))
    except RuntimeError:
        return False
