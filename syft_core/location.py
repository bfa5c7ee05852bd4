"""Location: the address of a worker, as one client sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from syft_core.peer import Id, Peer

if TYPE_CHECKING:
    from syft_core.hook.attributes import FrameworkAttributes
    from syft_core.hook.forms import Form
    from syft_core.messages import Message


WorkerLike: TypeAlias = "Id | Party | Location"
"""A worker, as users name one: by its id, itself, or an address of it."""


class Party(Protocol):
    """What a pointer needs to know of the worker it belongs to."""

    id: Id
    is_client_worker: bool

    @property
    def peer(self) -> Peer:
        """Who this worker is to others."""

    def location_of(self, worker: WorkerLike) -> Location:
        """Return the address of another worker, given by its id, by itself or by an address of it."""

    def attributes_of(self, framework: str) -> FrameworkAttributes:
        """Return the op table of a framework that is hooked here."""

    def forget_gradients(self) -> None:
        """Doubt everything that is known here of gradients at other workers."""


class Location(ABC):
    """The address of the worker called ``id``, as ``client`` sees it: all that a pointer knows of where its data is.

    ``ask`` waits for the reply, ``tell`` does not, ``flush`` waits for everything told so far. A failure of what was
    told is raised by the next call that waits, or at once where the worker is in this process.
    """

    id: Id
    client: Party
    predicts: bool = False
    """Whether forms are worked out here, because looking at the worker would mean waiting for it."""
    form_epoch: int = 0
    """How often what was known of forms became doubtful; what a pointer knows holds until then."""
    gradient_epoch: int = 0
    """The same for gradients that came or went."""
    uncertain_gradients: bool = False
    """Whether an object that is not a leaf may get a gradient, too; then a backward pass makes all doubtful."""

    def __init__(self, client: Party, id: Id) -> None:
        self.client = client
        self.id = id
        self.aliased: set[Id] = set()
        """Objects to which the client may have several pointers: what one pointer changes, another must hear of."""

    @property
    def face(self) -> Any:
        """What users see of it: a worker of this process, or this address."""
        return self

    @abstractmethod
    def ask(self, message: Message) -> Any:
        """Send a message and return the answer; raise what the worker raised."""

    @abstractmethod
    def tell(self, message: Message) -> None:
        """Send a message whose answer nobody needs."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until everything that was told has been done; raise the first error."""

    @abstractmethod
    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Note that a pointer is gone, which ``lender`` gave. Called by finalizers: it must neither wait nor fail."""

    @abstractmethod
    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Return the forms of objects, or of an attribute of each; None for an attribute that is None."""

    def peek(self, id: Id, attr: str | None = None) -> Any:
        """Return a plain tensor itself to read its form off, where the worker is in this process; None otherwise."""
        return None

    def has_gradient(self, id: Id, attr: str) -> bool:
        """Return whether an object has a gradient, as its attribute ``attr``."""
        return self.describe((id,), attr)[0] is not None

    def note_alias(self, id: Id) -> None:
        """Note that there may be several pointers to an object here."""
        self.aliased.add(id)

    def forget_forms(self) -> None:
        """Doubt everything that is known of forms."""
        self.form_epoch += 1

    def forget_gradients(self) -> None:
        """Doubt everything that is known of gradients."""
        self.gradient_epoch += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (self.id, self.client.id) == (other.id, other.client.id)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.id!r}>"
