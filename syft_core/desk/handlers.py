"""What a worker does when its owner reviews requests and decides."""

from __future__ import annotations

from typing import get_args

from syft_core.desk.messages import (
    AddApproval,
    DecideRequest,
    ListApprovals,
    ReviewRequests,
    RevokeApproval,
    ShowValues,
)
from syft_core.desk.summaries import summarize
from syft_core.exceptions import ReleaseError
from syft_core.peer import Peer
from syft_core.values import Table
from syft_core.workers.moving.approvals import suggest_conditions
from syft_core.workers.moving.release import Decision, ReleaseRequest
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.ledger import record_request


def _require_owner(worker: BaseWorker, sender: Peer) -> str:
    """Return the name of the owner who sends a message; raise if it is somebody else."""
    if not worker.is_owner(sender):
        raise ReleaseError.not_owner(str(sender), str(worker.id))
    return sender.user or str(sender)


def review_requests(worker: BaseWorker, message: ReviewRequests, sender: Peer) -> list[Table]:
    """Return what is known about requests, without values."""
    _require_owner(worker, sender)
    found = [worker.requests.find(id) for id in message.ids] if message.ids else list(worker.requests)
    return [describe_request(worker, request) for request in found]


def describe_request(worker: BaseWorker, request: ReleaseRequest) -> Table:
    """Return a request, how often its user got something of the same form, and a rule that would cover it."""
    user, forms = request.peer.user, request.forms
    like = [o for o in worker.requests if o.released_at is not None and (o.peer.user, o.forms) == (user, forms)]
    before = len(like) + sum([approval.uses.total for approval in worker.approvals if approval.is_for(user, forms)])
    return {**request.to_table(), "released_before": before, "rule": suggest_conditions(worker, request)}


def decide_request(worker: BaseWorker, message: DecideRequest, sender: Peer) -> Table:
    """Decide on a request."""
    by = _require_owner(worker, sender)
    if message.decision not in get_args(Decision):
        raise ReleaseError.decision(message.decision, ", ".join(get_args(Decision)))
    decision: Decision = message.decision  # type: ignore[assignment]  # it is one of them
    return worker.decide(decision, message.request, message.why, by, message.digest).to_table()


def list_approvals(worker: BaseWorker, message: ListApprovals, sender: Peer) -> list[Table]:
    """Return standing approvals."""
    _require_owner(worker, sender)
    found = [worker.approvals.find(name) for name in message.names] if message.names else list(worker.approvals)
    return [approval.to_table() for approval in found]


def add_approval(worker: BaseWorker, message: AddApproval, sender: Peer) -> Table:
    """Add a standing approval."""
    by = _require_owner(worker, sender)
    conditions = {} if message.request is None else suggest_conditions(worker, worker.requests.find(message.request))
    conditions |= message.conditions
    if message.request is not None and not conditions["computed_from"]:
        raise ReleaseError.untagged(message.request, str(worker.id))
    return worker.allow(message.name, by, **conditions).to_table()


def revoke_approval(worker: BaseWorker, message: RevokeApproval, sender: Peer) -> Table:
    """Revoke a standing approval."""
    worker.revoke(message.name, _require_owner(worker, sender))
    return worker.approvals.find(message.name).to_table()


def show_values(worker: BaseWorker, message: ShowValues, sender: Peer) -> list[Table]:
    """Return a summary of what a request would release, after recording that the owner sees it."""
    by = _require_owner(worker, sender)
    return look_at(worker, worker.requests.find(message.request), by)


def look_at(worker: BaseWorker, request: ReleaseRequest, by: str) -> list[Table]:
    """Record that an owner sees what a request would release, and return a summary of it."""
    record_request(worker, request, "seen", by)
    shown = [requested for requested in request.objects if not requested.has_left]
    labels = dict(zip(request.names.split(", "), request.labels, strict=False))
    return [
        {
            **({"label": label} if (label := labels.get(requested.name)) else {}),
            "object": requested.name,
            **summarize(requested.copy, request.parties),
        }
        for requested in shown
    ]
