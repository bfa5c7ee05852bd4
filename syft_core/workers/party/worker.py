"""Worker: a party that owns objects, a policy and a ledger, and knows other workers."""

from __future__ import annotations

import difflib
import itertools
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, cast

from syft_core.exceptions import (
    ObjectNotFoundError,
    WorkerError,
    WorkerIdTakenError,
    WorkerNotFoundError,
    WorkerNotPicklableError,
)
from syft_core.features import FEATURES
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.hook import FrameworkHook, attached_hook
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import Failure, Message
from syft_core.peer import Id, Peer
from syft_core.plugins.manager import plugin_manager
from syft_core.values import Function, Json, Nested, Outcome
from syft_core.workers.addresses.tickets import Mandate, Tickets
from syft_core.workers.party.reservations import Amounts, Reservation
from syft_core.workers.party.status import DELAYED, JOURNAL, LOGGED, POLICY, QUOTA, STOPPING, STORAGE, VERBOSE
from syft_core.workers.party.store import Holder, ObjectStore
from syft_core.workers.party.turns import FairLock, yield_turn
from syft_core.workers.party.waiting import Held, Waiting
from syft_core.workers.seeing.ledger import Ledger
from syft_core.workers.seeing.permissions import Policy, find_policy, unless_private

MAX_SESSIONS = 4096
"""The maximum number of clients that a worker remembers; the oldest is forgotten first."""
MAX_POISONED = 4096
"""The number of failed commands to remember per client: more than a client sends without waiting."""


SessionKey: TypeAlias = "Id | Mandate"
"""The id of a client, or the mandate of a worker that acts for one."""
_starts = itertools.count(step=1 << 32)


@dataclass
class Stats:
    """Counters of a worker: messages handled, operations run, bytes received and sent, commands refused."""

    messages: int = 0
    operations: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refusals: int = 0


@dataclass
class ClientState:
    """The state that a worker keeps for a client that sends frames."""

    form_epoch: int = 0
    """The number of form changes that the client could not infer."""
    gradient_epoch: int = 0
    """The number of gradient changes that the client could not infer."""
    failed: Failure | None = None
    """The first failure not yet reported to the client; until it is, no commands are executed."""
    poisoned: deque[tuple[range, Failure]] = field(default_factory=partial(deque, maxlen=MAX_POISONED))
    """The ids of results that failed or skipped commands did not create, with the failure that caused it."""

    def poison(self, ids: range, failure: Failure) -> None:
        """Record that objects were not created because of ``failure``."""
        if ids:
            self.poisoned.append((ids, failure))

    def find_cause(self, error: Exception) -> Failure | None:
        """Return the failure that explains a missing object, if ``error`` is about an expected one."""
        missing = error.id if isinstance(error, ObjectNotFoundError) else None
        if type(missing) is not int:
            return None
        return next((failure for ids, failure in reversed(self.poisoned) if missing in ids), None)


Stage: TypeAlias = Callable[..., Any]
"""A function ``stage(proceed, execution)``; see ``workers/road/procedure.py``."""


class Part(Protocol):
    """The part of a feature on a worker."""

    def __init__(self, worker: Worker) -> None: ...

    def forget(self, peer: Id) -> None:
        """Forget a client that has left."""


P = TypeVar("P", bound=Part)


class OwnerDesk(Part, Protocol):
    """The interface of a worker's desk for its owner; implemented in ``syft_worker.desk``."""

    @property
    def requests(self) -> Outcome:
        """The release requests of peers."""

    @property
    def rules(self) -> Outcome:
        """The owner's rules that approve releases in advance."""

    def approve(self, request: object, by: str | None = None, digest: str | None = None, answer: str = "") -> None:
        """Approve a request."""

    def deny(self, request: object, answer: str, by: str | None = None, digest: str | None = None) -> None:
        """Deny a request."""

    def withdraw(self, request: object, by: str | None = None, digest: str | None = None, answer: str = "") -> None:
        """Withdraw an unused approval."""

    def allow(self, name: str, by: str | None = None, **conditions: Json) -> Outcome:
        """Add a rule."""

    def revoke(self, name: str, by: str | None = None) -> None:
        """Revoke a rule."""


Pause: TypeAlias = Any
"""A guard's record of a waiting command."""


