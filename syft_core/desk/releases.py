"""Releases: the release requests to a worker, and the standing approvals of its owner."""

from __future__ import annotations

from syft_core.desk.approvals import StandingApprovals
from syft_core.desk.history import ReleaseHistory
from syft_core.desk.requests import ReleaseRequests
from syft_core.peer import Id
from syft_core.workers.party.worker import Worker

RULE = "owner approves"
"""The name of the rule of the desk."""


class Releases:
    """What the desk keeps on a worker; it starts with what the ledger says about earlier processes."""

    def __init__(self, worker: Worker) -> None:
        history = worker.ledger.histories[RULE]
        self.history = history if isinstance(history, ReleaseHistory) else ReleaseHistory()
        self.requests = ReleaseRequests(worker)
        self.approvals = StandingApprovals(worker)
        self.requests.recall(self.history)
        self.approvals.recall(self.history)

    def forget(self, peer: Id) -> None:
        """Keep the requests of a client that has gone: its user may connect again."""


def releases_of(worker: Worker) -> Releases:
    """Return the release requests to a worker, and the standing approvals of its owner."""
    return worker.part(Releases)
