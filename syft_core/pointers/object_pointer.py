"""ObjectPointer: the id of an object on another worker, and a lease on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from syft_core.exceptions import AlreadyRetrievedError
from syft_core.features import FEATURES
from syft_core.hook.hook import current_worker
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import Fetch, Lease, Tag
from syft_core.peer import Id, Peer
from syft_core.pointers.fetches import FetchSteps, complete
from syft_core.printing import printable
from syft_core.tensors.identity import ID_PROVIDER, Identified, require_text
from syft_core.values import Kwargs, Outcome

P = TypeVar("P", bound="ObjectPointer")


class ObjectPointer(Identified):
    """Points to the object ``id_at_location`` on ``location``, or to one of its attributes (``point_to_attr``).

    A live pointer holds a lease, which keeps the object alive. Dropping a pointer only queues its id; the queue is sent
    with the next message.
    """

    point_to_attr: str | None = None
    garbage_collect_data: bool = True
    travels_with_lease: bool = False
    """Whether sending this pointer also transfers its lease."""
    lender: Id | None = None
    """The worker that gave the client this pointer with its lease, if it is not the object's worker."""
    published_by: Peer | None = None
    """The peer that published the object; only for pointers found by a search."""
    gone: str | None = None
    """Why the object can no longer be used, after it was fetched or moved through this pointer."""
    has_arrived: bool = False
    """Whether the object was fetched and kept here, because a joint fetch failed for other objects."""
    _arrived: Outcome = None
    whole: ObjectPointer | None = None
    """For a pointer to an attribute, the pointer to the object, which holds the lease."""
    _location: Location = None  # type: ignore[assignment]  # a finalizer may run before it is set
    _id_at_location: Id = 0
    _syft_owner: Any

    def __init__(
        self,
        location: WorkerLike | None,
        id_at_location: Id,
        owner: Party | None = None,
        id: Id | None = None,
        garbage_collect_data: bool = True,
        point_to_attr: str | None = None,
        tags: Iterable[str] | None = None,
        description: str | None = None,
    ) -> None:
        self._syft_owner = owner if owner is not None else current_worker()
        if isinstance(location, Location):
            self._location = location
        elif location is not None:
            here: Any = self._syft_owner or location
            self._location = here.location_of(location)
        self._id_at_location = id_at_location
        self.garbage_collect_data = garbage_collect_data
        self.point_to_attr = point_to_attr
        self._syft_id = id
        if tags:
            self._syft_tags = set(tags)
        if description is not None:
            self._syft_description = description

    @property
    def location(self) -> Any:
        """The worker of the object, if it is in this process; otherwise its location."""
        return None if self._location is None else self._location.face

    @property
    def location_id(self) -> Id:
        """The id of the worker that holds the object."""
        return self._location.id

    @property
    def id_at_location(self) -> Id:
        """The id of the object on its worker."""
        return self._id_at_location

    def __del__(self) -> None:
        if self.gone is None and self.garbage_collect_data and self.point_to_attr is None:
            location = self._location
            if location is not None:
                location.drop(self._id_at_location, self.lender)

    def require_alive(self) -> None:
        """Raise if the object was fetched or moved through this pointer."""
        if self.gone is not None:
            raise AlreadyRetrievedError.because(self._name(), self.gone)
        if self.whole is not None:
            self.whole.require_alive()

    def get(self, user: str | None = None, reason: str = "", deregister_ptr: bool = True) -> Any:
        """Fetch the object, which leaves its worker if the policy permits it.

        Attributes (``p.grad``), and objects with ``deregister_ptr=False``, are fetched as copies. ``user`` can only
        confirm the user that the transport authenticated.
        """
        return complete(self.fetch(user, reason, deregister_ptr))

    def fetch(self, user: str | None = None, reason: str = "", deregister_ptr: bool = True) -> FetchSteps:
        """Fetch the object as a generator of requests, which ``get`` drives."""
        if self.has_arrived:
            return self._arrived
        self.require_alive()
        require_text("reason", reason)
        keep = self.point_to_attr is not None or not deregister_ptr
        value = yield self._location, Fetch(self._id_at_location, self.point_to_attr, keep, user, reason)
        if not keep:
            self.gone = f"it was fetched by {self.owner.id!r}"
        return value

    def get_known(self) -> Outcome:
        """Fetch a copy of the object if it was computed only from data that this client sent."""
        self.require_alive()
        message = Fetch(self._id_at_location, self.point_to_attr, True, None, "computed from your own values", True)
        return self._location.ask(message)

    def keep_arrived(self, value: object) -> None:
        """Keep the object, because the joint fetch failed for others: the next ``get`` returns it."""
        if self.gone is not None:
            self.has_arrived, self._arrived = True, value

    def drop(self, why: str) -> None:
        """Give up the lease on the object; the pointer can no longer be used."""
        if self.garbage_collect_data and self.point_to_attr is None:
            self._location.drop(self._id_at_location, self.lender)
        self.gone = why

    def lease(self: P) -> P:
        """Return a second pointer to the same object, with its own lease; a pointer to an attribute has no lease."""
        self.require_alive()
        if self.point_to_attr is not None:
            return self
        self._location.note_alias(self._id_at_location)
        self._location.tell(Lease((self._id_at_location,)))
        return self.sibling()

    def sibling(self: P, **changes: object) -> P:
        """Return a pointer like this one, except for ``changes``."""
        options: Kwargs = {
            "location": self._location,
            "id_at_location": self._id_at_location,
            "owner": self._syft_owner,
            "point_to_attr": self.point_to_attr,
            "tags": self._syft_tags,
            "description": self._syft_description,
        }
        return type(self)(**{**options, **changes})

    def attr(self: P, name: str) -> P:
        """Return a pointer to an attribute of the object."""
        self.require_alive()
        return self._link(self.sibling(point_to_attr=name, garbage_collect_data=False, tags=None, description=None))

    def _link(self: P, attribute: P) -> P:
        attribute.whole = self if self.whole is None else self.whole
        return attribute

    def tag(self: P, *tags: str) -> P:
        """Tag the pointer and the object."""
        self.require_alive()
        super().tag(*tags)
        self._location.tell(Tag(self._id_at_location, tags))
        return self

    def describe(self: P, description: str) -> P:
        """Set the description of the pointer and the object."""
        self.require_alive()
        super().describe(description)
        self._location.tell(Tag(self._id_at_location, description=description))
        return self

    def publish(self: P) -> P:
        """Make the worker keep the object permanently; the object then belongs to the worker."""
        self.require_alive()
        self._location.tell(Tag(self._id_at_location, publish=True))
        return self

    def request(self, reason: str, parties: Sequence[Id] = ()) -> Outcome:
        """Ask the owner of the worker to release the object; return the request, a ``RequestHandle``.

        ``parties`` are the workers that hold the shares of the value, if the object is one of them.
        """
        self.require_alive()
        ask = FEATURES.resolve("RequestHandle").ask
        return ask(self._location, [self._id_at_location], self.point_to_attr, reason, parties=parties)

    @property
    def gc(self) -> bool:
        """Whether dropping the last pointer removes the object."""
        return self.garbage_collect_data

    @gc.setter
    def gc(self, collect: bool) -> None:
        self.garbage_collect_data = collect

    garbage_collection = gc

    def set_garbage_collect_data(self, value: bool) -> None:
        """Set whether dropping the last pointer removes the object."""
        self.garbage_collect_data = value

    def __str__(self) -> str:
        return printable(self._name() if self.gone is None else f"{self._name()} ({self.gone})")

    __repr__ = __str__

    def _name(self) -> str:
        owner = self.owner.id if self.owner is not None else "?"
        attr = f"::{self.point_to_attr}" if self.point_to_attr else ""
        place = f"{'?' if self._location is None else self._location.id}:{self._id_at_location}{attr}"
        return f"[{type(self).__name__} | {owner}:{self.id} -> {place}]"


class Here(SimpleNamespace):
    """A pointer in a received message to an object of the receiver; it has no lease."""

    _id_at_location: Id
    point_to_attr: str | None
    travels_with_lease = False


def id_here(leaf: object, worker: Id) -> Id | None:
    """Return the id of the object if ``leaf`` is a pointer to ``worker``, or None."""
    if type(leaf) is Here or (isinstance(leaf, ObjectPointer) and leaf._location.id == worker):
        return leaf._id_at_location
    return None


new_id = ID_PROVIDER.pop
"""Return an id for the first result of a command; the consecutive ids are unused, too."""
