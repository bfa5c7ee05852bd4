"""LocalLocation: the location of a worker in this process. It executes immediately, in the caller's thread."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from syft_core.hook.forms import Form
from syft_core.hook.ranks import framework_types
from syft_core.location import Location, Party
from syft_core.messages import Describe, Message
from syft_core.peer import Id, Peer, acting_for, behalf
from syft_core.values import Outcome, Tensor
from syft_core.workers.moving.departure import is_frozen, require_departed
from syft_core.workers.moving.transfer import give_away, hand_over
from syft_core.workers.party.status import LAYERED, POLICY
from syft_core.workers.seeing.tracing import record, traces

if TYPE_CHECKING:
    from syft_core.workers.party.base import BaseWorker


class LocalLocation(Location):
    """The location of a worker in this process. Errors are raised directly, and forms are read from the objects.

    Messages are not encoded, but client and worker never share memory: objects are copied when they are sent or
    fetched, unless the sender gives up ownership.
    """

    def __init__(self, client: Party, worker: BaseWorker) -> None:
        super().__init__(client, worker.id)
        self.worker = worker

    @property
    def face(self) -> BaseWorker:
        """The worker itself."""
        return self.worker

    def ask(self, message: Message) -> Outcome:
        """Execute a message and return the answer."""
        if traces:
            return record(self, message, self._execute)
        if not message.facts.stores_results or message.facts.returns_objects:
            return self._execute(message)
        worker, peer = self.worker, self._peer() if behalf.get() else self.client.peer
        lock = worker.lock
        if lock.queue or not lock.acquire(False):  # `with lock` in line: every operation comes here.
            lock.wait(peer)
        try:
            return worker.handle(message, peer)
        finally:
            RLock.release(lock)
            if lock.queue:
                lock.choose()

    tell = ask

    def flush(self) -> None:
        """Do nothing: every message was executed immediately."""

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the release of a dropped pointer's lease."""
        self.worker.dropped.append((id, self.client.id if lender is None else (self.client.id, lender)))

    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Read the forms from the objects."""
        return self.worker.describe(Describe(tuple(ids), attr), self._peer())  # type: ignore[no-any-return]  # the forms

    def peek(self, id: Id, attr: str | None = None) -> Tensor:
        """Return a plain tensor, or its gradient or data, whose form may be read: only a policy can hide that."""
        entry = self.worker.object_store.get(id)
        if entry is None or (entry.status | self.worker.status) & (LAYERED | POLICY):
            return None
        if attr is None:
            return entry.value
        with self.worker.lock.of(self.client.peer):  # A backward pass in another thread may replace it.
            return getattr(entry.value, attr)

    def has_gradient(self, id: Id, attr: str) -> bool:
        """Return whether the object has a gradient."""
        entry = self.worker.object_store.get(id)
        if entry is None or not entry.is_plain:
            return super().has_gradient(id, attr)
        with self.worker.lock.of(self.client.peer):
            return getattr(entry.value, attr) is not None

    def identify(self, object_id: Id) -> Hashable:
        """Return the identity of the object."""
        entry = self.worker.object_store.get(object_id)
        return object_id if entry is None else id(entry.value)

    def _peer(self) -> Peer:
        return self.client.peer._replace(behalf=behalf.get())

    def _execute(self, message: Message) -> Outcome:
        worker, client = self.worker, self.client
        if message.facts.gives:
            _receive(message, worker)
        peer = self._peer() if behalf.get() else client.peer
        try:
            if message.facts.returns_objects:
                return self._fetch(message, peer)
            with worker.lock.of(peer):
                answer = worker.handle(message, peer)
            require_departed(worker, message, answer)
            return answer
        finally:
            worker.settle((message,))

    def _fetch(self, message: Message, peer: Peer) -> Outcome:
        """Execute a message that fetches objects.

        The lock is held until tensors have been handed over, so that they cannot change meanwhile.
        """
        worker = self.worker
        with worker.lock.of(peer):
            worker.is_handing_over = True
            try:
                reply = worker.handle(message, peer)
            finally:
                at_once, worker.is_handing_over = worker.is_handing_over, False
            if at_once and is_frozen(reply):
                return self._hand_over(message, reply, peer)
        return self._hand_over(message, reply, peer)

    def _hand_over(self, message: Message, reply: Outcome, peer: Peer) -> Outcome:
        require_departed(self.worker, message, reply)
        if type(reply) is not list:
            taken = _hand_over_for(peer, hand_over, reply, self.client)
            self.worker.finish_fetch(message, peer)
            return taken
        self.worker.finish_fetch(message, peer)  # First, so that unshared objects need not be copied.
        return _hand_over_for(peer, give_away, reply, self.client)


def _hand_over_for(peer: Peer, transfer: Callable[[Any, Party], Any], reply: object, client: Party) -> Any:
    """Transfer a reply; take the leases on its pointers on behalf of the sender."""
    types = map(type, reply) if type(reply) is list else (type(reply),)
    if all(map(framework_types.get, types)):
        return transfer(reply, client)
    with acting_for(peer.chain):
        return transfer(reply, client)


def _receive(message: Message, worker: BaseWorker) -> None:
    """Replace the object in a message by one that shares no memory with the sender."""
    name = message.facts.gives
    if getattr(message, "given", False):
        if worker.dropped:  # A dropped graph may still refer to the object.
            with worker.lock:
                worker.collect_garbage()
        values = [getattr(message, name)]
        setattr(message, name, None)
        try:
            (kept,) = give_away(values, worker)
        except BaseException:
            setattr(message, name, values[0])
            raise
    else:
        kept = hand_over(getattr(message, name), worker)
    setattr(message, name, kept)
