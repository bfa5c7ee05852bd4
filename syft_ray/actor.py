"""Actor: a handle of an actor that hosts workers, with errors that say what happened to it."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from syft_core.exceptions import SyftError, WorkerError
from syft_core.peer import Id
from syft_core.values import Nested
from syft_ray.errors import ActorLostError

GONE = "the objects of its workers are gone: close these RayWorkers and start new ones"
NODE = "was lost with its machine", GONE
MEMORY = (
    "was ended because its machine has no memory left",
    "give it less data, use fewer actors on one machine, or clients that exist only while they train: `fl.Population`",
)
DEATH = "has ended", GONE
AWAY = (
    "does not answer: its machine may be lost",
    "what it was asked for may or may not be done: look at `ray status`, close these RayWorkers and start new ones",
)
STUCK = "has not finished what it began before", "its clients take part again when it has; or start new RayWorkers"
SHUTDOWN = "cannot be called, because Ray was shut down", "start Ray and new RayWorkers"


class Actor:
    """An actor that hosts workers, as another process sees it."""

    def __init__(self, handle: Nested, name: str) -> None:
        self.handle, self.name = handle, name
        self.node: str | None = None
        """The id of the machine that it runs on, if that is known here."""
        self.keys: dict[Id, bytes] = {}
        """The keys that the actor has given to clients."""
        self.dropped: deque[str] = deque()
        """Unused agents in the actor."""
        self.is_lost = False
        self._stuck: Nested = None
        """A call that made no progress for too long."""

    @property
    def is_stuck(self) -> bool:
        """Whether a call that made no progress for too long has still not ended."""
        if self._stuck is not None and self.has_result(self._stuck):
            self._stuck = None
        return self._stuck is not None

    def require_progress(self) -> None:
        """Raise if a call that made no progress for too long has still not ended."""
        if self.is_stuck:
            why, advice = STUCK
            raise ActorLostError.of(_name(None), self.name, why, advice)

    def call(self, method: str, *args: Nested) -> Nested:
        """Call a method, and return a reference to its result."""
        self._require_ray(None)
        return getattr(self.handle, method).remote(*args)

    def ask(self, method: str, *args: Nested) -> Nested:
        """Call a method, and wait for its result."""
        return self.result(self.call(method, *args))

    def admit(self, client: Id, user: str | None = None, is_worker: bool = False) -> bytes:
        """Return the key of a client, which the actor makes."""
        if client not in self.keys:
            self.keys[client] = self.ask("admit", client, user, is_worker)
        return self.keys[client]

    def has_result(self, reference: Nested) -> bool:
        """Return whether a call has ended."""
        import ray  # noqa: PLC0415  # optional

        self._require_ray(None)
        return bool(ray.wait([reference], timeout=0)[0])

    def result(self, reference: Nested, worker: Id | None = None, timeout: float | None = None) -> Nested:
        """Wait for the result of a call; raise an error of ours, whatever has happened.

        With a ``timeout``, raise if the actor does not answer, or makes no progress, for so many seconds.
        """
        import ray  # noqa: PLC0415  # optional

        self._require_ray(worker)
        try:
            if timeout is not None:
                self._watch(reference, worker, timeout)
            return ray.get(reference)
        except ActorLostError:
            raise
        except ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, SyftError):
                raise cause from None
            why = f"{type(cause or error).__name__} in {self.name}"
            raise WorkerError(f"cannot use {_name(worker)}: {why}; the log of the actor has its traceback") from error
        except (ray.exceptions.RayError, ConnectionError) as error:
            why, advice = _explain(error, self.node)
            self.is_lost = self.is_lost or (why, advice) in (NODE, MEMORY, DEATH)
            raise ActorLostError.of(_name(worker), self.name, why, advice) from None

    def _watch(self, reference: Nested, worker: Id | None, timeout: float) -> None:
        """Return when a call has ended; raise if the actor makes no progress meanwhile."""
        import ray  # noqa: PLC0415  # optional

        patience = timeout
        while not ray.wait([reference], timeout=patience)[0]:
            asked = self.call("count_idle_seconds")
            has_answered = ray.wait([asked, reference], timeout=timeout)[0]
            if reference in has_answered:
                return
            idle = ray.get(asked) if has_answered else timeout
            if idle >= timeout:
                self._stuck = reference
                why = f"{'has made no progress' if has_answered else 'has not answered'} for {timeout:g} seconds"
                raise ActorLostError.of(_name(worker), self.name, why, STUCK[1])
            patience = timeout - idle

    def _require_ray(self, worker: Id | None) -> None:
        """Raise if Ray was shut down: it would start again by itself."""
        import ray  # noqa: PLC0415  # optional

        if not ray.is_initialized():
            why, advice = SHUTDOWN
            raise ActorLostError.of(_name(worker), self.name, why, advice)


def _explain(error: Exception, node: str | None) -> tuple[str, str]:
    import ray  # noqa: PLC0415  # optional

    if isinstance(error, ray.exceptions.NodeDiedError):
        return NODE
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return MEMORY
    if isinstance(error, ray.exceptions.ActorUnavailableError | ConnectionError):
        return AWAY
    if isinstance(error, ray.exceptions.RayActorError):
        return NODE if _is_gone(node) else DEATH
    return f"failed with {type(error).__name__}", "look at the logs of Ray"


def _is_gone(node: str | None) -> bool:
    """Return whether Ray has lost a machine: the error of an actor does not say in a field why it has ended."""
    import ray  # noqa: PLC0415  # optional

    with suppress(ray.exceptions.RayError, ConnectionError):
        return node is not None and node not in [each["NodeID"] for each in ray.nodes() if each["Alive"]]
    return False


def _name(worker: Id | None) -> str:
    return "its workers" if worker is None else f"worker {worker!r}"
