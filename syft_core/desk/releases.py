"""Releases: the release requests to a worker, and the standing approvals of its owner."""

from __future__ import annotations

from collections.abc import Mapping

from syft_core.desk.approvals import StandingApproval, StandingApprovals
from syft_core.desk.history import ReleaseHistory
from syft_core.desk.requests import Decision, ReleaseRequest, ReleaseRequests
from syft_core.peer import Id
from syft_core.values import Json
from syft_core.workers.party.worker import Worker

RULE = "owner approves"
"""The name of the rule of the desk."""


class Releases:
    """What the desk keeps on a worker; it starts with what the ledger says about earlier processes."""

    def __init__(self, worker: Worker) -> None:
        history = worker.ledger.histories[RULE]
        self.history = history if isinstance(history, ReleaseHistory) else ReleaseHistory()
        self.requests = ReleaseRequests(worker)
        self.approvals = StandingApprovals(str(worker.id))
        self.requests.recall(self.history)
        self.approvals.recall(self.history)
        self._worker = worker

    def decide(
        self, decision: Decision, request: object, why: str = "", by: str | None = None, digest: str | None = None
    ) -> ReleaseRequest:
        """Decide on a request: "approve", "deny" or "withdraw" it."""
        with self._worker.lock:
            return self.requests.decide(self._worker, request, decision, by or self._owner, digest, why)

    def allow(self, name: str, conditions: Mapping[str, Json], by: str | None = None) -> StandingApproval:
        """Add a standing approval."""
        with self._worker.lock:
            return self.approvals.add(self._worker, name, conditions, by or self._owner)

    def revoke(self, name: str, by: str | None = None) -> StandingApproval:
        """Revoke a standing approval."""
        with self._worker.lock:
            return self.approvals.revoke(self._worker, name, by or self._owner)

    @property
    def _owner(self) -> str:
        return self._worker.user or f"worker {self._worker.id}"

    def forget(self, peer: Id) -> None:
        """Keep the requests of a client that has gone: its user may connect again."""


def releases_of(worker: Worker) -> Releases:
    """Return the release requests to a worker, and the standing approvals of its owner."""
    return worker.part(Releases)
