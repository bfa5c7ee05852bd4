"""The messages with which peers ask for a release, and the owner of a worker decides, from anywhere, what may leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from syft_core.messages import Message, MessageFacts
from syft_core.peer import Id


def _ids(message: Any, _receiver: Id) -> tuple[Id, ...]:
    return tuple(message.ids)


@dataclass(slots=True)
class AskRelease(Message):
    """Ask the owner of the worker to release objects, or an attribute of each.

    The last three fields help the owner to understand what is asked for, and are claims of the sender.
    """

    code: ClassVar[int] = 320
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "ask for release", uses=_ids, copies=_ids)
    ids: tuple[int | str, ...]
    attr: str | None
    reason: str
    labels: tuple[str, ...] = ()
    """What the sender calls the objects: the names of a model's parameters, for instance."""
    parties: tuple[int | str, ...] = ()
    """The workers that hold the shares of the value, if the object is one of them."""
    line: str = ""
    """The line of the sender's program that asks."""


@dataclass(slots=True)
class AskStudy(Message):
    """Ask the owner of the worker for a rule for the programs that have computed these objects, which are examples.

    The objects do not leave with it. The last six fields are claims of the sender.
    """

    code: ClassVar[int] = 378
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "ask for a study", uses=_ids, copies=_ids)
    ids: tuple[int | str, ...]
    reason: str
    labels: tuple[str, ...]
    """What the sender calls the objects."""
    count: int
    """How often such results leave, in all."""
    study: str = ""
    """The name of the study if results leave only in sums over several workers."""
    workers: int = 0
    colluding: int = 0
    line: str = ""
    """The line of the sender's program that asks."""


@dataclass(slots=True)
class FollowRequests(Message):
    """Return the state of the sender's own release requests; without ids, of all of them."""

    code: ClassVar[int] = 370
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "follow requests")
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class FetchReleased(Message):
    """Fetch what a release request of the sender asked for, after its owner has approved it."""

    code: ClassVar[int] = 371
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "get what was released", returns_objects=True)
    request: str
    reason: str = ""


@dataclass(slots=True)
class ReviewRequests(Message):
    """Return what is known about release requests, without values; without ids, about all of them."""

    code: ClassVar[int] = 372
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "review requests", is_personal=True)
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class DecideRequest(Message):
    """Approve or deny a release request, or withdraw an approval; ``digest`` is that of what was reviewed."""

    code: ClassVar[int] = 373
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda m: f"{m.decision} a request", is_personal=True)
    request: str
    decision: str
    answer: str = ""
    digest: str | None = None


@dataclass(slots=True)
class ListApprovals(Message):
    """Return rules and how often they were used; without names, all of them."""

    code: ClassVar[int] = 374
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "list rules", is_personal=True)
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class AddApproval(Message):
    """Add a rule; if ``request`` is given, with its user, form and data unless ``conditions`` has them."""

    code: ClassVar[int] = 375
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "add a rule", is_personal=True)
    name: str
    conditions: dict[str, Any]
    request: str | None = None


@dataclass(slots=True)
class RevokeApproval(Message):
    """Revoke a rule."""

    code: ClassVar[int] = 376
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "revoke a rule", is_personal=True)
    name: str


@dataclass(slots=True)
class ShowValues(Message):
    """Return a summary of what a release request would release; the ledger records that the owner has seen it."""

    code: ClassVar[int] = 377
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "show what a request would release", is_personal=True)
    request: str