class Guard(Protocol):
    """Limits the resources of a worker that peers use, and knows what it executes; see ``syft_worker/quotas.py``."""

    def handle(self, handler: Function, worker: Worker, message: Message, sender: Peer) -> Outcome:
        """Call the handler of a message, or raise if the sender has used up a quota."""

    def hold(self, message: Message, sender: Peer) -> Reservation:
        """Reserve what a message needs while it waits; raise unless it fits."""

    def pause(self, sender: Peer, is_idle: bool) -> Pause:
        """Record that a sender's command releases the lock; ``is_idle`` means that it computes nothing meanwhile."""

    def resume(self, pause: Pause) -> None:
        """Record that the paused command continues."""

    def rest(self, sender: Peer) -> None:
        """Wait until a yielding sender may use more of the worker."""

    def watch(self, doing: bytes, sender: Peer, function: Function, *args: object) -> Outcome:
        """Call a function that processes a message without handling it; called with the worker's lock."""

    def meter(self, proceed: Stage, execution: Any) -> Nested:
        """Run an operation with its operands, unless it may not run."""

    def reserve(self, sender: Peer, name: str, amounts: Amounts) -> Reservation:
        """Reserve the needs of a running command and of its results; raise unless they fit."""

    def admit(self, peer: Peer, number: int) -> float:
        """Record the next batch of a client; return the delay in seconds before executing it."""

    def refuse_connection(self, user: str, others: int) -> str | None:
        """Return why a user with ``others`` connections may not open another, or None."""

    def forget(self, peer: Id) -> None:
        """Forget a client that has left."""

    def limit_message(self, user: str) -> int | None:
        """Return the maximum size in bytes of the objects in a user's message; None means no limit."""


def _part(name: str, bit: int, is_set: Callable[[Any], object] = bool) -> Any:
    """Define an attribute of a worker that sets a bit of its status."""
    kept = f"_{name}"

    def write(worker: Worker, value: object) -> None:
        setattr(worker, kept, value)
        worker.status = worker.status | bit if is_set(value) else worker.status & ~bit

    return property(attrgetter(kept), write)


