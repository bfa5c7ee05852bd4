"""RayLocation: a worker that an actor hosts, as a client sees it; ReturnLocation: the way back to a client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Protocol

from syft_core.exceptions import ConnectionLostError
from syft_core.location import Location
from syft_core.messages import Message
from syft_core.peer import Id
from syft_core.serde.layout import Frame
from syft_core.values import Nested
from syft_core.workers.addresses.far import FarWorker
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.party.base import BaseWorker
from syft_ray.actor import Actor
from syft_ray.buffers import pack, unpack


class Links(Protocol):
    """Lets workers of actors reach other workers."""

    def link(self, location: RayLocation, other: Location) -> None:
        """Let the worker at a location reach another one."""


class RayLocation(FarWorker):
    """The location of a worker that an actor hosts.

    The actor executes the batches of a client in the order of their numbers. The key, which the actor has given to the
    client, says who the client is.
    """

    def __init__(self, client: BaseWorker, id: Id, actor: Actor, key: bytes, links: Links | None = None) -> None:
        super().__init__(client, id)
        self.actor, self._local, self._key, self._links = actor, client, key, links
        self._sent = 0
        self._replies: deque[Nested] = deque()
        self._closed = False
        self.timeout: float | None = None
        """Seconds that an actor may take without progress; None means no limit."""

    def send_frames(self, sent: Sequence[Frame]) -> None:
        """Call the actor."""
        self._replies.append(self.actor.call("deliver", self._key, self.id, self._sent, pack(sent)))
        self._sent += 1

    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return the result of the oldest call."""
        if not self._replies or not (wait or self.actor.has_result(self._replies[0])):
            return None
        received = unpack(self.actor.result(self._replies[0], self.id, self.timeout))
        self._replies.popleft()  # Only now: a caller that waits again after an error gets it again.
        return received

    def introduce(self, other: Location, ids: Sequence[Id]) -> None:
        """Let this worker reach another one: of an actor, or of this process."""
        if self._links is not None and other.id != self.id:
            self._links.link(self, other)

    def settle(self) -> None:
        """Wait until all told commands have been executed, if there are any; raise the first error."""
        if self._buffer or self._in_flight or self._errors:
            self.flush()

    def close(self) -> None:
        """Refuse all further messages."""
        self._closed = True

    def _prepare(self, message: Message) -> None:
        if self._closed:
            raise ConnectionLostError(f"cannot use worker {self.id!r}: its RayWorkers were closed; start new ones")
        super()._prepare(message)


class ReturnLocation(WireLocation):
    """The location of a worker in the process of a client, as a worker in an actor sees it."""

    def __init__(self, client: BaseWorker, id: Id, post: Callable[[Id, Id, Nested], Future[Nested]]) -> None:
        super().__init__(client, id)
        self._post_request = post
        self._replies: deque[Future[Nested]] = deque()
        self._last: Future[Nested] | None = None

    def send_frames(self, sent: Sequence[Frame]) -> None:
        """Post a request, after the one before was answered."""
        if self._last is not None:
            wait([self._last])
        self._last = self._post_request(self.client_id, self.id, pack(sent))
        self._replies.append(self._last)

    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return the oldest answer."""
        if not self._replies or not (wait or self._replies[0].done()):
            return None
        return unpack(self._replies.popleft().result())
