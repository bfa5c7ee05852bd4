"""ObjectPointer: the name of an object on another worker, and a lease on it."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

from syft_core.exceptions import AlreadyRetrievedError
from syft_core.hook.hook import current_worker
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import AskRelease, Fetch, Lease, Tag
from syft_core.peer import Id, Peer
from syft_core.tensors.identity import ID_PROVIDER, Identified
from syft_core.values import Kwargs

P = TypeVar("P", bound="ObjectPointer")


class ObjectPointer(Identified):
    """Stands for the object ``id_at_location`` on ``location``, or for one of its attributes (``point_to_attr``).

    A live pointer holds a lease: the object stays as long as one pointer does. Dropping a pointer only queues its id;
    the queue goes along with the next message.
    """

    point_to_attr: str | None = None
    garbage_collect_data: bool = True
    travels_with_lease: bool = False
    """Whether the pointer that a receiver makes of this one takes over its lease."""
    lender: Id | None = None
    """Who gave this pointer with its lease, if the client did not get it from the worker itself."""
    published_by: Peer | None = None
    """Who published the object, as the worker knows them; for a pointer that a search has found."""
    gone: str | None = None
    """Why the object cannot be used any more, once it has been fetched or moved through this pointer."""
    whole: ObjectPointer | None = None
    """For a pointer to an attribute, the pointer to the object, whose lease holds for both."""
    _location: Location = None  # type: ignore[assignment]  # set by every constructor, but for a finalizer
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
        """Where the object is: a worker of this process, or the address of one elsewhere."""
        return None if self._location is None else self._location.face

    @property
    def location_id(self) -> Id:
        """The id of the worker that holds the object."""
        return self._location.id

    @property
    def id_at_location(self) -> Id:
        """The id of the object there."""
        return self._id_at_location

    def __del__(self) -> None:
        location = self._location
        if location is not None and self.garbage_collect_data and self.point_to_attr is None and self.gone is None:
            location.drop(self._id_at_location, self.lender)

    def require_alive(self) -> None:
        """Refuse to be used after the object was taken away."""
        if self.gone is not None:
            raise AlreadyRetrievedError.because(self._name(), self.gone)
        if self.whole is not None:
            self.whole.require_alive()

    def get(self, user: str | None = None, reason: str = "", deregister_ptr: bool = True) -> Any:
        """Fetch the object, which leaves its worker; the worker decides whether it may.

        An attribute (``p.grad``) is fetched as a copy, because it cannot leave without its object. ``user`` can only
        confirm who the caller is: a worker knows that from the transport. With ``deregister_ptr=False`` a copy leaves.
        """
        self.require_alive()
        keep = self.point_to_attr is not None or not deregister_ptr
        value = self._location.ask(Fetch(self._id_at_location, self.point_to_attr, keep, user, reason))
        if not keep:
            self.gone = f"it was fetched by {self.owner.id!r}"
        return value

    def request(self, reason: str) -> int:
        """Ask the owner of the worker to release the object; return the number of the request."""
        self.require_alive()
        number: int = self._location.ask(AskRelease((self._id_at_location,), self.point_to_attr, reason))
        return number

    def lease(self: P) -> P:
        """Return a second pointer to the same object, with a lease of its own."""
        self.require_alive()
        if self.point_to_attr is not None:
            return self._beside(self.sibling(garbage_collect_data=False))
        self._location.note_alias(self._id_at_location)
        self._location.tell(Lease((self._id_at_location,)))
        return self.sibling()

    def sibling(self: P, **changes: Any) -> P:
        """Return a pointer like this one but for ``changes``."""
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
        return self._beside(self.sibling(point_to_attr=name, garbage_collect_data=False, tags=None, description=None))

    def _beside(self: P, attribute: P) -> P:
        attribute.whole = self if self.whole is None else self.whole
        return attribute

    def tag(self: P, *tags: str) -> P:
        """Tag the object, here and where it is."""
        self.require_alive()
        self._location.tell(Tag(self._id_at_location, tags))
        return super().tag(*tags)

    def describe(self: P, description: str) -> P:
        """Describe the object, here and where it is."""
        self.require_alive()
        self._location.tell(Tag(self._id_at_location, description=description))
        return super().describe(description)

    def publish(self: P) -> P:
        """Let the worker keep the object for good; it is the worker's own from now on."""
        self.require_alive()
        self._location.tell(Tag(self._id_at_location, publish=True))
        return self

    @property
    def gc(self) -> bool:
        """Whether dropping the last pointer drops the object."""
        return self.garbage_collect_data

    @gc.setter
    def gc(self, collect: bool) -> None:
        self.garbage_collect_data = collect

    garbage_collection = gc

    def set_garbage_collect_data(self, value: bool) -> None:
        """Say whether dropping the last pointer drops the object."""
        self.garbage_collect_data = value

    def __str__(self) -> str:
        return self._name() if self.gone is None else f"{self._name()} ({self.gone})"

    __repr__ = __str__

    def _name(self) -> str:
        owner = self.owner.id if self.owner is not None else "?"
        attr = f"::{self.point_to_attr}" if self.point_to_attr else ""
        place = f"{'?' if self._location is None else self._location.id}:{self._id_at_location}{attr}"
        return f"[{type(self).__name__} | {owner}:{self.id} -> {place}]"


class Here(SimpleNamespace):
    """Stands in a received message for a pointer to an object of the worker that received it."""

    _id_at_location: Id
    point_to_attr: str | None


def id_here(leaf: object, worker: Id) -> Id | None:
    """Return the id of the object of ``worker`` that a leaf of a message points to, or None."""
    if type(leaf) is Here or (isinstance(leaf, ObjectPointer) and leaf._location.id == worker):
        return leaf._id_at_location
    return None


new_id = ID_PROVIDER.pop
"""Returns an id for an object that a command is about to make; the next ones are free as well."""