class Worker:
    """A party: its objects, its policy, and the workers it knows.

    A worker executes one message at a time: it holds ``lock`` while executing, but not while waiting for other parties.
    """

    serializer: str | None = None
    """The tensor serializer for messages to peers; None means the framework's default."""
    status: int = 0
    """Special properties of this worker; see ``workers/party/status.py``."""
    guard = _part("guard", QUOTA)
    """Limits the resources that peers use, or None."""
    save = _part("save", STORAGE)
    """Writes changed objects to disk, if the worker keeps them there; called after each command, under the lock."""
    ledger = _part("ledger", JOURNAL, attrgetter("file"))
    """Records what leaves."""
    custom_policy = _part("custom_policy", POLICY)
    """The policy, or None for the default, which adds nothing to the restrictions of private tensors."""
    log_msgs = _part("log_msgs", LOGGED)
    """Whether to keep every message in ``msg_history``."""
    verbose = _part("verbose", VERBOSE)
    """Whether to log every message at level INFO, by name and ids only."""
    message_pending_time = _part("message_pending_time", DELAYED)
    """Seconds to wait before each answer, to simulate latency."""
    is_stopping = _part("is_stopping", STOPPING)
    """Whether its server is stopping, so that it executes no further messages."""

    def __init__(
        self, hook: FrameworkHook | None, id: Id, is_client_worker: bool, policy: Policy | str, ledger: Ledger | None
    ) -> None:
        plugin_manager()  # Features register their messages.
        self.hook = hook
        self.id = id
        self.is_client_worker = is_client_worker
        self.policy = policy
        self.peer = Peer(id)
        self.lock = FairLock()
        self.object_store = ObjectStore(id)
        self.ledger = Ledger(str(id)) if ledger is None else ledger
        self.covered: set[int] = set()
        """The identities of unsettled messages whose answers contain objects that leave by a rule."""
        self.is_owner: Callable[[Peer], bool] = lambda peer: peer.id == self.id
        """Returns whether a peer has the rights of the owner, who decides about releases; set by the transport."""
        self.guard = self.save = None
        self.is_stopping = False
        self.command: tuple[Message, Peer] | None = None
        """The message that is being executed under the lock, and its sender."""
        self.held: Held | None = None
        """The holdings of that command, if it has waited."""
        self.is_handing_over = False
        """Whether the lock is held until the tensors that a handler returns have been handed over."""
        self.tickets = Tickets()
        self._parts: dict[type, Part] = {}
        self.trusted: set[Id] = set()
        """The workers that may take part in protocols on private objects; see ``trust``."""
        self.stats = Stats()
        self.sessions: OrderedDict[SessionKey, ClientState] = OrderedDict()
        self.dropped: deque[tuple[Id, Holder]] = deque()
        """Leases of dropped pointers of clients in this process; removed with the next message."""
        self._known_workers: dict[Id, Any] = {id: self}
        self.aliases: set[Id] = set()
        """The ids under which workers on the network know this one."""
        self._locations: dict[Id, Location] = {}

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise WorkerNotPicklableError.of(self.id)

    # --- identity and policy

    def trust(self, *workers: WorkerLike) -> None:
        """Let other workers, as parties or provider, take part in computing on shares of private objects.

        They see values under random masks only, but learn the values if they all collude.
        """
        self.trusted.update(worker if isinstance(worker, int | str) else worker.id for worker in workers)

    @property
    def user(self) -> str | None:
        """The user on whose behalf this worker acts, or None."""
        return self.peer.user

    @user.setter
    def user(self, user: str | None) -> None:
        self.peer = Peer(self.id, user)

    @property
    def policy(self) -> Policy:
        """Decides what others may do; set it to a function, or to the name of a built-in policy."""
        return self.custom_policy or unless_private

    @policy.setter
    def policy(self, policy: Policy | str) -> None:
        found = find_policy(policy)
        self.custom_policy = None if found is unless_private else found

    # --- clients

    def session_of(self, key: SessionKey) -> ClientState:
        """Return the session of a client, or of a worker that acts for one."""
        session = self.sessions.get(key)
        if session is None:
            # Start with unused epochs, so that a client whose session was forgotten notices.
            start = next(_starts)
            session = self.sessions[key] = ClientState(start, start)
            if len(self.sessions) > MAX_SESSIONS:
                self.sessions.popitem(last=False)
        return session

    def note_form_change(self, count: int, peer: Peer) -> None:
        """Notify clients of a changed form, except the sender if it predicted the ``count`` of results."""
        for id, session in self.sessions.items():
            if id != peer.id or count < 0:
                session.form_epoch += 1

    def note_gradient_change(self, count: int, peer: Peer) -> None:
        """Notify clients of added or removed gradients, except the sender if it predicted the ``count`` of results."""
        for id, session in self.sessions.items():
            if id != peer.id or count < 0:
                session.gradient_epoch += 1

    def note_replacement(self) -> None:
        """Notify all clients that the owner replaced an object."""
        for session in self.sessions.values():
            session.form_epoch += 1
            session.gradient_epoch += 1

    def add_client(self, location: Location) -> None:
        """Add a client that is not a worker of this process, known by the location that leads back to it."""
        self._known_workers[location.id] = location
        self._locations.pop(location.id, None)

    # --- commands

    def waiting(self, is_idle: bool = False) -> Waiting:
        """Return a ``with`` block in which the command that is being executed waits, and others use this worker.

        In the block, requests to other parties are made on behalf of the sender. ``is_idle`` means that the command
        computes nothing meanwhile.
        """
        return Waiting(self, is_idle)

    def yield_turn(self) -> None:
        """Let others go first, in a command of many steps; raise if nobody waits for its result any more."""
        peer = self.peer if self.command is None else self.command[1]
        with self.waiting(is_idle=True):
            yield_turn()
            if (guard := self.guard_of(peer)) is not None:
                guard.rest(peer)

    def guard_of(self, peer: Peer) -> Guard | None:
        """Return what limits a peer: nothing limits the worker itself."""
        return None if peer.id == self.id and not peer.behalf else self.guard

    def reserve(self, sender: Peer, name: str, objects: int = 0, size: int = 0) -> Reservation:
        """Reserve room for a command until it ends; raise if that exceeds the sender's quota."""
        amounts = Amounts(objects, size)
        guard = self.guard_of(sender)
        return Reservation({}, amounts) if guard is None else guard.reserve(sender, name, amounts)

    def forget_client(self, peer: Peer) -> None:
        """Remove everything that a client left behind: its session, its leases, and the objects only it could use."""
        for known in list(self._known_workers.values()):
            if isinstance(known, Location):
                known.forget_peer(peer)
        with self.lock:
            self.sessions.pop(peer.id, None)
            self._known_workers.pop(peer.id, None)
            self._locations.pop(peer.id, None)
            self.object_store.remove_client(peer.id)
            if self.guard is not None:
                self.guard.forget(peer.id)
        for part in self._parts.values():
            part.forget(peer.id)

    def part(self, kind: type[P]) -> P:
        """Return a feature's part of this worker, created on first use."""
        found = self._parts.get(kind)
        if found is None:
            found = self._parts.setdefault(kind, kind(self))
        return cast("P", found)

    # --- the owner

    @property
    def desk(self) -> OwnerDesk:
        """The desk where the owner reviews and decides release requests; see docs/release.md."""
        desk: OwnerDesk = self.part(FEATURES.resolve("WorkerDesk"))
        return desk

    @property
    def requests(self) -> Outcome:
        """The release requests of peers; short for ``desk.requests``, like the methods below."""
        return self.desk.requests

    @property
    def rules(self) -> Outcome:
        """The rules of the owner that approve releases in advance."""
        return self.desk.rules

    @property
    def studies(self) -> Outcome:
        """The sums of several workers in which this one takes part, its key and its owner's rules; it prints."""
        return self.part(FEATURES.resolve("WorkerStudies"))

    def approve(self, request: object, by: str | None = None, digest: str | None = None, answer: str = "") -> None:
        """Approve a peer's request, given as an object or by id: the peer can fetch the result once.

        Raise an error if ``digest`` is given and differs from the ``request.digest`` of the reviewed object.
        """
        self.desk.approve(request, by, digest, answer)

    def deny(self, request: object, answer: str, by: str | None = None, digest: str | None = None) -> None:
        """Deny a peer's request; the error that the peer gets contains ``answer``."""
        self.desk.deny(request, answer, by, digest)

    def withdraw(self, request: object, by: str | None = None, digest: str | None = None, answer: str = "") -> None:
        """Withdraw an unused approval; the request is open again."""
        self.desk.withdraw(request, by, digest, answer)

    def allow(self, name: str, by: str | None = None, **conditions: Json) -> Outcome:
        """Add a rule."""
        return self.desk.allow(name, by, **conditions)

    def revoke(self, name: str, by: str | None = None) -> None:
        """Revoke a rule."""
        self.desk.revoke(name, by)

    def add_alias(self, id: Id) -> None:
        """Recognise this worker under another id, which a worker on the network uses for it."""
        self._known_workers.setdefault(id, self)
        self.aliases.add(id)

    @abstractmethod
    def make_location(self, client: Party) -> Location:
        """Return the location of this worker for ``client``."""

    # --- known workers

    def location_of(self, worker: WorkerLike) -> Location:
        """Return the location of another worker, given as an id, a worker or a location."""
        found = worker if isinstance(worker, Worker) else self.get_worker(worker)
        known = self._locations.get(found.id)
        if known is None or known.face is not found:
            known = found if isinstance(found, Location) else found.make_location(self)
            self._locations[found.id] = known
        return known

    def forget_gradients(self) -> None:
        """Invalidate everything known about gradients on other workers."""
        for location in self._locations.values():
            location.forget_gradients()

    def forget_locations(self) -> None:
        """Make all known workers create a new location for this worker."""
        for known in self._known_workers.values():
            if isinstance(known, Worker):
                known._locations.pop(self.id, None)

    def add_worker(self, worker: Worker | Location) -> Worker:
        """Add a worker or a location, and introduce it to all known workers.

        Workers of this process without their own location for it share this one.
        """
        taken = self._known_workers.get(worker.id)
        borrowed = isinstance(taken, Location) and taken.client.id != self.id
        if taken is not None and taken is not worker and not borrowed:
            raise WorkerIdTakenError.by(worker.id, type(taken).__name__)
        self._known_workers[worker.id] = worker
        for known in list(self._known_workers.values()):
            if isinstance(known, Worker):
                known._known_workers.setdefault(worker.id, worker)
            if isinstance(worker, Worker):
                worker._known_workers.setdefault(known.id, known)
        return self

    def add_workers(self, workers: Iterable[Worker | Location]) -> Worker:
        """Add several workers or locations."""
        for worker in workers:
            self.add_worker(worker)
        return self

    def remove_worker_from_registry(self, worker_id: Id) -> None:
        """Remove a worker from the registries of all known workers; its id can be reused."""
        removed = self.get_worker(worker_id)
        if removed is self:
            raise WorkerError(f"cannot remove worker {worker_id!r} from its own registry: do it on another worker")
        for known in list(self._known_workers.values()):
            if isinstance(known, Worker):
                known._known_workers.pop(worker_id, None)
                known._locations.pop(worker_id, None)

    def get_worker(self, id_or_worker: WorkerLike) -> Any:
        """Return the worker with this id; a worker or location is returned as it is."""
        if isinstance(id_or_worker, Worker | Location):
            return id_or_worker
        if not isinstance(id_or_worker, str | int):
            given = type(id_or_worker).__name__
            raise TypeError(f"cannot find a worker: expected a worker or its id, got {given}; write `x.send(bob)`")
        found = self._known_workers.get(id_or_worker)
        if found is None:
            near = difflib.get_close_matches(str(id_or_worker), [str(known) for known in self._known_workers], n=2)
            raise WorkerNotFoundError.named(id_or_worker, near)
        return found

    # --- frameworks

    def attributes_of(self, framework: str) -> FrameworkAttributes:
        """Return the op table of a framework that is hooked here."""
        attachment = FrameworkHook._attached.get(framework)
        if attachment is None:
            raise WorkerNotFoundError(f"cannot run {framework} on worker {self.id!r}: it is not hooked there; hook it")
        return attachment.first.attributes

    @staticmethod
    def is_framework_supported(framework: str) -> bool:
        """Return whether a framework is hooked here."""
        return attached_hook(framework) is not None

    def collect_garbage(self) -> None:
        """Remove the leases of dropped pointers."""
        if self.dropped:
            self.object_store.release(self.dropped)
