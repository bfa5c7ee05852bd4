"""Releases: the release requests to a worker, and the rules of its owner."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from types import MappingProxyType

from syft_core.exceptions import LedgerError, StorageError
from syft_core.messages import Message
from syft_core.peer import Id, Peer
from syft_core.values import Json, Table
from syft_core.workers.party.store import Sources
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.ledger import describe_value, split_failures, tags_of
from syft_sums.rules import SumCandidate, SumRule
from syft_sums.studies import studies_of
from syft_worker.desk.approvals import Candidate, StandingApproval, StandingApprovals, suggest_conditions
from syft_worker.desk.errors import ReleaseError
from syft_worker.desk.history import Released, ReleaseHistory, name_sources, omit_makers
from syft_worker.desk.requests import ReleaseRequest, ReleaseRequests
from syft_worker.desk.terms import Terms

RULE = "owner approves"
"""The name of the rule of the desk."""
_NONE: Mapping[str, Json] = MappingProxyType({})
_log = logging.getLogger(__name__)


class Releases:
    """What the desk keeps on a worker; it starts with what the ledger says about earlier processes."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        history = worker.ledger.histories.get(RULE)
        self.history = history if isinstance(history, ReleaseHistory) else ReleaseHistory()
        self.requests = ReleaseRequests(worker)
        self.approvals = StandingApprovals(worker)
        self.requests.recall(self.history)
        self.approvals.recall(self.history)
        self.requests.settle, self.requests.grant = self._settle, self.grant
        self.approvals.on_added = lambda approval: self._settle_open(approval.conditions["user"])
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

    def grant(self, request: ReleaseRequest, by: str, name: str = "", limits: Mapping[str, Json] = _NONE) -> Table:
        """Make a rule of what a request for a study asks for, with these limits; that settles the request."""
        if request.state != "open" or request.terms is None:
            raise ReleaseError.decided(request.id, str(self._worker.id), request.state)
        conditions = {**suggest_conditions(self._worker, request), **limits}
        if not conditions["computed_from"]:
            raise ReleaseError.untagged(request.id, str(self._worker.id))
        name = name or name_rule(request)
        rule: StandingApproval | SumRule
        if request.terms.is_summed:
            rule = studies_of(self._worker).grant(name, conditions, by)
            self._settle_open(str(conditions["user"]))
        else:
            rule = self.approvals.add(name, conditions, by)
        if request.state == "open":  # The owner has chosen narrower conditions.
            self.requests.decide("approve", request, "", by, None, rule=name)
        return rule.to_table()

    def revoke(self, name: str, by: str) -> Table:
        """Let a rule, also one for sums, approve nothing any more."""
        studies = studies_of(self._worker)
        if name in studies.rules:
            return studies.revoke(name, by).to_table()
        return self.approvals.revoke(name, by).to_table()

    def _settle_open(self, user: str) -> None:
        """Approve the open requests of a user that a new rule covers, the oldest first."""
        for request in self.requests:
            if request.state == "open" and request.peer.user == user:
                self._settle(request)

    def _settle_study(self, request: ReleaseRequest, terms: Terms) -> None:
        """Grant a request for a study whose results are covered by a rule, which is not used by it."""
        rule: StandingApproval | SumRule | str | None
        if terms.is_summed:
            computed = [result.derivation.whole for result in request.results]
            asked = [
                SumCandidate(request.peer, each.maker, each, terms.roster)
                for each in computed
                if each.maker is not None
            ]
            found = list(map(studies_of(self._worker).find_rule, asked)) if len(asked) == len(computed) else []
            rule = found[0] if found and all(each is found[0] for each in found) else None
        else:
            given = request.peer, request.lineage
            results = [Candidate(given[0], result.form, given[1], (result,)) for result in request.results]
            covers = (each for each in self.approvals if all(each.refuse(result) is None for result in results))
            rule = next(covers, None) if results else None
        if rule is None or isinstance(rule, str):
            return
        answer = f"the rule {rule.name!r} covers it"
        self.requests.decide("approve", request, answer, rule.made_by or "the owner", None, rule=rule.name)

    def _settle(self, request: ReleaseRequest) -> None:
        """Approve a request that a rule covers: that uses the rule once, except for a study."""
        if request.terms is not None:
            self._settle_study(request, request.terms)
            return
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


def name_rule(request: ReleaseRequest) -> str:
    """Return the name of a rule from a request, unless its owner chooses another one."""
    return f"{re.sub('[^A-Za-z0-9._-]', '-', request.peer.user or 'user')[:40]}-{request.id[:4]}"


def releases_of(worker: Worker) -> Releases:
    """Return the release requests to a worker, and the rules of its owner."""
    return worker.part(Releases)
