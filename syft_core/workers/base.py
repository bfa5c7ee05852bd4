"""BaseWorker: who holds objects, and answers messages about them."""

from __future__ import annotations

import difflib
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from syft_core.exceptions import WorkerError, WorkerIdTakenError, WorkerNotFoundError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.hook import FrameworkHook, attached_hook
from syft_core.ids import IdProvider
from syft_core.messages import Fetch, FetchAll, Message, Run, Search
from syft_core.pictures import worker_html
from syft_core.pointers.travel import found, sent
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.handlers import HANDLERS, own
from syft_core.workers.ledger import Ledger
from syft_core.workers.log import logged
from syft_core.workers.permissions import Policy, unless_private
from syft_core.workers.remote import Remote
from syft_core.workers.results import named
from syft_core.workers.store import ObjectStore, Stored
from syft_core.workers.trace import record, summary, traces
from syft_core.workers.transfer import hand_over, is_tensor, with_leases

_log = logging.getLogger(__name__)


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

    Args:
        hook: the hook whose local worker introduces this one to all whom it knows.
        id: the name under which others know it.
        data: objects that it holds from the beginning, for good.
        is_client_worker: whether it leaves it to Python to keep objects alive.
        log_msgs: whether it keeps every message in ``msg_history``.
        verbose: whether it logs every message, by name and ids only, at level INFO.
        auto_add: whether it is introduced at all.
        message_pending_time: how many seconds it waits before it answers, to simulate latency.
        policy: decides what may leave.

    """

    serializer: str | None = None
    """How tensors are written for this worker's peers; None means in the framework's own way."""

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
        self.dropped: deque[tuple[int | str, Any]] = deque()
        """The objects here that a pointer of somebody was dropped to; counted with the next message."""
        self.forms_changed = 0
        """How often an object here changed its form in place: what a pointer knows of forms is true until then."""
        self.gradients_changed = 0
        """The same for gradients that came or went."""
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
        if self.verbose and _log.isEnabledFor(logging.INFO):
            _log.info("worker %r is asked by %r to %s", self.id, getattr(sender, "id", "?"), summary(message))
        return HANDLERS[type(message)](self, message, sender)

    def deliver(self, received: Sequence[Any], sender: Any) -> list[Any]:
        """Answer a message that came as frames, with frames."""
        self.stats.bytes_in += sum(map(len, received))
        message = from_frames(received, Context(worker=self))
        reply = self.handle(message, sender)
        if isinstance(message, Run):
            reply = named(reply, self.attributes_of(message.framework))
        if isinstance(message, Fetch):
            reply = with_leases(reply, sender)
        elif isinstance(message, FetchAll):
            reply = [with_leases(value, sender) for value in reply]
        sent = frames(reply, Context(worker=self))
        self.stats.bytes_out += sum(map(len, sent))
        return sent

    def collect_garbage(self) -> None:
        """Count the leases of pointers that are gone."""
        self.object_store.release(self.dropped)

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

    def add_workers(self, workers: Iterable[BaseWorker]) -> BaseWorker:
        """Get to know several workers, as ``add_worker`` does one."""
        for worker in workers:
            self.add_worker(worker)
        return self

    def remove_worker_from_registry(self, worker_id: int | str) -> None:
        """Forget a worker, and let all whom this one knows forget it; its id is free again."""
        removed = self.get_worker(worker_id)
        if removed is self:
            raise WorkerError(f"cannot remove worker {worker_id!r} from its own registry: ask another worker to do it")
        for known in list(self._known_workers.values()):
            known._known_workers.pop(worker_id, None)

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
        attachment = FrameworkHook._attached.get(framework)
        if attachment is None:
            raise WorkerNotFoundError(f"cannot run {framework} on worker {self.id!r}: it is not hooked there; hook it")
        return attachment.first.attributes

    def is_framework_supported(self, framework: str) -> bool:
        """Say whether a framework is hooked here, so that its operations can run."""
        return attached_hook(framework) is not None

    def hand_over(self, value: Any, receiver: Any) -> Any:
        """Return ``value`` as ``receiver`` may keep it, sharing no memory."""
        return hand_over(value, receiver)

    # --- objects of others

    def send(
        self,
        obj: Any,
        worker: Any,
        ptr_id: int | str | None = None,
        garbage_collect_data: bool = True,
        requires_grad: bool = False,
        create_pointer: bool = True,
    ) -> Any:
        """Send a copy of a tensor to another worker and return the bare pointer to it, which belongs to this worker.

        Without a pointer nobody holds the copy, so that the other worker keeps it for good.
        """
        pointer = sent(obj, self, self.get_worker(worker), publish=not create_pointer, requires_grad=requires_grad)
        if not create_pointer:
            return None
        pointer.garbage_collect_data = garbage_collect_data
        if ptr_id is not None:
            pointer.id = ptr_id
        return pointer

    def request_obj(self, obj_id: int | str, location: Any, user: str | None = None, reason: str = "") -> Any:
        """Fetch an object by its id from another worker, which decides and records that."""
        return self.get_worker(location).ask(Fetch(obj_id, user=user, reason=reason), self)

    def request_search(self, query: Any, location: Any) -> list[Any]:
        """Return pointers of this worker's own to everything on another worker that matches all parts of ``query``."""
        place = self.get_worker(location)
        parts = (query,) if isinstance(query, str | int) else tuple(query)
        return [found(place, self, *item) for item in place.ask(Search(parts), self)]

    def find_or_request(self, tag: str, location: Any) -> list[Any]:
        """Return the objects here that match ``tag`` or, if there are none, pointers to those on another worker."""
        here = self.object_store.search((tag,))
        return [self.get_obj(id) for id in here] if here else self.request_search(tag, location)

    # --- objects

    @property
    def remote(self) -> Remote:
        """Where tensors are made directly on this worker: ``worker.remote.<framework>.zeros(2, 3)``."""
        return Remote(self, self.hook.local_worker if self.hook is not None else self)

    @contextmanager
    def registration_enabled(self) -> Iterator[BaseWorker]:
        """Let a client keep what is made in a ``with`` block, as a worker does that serves others."""
        before, self.is_client_worker = self.is_client_worker, False
        try:
            yield self
        finally:
            self.is_client_worker = before

    def register_obj(self, obj: Any, obj_id: int | str | None = None) -> None:
        """Keep ``obj`` under ``obj_id`` or its own id, and make it this worker's."""
        self._register(obj, obj_id)

    def _register(self, obj: Any, obj_id: int | str | None) -> int | str:
        known = getattr(obj, "_syft_id", None)
        if known is not None and known in self.object_store and self.object_store.entry(known).value is obj:
            self.object_store.remove(known, "it was registered under another id")
        if obj_id is None:
            obj_id = known if known is not None else self._ids.pop()
        if obj_id in self.object_store:
            self.object_store.remove(obj_id, "another object took its id")
            self.forms_changed += 1
        entry = Stored(obj, self.id)
        entry.leases, entry.published = 0, True
        self.object_store.put(obj_id, entry)
        own(self, obj, obj_id)
        return obj_id

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
            id = self._register(obj, None)
            tags, description = getattr(obj, "_syft_tags", None), getattr(obj, "_syft_description", None)
            self.object_store.tag(id, tags or (), description)

    def clear_objects(self, return_self: bool = True) -> Any:
        """Drop everything."""
        self.object_store.clear("the worker was cleared")
        return self if return_self else None

    def search(self, query: Any = ()) -> list[Any]:
        """Return pointers to everything that matches all parts of ``query``: tags, ids, words of the description."""
        owner = self.hook.local_worker if self.hook is not None else self
        return owner.request_search(query, self)

    @property
    def _objects(self) -> dict[int | str, Any]:
        self.collect_garbage()
        return self.object_store.values()

    @property
    def objects_count(self) -> int:
        """How many objects are here."""
        self.collect_garbage()
        return len(self.object_store)

    @property
    def tensors_count(self) -> int:
        """How many of the objects here are tensors."""
        return sum(1 for value in self._objects.values() if is_tensor(value))

    def __getitem__(self, id: int | str) -> Any:
        return self.get_obj(id)

    def _repr_html_(self) -> str:
        return worker_html(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} id:{self.id} #objects:{self.objects_count}>"
