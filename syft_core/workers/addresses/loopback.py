"""LoopbackLocation: the location of a worker in this process, through the wire format."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from syft_core.hook.hook import attached_hooks
from syft_core.location import Location, Party, raise_error
from syft_core.messages import Batch, Message
from syft_core.peer import Id, behalf
from syft_core.serde.layout import Frame
from syft_core.values import Outcome
from syft_core.workers.addresses.wire import WireLocation, find_issuer
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.tracing import record, traces


class LoopbackLocation(WireLocation):
    """The location of a worker in this process, through the wire format. It executes and raises immediately."""

    is_parallel = False

    def __init__(self, client: Party, worker: BaseWorker) -> None:
        super().__init__(client, worker.id)
        self.worker = worker

    @property
    def face(self) -> BaseWorker:
        """The worker itself."""
        return self.worker

    def flush(self) -> None:
        """Update the epochs; every message was executed immediately."""
        self._exchange()

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the release of a dropped pointer's lease."""
        self.worker.dropped.append((id, self.client.id if lender is None else (self.client.id, lender)))

    def ask(self, message: Message) -> Outcome:
        """Execute a message and return the answer."""
        return record(self, message, self._exchange) if traces else self._exchange(message)

    tell = ask
    submit = Location.submit

    def _exchange(self, *messages: Message) -> Any:
        for message in messages:
            self._prepare(message)
        peer, others = self.client.peer, behalf.get()
        sent = self._encode(Batch(0, messages, True, others))
        with ExitStack() as without_modes:  # Modes do not reach a worker in another process either.
            for hook in attached_hooks():
                for is_watched in hook.attributes.watchers:
                    if is_watched() and (isolated := hook.attributes.isolate()) is not None:
                        without_modes.enter_context(isolated)
            received = self.worker.deliver(sent, peer._replace(behalf=others) if others else peer)
        errors: list[Exception] = []  # A variable with the error itself would form a cycle.
        with self._lock:
            value = self._decode(received, 0, [], errors)
        if errors:
            notes: list[str] = vars(errors[0])["__notes__"]
            notes[:0] = [str(find_issuer(message)) for message in messages]
            raise_error(errors.pop())
        return value

    def send_frames(self, sent: Sequence[object]) -> None:
        """Do nothing: every batch is delivered immediately."""

    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return None: no reply is ever outstanding."""
        return None
