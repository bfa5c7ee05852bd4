"""BaseWorker: a worker that answers messages, with the methods that users call."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from syft_core.exceptions import (
    ConnectionLostError,
    ObjectNotFoundError,
    SerdeError,
    SyftError,
    TicketError,
    ValueRefusedError,
    WorkerError,
)
from syft_core.hook.hook import FrameworkHook
from syft_core.ids import IdProvider
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import (
    ABANDON,
    HANDLERS,
    MAX_TEXT,
    Batch,
    Describe,
    Failure,
    Fetch,
    FetchAll,
    Message,
    Release,
    Reply,
    Run,
    Search,
    find_handler,
    read_note,
)
from syft_core.peer import Id, Peer, acting_for
from syft_core.pictures.boxes import form_of as show_form
from syft_core.pictures.boxes import worker_html
from syft_core.pictures.tables import one_line
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.travel import point_to_found, send_copy
from syft_core.printing import printable
from syft_core.serde import PEER_LIMITS, Context, Limits, frames, from_frames
from syft_core.serde.layout import Frame
from syft_core.values import Function, Outcome, Tensor
from syft_core.workers.addresses.local import LocalLocation
from syft_core.workers.addresses.remote import Remote, TensorPlace
from syft_core.workers.addresses.results import to_named
from syft_core.workers.addresses.tickets import Mandate, delegates_nobody
from syft_core.workers.moving.departure import is_frozen, require_departed, undo
from syft_core.workers.moving.fetching import drop_fetched
from syft_core.workers.moving.transfer import is_tensor, lend_all
from syft_core.workers.party import handlers as _handlers  # noqa: F401  # registers messages
from syft_core.workers.party.status import DELAYED, LOGGED, OBSERVED, POLICY, QUOTA, STOPPING, STORAGE, VERBOSE
from syft_core.workers.party.store import Stored
from syft_core.workers.party.waiting import NOTHING
from syft_core.workers.party.worker import ClientState, Worker
from syft_core.workers.road.keeping import describe_placed, set_owner
from syft_core.workers.seeing.ledger import Ledger
from syft_core.workers.seeing.permissions import Policy, require_delegable, require_few_hops, unless_private
from syft_core.workers.seeing.tracing import redact, summary
from syft_core.workers.seeing.visibility import find_ids, require_visible

_log = logging.getLogger(__name__)
READING, WRITING = b"reading a message", b"writing a reply"
"""The guard's names for activities other than commands."""
MAX_LINES = 20
"""The maximum number of traceback lines in a failure; the innermost are kept."""


