"""What a worker does when a peer asks for a release, and when its owner reviews requests and decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args
from weakref import ref

from syft_core.peer import Id, Peer
from syft_core.pictures.tables import one_line
from syft_core.values import Table, Tensor
from syft_core.workers.moving.departure import Leaving, copy_without_gradient, leave
from syft_core.workers.moving.transfer import ends_elsewhere
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.status import ADDED, RESTRICTED
from syft_core.workers.party.store import Stored
from syft_core.workers.road.derivation import derivation_of_attribute
from syft_core.workers.road.task import attribute
from syft_core.workers.seeing.ledger import Departure
from syft_core.workers.seeing.permissions import require_right_to_lease
from syft_worker.desk.approvals import suggest_conditions
from syft_worker.desk.comparison import compare
from syft_worker.desk.errors import ReleaseError
from syft_worker.desk.examination import measure_influence
from syft_worker.desk.messages import (
    AddApproval,
    AskRelease,
    AskStudy,
    DecideRequest,
    FetchReleased,
    FollowRequests,
    ListApprovals,
    ReviewRequests,
    RevokeApproval,
    ShowValues,
)
from syft_worker.desk.programs import PROGRAM_CONDITIONS, describe_check
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import MAX_OPEN, Decision, ReleaseRequest, ReleaseRequests, Requested, record_request
from syft_worker.desk.summaries import summarize
from syft_worker.desk.terms import Terms

MAX_PARTIES = 64
MAX_CLAIM = 200
"""How many characters are kept of each text that an asker says about a request."""


def _requests_of(worker: BaseWorker) -> ReleaseRequests:
    """Return the requests to a worker, after closing those that have expired."""
    requests = releases_of(worker).requests
    requests.expire()
    return requests


# --- for those who ask


def ask_release(worker: BaseWorker, message: AskRelease, sender: Peer) -> str:
    """Add a release request to the worker's list, and return its id."""
    objects = _copy_requested(worker, message.ids, message.attr, message.labels, sender)
    parties = tuple(map(_shorten, message.parties[:MAX_PARTIES]))
    releases = releases_of(worker)
    return releases.requests.add(sender, message.reason, objects, parties=parties, line=_shorten(message.line)).id


def ask_study(worker: BaseWorker, message: AskStudy, sender: Peer) -> str | None:
    """Add a request for a rule for the programs that have computed some objects, and return its id.

    Return None if nothing restricts them: then they leave without a rule.
    """
    terms = Terms(message.count, _shorten(message.study), message.workers, message.colluding)
    if (why := terms.find_problem()) is not None:
        raise ReleaseError.terms(str(worker.id), why)
    objects = _copy_requested(worker, message.ids, None, message.labels, sender)
    if not any(requested.copy.status & RESTRICTED for requested in objects):
        return None
    requests = releases_of(worker).requests
    return requests.add(sender, message.reason, objects, line=_shorten(message.line), terms=terms).id


def _copy_requested(
    worker: BaseWorker, ids: Sequence[Id], attr: str | None, labels: Sequence[str], sender: Peer
) -> list[Requested]:
    """Return copies of the objects of a request; raise if the sender may not ask for them."""
    waiting = [request for request in _requests_of(worker).made_by(sender) if request.state == "open"]
    if len(waiting) >= MAX_OPEN:
        raise ReleaseError.too_many(str(sender), str(worker.id), MAX_OPEN)
    if sender.behalf:
        raise ReleaseError.on_behalf(str(sender), str(worker.id))
    if not ids:
        raise ReleaseError.nothing(str(worker.id))
    named = dict(zip(ids, labels, strict=False))
    objects = []
    for id in dict.fromkeys(ids):
        entry = worker.object_store.entry(id)
        require_right_to_lease(worker, entry, sender)
        value = attribute(entry.value, attr)
        if value is None or ends_elsewhere(value):
            raise ReleaseError.elsewhere(id, str(worker.id))
        copy = Stored(copy_without_gradient(worker, value), sender.id, entry.lineage)
        copy.id, copy.derivation = id, derivation_of_attribute(entry, attr)
        copy.mark(entry.status & ADDED)
        objects.append(Requested(ref(entry), attr, copy, label=_shorten(named.get(id, ""))))
    return objects


def _shorten(text: object) -> str:
    """Return a text of a peer in one line of limited length."""
    return one_line(str(text)[:MAX_CLAIM])


def follow_requests(worker: BaseWorker, message: FollowRequests, sender: Peer) -> list[dict[str, Tensor]]:
    """Return the state of the sender's own requests: of all, or of some by id."""
    own = {request.id: request for request in ([] if sender.behalf else _requests_of(worker).made_by(sender))}
    for id in message.ids:
        if id not in own:
            raise ReleaseError.unknown(id, str(worker.id))
    return [own[id].to_asker() for id in message.ids or own]


