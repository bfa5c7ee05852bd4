"""The desk of a worker, for an owner in the same process: the requests of peers, and the rules for them."""

from __future__ import annotations

from syft_core.peer import Id
from syft_core.values import Json
from syft_core.workers.party.worker import Worker
from syft_worker.desk.approvals import StandingApproval, StandingApprovals, suggest_conditions
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import Decision, ReleaseRequest, ReleaseRequests


class WorkerDesk:
    """The desk of a worker in this process: ``worker.desk``."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def forget(self, peer: Id) -> None:
        """Forget nothing: requests belong to a user and outlive the connection of a client."""

    @property
    def requests(self) -> ReleaseRequests:
        """The release requests of peers, for the owner to approve or deny."""
        with self._worker.lock:
            releases_of(self._worker).requests.expire()
        return releases_of(self._worker).requests

    @property
    def rules(self) -> StandingApprovals:
        """The rules of the owner that approve releases in advance."""
        return releases_of(self._worker).approvals

    def approve(self, request: object, by: str | None = None, digest: str | None = None, answer: str = "") -> None:
        """Approve a peer's request, given itself or by id: the peer can fetch it, once.

        If ``digest``, the ``request.digest`` of what was reviewed, is that of something else, raise an error.
        """
        self.decide("approve", request, answer, by, digest)

    def deny(self, request: object, answer: str, by: str | None = None, digest: str | None = None) -> None:
        """Deny a peer's request; the error that they get says ``answer``."""
        self.decide("deny", request, answer, by, digest)

    def withdraw(self, request: object, by: str | None = None, digest: str | None = None, answer: str = "") -> None:
        """Take back an approval that was not used yet; the request is open again."""
        self.decide("withdraw", request, answer, by, digest)

    def decide(
        self, decision: Decision, request: object, answer: str = "", by: str | None = None, digest: str | None = None
    ) -> ReleaseRequest:
        """Decide on a request: "approve", "deny" or "withdraw" it."""
        with self._worker.lock:
            by = by or _name_owner(self._worker)
            return releases_of(self._worker).requests.decide(decision, request, answer, by, digest)

    def allow(self, name: str, by: str | None = None, **conditions: Json) -> StandingApproval:
        """Add a rule; the conditions are those of ``[rules.NAME]`` in the configuration file."""
        with self._worker.lock:
            return releases_of(self._worker).approvals.add(name, conditions, by or _name_owner(self._worker))

    def approve_program(
        self, request: object, name: str, count: int, by: str | None = None, **conditions: Json
    ) -> StandingApproval:
        """Approve what a request asks for, and its program from now on, with a rule that may be used ``count`` times.

        Further conditions replace those that follow from the request.
        """
        with self._worker.lock:
            found = releases_of(self._worker).requests.find(request)
            wanted = {**suggest_conditions(self._worker, found), "count": count, **conditions}
            rule = self.allow(name, by, **wanted)
            if found.state == "open":  # The rule may have settled it.
                self.approve(found, by)
            return rule

    def revoke(self, name: str, by: str | None = None) -> None:
        """Revoke a rule."""
        with self._worker.lock:
            releases_of(self._worker).approvals.revoke(name, by or _name_owner(self._worker))


def _name_owner(worker: Worker) -> str:
    return worker.user or f"worker {worker.id}"