class BaseWorker(TensorPlace, Worker):
    """Holds objects by id and answers messages about them.

    ``deliver(frames, sender) -> frames`` is all that a transport needs.

    A *client* worker does not keep objects alive: what its user drops is freed, as in any Python program.

    Args:
        hook: the hook whose local worker introduces this worker to all workers it knows.
        id: the id of the worker.
        data: objects to load, which the worker keeps permanently.
        is_client_worker: whether Python alone keeps its objects alive.
        log_msgs: whether to keep every message in ``msg_history``.
        verbose: whether to log every message at level INFO, by name and ids only.
        auto_add: whether to introduce this worker to the others.
        message_pending_time: seconds to wait before each answer, to simulate latency.
        policy: decides what others may do: a function, or the name of a built-in policy.
        limits: the limits on one message from a peer, in bytes and parts.
        ledger: records what leaves; by default in memory, with ``Ledger(id, path=...)`` in a file too.

    """

    def __init__(
        self,
        hook: FrameworkHook | None = None,
        id: Id = 0,
        data: Sequence[object] | None = None,
        is_client_worker: bool = False,
        log_msgs: bool = False,
        verbose: bool = False,
        auto_add: bool = True,
        message_pending_time: float = 0,
        policy: Policy | str = unless_private,
        *,
        limits: Limits = PEER_LIMITS,
        ledger: Ledger | None = None,
    ) -> None:
        super().__init__(hook, id, is_client_worker, policy, ledger)
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
        """The limits on one message from a peer."""
        return self._reading.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._reading = replace(self._reading, limits=limits)

    def make_location(self, client: Party) -> Location:
        """Return the location of this worker for ``client``, which is in the same process."""
        return LocalLocation(client, self)

    def handle(self, message: Message, sender: Peer) -> Outcome:
        """Handle a message and return the answer; called with the lock, which ``waiting`` releases for a while."""
        if self.dropped:
            self.object_store.release(self.dropped)
        self.stats.messages += 1
        if sender.behalf:
            require_delegable(message, sender)
            require_few_hops(self, message, sender)
        outer, self.command, self.held = (self.command, self.held), (message, sender), NOTHING
        try:
            if self.status & OBSERVED:
                return self._handle_observed(message, sender)
            return HANDLERS[type(message)](self, message, sender)
        finally:
            if self.held is not None:
                self.held.end()
            self.command, self.held = outer

    def _handle_observed(self, message: Message, sender: Peer) -> Outcome:
        """Handle a message with delay, logging, metering, saving and recorded refusals."""
        status = self.status
        if status & STOPPING:
            raise ConnectionLostError.stopping(self.id)
        if status & (DELAYED | LOGGED | VERBOSE):
            self._log_message(message, sender)
        try:
            if status & POLICY:
                require_visible(self, message, sender)
            handler = HANDLERS[type(message)]
            return (
                self.guard.handle(handler, self, message, sender) if status & QUOTA else handler(self, message, sender)
            )
        except WorkerError as error:
            self._note_refusal(message, sender, error)
            raise
        finally:  # A failing command may have changed something first.
            if self.status & STORAGE:
                self.save()

    def _log_message(self, message: Message, sender: Peer) -> None:
        if self.message_pending_time:
            time.sleep(self.message_pending_time)
        if self.log_msgs:
            self.msg_history.append(redact(message))
        if self.verbose and _log.isEnabledFor(logging.INFO):
            _log.info("worker %r: %s requests %s", self.id, one_line(str(sender)), one_line(summary(message)))

    def _note_refusal(self, message: Message, sender: Peer, error: WorkerError) -> None:
        is_refusal = isinstance(error, PermissionError | ValueRefusedError)
        is_hidden = self.custom_policy is not None and isinstance(error, ObjectNotFoundError)  # Or does not exist.
        if self.ledger.file is not None and (is_refusal or is_hidden):
            ids = find_ids(self, message)
            self.ledger.record_refusal(self.object_store, ids, sender, type(message).__name__, str(error))

    def abandon(self, message: Message, sender: Peer) -> None:
        """Handle a command that is skipped, for which other parties may wait."""
        if find_handler(type(message)) is not None and type(message) in ABANDON:
            with suppress(SyftError):
                self._run(ABANDON[type(message)], message, sender)

    def _run(self, handler: Function, message: Message, sender: Peer) -> Outcome:
        with self.lock.of(sender):
            outer, self.command, self.held = (self.command, self.held), (message, sender), NOTHING
            try:
                return handler(self, message, sender)
            finally:
                if self.held is not None:
                    self.held.end()
                self.command, self.held = outer

    def describe(self, message: Describe, sender: Peer) -> Outcome:
        """Return the forms of objects, for clients in this process that read them without a message."""
        if self.custom_policy is not None:
            with self.lock.of(sender):
                require_visible(self, message, sender)
        return self._run(HANDLERS[Describe], message, sender)

    def deliver(
        self,
        received: Sequence[Any],
        sender: Peer,
        mandate: Mandate | None = None,
        delegates: Callable[[Peer], bool] = delegates_nobody,
    ) -> list[Frame]:
        """Answer a message given as frames, with frames. Never raises: a failure is a reply.

        A sender with a ``mandate`` may only act for the peer that gave it a ticket. Without one, it acts for itself, or
        for a peer that the transport vouches for: in ``sender.behalf``, or by ``delegates``.
        """
        session = self.session_of(sender.id if mandate is None else mandate)
        number, asks, value, failure = -1, True, None, session.failed
        commands: tuple[Message, ...] = ()
        try:
            self.stats.bytes_in += sum(map(len, received))
            if self.guard is None:
                batch = from_frames(received, self._reading)
            else:
                payer = sender if mandate is None else mandate.peer
                batch = self._run_guarded(READING, payer, from_frames, received, self._reading)
            if type(batch) is not Batch:
                raise SerdeError(f"cannot execute a {type(batch).__name__}: expected a Batch (malformed message)")
            number, asks, commands = batch.number, batch.asks, batch.commands
            if mandate is not None:
                batch = mandate.admit(batch, self.tickets)
            if batch.behalf:
                is_known = mandate is not None or batch.behalf[0] in (sender, *sender.behalf)
                if not (is_known or delegates(batch.behalf[0])):
                    raise TicketError.claimed(str(sender), str(batch.behalf[0]))
                behalf = (self.peer if peer.id in self.aliases else peer for peer in batch.behalf)
                sender = sender._replace(behalf=tuple(behalf))
            value, failure = self._execute(batch, sender, session, mandate)
        except Exception as error:  # noqa: BLE001  # any failure is a reply
            failure = failure or _failure(error, number, 0)
        reported, session.failed = session.failed, None if asks else failure
        to_report = failure if asks or failure is not reported else None
        answered = commands[-1] if value is not None else None
        reply = Reply(number, value, to_report, session.form_epoch, session.gradient_epoch)
        try:
            return self._reply(reply, answered, sender)
        finally:
            self.settle(commands)

    def deliver_note(self, received: Sequence[Any], sender: Peer, mandate: Mandate | None = None) -> list[Frame]:
        """Take a note of a worker with a mandate; return a reply only if it is refused."""
        try:
            self.stats.bytes_in += sum(map(len, received))
            if self.guard is None:
                note = read_note(received)
            else:
                payer = sender if mandate is None else mandate.peer
                note = self._run_guarded(READING, payer, read_note, received)
            if mandate is None or not mandate.names(note):
                raise TicketError.beyond(sender.id, type(note).__name__)
            sender = sender._replace(behalf=(mandate.peer,))
            with self.lock.of(sender):
                self.handle(note, sender)
        except Exception as error:  # noqa: BLE001  # any failure is a reply
            return self._reply(Reply(-1, None, _failure(error, -1, 0), 0, 0), None, sender)
        return []

    def refuse(self, error: Exception, sender: Peer, mandate: Mandate | None = None) -> list[Frame]:
        """Return the reply to a message that the transport has not kept."""
        session = self.session_of(sender.id if mandate is None else mandate)
        failed = Reply(-1, None, _failure(error, -1, 0), session.form_epoch, session.gradient_epoch)
        return self._reply(failed, None, sender)

    def settle(self, commands: Iterable[Message]) -> None:
        """Cancel the departure of objects that did not leave with the answers to commands."""
        if self.covered or self.ledger.held:
            undo(self, commands)

    def _execute(
        self, batch: Batch, sender: Peer, session: ClientState, mandate: Mandate | None
    ) -> tuple[Outcome, Failure | None]:
        """Execute commands in order; after a failure, execute none until the sender has received it."""
        value, failure = None, session.failed
        for place, command in enumerate(batch.commands):
            asked = batch.asks and place == len(batch.commands) - 1
            if failure is not None and type(command) is not Release:
                session.poison(getattr(command, "expected", range(0)), failure)
                self.abandon(command, sender)
                continue
            try:
                with self.lock.of(sender):
                    if mandate is not None or type(command) not in HANDLERS:
                        self._require_command(command, mandate)
                    value = self.handle(command, sender)
                if type(command) is Run and command.count >= 0:  # The sender has predicted the result.
                    value = None
                elif asked:
                    value = self._pack(command, value, sender)
            except Exception as error:  # noqa: BLE001  # reported to the sender
                self.stats.refusals += isinstance(error, PermissionError)
                failure = session.find_cause(error) or _failure(error, batch.number, place)
                if not asked:
                    session.poison(getattr(command, "expected", range(0)), failure)
                    failure = None if self._is_harmless(error, command) else failure
        return (value if batch.asks and failure is None else None), failure

    def _is_harmless(self, error: Exception, command: Message) -> bool:
        """Return whether a failed command only had to store the gradient of a tensor that is gone.

        Clients send such commands by themselves before they replace gradients, so only uses of the result fail.
        """
        if not isinstance(error, ObjectNotFoundError) or type(command) is not Run or len(command.args) != 1:
            return False
        framework = self.attributes_of(command.framework)
        attr, autograd = getattr(command.args[0], "point_to_attr", None), framework.autograd
        if attr is None or attr != framework.gradient or autograd is None:
            return False
        return framework.method(autograd.identity).name == command.op

    def _require_command(self, command: Message, mandate: Mandate | None) -> None:
        if find_handler(type(command)) is None:
            raise SerdeError(f"cannot execute a {type(command).__name__}: it is not a command")
        if mandate is not None:
            mandate.check(command, self.object_store)

    def _pack(self, command: Message, value: Outcome, sender: Peer) -> Outcome:
        """Prepare an answer for sending: named tuples by name, results with forms, pointers with leases."""
        require_departed(self, command, value)
        with acting_for(sender.chain):  # Other workers lend pointers, and describe results that are pointers.
            if command.facts.returns_objects:
                return lend_all(value, sender.id)
            if type(command) is Run:
                return to_named(describe_placed(self, value), self.attributes_of(command.framework))
        return value

    def _reply(self, reply: Reply, command: Message | None, sender: Peer) -> list[Frame]:
        """Return a reply as frames that share no memory with stored objects.

        Objects that ``command`` fetched are dropped only after encoding: a reply that cannot be encoded loses nothing.
        """
        is_copy = type(command) in (Fetch, FetchAll) and is_frozen(reply.value)
        try:
            if self.guard is None:
                encoded = self._encode(reply, is_copy)
            else:
                encoded = self._run_guarded(WRITING, sender, self._encode, reply, is_copy)
            if command is not None:
                self.ledger.commit(command)
        except Exception as error:  # noqa: BLE001  # an encoding error is a failure too
            failed = _failure(error, reply.number, 0)
            encoded = self._encode(Reply(reply.number, None, failed, reply.form_epoch, reply.gradient_epoch))
        else:
            if command is not None and command.facts.returns_objects:
                self.finish_fetch(command, sender)
        self.stats.bytes_out += sum(map(len, encoded))
        return encoded

    def _encode(self, reply: Reply, is_copy: bool = False) -> list[Frame]:
        encoded = frames(reply, self._context)
        return encoded if is_copy else list(map(bytes, encoded))

    def _run_guarded(self, doing: bytes, peer: Peer, function: Function, *args: object) -> Any:
        """Tell the guard whose message is being read or written, in native code that may crash.

        The lock is held, so that nothing else can be the cause.
        """
        with self.lock.of(peer):
            return self.guard.watch(doing, peer, function, *args)

    def finish_fetch(self, message: Message, sender: Peer) -> None:
        """Record that the objects fetched by a message have left, and drop them."""
        with self.lock.of(sender):
            self.ledger.commit(message)
            try:
                drop_fetched(self, message, sender)
            finally:
                if self.save is not None:
                    self.save()

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """Hold the lock, then write the changes of the block to disk."""
        with self.lock:
            try:
                yield
            finally:
                if self.save is not None:
                    self.save()

    # --- objects on other workers

    def send(
        self,
        obj: object,
        worker: WorkerLike,
        ptr_id: Id | None = None,
        garbage_collect_data: bool = True,
        requires_grad: bool = False,
        create_pointer: bool = True,
    ) -> Any:
        """Send a copy of a tensor to another worker and return the bare pointer to it, which belongs to this worker.

        With ``create_pointer=False`` the other worker keeps the copy permanently, and its id there is returned.
        """
        if not is_tensor(obj) and hasattr(obj, "send"):  # A plan, for example.
            return obj.send(worker)
        pointer = send_copy(
            obj, self, self.location_of(worker), publish=not create_pointer, requires_grad=requires_grad
        )
        if not create_pointer:
            pointer.garbage_collect_data = False
            return pointer.id_at_location
        pointer.garbage_collect_data = garbage_collect_data
        if ptr_id is not None:
            pointer.id = ptr_id
        return pointer

    def request_obj(self, obj_id: Id, location: WorkerLike, user: str | None = None, reason: str = "") -> Tensor:
        """Fetch an object by id from another worker, whose policy decides and whose ledger records it."""
        return self.location_of(location).ask(Fetch(obj_id, user=user, reason=reason))

    def request_search(self, query: Any, location: WorkerLike) -> list[Any]:
        """Return pointers, owned by this worker, to the objects on another worker that match all parts of ``query``."""
        place = self.location_of(location)
        parts = (query,) if isinstance(query, str | int) else tuple(query)
        return [point_to_found(place, self, *item) for item in place.ask(Search(parts))]

    def find_or_request(self, tag: str, location: WorkerLike) -> list[Any]:
        """Return the local objects that match ``tag`` or, if there are none, pointers to those on another worker."""
        here = self.object_store.search((tag,))
        return [self.get_obj(id) for id in here] if here else self.request_search(tag, location)

    # --- objects

    @property
    def remote(self) -> Remote:
        """Creates tensors directly on this worker: ``worker.remote.<framework>.zeros(2, 3)``."""
        return Remote(self, self.hook.local_worker if self.hook is not None else self)

    @contextmanager
    def registration_enabled(self) -> Iterator[BaseWorker]:
        """Make a client keep the tensors that are created in a ``with`` block, as other workers do."""
        before, self.is_client_worker = self.is_client_worker, False
        try:
            yield self
        finally:
            self.is_client_worker = before

    def register_obj(self, obj: object, obj_id: Id | None = None) -> None:
        """Store ``obj`` permanently, under ``obj_id`` or its own id, and make this worker its owner."""
        with self._saving():
            self._register(obj, obj_id)

    def _register(self, obj: object, obj_id: Id | None) -> Id:
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
        set_owner(self, obj, obj_id)
        return obj_id

    def keep_origin(self, tensor: Tensor, location: Location) -> Id:
        """Store a tensor to receive the gradient of its copy on ``location``, which holds a lease on it."""
        kept = new_id()
        self.register_obj(tensor, kept)
        entry = self.object_store.entry(kept)
        entry.published = False
        if entry.source is not None:
            entry.source.published = False
        entry.others, entry.lent = {(location.id, location.client_id): 1}, frozenset({(location.id, self.peer)})
        return kept

    def drop_origin(self, id: Id) -> None:
        """Remove a tensor whose copy could not be sent."""
        self.object_store.remove(id, "its copy could not be sent")

    def de_register_obj(self, obj: object) -> None:
        """Remove ``obj`` from the store, if it is there."""
        with self._saving():
            for id, value in self.object_store.values().items():
                if value is obj:
                    self.object_store.remove(id, "it was de-registered")

    def get_obj(self, obj_id: Id) -> Tensor:
        """Return the object stored under ``obj_id``, with its id and owner set."""
        entry = self.object_store.entry(obj_id)
        set_owner(self, entry.value, obj_id)
        return entry.value

    def load_data(self, data: Sequence[object]) -> None:
        """Store objects permanently; they belong to this worker."""
        if is_tensor(data) or isinstance(data, str | bytes | dict):
            raise TypeError(f"cannot load a {type(data).__name__}: expected a list; write `{self.id}.load_data([y])`")
        with self._saving():
            for obj in data:
                id = self._register(obj, None)
                tags, description = getattr(obj, "_syft_tags", None), getattr(obj, "_syft_description", None)
                self.object_store.entry(id).schema = getattr(obj, "_syft_schema", None)
                self.object_store.tag(id, tags or (), description)

    def clear_objects(self, return_self: bool = True) -> Any:
        """Remove all objects."""
        with self._saving():
            self.object_store.clear("the worker was cleared")
        return self if return_self else None

    def search(self, query: object = ()) -> list[Any]:
        """Return pointers to the objects that match all parts of ``query``: tags, ids, parts of descriptions."""
        owner = self.hook.local_worker if self.hook is not None else self
        return owner.request_search(query, self)

    @property
    def _objects(self) -> dict[Id, Any]:
        self.collect_garbage()
        return self.object_store.values()

    @property
    def objects_count(self) -> int:
        """The number of stored objects."""
        self.collect_garbage()
        return len(self.object_store)

    @property
    def _tensors(self) -> dict[Id, Tensor]:
        return {id: value for id, value in self._objects.items() if is_tensor(value)}

    @property
    def tensors_count(self) -> int:
        """The number of stored tensors."""
        return len(self._tensors)

    def __getitem__(self, id: Id) -> Tensor:
        return self.get_obj(id)

    def _repr_html_(self) -> str:
        self.collect_garbage()
        rows = [_describe_entry(entry) for entry in self.object_store.entries()]
        return worker_html(f"{type(self).__name__} {self.id}", rows)

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} id:{self.id} #objects:{self.objects_count}>")


def _failure(error: Exception, number: int, place: int) -> Failure:
    """Prepare an error for sending: without values or paths, with the modules and lines of its traceback."""
    raised = [*traceback.walk_tb(error.__traceback__)][-MAX_LINES:]
    lines = [f"  {frame.f_globals.get('__name__')}, line {line}, in {frame.f_code.co_name}" for frame, line in raised]
    del raised
    # The error must not keep the local variables of its traceback alive.
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return Failure(error, "\n".join(lines)[-MAX_TEXT:], number, place)


def _describe_entry(entry: Stored) -> tuple[str, ...]:
    tags = " ".join(sorted(map(str, entry.tags)))
    kept = "published" if entry.published else f"{entry.pointers} pointer{'' if entry.pointers == 1 else 's'}"
    private = "" if entry.access is None else ", ".join(sorted(entry.access)) or "nobody"
    parts = [(entry.description or "").split("\n")[0], *[f"({failure})" for failure in entry.failures]]
    return str(entry.id), show_form(entry.value), tags, " ".join(filter(None, parts)), kept, private