def fetch_released(worker: BaseWorker, message: FetchReleased, sender: Peer) -> list[Tensor]:
    """Return the copies of an approved request of the sender, also if the objects themselves are gone."""
    own = [request for request in _requests_of(worker).made_by(sender) if request.id == message.request]
    if not own or sender.behalf:
        raise ReleaseError.unknown(message.request, str(worker.id))
    (request,) = own
    request.require_approval(str(worker.id))
    copies = [requested.copy for requested in request.objects if requested.is_free_for(message)]
    kept = dict.fromkeys(range(len(copies)), "it was requested")  # Whatever the policy says now, the approval is used.
    wanted = [Departure(copy, copy.value) for copy in copies]
    return leave(Leaving(worker, "read", message, sender, wanted, kept=kept, reason=message.reason))


# --- for the owner


def _require_owner(worker: BaseWorker, sender: Peer) -> str:
    """Return the name of the owner who sends a message; raise if it is somebody else."""
    if not worker.is_owner(sender):
        raise ReleaseError.not_owner(str(sender), str(worker.id))
    return sender.user or str(sender)


def review_requests(worker: BaseWorker, message: ReviewRequests, sender: Peer) -> list[Table]:
    """Return what is known about requests, without values."""
    _require_owner(worker, sender)
    requests = _requests_of(worker)
    found = [requests.find(id) for id in message.ids] if message.ids else list(requests)
    return [describe_request(worker, request) for request in found]


def describe_request(worker: BaseWorker, request: ReleaseRequest) -> Table:
    """Return a request, how often its user got something of the same form, and a rule that would cover it."""
    before = releases_of(worker).count_released(request)
    return {
        **request.to_table(),
        "supplied": list(
            dict.fromkeys([text for each in request.results for text in each.derivation.describe_inputs()])
        ),
        "checks": list(dict.fromkeys(map(describe_check, request.results))),
        "released_before": before,
        "rule": suggest_conditions(worker, request),
    }


def decide_request(worker: BaseWorker, message: DecideRequest, sender: Peer) -> Table:
    """Decide on a request."""
    by = _require_owner(worker, sender)
    if message.decision not in get_args(Decision):
        raise ReleaseError.decision(message.decision, ", ".join(get_args(Decision)))
    decision: Decision = message.decision  # type: ignore[assignment]  # it is one of them
    requests = _requests_of(worker)
    return requests.decide(decision, message.request, message.answer, by, message.digest).to_table()


def list_approvals(worker: BaseWorker, message: ListApprovals, sender: Peer) -> list[Table]:
    """Return rules."""
    _require_owner(worker, sender)
    approvals = releases_of(worker).approvals
    found = [approvals.find(name) for name in message.names] if message.names else list(approvals)
    return [approval.to_table() for approval in found]


def add_approval(worker: BaseWorker, message: AddApproval, sender: Peer) -> Table:
    """Add a rule."""
    by = _require_owner(worker, sender)
    releases = releases_of(worker)
    request = None if message.request is None else _requests_of(worker).find(message.request)
    if request is not None and request.terms is not None:
        return releases.grant(request, by, message.name, message.conditions)
    conditions = {} if request is None else suggest_conditions(worker, request)
    if message.conditions.get("any_program"):
        conditions = {name: value for name, value in conditions.items() if name not in PROGRAM_CONDITIONS}
    conditions |= message.conditions
    if request is not None and not conditions["computed_from"]:
        raise ReleaseError.untagged(request.id, str(worker.id))
    return releases.approvals.add(message.name, conditions, by).to_table()


def revoke_approval(worker: BaseWorker, message: RevokeApproval, sender: Peer) -> Table:
    """Revoke a rule."""
    return releases_of(worker).revoke(message.name, _require_owner(worker, sender))


def show_values(worker: BaseWorker, message: ShowValues, sender: Peer) -> list[Table]:
    """Return a summary of what a request would release, after recording that the owner sees it."""
    by = _require_owner(worker, sender)
    return look_at(worker, _requests_of(worker).find(message.request), by)


def look_at(worker: BaseWorker, request: ReleaseRequest, by: str) -> list[Table]:
    """Record that an owner sees what a request would release, and return a summary of it."""
    record_request(worker, request, "seen", by)
    shown = [requested for requested in request.objects if not requested.has_left]
    return [
        {
            **({"label": requested.label} if requested.label else {}),
            "object": requested.name,
            **summarize(requested.copy, request.parties),
            **compare(worker, requested.copy),
            **_describe_influence(requested.copy),
        }
        for requested in shown
    ]


def _describe_influence(copy: Stored) -> Table:
    """Return how much one row of the data changes a result: that depends on values, so it is for the owner alone."""
    return {} if copy.derivation is None or copy.access is None else {"influence": measure_influence(copy.derivation)}
