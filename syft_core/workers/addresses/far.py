"""FarWorker: the methods that users call on the location of a worker in another process, whatever the transport."""

from __future__ import annotations

from syft_core.messages import Message, Store
from syft_core.peer import Id, Peer
from syft_core.values import Nested
from syft_core.workers.addresses.remote import Remote
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.worker import Worker


class FarWorker(WireLocation):
    """The location of a worker in another process, used by the local worker and by other workers of this process."""

    _local: BaseWorker

    @property
    def remote(self) -> Remote:
        """Creates tensors directly on this worker: ``worker.remote.<framework>.zeros(2, 3)``."""
        return Remote(self, self.client)  # type: ignore[arg-type]  # only its id is used

    def search(self, query: object = ()) -> list[Nested]:
        """Return pointers to the objects that match all parts of ``query``: tags, ids, parts of descriptions."""
        return self._local.request_search(query, self)

    def restrict_behalf(self, peers: tuple[Peer, ...]) -> tuple[Peer, ...]:
        """Return no peers for workers of this process: they use the connection, and therefore act as its user."""
        return () if all(self._is_here(peer.id) for peer in peers) else peers

    def _prepare(self, message: Message) -> None:
        super()._prepare(message)
        if type(message) is Store and message.holder is not None and self._is_here(message.holder):
            message.holder = None  # The user of the connection holds it.

    def _is_here(self, id: Id) -> bool:
        return isinstance(self._local._known_workers.get(id), Worker)
