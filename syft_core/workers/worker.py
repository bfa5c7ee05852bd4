"""Worker: a party. It owns objects, a policy and a ledger, and knows how to reach other parties."""

from __future__ import annotations

import difflib
import itertools
import threading
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from syft_core.exceptions import WorkerError, WorkerIdTakenError, WorkerNotFoundError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.hook import FrameworkHook, attached_hook
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import Failure, Run
from syft_core.peer import Id, Peer
from syft_core.workers.ledger import Ledger
from syft_core.workers.permissions import Policy, find_policy, unless_private
from syft_core.workers.release import ReleaseRequests
from syft_core.workers.store import Holder, ObjectStore

MOST_SESSIONS = 4096
"""How many clients a worker remembers; the first that it met is forgotten first."""
MOST_POISONED = 65_536
"""How many results of failed commands are remembered for one client."""


_starts = itertools.count(step=1 << 32)


@dataclass
class Stats:
    """What a worker has done: messages and operations answered, bytes that came in and went out."""

    messages: int = 0
    operations: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass
class Session:
    """What a worker remembers of a client that is not in its process."""

    form_epoch: int = 0
    """How often a form changed that the client could not work out by itself."""
    gradient_epoch: int = 0
    """The same for gradients."""
    failed: Failure | None = None
    """The first failure that the client has not heard of; until it has, its commands are not executed."""
    poisoned: OrderedDict[Id, Failure] = field(default_factory=OrderedDict)
    """What became of the results of commands that failed or were not executed."""

    def poison(self, ids: Iterable[Id], failure: Failure) -> None:
        """Note that objects were never made, and why."""
        for id in ids:
            self.poisoned[id] = failure
            if len(self.poisoned) > MOST_POISONED:
                self.poisoned.popitem(last=False)


class Worker:
    """A party: what it holds, who may have it, and whom it knows.

    A worker executes one message at a time: ``lock`` is held while it does, and never while it waits for another party.
    """

    serializer: str | None = None
    """How tensors are written for this worker's peers; None means in the framework's own way."""

    def __init__(self, hook: FrameworkHook | None, id: Id, is_client_worker: bool, policy: Policy | str) -> None:
        self.hook = hook
        self.id = id
        self.is_client_worker = is_client_worker
        self.policy = policy
        self.peer = Peer(id)
        self.lock = threading.RLock()
        self.object_store = ObjectStore(id)
        self.ledger = Ledger(str(id))
        self.requests = ReleaseRequests(str(id))
        """What peers have asked for, for the owner to approve or deny."""
        self.stats = Stats()
        self.sessions: OrderedDict[Id, Session] = OrderedDict()
        self.dropped: deque[tuple[Id, Holder]] = deque()
        """Objects to which a pointer of a client in this process was dropped; counted with the next message."""
        self._known_workers: dict[Id, Any] = {id: self}
        self._addresses: dict[Id, Location] = {}

    # --- who it is

    @property
    def user(self) -> str | None:
        """The user on whose behalf this worker acts, as others will know; None when there is none."""
        return self.peer.user

    @user.setter
    def user(self, user: str | None) -> None:
        self.peer = Peer(self.id, user)

    @property
    def policy(self) -> Policy:
        """Decides what others may do: a function, or the name of a policy that is built in."""
        return self.own_policy or unless_private

    @policy.setter
    def policy(self, policy: Policy | str) -> None:
        found = find_policy(policy)
        self.own_policy = None if found is unless_private else found
        """The policy to ask; None for the default, which adds nothing to the restrictions of private tensors."""

    # --- how others reach it

    def session_of(self, peer: Peer) -> Session:
        """Return what is remembered of a client."""
        session = self.sessions.get(peer.id)
        if session is None:
            # Epochs that no earlier session had: a client that was forgotten notices.
            start = next(_starts)
            session = self.sessions[peer.id] = Session(start, start)
            if len(self.sessions) > MOST_SESSIONS:
                self.sessions.popitem(last=False)
        return session

    def note_form_change(self, message: Run, peer: Peer) -> None:
        """Let clients know that a form changed: all but the one that worked it out when it sent the command."""
        for id, session in self.sessions.items():
            if id != peer.id or message.count < 0:
                session.form_epoch += 1

    def note_gradient_change(self, message: Run, peer: Peer) -> None:
        """Let clients know that gradients came or went, in the same way."""
        for id, session in self.sessions.items():
            if id != peer.id or message.count < 0:
                session.gradient_epoch += 1

    def note_replacement(self) -> None:
        """Let all clients know that an object was replaced by its owner."""
        for session in self.sessions.values():
            session.form_epoch += 1
            session.gradient_epoch += 1

    @abstractmethod
    def make_address(self, client: Party) -> Location:
        """Return a location that leads from ``client`` to this worker."""

    # --- whom it knows

    def location_of(self, worker: WorkerLike) -> Location:
        """Return the address of another worker, given by its id, by itself or by an address of it."""
        found = self.get_worker(worker)
        known = self._addresses.get(found.id)
        if known is None or known.face is not found:
            known = found if isinstance(found, Location) else found.make_address(self)
            self._addresses[found.id] = known
        return known

    def forget_gradients(self) -> None:
        """Doubt everything that is known here of gradients at other workers."""
        for location in self._addresses.values():
            location.forget_gradients()

    def forget_addresses(self) -> None:
        """Let everybody look for this worker anew."""
        for known in self._known_workers.values():
            if isinstance(known, Worker):
                known._addresses.pop(self.id, None)

    def add_worker(self, worker: Worker | Location) -> Worker:
        """Get to know another worker, or an address of one, and introduce it to all whom this one knows.

        Workers of this process that have no address of their own share the one that they are introduced to.
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
        """Get to know several workers, as ``add_worker`` does one."""
        for worker in workers:
            self.add_worker(worker)
        return self

    def remove_worker_from_registry(self, worker_id: Id) -> None:
        """Forget a worker, and let all whom this one knows forget it; its id is free again."""
        removed = self.get_worker(worker_id)
        if removed is self:
            raise WorkerError(f"cannot remove worker {worker_id!r} from its own registry: ask another worker to do it")
        for known in list(self._known_workers.values()):
            if isinstance(known, Worker):
                known._known_workers.pop(worker_id, None)
                known._addresses.pop(worker_id, None)

    def get_worker(self, id_or_worker: WorkerLike) -> Any:
        """Return the worker with this id, or the worker itself if one is given."""
        if isinstance(id_or_worker, Worker | Location):
            return id_or_worker
        found = self._known_workers.get(id_or_worker)  # type: ignore[arg-type]  # an id, or nothing that is known
        if found is None:
            near = difflib.get_close_matches(str(id_or_worker), [str(known) for known in self._known_workers], n=2)
            raise WorkerNotFoundError.named(id_or_worker, near)
        return found

    # --- what it can compute

    def attributes_of(self, framework: str) -> FrameworkAttributes:
        """Return the op table of a framework that is hooked here."""
        attachment = FrameworkHook._attached.get(framework)
        if attachment is None:
            raise WorkerNotFoundError(f"cannot run {framework} on worker {self.id!r}: it is not hooked there; hook it")
        return attachment.first.attributes

    @staticmethod
    def is_framework_supported(framework: str) -> bool:
        """Return whether a framework is hooked here, so that its operations can run."""
        return attached_hook(framework) is not None

    def collect_garbage(self) -> None:
        """Count the leases of pointers that are gone."""
        if self.dropped:
            self.object_store.release(self.dropped)
