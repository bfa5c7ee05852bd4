"""BaseWorker: a party that answers messages; what a user can do with it."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import GeneratorType
from typing import Any

from syft_core.exceptions import ObjectNotFoundError, SerdeError
from syft_core.hook.forms import Form
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves
from syft_core.ids import IdProvider
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import Batch, Describe, Failure, Fetch, Message, Release, Reply, Run, Search
from syft_core.peer import Id, Peer
from syft_core.pictures import one_line, worker_html
from syft_core.pointers.travel import found, sent
from syft_core.serde import PEER_LIMITS, Context, Limits, frames, from_frames
from syft_core.workers.fetching import drop_fetched
from syft_core.workers.handlers import HANDLERS
from syft_core.workers.local import LocalLocation
from syft_core.workers.log import logged
from syft_core.workers.permissions import Policy, require_short_way, unless_private
from syft_core.workers.release import ReleaseRequest, decide
from syft_core.workers.remote import Place, Remote
from syft_core.workers.requests import Process, Request, drive
from syft_core.workers.results import named
from syft_core.workers.running import describe_placed, own
from syft_core.workers.store import Stored
from syft_core.workers.trace import summary
from syft_core.workers.transfer import is_tensor, lend_all
from syft_core.workers.worker import Session, Worker

_log = logging.getLogger(__name__)
MOST_LINES = 20
"""How many lines of a traceback a failure carries, the innermost ones."""


class BaseWorker(Place, Worker):
    """Holds objects by id and answers messages about them.

    ``deliver(frames, sender) -> frames`` is all that a transport needs.

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
        policy: decides what others may do: a function, or the name of a policy that is built in.
        limits: bounds what one message of a peer may ask for, in bytes and parts.

    """

    def __init__(
        self,
        hook: FrameworkHook | None = None,
        id: Id = 0,
        data: Sequence[Any] | None = None,
        is_client_worker: bool = False,
        log_msgs: bool = False,
        verbose: bool = False,
        auto_add: bool = True,
        message_pending_time: float = 0,
        policy: Policy | str = unless_private,
        *,
        limits: Limits = PEER_LIMITS,
    ) -> None:
        super().__init__(hook, id, is_client_worker, policy)
        self.log_msgs = log_msgs
        self.verbose = verbose
        self.message_pending_time = message_pending_time
        self.msg_history: list[Message] = []
        self._ids = IdProvider()
        self._context = Context(worker=self)
        self._reading = Context(worker=self, limits=limits)
        if auto_add and hook is not None and getattr(hook, "local_worker", None) is not None:
            hook.local_worker.add_worker(self)
        if data:
            self.load_data(data)

    # --- messages

    @property
    def limits(self) -> Limits:
        """What one message of a peer may ask for."""
        return self._reading.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._reading = replace(self._reading, limits=limits)

    def make_address(self, client: Party) -> Location:
        """Return a location that leads from ``client`` to this worker, within this process."""
        return LocalLocation(client, self)

    def handle(self, message: Message, sender: Peer) -> Any:
        """Do what a message asks for; return the answer, or a process that needs other parties on its way to it."""
        if self.dropped:
            self.object_store.release(self.dropped)
        self.stats.messages += 1
        if self.message_pending_time:
            time.sleep(self.message_pending_time)
        if self.log_msgs:
            self.msg_history.append(logged(message))
        if self.verbose and _log.isEnabledFor(logging.INFO):
            _log.info("worker %r is asked by %s to %s", self.id, one_line(str(sender)), one_line(summary(message)))
        if sender.behalf:
            require_short_way(self, message, sender)
        return HANDLERS[type(message)](self, message, sender)

    def step(self, process: Process, sender: Peer) -> Process:
        """Run a process under the lock of this worker, and give the lock back while the process waits.

        Whatever it needs from other parties, it asks for on behalf of ``sender``.
        """
        answer: Any = None
        resume = process.send
        while True:
            with self.lock:
                try:
                    request: Request = resume(answer)
                except StopIteration as end:
                    return end.value
            request.behalf = sender.chain
            try:
                answer = yield request
                resume = process.send
            except Exception as error:  # noqa: BLE001  # the process decides what follows from it
                answer, resume = error, process.throw

    def describe(self, message: Describe, sender: Peer) -> list[Form | None]:
        """Return the forms of objects, for clients in this process that look instead of asking."""
        forms: list[Form | None] = HANDLERS[Describe](self, message, sender)
        return forms

    def deliver(self, received: Sequence[Any], sender: Peer) -> list[bytes]:
        """Answer a message that came as frames, with frames; never raise, whatever came."""
        process = self.serve(received, sender)
        try:
            request = next(process)
        except StopIteration as end:  # most messages need nobody else
            return end.value  # type: ignore[no-any-return]  # what `serve` returns
        return drive(process, request)  # type: ignore[no-any-return]  # the same

    def serve(self, received: Sequence[Any], sender: Peer) -> Generator[Request, Any, list[bytes]]:
        """Do what ``deliver`` does without waiting for anybody: yield what is needed from other parties."""
        session = self.sessions.get(sender.id) or self.session_of(sender)
        number, asks, value, failure = -1, True, None, session.failed
        try:
            self.stats.bytes_in += sum(map(len, received))
            batch = from_frames(received, self._reading)
            if type(batch) is not Batch:
                raise SerdeError(f"cannot take a {type(batch).__name__}: workers take batches (malformed message)")
            number, asks = batch.number, batch.asks
            if batch.behalf:
                sender = sender._replace(behalf=batch.behalf)
            value, failure = yield from self._execute(batch, sender, session)
        except Exception as error:  # noqa: BLE001  # a failure is a reply, whatever it is
            failure = failure or _failure(error, number, 0)
        known, session.failed = session.failed, None if asks else failure
        told = failure if asks or failure is not known else None
        handed_over = batch.commands[-1] if value is not None else None
        return self._reply(Reply(number, value, told, session.form_epoch, session.gradient_epoch), handed_over, sender)

    def _execute(self, batch: Batch, sender: Peer, session: Session) -> Process:
        """Execute commands in order. After one that fails none is executed until the sender has heard of it."""
        value, failure = None, session.failed
        for place, command in enumerate(batch.commands):
            asked = batch.asks and place == len(batch.commands) - 1
            if failure is not None and type(command) is not Release:
                session.poison(getattr(command, "expected", ()), failure)
                continue
            try:
                if type(command) not in HANDLERS:
                    raise SerdeError(f"cannot execute a {type(command).__name__}: it is not a command")
                with self.lock:
                    value = self.handle(command, sender)
                if type(value) is GeneratorType:
                    value = yield from self.step(value, sender)
                if type(command) is Run and command.count >= 0:  # The sender knows what it gives.
                    value = None
                elif asked:
                    value = self._packed(command, value)
                    if command.returns_objects:
                        value = yield from self.step(lend_all(value, sender.id), sender)
            except Exception as error:  # noqa: BLE001  # the sender hears of it
                failure = _cause(command, error, session) or _failure(error, batch.number, place)
                if not asked:
                    session.poison(getattr(command, "expected", ()), failure)
        return (value if batch.asks and failure is None else None), failure

    def _packed(self, command: Message, value: Any) -> Any:
        """Return an answer as it travels: named tuples by name, results with their forms."""
        if type(command) is not Run:
            return value
        return named(describe_placed(self, value), self.attributes_of(command.framework))

    def _reply(self, reply: Reply, command: Message | None, sender: Peer) -> list[bytes]:
        """Return a reply as bytes of its own, which nothing that happens later can change.

        What ``command`` has fetched is let go only then: a reply that cannot be written loses nothing.
        """
        try:
            owned = self._written(reply)
        except Exception as error:  # noqa: BLE001  # what cannot be written is a failure as well
            failed = _failure(error, reply.number, 0)
            owned = self._written(Reply(reply.number, None, failed, reply.form_epoch, reply.gradient_epoch))
        else:
            if command is not None and command.returns_objects:
                self.let_go(command, sender)
        self.stats.bytes_out += sum(map(len, owned))
        return owned

    def _written(self, reply: Reply) -> list[bytes]:
        return [frame if type(frame) is bytes else bytes(frame) for frame in frames(reply, self._context)]

    def let_go(self, message: Message, sender: Peer) -> None:
        """Drop what a message has fetched for good, now that it has been handed over."""
        with self.lock:
            drop_fetched(self, message, sender)

    # --- objects of others

    def send(
        self,
        obj: Any,
        worker: WorkerLike,
        ptr_id: Id | None = None,
        garbage_collect_data: bool = True,
        requires_grad: bool = False,
        create_pointer: bool = True,
    ) -> Any:
        """Send a copy of a tensor to another worker and return the bare pointer to it, which belongs to this worker.

        Without a pointer nobody holds the copy, so that the other worker keeps it for good; its id there is returned.
        """
        pointer = sent(obj, self, self.location_of(worker), publish=not create_pointer, requires_grad=requires_grad)
        if not create_pointer:
            pointer.garbage_collect_data = False
            return pointer.id_at_location
        pointer.garbage_collect_data = garbage_collect_data
        if ptr_id is not None:
            pointer.id = ptr_id
        return pointer

    def request_obj(self, obj_id: Id, location: WorkerLike, user: str | None = None, reason: str = "") -> Any:
        """Fetch an object by its id from another worker, which decides and records that."""
        return self.location_of(location).ask(Fetch(obj_id, user=user, reason=reason))

    def request_search(self, query: Any, location: WorkerLike) -> list[Any]:
        """Return pointers of this worker's own to everything on another worker that matches all parts of ``query``."""
        place = self.location_of(location)
        parts = (query,) if isinstance(query, str | int) else tuple(query)
        return [found(place, self, *item) for item in place.ask(Search(parts))]

    def find_or_request(self, tag: str, location: WorkerLike) -> list[Any]:
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

    def register_obj(self, obj: Any, obj_id: Id | None = None) -> None:
        """Keep ``obj`` under ``obj_id`` or its own id, and make it this worker's."""
        self._register(obj, obj_id)

    def _register(self, obj: Any, obj_id: Id | None) -> Id:
        known = getattr(obj, "_syft_id", None)
        if known is not None and known in self.object_store and self.object_store.entry(known).value is obj:
            self.object_store.remove(known, "it was registered under another id")
        if obj_id is None:
            obj_id = known if known is not None else self._ids.pop()
        if obj_id in self.object_store:
            self.object_store.remove(obj_id, "another object took its id")
            self.note_replacement()
        entry = Stored(obj, self.id)
        entry.leases = 0
        self.object_store.put(obj_id, entry)
        entry.publish(None)
        own(self, obj, obj_id)
        return obj_id

    def de_register_obj(self, obj: Any) -> None:
        """Forget ``obj``; forgetting what is not here is harmless."""
        for id, value in self.object_store.values().items():
            if value is obj:
                self.object_store.remove(id, "it was de-registered")

    def get_obj(self, obj_id: Id) -> Any:
        """Return the object kept under ``obj_id``; it knows its id and its owner."""
        value = self.object_store.entry(obj_id).value
        own(self, value, obj_id)
        return value

    def load_data(self, data: Sequence[Any]) -> None:
        """Keep objects that belong to this worker, for good."""
        if is_tensor(data):
            raise TypeError(f"cannot load a {type(data).__name__}: expected a list; write `{self.id}.load_data([y])`")
        for obj in data:
            id = self._register(obj, None)
            tags, description = getattr(obj, "_syft_tags", None), getattr(obj, "_syft_description", None)
            self.object_store.tag(id, tags or (), description)

    def approve(self, request: ReleaseRequest | int, by: str | None = None) -> None:
        """Release what a peer asked for, given by its request or the number of it: their next ``get`` works, once."""
        decide(self, request, "approved", by)

    def deny(self, request: ReleaseRequest | int, why: str, by: str | None = None) -> None:
        """Refuse what a peer asked for; ``why`` is what they are told."""
        decide(self, request, "denied", by, why)

    def clear_objects(self, return_self: bool = True) -> Any:
        """Drop everything."""
        self.object_store.clear("the worker was cleared")
        return self if return_self else None

    def search(self, query: Any = ()) -> list[Any]:
        """Return pointers to everything that matches all parts of ``query``: tags, ids, words of the description."""
        owner = self.hook.local_worker if self.hook is not None else self
        return owner.request_search(query, self)

    @property
    def _objects(self) -> dict[Id, Any]:
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

    def __getitem__(self, id: Id) -> Any:
        return self.get_obj(id)

    def _repr_html_(self) -> str:
        return worker_html(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} id:{self.id} #objects:{self.objects_count}>"


def _failure(error: Exception, number: int, place: int) -> Failure:
    """Return an error as it travels: without values, and with the lines that it passed through."""
    raised = traceback.extract_tb(error.__traceback__, limit=-MOST_LINES)
    lines = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in raised]
    # The error must not keep alive what the lines that it passed through had at hand.
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return Failure(error, "\n".join(lines), number, place)


def _cause(command: Any, error: Exception, session: Session) -> Failure | None:
    """Return the failure of the command that should have made an object which is missing now."""
    if not (session.poisoned and isinstance(error, ObjectNotFoundError)):
        return None
    named: list[Any] = [getattr(leaf, "_id_at_location", None) for leaf in leaves(_arguments(command))]
    named += [getattr(command, "id", None), *getattr(command, "ids", ())]
    return next((session.poisoned[id] for id in named if id in session.poisoned), None)


def _arguments(command: Any) -> Any:
    return getattr(command, "args", ()), getattr(command, "kwargs", ())
