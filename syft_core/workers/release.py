"""Release: peers request objects they may not have, and the owner of the worker decides.

A request holds a copy of each object, made when it arrives. The owner reviews that copy, and exactly that copy is
released, whatever the peer does with the object in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal
from weakref import ReferenceType

from syft_core.exceptions import ReleaseError
from syft_core.peer import Peer
from syft_core.pictures import form_of, html_table, one_line, text_table
from syft_core.workers.ledger import name_sources, record_request

if TYPE_CHECKING:
    from syft_core.messages import Message
    from syft_core.workers.store import Stored
    from syft_core.workers.worker import Worker

MAX_OPEN = 64
"""How many open requests a user may have on one worker: each of them holds copies."""
State = Literal["open", "approved", "denied", "released"]


@dataclass(eq=False)
class Requested:
    """One object of a request, and the copy to release."""

    entry: ReferenceType[Stored]
    """The object; a request does not keep it in memory."""
    attr: str | None
    copy: Stored
    """The copy, with the lineage of the object when it was made: the peer may write into the object later."""
    taken_by: Message | None = None
    """The message with whose answer the copy leaves, until it has left: no other message gets it meanwhile."""

    @property
    def value(self) -> Any:
        """The value to release; None after it was denied."""
        return self.copy.value

    def is_for(self, entry: Stored, attr: str | None) -> bool:
        """Return whether this is a request for an object, or for an attribute of one."""
        return self.entry() is entry and self.attr == attr

    def is_free_for(self, message: Message) -> bool:
        """Return whether no other message takes the copy."""
        return self.taken_by is None or self.taken_by is message


@dataclass(eq=False)
class ReleaseRequest:
    """A request by a peer, and the decision."""

    number: int
    peer: Peer
    reason: str
    objects: list[Requested]
    forms: str
    sources: str
    state: State = "open"
    decided_by: str = ""
    answer: str = ""
    """Why it was denied."""

    @property
    def values(self) -> list[Any]:
        """The copies to release, for the owner to review."""
        return [requested.value for requested in self.objects]

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table row; never a value."""
        texts = str(self.peer), self.forms, self.sources, self.reason, self.answer
        return str(self.number), self.state, *map(one_line, texts)

    def __repr__(self) -> str:
        return f"<ReleaseRequest {self.number} of {str(self.peer)!r}: {self.state}>"


@dataclass(repr=False)
class ReleaseRequests:
    """The requests to one worker. It prints as a table and renders in a notebook."""

    owner: str
    _requests: list[ReleaseRequest] = field(default_factory=list)

    HEADER = ("number", "state", "who", "form", "computed from", "reason", "answer")

    def __iter__(self) -> Iterator[ReleaseRequest]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> ReleaseRequest:
        return self._requests[index]

    def __str__(self) -> str:
        return text_table(self.HEADER, self._cells()) if self._requests else self._nothing()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self._requests:
            return f"<div>{escape(self._nothing())}</div>"
        return html_table(f"requests to {self.owner}", self.HEADER, self._cells())

    def _cells(self) -> list[tuple[str, ...]]:
        return [request.cells() for request in self._requests]

    def _nothing(self) -> str:
        return f"no requests to {self.owner!r}"

    def add(self, peer: Peer, reason: str, objects: list[Requested]) -> ReleaseRequest:
        """Add a request."""
        forms = ", ".join([form_of(requested.value) for requested in objects])
        sources = sorted({name for requested in objects for name in name_sources(requested.copy)})
        request = ReleaseRequest(len(self) + 1, peer, reason, objects, forms, ", ".join(sources))
        self._requests.append(request)
        return request

    def find(self, number: ReleaseRequest | int) -> ReleaseRequest:
        """Return an open request, given itself or by number."""
        found = [request for request in self._requests if number in (request, request.number)]
        if not found:
            raise ReleaseError.unknown(number, self.owner)
        if found[0].state != "open":
            raise ReleaseError.decided(found[0].number, self.owner, found[0].state)
        return found[0]

    def of(self, entry: Stored, attr: str | None, peer: Peer) -> ReleaseRequest | None:
        """Return the latest request by a peer for an object."""
        for request in reversed(self._requests):
            if request.peer == peer and any(r.is_for(entry, attr) for r in request.objects):
                return request
        return None

    def use_up(self, message: Message) -> None:
        """Use up the approvals with which objects have left: each is valid for one departure."""
        for request in self._requests:
            left = [requested for requested in request.objects if requested.taken_by is not message]
            if len(left) < len(request.objects):
                request.objects = left
                request.state = request.state if left else "released"

    def give_back(self, messages: Iterable[Message]) -> None:
        """Let approvals be used again if nothing has left with the answers to these messages."""
        taking = set(map(id, messages)) if self._requests else set()
        for requested in [requested for request in self._requests for requested in request.objects]:
            if id(requested.taken_by) in taking:
                requested.taken_by = None


def decide(
    worker: Worker,
    request: ReleaseRequest | int,
    state: Literal["approved", "denied"],
    by: str | None,
    answer: str = "",
) -> None:
    """Record the owner's decision."""
    found = worker.requests.find(request)
    by = by or worker.user or f"worker {worker.id}"
    record_request(worker, found, state, by, answer)
    found.state, found.answer, found.decided_by = state, answer, by
    if state == "denied":
        for requested in found.objects:
            requested.copy.value = None
