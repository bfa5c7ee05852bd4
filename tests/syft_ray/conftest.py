"""The parts of Ray that workers use, in one process: calls of actors run on an event loop of their own."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from types import SimpleNamespace
from typing import Any

import pytest
import toy
from syft_toy import plugin as toy_plugin
from syft_toy.hook import ToyHook

from syft_core.plugins.manager import PluginManager
from syft_ray import host as hosting
from syft_ray.host import Host
from tests.waiting import wait_for_end

from ..workers.conftest import me  # noqa: F401  # a fixture


class RayError(Exception):
    """As Ray has it."""


class RayTaskError(RayError):
    """Wraps the error of a call."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class RayActorError(RayError):
    """The actor is gone."""


class NodeDiedError(RayError):
    """The machine is gone."""


class OutOfMemoryError(RayError):
    """The machine had no memory left."""


class ActorUnavailableError(RayError):
    """The actor does not answer."""


class Ray:
    """Stands for the package."""

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        RayActorError=RayActorError,
        NodeDiedError=NodeDiedError,
        OutOfMemoryError=OutOfMemoryError,
        ActorUnavailableError=ActorUnavailableError,
    )

    def __init__(self) -> None:
        self.is_on = True
        self.machines = {"one": True}
        """Whether each machine is there."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_calls(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        wait_for_end(self._thread)
        self.loop.close()

    async def _end_calls(self) -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def is_initialized(self) -> bool:
        return self.is_on

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": name, "Alive": is_there} for name, is_there in self.machines.items()]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "one")

    def get(self, reference: Future[Any]) -> Any:
        try:
            return reference.result(30)
        except RayError:
            raise
        except Exception as error:
            raise RayTaskError(error) from error

    def wait(self, references: list[Future[Any]], timeout: float) -> tuple[list[Any], list[Any]]:
        done, waiting = wait(references, timeout)
        return list(done), list(waiting)


class Handle:
    """The handle of an actor: ``handle.method.remote(...)`` starts a call."""

    def __init__(self, ray: Ray, actor: object) -> None:
        self._ray, self._actor = ray, actor

    def __getattr__(self, method: str) -> Any:
        def remote(*args: Any) -> Future[Any]:
            return asyncio.run_coroutine_threadsafe(getattr(self._actor, method)(*args), self._ray.loop)

        return SimpleNamespace(remote=remote)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ray]:
    made = Ray()
    monkeypatch.setitem(sys.modules, "ray", made)  # type: ignore[arg-type]  # only its functions are used
    yield made
    made.close()


@pytest.fixture
def hook() -> Iterator[ToyHook]:
    with ToyHook(toy) as attached:
        yield attached


@pytest.fixture
def host(hook: ToyHook, ray: Ray, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host with two workers of the toy framework."""
    manager = PluginManager()
    manager.register(toy_plugin, "toy")
    monkeypatch.setattr(hosting, "plugin_manager", lambda: manager)
    with pytest.warns(UserWarning, match="hook"):  # the actor of a test is in the process of its client
        host = Host("toy", ["bob", "alice"], None)
    yield host
    host._threads.shutdown()
    host._hook.unhook()


@pytest.fixture
def handle(ray: Ray, host: Host) -> Handle:
    return Handle(ray, host)
