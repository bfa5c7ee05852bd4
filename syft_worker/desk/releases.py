"""Releases: the release requests to a worker, and the rules of its owner."""

from __future__ import annotations

import logging

from syft_core.exceptions import LedgerError, StorageError
from syft_core.messages import Message
from syft_core.peer import Id, Peer
from syft_core.workers.party.store import Sources
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.ledger import describe_value, split_failures, tags_of
from syft_worker.desk.approvals import Candidate, StandingApproval, StandingApprovals
from syft_worker.desk.history import Released, ReleaseHistory, name_sources, omit_makers
from syft_worker.desk.requests import ReleaseRequest, ReleaseRequests

RULE = "owner approves"
"""The name of the rule of the desk."""
_log = logging.getLogger(__name__)


class Releases:
    """What the desk keeps on a worker; it starts with what the ledger says about earlier processes."""

    def __init__(self, worker: Worker) -> None:
        history = worker.ledger.histories.get(RULE)
        self.history = history if isinstance(history, ReleaseHistory) else ReleaseHistory()
        self.requests = ReleaseRequests(worker)
        self.approvals = StandingApprovals(worker)
        self.requests.recall(self.history)
        self.approvals.recall(self.history)
        self.requests.settle, self.approvals.on_added = self._settle, self._settle_open
        self._counts = self.history.count_releases()

    def count_released(self, request: ReleaseRequest) -> int:
        """Return how often the user of a request got objects of the same forms, computed from the same data."""
        return self._counts.count(_describe(request.peer, request.forms, request.lineage))

    def use_up(self, message: Message) -> None:
        """Use up the approvals with which objects have left, and count the releases."""
        left = [Candidate(each.peer, each.forms, each.lineage) for each in self.requests.use_up(message)]
        candidate = self.approvals.use_up(message)
        for each in [*left, *([candidate] if candidate is not None else [])]:
            self._counts.add(_describe(*each[:3]))

    def _settle_open(self, approval: StandingApproval) -> None:
        """Approve the open requests that a new rule covers, the oldest first."""
        for request in self.requests:
            if request.state == "open" and request.peer.user == approval.conditions["user"]:
                self._settle(request)

    def _settle(self, request: ReleaseRequest) -> None:
        """Approve a request that a rule covers: that uses the rule once."""
        forms = ", ".join([describe_value(requested.value) for requested in request.objects])
        approval = self.approvals.find_for(Candidate(request.peer, forms, request.lineage, request.results))
        if approval is None:
            return
        answer = f"the rule {approval.name!r} covers it"
        by = approval.made_by or "the owner"
        try:
            self.requests.decide("approve", request, answer, by, None, rule=approval.name)
        except (LedgerError, StorageError) as error:
            _log.error("request %s stays open, although a rule covers it: %s", request.id, error)
        else:
            self.approvals.count_use(approval, request.id)

    def forget(self, peer: Id) -> None:
        """Forget nothing: requests belong to a user and outlive the user's connection."""


def _describe(peer: Peer, forms: str, sources: Sources) -> Released:
    return Released(str(peer), omit_makers(forms), name_sources(map(tags_of, split_failures(sources)[0])))


def releases_of(worker: Worker) -> Releases:
    """Return the release requests to a worker, and the rules of its owner."""
    return worker.part(Releases)
