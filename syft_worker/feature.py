"""Registers the desk, where peers ask and the owner decides, and errors of quotas."""

from __future__ import annotations

from syft_core.plugins.hookspecs import RegisterError, RegisterMessage, RegisterRule, hookimpl
from syft_worker.desk import handlers, messages
from syft_worker.desk.errors import ApprovalError, ReleaseDeniedError, ReleaseError, ReleasePendingError
from syft_worker.desk.releases import RULE
from syft_worker.desk.rule import OWNER_APPROVES
from syft_worker.errors import QuotaExceededError


@hookimpl
def register_messages(register: RegisterMessage) -> None:
    """Register the messages of those who ask, and of the owner."""
    register(messages.AskRelease, handlers.ask_release)
    register(messages.AskStudy, handlers.ask_study)
    register(messages.FollowRequests, handlers.follow_requests)
    register(messages.FetchReleased, handlers.fetch_released)
    register(messages.ReviewRequests, handlers.review_requests)
    register(messages.DecideRequest, handlers.decide_request)
    register(messages.ListApprovals, handlers.list_approvals)
    register(messages.AddApproval, handlers.add_approval)
    register(messages.RevokeApproval, handlers.revoke_approval)
    register(messages.ShowValues, handlers.show_values)


@hookimpl
def register_rules(register: RegisterRule) -> None:
    """Let objects leave with the owner's approval."""
    register(RULE, OWNER_APPROVES)


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of the desk and of quotas be sent."""
    for error in (ReleasePendingError, ReleaseDeniedError, ReleaseError, ApprovalError, QuotaExceededError):
        register(error)
