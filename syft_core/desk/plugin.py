"""The plugin of the owner's desk: messages with which the owner of a worker decides what may leave."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.desk import handlers, messages
from syft_core.plugins.hookspecs import hookimpl


@hookimpl
def register_messages(register: Callable[..., None]) -> None:
    """Register the messages of the owner."""
    register(messages.ReviewRequests, handlers.review_requests)
    register(messages.DecideRequest, handlers.decide_request)
    register(messages.ListApprovals, handlers.list_approvals)
    register(messages.AddApproval, handlers.add_approval)
    register(messages.RevokeApproval, handlers.revoke_approval)
    register(messages.ShowValues, handlers.show_values)
