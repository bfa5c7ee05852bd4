"""Let objects that the policy withholds be read once the owner has approved it.

An object leaves with the approval of a request for it, as the copy that was reviewed. For all other objects of one
message, a rule is needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from syft_core.departures import ReleaseRule
from syft_core.exceptions import GetNotPermittedError
from syft_core.messages import Message
from syft_core.workers.moving.departure import Leaving, copy_without_gradient, leave_graph
from syft_core.workers.moving.transfer import ends_elsewhere
from syft_core.workers.party.store import Stored, lineage_of
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.ledger import Departure, Grant, describe_value
from syft_worker.desk.approvals import Candidate
from syft_worker.desk.errors import ReleaseDeniedError, ReleasePendingError
from syft_worker.desk.history import ReleaseHistory
from syft_worker.desk.messages import FetchReleased
from syft_worker.desk.programs import describe_result
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import ReleaseRequest, Requested


def cover_approved(leaving: Leaving) -> None:
    """Cover objects by approved requests, and the rest by a rule."""
    if leaving.verb != "read":
        return
    releases_of(leaving.worker).requests.expire()
    if isinstance(leaving.message, FetchReleased):
        _cover_released(leaving, leaving.message)
        return
    requests: dict[int, ReleaseRequest | None] = {}
    approved: dict[int, tuple[ReleaseRequest, Requested]] = {}
    for place in leaving.kept:
        attr, entry = leaving.attrs[place], leaving.objects[place].entry
        request = releases_of(leaving.worker).requests.of(entry, attr, leaving.peer)
        requested = None if request is None else next(r for r in request.objects if r.is_for(entry, attr))
        is_free = requested is not None and requested.is_free_for(leaving.message)
        if request is not None and requested is not None and is_free and request.state == "approved":
            approved[place] = request, requested
        else:
            requests[place] = request if is_free else None
    if requests:
        _apply_rule(leaving, requests)
    for place, (request, requested) in approved.items():
        departure = take_copy(leaving.message, request, requested, leaving.objects[place].entry)
        leaving.cover(place, departure)


def _cover_released(leaving: Leaving, message: FetchReleased) -> None:
    """Cover the reviewed copies of an approved request, which are fetched by its id."""
    request = releases_of(leaving.worker).requests.find(message.request)
    copies = {id(requested.copy): requested for requested in request.objects}
    for place in list(leaving.kept):
        entry = leaving.objects[place].entry
        leaving.cover(place, take_copy(message, request, copies[id(entry)], entry))


def use_up_approvals(worker: Worker, message: Message) -> None:
    """Use up the approvals with which objects have left."""
    releases_of(worker).use_up(message)


def give_back_approvals(worker: Worker, messages: Iterable[Message]) -> None:
    """Let the approvals be used again."""
    releases_of(worker).requests.give_back(messages)
    releases_of(worker).approvals.give_back(messages)


OWNER_APPROVES = ReleaseRule(cover_approved, use_up_approvals, give_back_approvals, ReleaseHistory)


def take_copy(message: Message, request: ReleaseRequest, requested: Requested, entry: Stored) -> Departure:
    """Return the departure of a reviewed copy, which no other message can take until this one is settled."""
    requested.taken_by = message
    grant = Grant(request.id, request.decided_by, is_repeated=request.is_repeated)
    return Departure(entry, requested.value, grant, requested.copy)


def _apply_rule(leaving: Leaving, requests: dict[int, ReleaseRequest | None]) -> None:
    """Cover objects by one rule, as copies; ``requests`` has those for them that are not approved."""
    worker, approvals = leaving.worker, releases_of(leaving.worker).approvals
    is_here = not any(ends_elsewhere(departure.value) for departure in leaving.objects)
    if is_here and approvals.has_any_for(leaving.peer):
        copies = [copy_without_gradient(worker, leave_graph(departure.value)) for departure in leaving.objects]
        forms = ", ".join(map(describe_value, copies))  # As in a request, which has copies too.
        withheld = [leaving.objects[place].entry for place in requests]
        _, sources, _ = lineage_of(withheld)
        results = [
            describe_result(worker, leaving.objects[place].entry, copies[place], leaving.attrs[place])
            for place in requests
        ]
        found = approvals.take(leaving.message, Candidate(leaving.peer, forms, sources, tuple(results)))
        if isinstance(found, Grant):
            for place in requests:
                leaving.cover(place, Departure(leaving.objects[place].entry, copies[place], found))
            return
        leaving.reasons += [found] if found else []
    place, request = next(iter(requests.items()))
    if request is not None:
        leaving.error = _describe_state(leaving, leaving.objects[place].entry, request)


def _describe_state(leaving: Leaving, entry: Stored, request: ReleaseRequest) -> GetNotPermittedError | None:
    """Return the error for an object of which a request was not approved."""
    who, where = str(leaving.peer), str(leaving.worker.id)
    if request.state == "open":
        return ReleasePendingError.to_fetch(who, entry.id, where, request.id)
    if request.state == "denied":
        answer = f" ({request.answer})" if request.answer else ""
        return ReleaseDeniedError.to_fetch(who, entry.id, where, request.id, answer)
    return None
