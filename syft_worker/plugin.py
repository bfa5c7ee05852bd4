"""The plugin of what an owner runs: the desk, where peers ask and the owner decides, and the commands of operators."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.location import Location
from syft_core.plugins.hookspecs import Commands, hookimpl
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.travel import Travelling
from syft_core.workers.party.worker import Worker
from syft_worker.desk import handlers, messages
from syft_worker.desk.errors import ApprovalError, ReleaseDeniedError, ReleaseError, ReleasePendingError
from syft_worker.desk.members import AskedLocation, OwnedWorker, RequestablePointer, RequestableTensor
from syft_worker.desk.releases import RULE
from syft_worker.desk.rule import OWNER_APPROVES
from syft_worker.errors import QuotaExceededError


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
    """Let the errors of the desk and of quotas be sent."""
    for error in (ReleasePendingError, ReleaseDeniedError, ReleaseError, ApprovalError, QuotaExceededError):
        register(error)


@hookimpl
def register_commands(commands: Commands) -> None:
    """Add the commands of a worker's operator."""
    # Slow to import, and needed by the command line alone.
    from syft_worker import certificates, command, ledger, requests, tokens  # noqa: PLC0415

    for module in (command, requests, ledger, tokens, certificates):
        module.add_parser(commands)
