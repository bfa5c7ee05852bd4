"""Host: runs in an actor with many workers, and holds the keys of their clients."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Protocol

from syft_core.exceptions import AuthenticationError, WorkerNotFoundError
from syft_core.hook.hook import FrameworkHook
from syft_core.peer import Id, Peer
from syft_core.plugins.manager import plugin_manager
from syft_core.serde import frames, from_frames
from syft_core.serde.layout import Frame
from syft_core.values import Nested
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.turns import FairLock, is_wanted
from syft_core.workers.party.virtual import VirtualWorker
from syft_ray.actor import Actor
from syft_ray.buffers import pack, unpack
from syft_ray.errors import RayStartError
from syft_ray.location import RayLocation, ReturnLocation

MAX_THREADS = 1024
"""Maximum number of threads that wait for other workers at the same time; one executes."""

Setup = Callable[[BaseWorker], object]
"""A function that prepares a worker, called in its actor."""


class Agent(Protocol):
    """Code of a client that runs in the actor, near the workers; a backend names its agents in its description."""

    def run(self, task: Nested, shared: Nested) -> Nested:
        """Do a task; ``shared`` is the same for the agents in all actors."""


@dataclass
class AgentPlace:
    """The client of an agent, and the workers that it can reach without another process."""

    hook: FrameworkHook
    client: BaseWorker
    """Stands for the client: it has the same peer, so workers treat both alike."""
    workers: dict[Id, VirtualWorker]


@dataclass
class _Session:
    peer: Peer
    is_worker: bool
    """Whether it is a worker of the same owner, which may act for its clients."""
    orders: dict[Id, _Order] = field(default_factory=dict)
    """The order of the batches for each worker."""

    def delegates(self, _peer: Peer) -> bool:
        return self.is_worker


class _Order:
    """Runs calls in the order of their numbers; Ray may deliver them out of order."""

    def __init__(self) -> None:
        self._next = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def begin(self, number: int) -> None:
        if number != self._next:
            self._waiting[number] = asyncio.get_running_loop().create_future()
            await self._waiting[number]

    def end(self) -> None:
        self._next += 1
        if (first := self._waiting.pop(self._next, None)) is not None:
            first.set_result(None)


class Host:
    """Hosts workers in an actor. Its methods are called by clients, through Ray.

    All workers share one lock, so one thread executes at a time; a thread that waits for another worker does not hold
    it.
    """

    def __init__(self, backend: str, ids: Sequence[Id], setup: Setup | None) -> None:
        description = plugin_manager().backend(backend)
        self._hook = description.load()(description.import_framework())
        self._backend = description
        self._lock = FairLock()
        self._failure: RayStartError | None = None
        """Why it cannot be used. Of errors raised in the constructor, Ray reports only the text, not the type."""
        self._workers = self._make_workers(ids, setup)
        self._sessions: dict[bytes, _Session] = {}
        self._threads = ThreadPoolExecutor(MAX_THREADS, initializer=is_wanted.set, initargs=(self._note_progress,))
        self._progressed = monotonic()
        self._agents: dict[str, Agent] = {}
        self._agent_lock = threading.Lock()
        self._requests: asyncio.Queue[tuple[int, Id, Id, Nested]] = asyncio.Queue()
        self._numbers = count()
        self._answers: dict[int, Future[Nested]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def _make_workers(self, ids: Sequence[Id], setup: Setup | None) -> dict[Id, VirtualWorker]:
        try:
            return {id: self._make_worker(id, setup) for id in ids}
        except RayStartError as error:
            self._failure = error
            return {}

    def _make_worker(self, id: Id, setup: Setup | None) -> VirtualWorker:
        worker = VirtualWorker(self._hook, id=id, auto_add=False, serialize=False)
        worker.lock = self._lock
        if setup is not None:
            try:
                setup(worker)
            except Exception as error:
                raise RayStartError.failed(f"`setup` of worker {id!r} raised {type(error).__name__}") from error
        return worker

    async def ready(self) -> str:
        """Return the id of the machine once the host is made; re-raise an error of a user's function."""
        import ray  # noqa: PLC0415  # optional

        if self._failure is not None:
            raise self._failure
        self._loop = asyncio.get_running_loop()
        return str(ray.get_runtime_context().get_node_id())

    async def count_idle_seconds(self) -> float:
        """Return the seconds since a call began or made progress: long commands do so after each turn."""
        return monotonic() - self._progressed

    def _note_progress(self) -> bool:
        self._progressed = monotonic()
        return True

    # --- clients

    async def admit(self, id: Id, user: str | None, is_worker: bool) -> bytes:
        """Return a new key for a client."""
        if any(session.peer.id == id for session in self._sessions.values()):
            raise AuthenticationError.refused("ray", f"another client is called {id!r}", "give each client its own id")
        key = secrets.token_bytes(32)
        self._sessions[key] = _Session(Peer(id, user), is_worker)
        return key

    async def deliver(self, key: bytes, worker: Id, number: int, received: Sequence[Frame]) -> Nested:
        """Execute a batch of a client, and return the reply."""
        session, found = self._find(key, worker)
        order = session.orders.get(worker)
        if order is None:
            order = session.orders[worker] = _Order()
            if not session.is_worker:
                found.add_client(ReturnLocation(found, session.peer.id, self._post))
        await order.begin(number)
        try:
            return pack(await self._run(found.deliver, unpack(received), session.peer, None, session.delegates))
        finally:
            order.end()

    def _find(self, key: bytes, worker: Id) -> tuple[_Session, VirtualWorker]:
        session = self._find_session(key)
        if session.peer.id == worker:  # It would have the rights of the owner.
            raise AuthenticationError.refused("ray", f"a client is called {worker!r}", "give it another id")
        return session, self._require_worker(worker)

    def _find_session(self, key: bytes) -> _Session:
        if key not in self._sessions:
            raise AuthenticationError.refused("ray", "the key of the client is not valid", "use `RayWorkers.connect`")
        return self._sessions[key]

    def _require_worker(self, id: Id) -> VirtualWorker:
        if id not in self._workers:
            raise WorkerNotFoundError.named(id, [])
        return self._workers[id]

    async def _run(self, function: Callable[..., Nested], *args: Nested) -> Nested:
        self._note_progress()
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    # --- other workers

    async def link_here(self, id: Id, other: Id) -> None:
        """Let a worker reach another one in this actor."""
        self._require_worker(id)._known_workers.setdefault(other, self._require_worker(other))

    async def link_there(self, id: Id, other: Id, handle: Nested, name: str, key: bytes) -> None:
        """Let a worker reach one in another actor, with a key of that actor."""
        worker = self._require_worker(id)
        worker.add_client(RayLocation(worker, other, Actor(handle, name), key))

    async def link_back(self, id: Id, other: Id) -> None:
        """Let a worker reach one in the process that started this actor."""
        worker = self._require_worker(id)
        if other not in worker._known_workers:
            worker.add_client(ReturnLocation(worker, other, self._post))

    def _post(self, worker: Id, other: Id, sent: Nested) -> Future[Nested]:
        """Queue a request to a worker in the process that started this actor; called in any thread."""
        number, answer = next(self._numbers), Future[Nested]()
        self._answers[number] = answer
        if self._loop is None:
            raise WorkerNotFoundError.named(other, [])
        self._loop.call_soon_threadsafe(self._requests.put_nowait, (number, worker, other, sent))
        return answer

    async def next_request(self) -> Nested:
        """Wait for a request to a worker in the process that started this actor, and return it."""
        return await self._requests.get()

    async def answer(self, number: int, received: Nested) -> None:
        """Take the answer to a request."""
        self._answers.pop(number).set_result([bytes(frame) for frame in received])

    # --- agents

    async def start_agent(self, key: bytes, token: str, name: str, packed: Nested, given: Nested) -> None:
        """Make an agent of a client, in a thread: it may have to import much."""
        self._agents[token] = await self._run(self._make_agent, self._find_session(key).peer, name, packed, given)

    def _make_agent(self, peer: Peer, name: str, packed: Nested, given: Nested) -> Agent:
        client = BaseWorker(self._hook, peer.id, is_client_worker=True, auto_add=False)
        client.user = peer.user
        make: Callable[..., Agent] = self._backend.resolve(self._backend.agents[name])
        return make(AgentPlace(self._hook, client, self._workers), from_frames(unpack(packed)), given)

    async def run_agent(self, token: str, packed: Nested, shared: Nested, dropped: Sequence[str]) -> Nested:
        """Let an agent do a task, one agent at a time, and forget unused agents."""
        for each in dropped:
            self._agents.pop(each, None)
        return await self._run(self._work, self._agents[token], packed, shared)

    def _work(self, agent: Agent, packed: Nested, shared: Nested) -> Nested:
        with self._agent_lock:
            done = agent.run(from_frames(unpack(packed)), from_frames(unpack(shared)))
        return pack(frames(done))
