"""Desk: the owner of a worker reviews requests and decides, over the same connection as any client."""

from __future__ import annotations

from syft_core.location import Location
from syft_core.values import Json, Table
from syft_worker.desk.messages import (
    AddApproval,
    DecideRequest,
    ListApprovals,
    ReviewRequests,
    RevokeApproval,
    ShowValues,
)
from syft_worker.desk.requests import Decision


class Desk:
    """The requests and rules of a worker, for its owner.

    ``location`` is a connection with the token of an administrator, e.g. ``WebsocketClientWorker(hook, host, port,
    token=...)``.
    """

    def __init__(self, location: Location) -> None:
        self.location = location

    def requests(self, state: str | None = None) -> list[Table]:
        """Return the requests, the oldest first; with ``state``, only those in it."""
        found: list[Table] = self.location.ask(ReviewRequests())
        return [request for request in found if state in (None, request["state"])]

    def show(self, request: object) -> Table:
        """Return what is known about a request, without values."""
        (found,) = self.location.ask(ReviewRequests((str(request),)))
        return dict(found)

    def values(self, request: object) -> list[Table]:
        """Return a summary of what a request would release; the ledger records it as seen."""
        return list(self.location.ask(ShowValues(str(request))))

    def approve(self, request: object, answer: str = "", digest: str | None = None) -> Table:
        """Approve a request; with ``digest``, only if it is what was reviewed."""
        return self._decide("approve", request, answer, digest)

    def deny(self, request: object, answer: str, digest: str | None = None) -> Table:
        """Deny a request."""
        return self._decide("deny", request, answer, digest)

    def withdraw(self, request: object, answer: str = "") -> Table:
        """Take back an approval that was not used yet."""
        return self._decide("withdraw", request, answer, None)

    def _decide(self, decision: Decision, request: object, answer: str, digest: str | None) -> Table:
        return dict(self.location.ask(DecideRequest(str(request), decision, answer, digest)))

    def rules(self) -> list[Table]:
        """Return the rules."""
        return list(self.location.ask(ListApprovals()))

    def allow(self, name: str, request: object = None, **conditions: Json) -> Table:
        """Add a rule, for what a request asks for, or with these conditions."""
        message = AddApproval(name, conditions, None if request is None else str(request))
        return dict(self.location.ask(message))

    def approve_program(self, request: object, name: str, count: int, **conditions: Json) -> Table:
        """Approve a request, and its program from now on, with a rule that may be used ``count`` times."""
        rule = self.allow(name, request, count=count, **conditions)
        if self.show(request)["state"] == "open":  # The rule may have settled it.
            self.approve(request)
        return rule

    def revoke(self, name: str) -> Table:
        """Revoke a rule."""
        return dict(self.location.ask(RevokeApproval(name)))
