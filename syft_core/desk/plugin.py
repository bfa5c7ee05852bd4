"""The plugin of the owner's desk: peers ask for what the policy of a worker keeps, and its owner decides."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.desk import handlers, messages
from syft_core.desk.errors import ApprovalError, ReleaseDeniedError, ReleaseError, ReleasePendingError
from syft_core.desk.members import AskedLocation, OwnedWorker, RequestablePointer, RequestableTensor
from syft_core.desk.releases import RULE
from syft_core.desk.rule import OWNER_APPROVES
from syft_core.location import Location
from syft_core.plugins.hookspecs import hookimpl
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.travel import Travelling
from syft_core.workers.party.worker import Worker


@hookimpl
def register_messages(register: Callable[..., None]) -> None:
    """Register the messages of those who ask, and of the owner."""
    register(messages.AskRelease, handlers.ask_release)
    register(messages.FollowRequests, handlers.follow_requests)
    register(messages.FetchReleased, handlers.fetch_released)
    register(messages.ReviewRequests, handlers.review_requests)
    register(messages.DecideRequest, handlers.decide_request)
    register(messages.ListApprovals, handlers.list_approvals)
    register(messages.AddApproval, handlers.add_approval)
    register(messages.RevokeApproval, handlers.revoke_approval)
    register(messages.ShowValues, handlers.show_values)


@hookimpl
def register_rules(register: Callable[..., None]) -> None:
    """Let objects leave with the owner's approval."""
    register(RULE, OWNER_APPROVES)


@hookimpl
def register_members(register: Callable[..., None]) -> None:
    """Add the methods of owners and of those who ask."""
    register(Worker, OwnedWorker)
    register(Location, AskedLocation)
    register(ObjectPointer, RequestablePointer)
    register(Travelling, RequestableTensor)


@hookimpl
def register_errors(register: Callable[..., None]) -> None:
    """Let the errors of the desk be sent."""
    for error in (ReleasePendingError, ReleaseDeniedError, ReleaseError, ApprovalError):
        register(error)
