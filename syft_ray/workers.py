"""RayWorkers: start workers in the actors of Ray."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import weakref
from collections.abc import Iterator, Sequence
from math import ceil
from types import TracebackType
from typing import overload

from syft_core.exceptions import WorkerError, WorkerIdTakenError
from syft_core.hook.hook import FrameworkHook
from syft_core.location import Location
from syft_core.peer import Id, Peer
from syft_core.plugins.backend import Backend
from syft_core.plugins.manager import plugin_manager
from syft_core.serde import frames, from_frames
from syft_core.values import Nested
from syft_core.workers.party.base import BaseWorker
from syft_ray.actor import Actor
from syft_ray.buffers import pack, unpack
from syft_ray.errors import RayStartError
from syft_ray.host import Host, Setup
from syft_ray.location import RayLocation
from syft_ray.starting import start_ray

PER_ACTOR = 10
"""Minimum number of workers of an actor, unless the number of actors is given."""
START_SECONDS = 120.0
"""How long to wait for the actors to start."""
MAX_CALLS = 100_000
"""Maximum number of calls that an actor accepts at the same time; most wait for earlier ones."""


class RayWorkers(Sequence[RayLocation]):
    """Workers in the actors of Ray, each of which hosts many; a sequence of their locations.

    Use it as a context, or call ``close``: both end the actors, and Ray if it was started here.

    Args:
        hook: the hook of the framework; the actors use the same one.
        count: how many workers to start. 0 is enough for training a ``Population``.
        address: the address of a cluster of Ray, e.g. "auto"; None means to start Ray on this machine, or to use the
            Ray that this program has started before.
        ids: the ids of the workers, instead of ``count``; by default ray-0, ray-1 and so on.
        actors: how many actors to start; by default one for each CPU, with at least ten workers each.
        setup: a function of a worker that is called in its actor, e.g. to load its data.

    """

    def __init__(
        self,
        hook: FrameworkHook,
        count: int = 1000,
        address: str | None = None,
        *,
        ids: Sequence[Id] | None = None,
        actors: int | None = None,
        setup: Setup | None = None,
    ) -> None:
        if type(count) is not int or count < 0:
            raise RayStartError.wrong(f"count is {count!r}", "pass a number that is not negative")
        if actors is not None and (type(actors) is not int or actors < 1):
            raise RayStartError.wrong(f"actors is {actors!r}", "pass a positive number, or None")
        self.ids: list[Id] = [f"ray-{number}" for number in range(count)] if ids is None else list(ids)
        _require_free(hook, self.ids)
        self.actors: list[Actor] = []
        self._locations: dict[Id, list[RayLocation]] = {}
        """The locations of all workers, by client."""
        self._client = hook.local_worker
        self._reachable: dict[Id, BaseWorker] = {}
        """Workers of this process that workers in actors may reach."""
        self._linked: set[tuple[Id, Id]] = set()
        here = os.cpu_count() or 1
        most = ceil(len(self.ids) / PER_ACTOR) or None
        self._owns_ray, cpus = start_ray(address, actors or min(here, most or here))
        try:
            self._start(_find_backend(hook), actors or max(min(cpus, most or cpus), 1), setup)
            self.connect(self._client)
        except BaseException:
            self.close()
            raise

    def _start(self, backend: Backend, count: int, setup: Setup | None) -> None:
        import ray  # noqa: PLC0415  # optional

        remote = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=MAX_CALLS)(Host)
        self._hosted = [self.ids[number::count] for number in range(count)]
        for number, ids in enumerate(self._hosted):
            self.actors.append(Actor(remote.remote(backend.name, ids, setup), f"actor {number + 1} of {count}"))
        calls = [actor.call("ready") for actor in self.actors]
        ready, _ = ray.wait(calls, num_returns=len(calls), timeout=START_SECONDS)
        if len(ready) < len(calls):
            raise RayStartError.actors(count, START_SECONDS, len(ready))
        for actor, call in zip(self.actors, calls, strict=True):
            actor.node = _require_started(call)
        for actor, ids in zip(self.actors, self._hosted, strict=True):
            threading.Thread(
                target=_answer_requests, args=(weakref.ref(self), actor, frozenset(ids)), daemon=True
            ).start()

    def connect(self, client: BaseWorker) -> list[RayLocation]:
        """Return the locations of all workers for a worker of this process; the local worker has them already.

        The actors know the client by its id, and by the user that it has now.
        """
        if client.id not in self._locations:
            self._reachable[client.id] = client
            found = {}
            for actor, ids in zip(self.actors, self._hosted, strict=True):
                key = actor.admit(client.id, client.user)
                found.update({id: RayLocation(client, id, actor, key, self) for id in ids})
            self._locations[client.id] = [found[id] for id in self.ids]
            client.add_workers(self._locations[client.id])
        return self._locations[client.id]

    # --- other workers

    def link(self, location: RayLocation, other: Location) -> None:
        """Let the worker at a location reach another worker: of an actor, or of this process."""
        pair = location.id, other.id
        if pair in self._linked:
            return
        if isinstance(other, RayLocation):
            if other.actor is location.actor:
                location.actor.ask("link_here", *pair)
            else:
                key = other.actor.admit(location.id, is_worker=True)
                location.actor.ask("link_there", *pair, other.actor.handle, other.actor.name, key)
        elif isinstance(other.face, BaseWorker):
            self._reachable[other.id] = other.face
            location.actor.ask("link_back", *pair)
        else:
            return
        self._linked.add(pair)

    def _answer(self, worker: Id, other: Id, received: Nested) -> Nested:
        """Let a worker of this process answer a worker in an actor; both have the same owner."""
        return self._reachable[other].deliver(unpack(received), Peer(worker), delegates=lambda _peer: True)

    # --- the end

    def close(self) -> None:
        """End the actors, and Ray if it was started here; all objects of the workers are gone."""
        import ray  # noqa: PLC0415  # optional

        for locations in self._locations.values():
            for location in locations:
                location.close()
                with contextlib.suppress(WorkerError):
                    self._client.remove_worker_from_registry(location.id)
        self._locations.clear()
        for actor in self.actors:
            actor.is_lost = True
            with contextlib.suppress(Exception):  # It may have ended before, or Ray.
                ray.kill(actor.handle)
        if self._owns_ray:
            self._owns_ray = False
            ray.shutdown()

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    # --- a sequence

    @overload
    def __getitem__(self, place: int) -> RayLocation: ...
    @overload
    def __getitem__(self, place: slice) -> list[RayLocation]: ...
    def __getitem__(self, place: int | slice) -> RayLocation | list[RayLocation]:
        return self._locations[self._client.id][place]

    def __iter__(self) -> Iterator[RayLocation]:
        return iter(self._locations[self._client.id])

    def __len__(self) -> int:
        return len(self._locations.get(self._client.id, ()))

    def __repr__(self) -> str:
        return f"<RayWorkers: {len(self)} workers in {len(self.actors)} actors>"


class Agents:
    """The agents of a client in the actors, which do a part of its work near the workers.

    Each is made when its actor is first used, of ``value``, which goes through the wire format, and of ``given``, which
    Ray sends as it sends all objects of a program.
    """

    def __init__(self, client: BaseWorker, name: str, value: Nested, given: Nested = None) -> None:
        self._client, self._name, self._token = client, name, secrets.token_hex(16)
        self._value, self._given = value, given
        self._begun: dict[Actor, Nested] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _drop, self._token, self._begun)

    def share(self, value: Nested) -> Nested:
        """Put a value where the agents in all actors find it; return what ``run`` needs."""
        import ray  # noqa: PLC0415  # optional

        return ray.put(pack(frames(value)))

    def run(self, actor: Actor, task: Nested, shared: Nested, timeout: float | None = None) -> Nested:
        """Let the agent in an actor do a task; raise if it makes no progress for ``timeout`` seconds, if given."""
        actor.require_progress()
        with self._lock:
            if actor not in self._begun:
                key = actor.admit(self._client.id, self._client.user)
                packed = pack(frames(self._value))
                self._begun[actor] = actor.call("start_agent", key, self._token, self._name, packed, self._given)
        actor.result(self._begun[actor], timeout=None if timeout is None else max(timeout, START_SECONDS))
        dropped = [actor.dropped.popleft() for _ in range(len(actor.dropped))]
        call = actor.call("run_agent", self._token, pack(frames(task)), shared, dropped)
        return from_frames(unpack(actor.result(call, timeout=timeout)))


def _drop(token: str, begun: dict[Actor, Nested]) -> None:
    for actor in begun:
        actor.dropped.append(token)


def _answer_requests(workers: weakref.ref[RayWorkers], actor: Actor, ids: frozenset[Id]) -> None:
    while True:
        try:
            number, worker, other, received = actor.ask("next_request")
        except Exception:  # noqa: BLE001  # the actor has ended; its next user gets the error
            return
        found = workers()
        if found is None or worker not in ids:
            return
        # Each in a thread: it may need the worker that asks.
        threading.Thread(target=_answer_one, args=(found, actor, number, worker, other, received), daemon=True).start()
        del found


def _answer_one(workers: RayWorkers, actor: Actor, number: int, worker: Id, other: Id, received: Nested) -> None:
    with contextlib.suppress(WorkerError):
        actor.ask("answer", number, pack(workers._answer(worker, other, received)))


def _find_backend(hook: FrameworkHook) -> Backend:
    for backend in plugin_manager().backends.values():
        if backend.framework == hook.name:
            return backend
    raise RayStartError.wrong(f"no plugin provides {hook.name!r}", "install the backend on all machines")


def _require_free(hook: FrameworkHook, ids: Sequence[Id]) -> None:
    if len(set(ids)) < len(ids):
        raise RayStartError.wrong("two workers have the same id", "give each worker its own id")
    for id in ids:
        known = hook.local_worker._known_workers.get(id)
        if known is not None:
            raise WorkerIdTakenError.by(id, type(known).__name__)


def _require_started(call: Nested) -> str:
    """Return the machine of an actor; raise the error that kept it from starting, if there is one."""
    import ray  # noqa: PLC0415  # optional

    try:
        return str(ray.get(call))
    except Exception as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, RayStartError):
            raise cause from error
        why = type(error).__name__
        if getattr(error, "actor_init_failed", False):  # All that Ray keeps is a traceback; its end is the error.
            why = str(error).rstrip().rpartition("\n")[2] or why
        raise RayStartError.failed(why) from error
