"""The methods that the desk adds: to workers, for owners; to locations, pointers and tensors, for those who ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syft_core.location import Location
from syft_core.peer import Id
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.travel import Travelling, require_pointer
from syft_core.workers.party.worker import Worker
from syft_worker.desk.approvals import StandingApproval, StandingApprovals
from syft_worker.desk.handle import RequestHandle
from syft_worker.desk.messages import FollowRequests
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import Decision, ReleaseRequest, ReleaseRequests


class OwnedWorker(Worker):
    """What the owner of a worker calls."""

    @property
    def requests(self) -> ReleaseRequests:
        """The release requests of peers, for the owner to approve or deny."""
        with self.lock:
            releases_of(self).requests.expire()
        return releases_of(self).requests

    @property
    def approvals(self) -> StandingApprovals:
        """The rules of the owner that approve releases in advance."""
        return releases_of(self).approvals

    def approve(self, request: object, by: str | None = None, digest: str | None = None, why: str = "") -> None:
        """Approve a peer's request, given itself or by id: the peer can fetch it, once.

        If ``digest``, the ``request.digest`` of what was reviewed, is that of something else, raise an error.
        """
        self.decide("approve", request, why, by, digest)

    def deny(self, request: object, why: str, by: str | None = None, digest: str | None = None) -> None:
        """Deny a peer's request; the error that they get says ``why``."""
        self.decide("deny", request, why, by, digest)

    def withdraw(self, request: object, by: str | None = None, digest: str | None = None, why: str = "") -> None:
        """Take back an approval that was not used yet; the request is open again."""
        self.decide("withdraw", request, why, by, digest)

    def decide(
        self, decision: Decision, request: object, why: str = "", by: str | None = None, digest: str | None = None
    ) -> ReleaseRequest:
        """Decide on a request: "approve", "deny" or "withdraw" it."""
        with self.lock:
            return releases_of(self).requests.decide(decision, request, why, by or _name_owner(self), digest)

    def allow(self, name: str, by: str | None = None, **conditions: Any) -> StandingApproval:
        """Add a standing approval; the conditions are those of ``[approvals.NAME]`` in the configuration file."""
        with self.lock:
            return releases_of(self).approvals.add(name, conditions, by or _name_owner(self))

    def revoke(self, name: str, by: str | None = None) -> None:
        """Revoke a standing approval."""
        with self.lock:
            releases_of(self).approvals.revoke(name, by or _name_owner(self))


def _name_owner(worker: Worker) -> str:
    return worker.user or f"worker {worker.id}"


class AskedLocation(Location):
    """What a user calls to follow requests."""

    def requests(self) -> list[RequestHandle]:
        """Return the release requests of this client's user to the worker, the oldest first."""
        return [RequestHandle(self, found["id"]) for found in self.ask(FollowRequests())]


class RequestablePointer(ObjectPointer):
    """What a user calls to ask for the object of a pointer."""

    def request(self, reason: str, parties: Sequence[Id] = ()) -> RequestHandle:
        """Ask the owner of the worker to release the object; return the request.

        ``parties`` are the workers that hold the shares of the value, if the object is one of them.
        """
        self.require_alive()
        return RequestHandle.ask(self._location, [self._id_at_location], self.point_to_attr, reason, parties=parties)


class RequestableTensor(Travelling):
    """What a user calls to ask for the object that a tensor points to."""

    def request(self, reason: str) -> RequestHandle | dict[Id, RequestHandle]:
        """Ask the worker's owner to release the object; after approval, ``get`` works.

        Returns the request; for a shared value, one for each party.
        """
        made: RequestHandle | dict[Id, RequestHandle] = require_pointer(self, "request").request(reason)
        return made
