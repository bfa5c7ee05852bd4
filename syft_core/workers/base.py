"""BaseWorker: who holds objects, and answers messages about them."""

from __future__ import annotations

import difflib
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from syft_core.exceptions import WorkerIdTakenError, WorkerNotFoundError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.hook import attached_hook
from syft_core.ids import IdProvider
from syft_core.messages import Fetch, Message, Run, Search
from syft_core.pictures import worker_html
from syft_core.pointers.travel import found
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.handlers import HANDLERS, own
from syft_core.workers.ledger import Ledger
from syft_core.workers.log import logged
from syft_core.workers.permissions import Policy, unless_private
from syft_core.workers.remote import Remote
from syft_core.workers.results import named
from syft_core.workers.store import ObjectStore, Stored
from syft_core.workers.trace import record, traces
from syft_core.workers.transfer import hand_over, with_leases


@dataclass
class Stats:
    """What a worker has done: messages and operations answered, bytes that came in and went out."""

    messages: int = 0
    operations: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class BaseWorker:
    """Holds objects by id and answers messages about them: ``deliver(frames) -> frames`` is all a transport needs.

    A *client* worker keeps nothing by itself: what its user drops is gone, as in any Python program.
    """

    def __init__(
        self,
        hook: Any = None,
        id: int | str = 0,
        data: Sequence[Any] | None = None,
        is_client_worker: bool = False,
        log_msgs: bool = False,
        verbose: bool = False,
        auto_add: bool = True,
        message_pending_time: float = 0,
        policy: Policy = unless_private,
    ) -> None:
        self.hook = hook
        self.id = id
        self.is_client_worker = is_client_worker
        self.log_msgs = log_msgs
        self.verbose = verbose
        self.message_pending_time = message_pending_time
        self.policy = policy
        self.object_store = ObjectStore(id)
        self.ledger = Ledger(str(id))
        self.stats = Stats()
        self.msg_history: list[Message] = []
        self.dropped: deque[int | str] = deque()
        """The ids of objects here whose pointers are gone; counted with the next message."""
        self._known_workers: dict[int | str, BaseWorker] = {id: self}
        self._ids = IdProvider()
        if auto_add and hook is not None and getattr(hook, "local_worker", None) is not None:
            hook.local_worker.add_worker(self)
        if data:
            self.load_data(data)

    # --- messages

    def ask(self, message: Message, sender: Any) -> Any:
        """Say something to this worker and return its answer; traces that are on write it down."""
        if traces:
            return record(self, message, sender)
        return self.carry(message, sender)

    def carry(self, message: Message, sender: Any) -> Any:
        """Bring a message to where it is handled, and its answer back; in this, kinds of workers differ."""
        return self.handle(message, sender)

    def handle(self, message: Message, sender: Any) -> Any:
        """Do what a message asks for."""
        if self.dropped:
            self.collect_garbage()
        self.stats.messages += 1
        if self.message_pending_time:
            time.sleep(self.message_pending_time)
        if self.log_msgs:
            self.msg_history.append(logged(message))
        return HANDLERS[type(message)](self, message, sender)

    def deliver(self, received: Sequence[Any], sender: Any) -> list[Any]:
        """Answer a message that came as frames, with frames."""
        self.stats.bytes_in += sum(map(len, received))
        message = from_frames(received, Context(worker=self))
        reply = self.handle(message, sender)
        if isinstance(message, Run):
            reply = named(reply, self.attributes_of(message.framework))
        sent = frames(with_leases(reply) if isinstance(message, Fetch) else reply, Context(worker=self))
        self.stats.bytes_out += sum(map(len, sent))
        return sent

    def collect_garbage(self) -> None:
        """Count the leases of pointers that are gone."""
        dropped = self.dropped
        gone = []
        while dropped:
            gone.append(dropped.popleft())
        self.object_store.release(gone)

    def identity_of(self, sender: Any, claimed: str | None) -> str:
        """Return who ``sender`` is, as the transport knows it; a claim is no proof."""
        return str(getattr(sender, "user", None) or getattr(sender, "id", "nobody"))

    # --- others

    def add_worker(self, worker: BaseWorker) -> BaseWorker:
        """Get to know another worker, and introduce it to all whom this one knows."""
        taken = self._known_workers.get(worker.id)
        if taken is not None and taken is not worker:
            raise WorkerIdTakenError.by(worker.id, type(taken).__name__)
        for known in list(self._known_workers.values()):
            known._known_workers[worker.id] = worker
            worker._known_workers[known.id] = known
        return self

    def get_worker(self, id_or_worker: Any) -> Any:
        """Return the worker with this id, or the worker itself if one is given."""
        if isinstance(id_or_worker, BaseWorker):
            return id_or_worker
        found = self._known_workers.get(id_or_worker)
        if found is None:
            near = difflib.get_close_matches(str(id_or_worker), [str(known) for known in self._known_workers], n=2)
            raise WorkerNotFoundError.named(id_or_worker, near)
        return found

    def attributes_of(self, framework: str) -> FrameworkAttributes:
        """Return the op table of a framework that is hooked here."""
        hook = attached_hook(framework)
        if hook is None:
            raise WorkerNotFoundError(f"cannot run {framework} on worker {self.id!r}: it is not hooked there; hook it")
        return hook.attributes

    def hand_over(self, value: Any, receiver: Any) -> Any:
        """Return ``value`` as ``receiver`` may keep it, sharing no memory."""
        return hand_over(value, receiver)

    # --- objects

    @property
    def remote(self) -> Remote:
        """Where tensors are made directly on this worker: ``worker.remote.<framework>.zeros(2, 3)``."""
        return Remote(self, self.hook.local_worker if self.hook is not None else self)

    def register_obj(self, obj: Any, obj_id: int | str | None = None) -> None:
        """Keep ``obj`` under ``obj_id`` or its own id, and make it this worker's."""
        known = getattr(obj, "_syft_id", None)
        if known is not None and known in self.object_store and self.object_store.entry(known).value is obj:
            self.object_store.remove(known, "it was registered under another id")
        if obj_id is None:
            obj_id = known if known is not None else self._ids.pop()
        if obj_id in self.object_store:
            self.object_store.remove(obj_id, "another object took its id")
        self.object_store.put(obj_id, Stored(obj, published=True))
        own(self, obj, obj_id)

    def de_register_obj(self, obj: Any) -> None:
        """Forget ``obj``; forgetting what is not here is harmless."""
        for id, value in self.object_store.values().items():
            if value is obj:
                self.object_store.remove(id, "it was de-registered")

    def get_obj(self, obj_id: int | str) -> Any:
        """Return the object kept under ``obj_id``."""
        return self.object_store.entry(obj_id).value

    def load_data(self, data: Sequence[Any]) -> None:
        """Keep objects that belong to this worker, for good."""
        for obj in data:
            self.register_obj(obj)
            tags, description = getattr(obj, "_syft_tags", None), getattr(obj, "_syft_description", None)
            self.object_store.tag(obj.id, tags or (), description)

    def clear_objects(self, return_self: bool = True) -> Any:
        """Drop everything."""
        self.object_store.clear("the worker was cleared")
        return self if return_self else None

    def search(self, query: Any = ()) -> list[Any]:
        """Return pointers to everything that matches all parts of ``query``: tags, ids, words of the description."""
        owner = self.hook.local_worker if self.hook is not None else self
        parts = (query,) if isinstance(query, str | int) else tuple(query)
        return [found(self, owner, *item) for item in self.ask(Search(parts), owner)]

    @property
    def _objects(self) -> dict[int | str, Any]:
        self.collect_garbage()
        return self.object_store.values()

    @property
    def objects_count(self) -> int:
        """How many objects are here."""
        self.collect_garbage()
        return len(self.object_store)

    def __getitem__(self, id: int | str) -> Any:
        return self.get_obj(id)

    def _repr_html_(self) -> str:
        return worker_html(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} id:{self.id} #objects:{self.objects_count}>"
