"""Location: the address of a worker, as one client sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias
from weakref import WeakValueDictionary

from syft_core.exceptions import WorkerNotPicklableError
from syft_core.features import FEATURES
from syft_core.messages import Message, Store
from syft_core.peer import Id, Owner, Peer
from syft_core.values import Args, Kwargs, Nested, Outcome, Tensor

if TYPE_CHECKING:
    from syft_core.hook.attributes import FrameworkAttributes, Op
    from syft_core.hook.forms import Form


WorkerLike: TypeAlias = "Id | Party | Location"
"""A worker, given as an id, a worker or a location."""


class Party(Owner, Protocol):
    """The worker that owns a pointer, as far as pointers need it."""

    def location_of(self, worker: WorkerLike) -> Location:
        """Return the location of another worker, given as an id, a worker or a location."""

    def attributes_of(self, framework: str) -> FrameworkAttributes:
        """Return the op table of a framework that is hooked here."""

    def forget_gradients(self) -> None:
        """Invalidate everything known about gradients on other workers."""


class Sending(Party, Protocol):
    """The worker that owns a pointer, as far as sending needs it."""

    def register_obj(self, obj: object, obj_id: Id | None = None) -> None:
        """Store an object permanently."""

    def keep_origin(self, tensor: Tensor, location: Location) -> Id:
        """Store a tensor that receives the gradient of its copy on another worker, and return its id."""

    def drop_origin(self, id: Id) -> None:
        """Remove a tensor whose copy could not be sent."""


class Histories:
    """The histories that a client has recorded for tensors in graphs; an in-place change may make them incomplete."""

    are_complete: bool = True


class Location(ABC):
    """The address of the worker ``id``, as ``client`` sees it. Pointers access their worker only through it.

    ``ask`` waits for the reply, ``tell`` does not, ``flush`` waits for everything told so far. The failure of a told
    command is raised by the next call that waits, or immediately if the worker is in this process.
    """

    id: Id
    client: Party
    predicts: bool = False
    """Whether the client infers forms, because the worker is not in this process."""
    is_parallel: bool = False
    """Whether the worker executes commands while the client continues."""
    records: bool = False
    """Whether the commands are recorded for a plan, which turns their local tensors into constants."""
    form_epoch: int = 0
    """Incremented whenever the forms that pointers know may be outdated."""
    gradient_epoch: int = 0
    """Incremented whenever the gradients that pointers know may be outdated."""
    failures: int = 0
    """How often the worker reported a failure, or forgot the client's session."""
    uncertain_gradients: bool = False
    """Whether non-leaf tensors may retain gradients, so that a backward pass invalidates all known gradients."""

    def __init__(self, client: Party, id: Id) -> None:
        self.client = client
        self.id = id
        self.client_id = client.id
        """The id under which the worker knows the client."""
        self.aliased: set[Id] = set()
        """Objects to which the client may have several pointers."""
        self.histories = Histories()
        self.gradients: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        """The live pointers to gradients, by ``identify`` of the object that has the gradient."""

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise WorkerNotPicklableError.of(self.id)

    @property
    def face(self) -> Any:
        """The object that users see: the worker, if it is in this process, otherwise this location."""
        return self

    @abstractmethod
    def ask(self, message: Message) -> Outcome:
        """Send a message and return the answer; raise the worker's error."""

    def submit(self, message: Message) -> Callable[[], Outcome]:
        """Send a message; return a function that waits for the answer, and returns it or raises the error.

        A client can thus send requests to several workers before it waits for the first.
        """
        try:
            answer = self.ask(message)
        except Exception as error:  # noqa: BLE001  # raised by the function
            return partial(raise_error, error.with_traceback(None))
        return lambda: answer

    @abstractmethod
    def tell(self, message: Message) -> None:
        """Send a message without waiting for an answer."""

    def give(self, ids: Sequence[Id], objects: list[Tensor]) -> None:
        """Send objects and give up ownership of them, so that a worker in this process need not copy them.

        Remove each from ``objects`` once it is sent: after a failure, the remaining ones were not sent.
        """
        while objects:
            message = Store(ids[-len(objects)], objects.pop(0), given=True)
            try:
                self.tell(message)
            except BaseException:
                objects.insert(0, message.value)
                raise

    def push(self) -> None:  # noqa: B027  # most need none
        """Send told commands that are still buffered."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until all told commands have been executed; raise the first error."""

    @abstractmethod
    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the release of a dropped pointer's lease. Called by finalizers: it must neither wait nor fail."""

    @abstractmethod
    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Return the forms of objects, or of an attribute of each; None for an attribute that is None."""

    def note_fact(self, _op: Op, _pointer: Tensor, _args: Args, _kwargs: Kwargs, fact: Nested) -> Nested:
        """Return a fact about the form of an object; while a plan is recorded, return what stands for it."""
        return fact

    def peek(self, id: Id, attr: str | None = None) -> Tensor:
        """Return a plain tensor to read its form from, if the worker is in this process; otherwise None."""
        return None

    def has_gradient(self, id: Id, attr: str) -> bool:
        """Return whether an object has a gradient, in its attribute ``attr``."""
        return self.describe((id,), attr)[0] is not None

    def identify(self, object_id: Id) -> Hashable:
        """Return a key for an object, equal for two ids of one object if the worker is in this process."""
        return object_id

    def introduce(self, other: Location, ids: Sequence[Id]) -> None:  # noqa: B027  # most need none
        """Let this worker reach another one on behalf of the client, for some objects there.

        Not needed between workers of one process.
        """

    def accept_ticket(self, ticket: str, peer: Peer) -> None:  # noqa: B027  # most need none
        """Use a ticket of this worker for requests on behalf of ``peer``; ignored where none is needed."""

    def forget_peer(self, peer: Peer) -> None:  # noqa: B027  # most need none
        """Drop the tickets and connections of a peer that has left."""

    def note_alias(self, id: Id) -> None:
        """Record that the client may have several pointers to an object."""
        self.aliased.add(id)

    def requests(self) -> list[Outcome]:
        """Return the release requests of this client's user to the worker, oldest first."""
        found: list[Outcome] = FEATURES.resolve("RequestHandle").find_all(self)
        return found

    def forget_forms(self) -> None:
        """Invalidate all known forms."""
        self.form_epoch += 1

    def forget_histories(self) -> None:
        """Mark all recorded histories as incomplete."""
        self.histories.are_complete = False
        self.histories = Histories()

    def forget_gradients(self) -> None:
        """Invalidate all known gradients."""
        self.gradient_epoch += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (self.id, self.client.id) == (other.id, other.client.id)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.id!r}>"


def raise_error(error: Exception) -> NoReturn:
    """Raise an error without keeping a reference to it, which would keep the caller's local variables alive."""
    try:
        raise error
    finally:
        del error
