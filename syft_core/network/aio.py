"""Aio: workers on the network for programs that use asyncio.

An ``AsyncWorker`` makes the calls of a ``WebsocketClientWorker`` in a thread of its own, one after the other, without
blocking the event loop. Calls to different workers run at the same time.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from syft_core.exceptions import AlreadyRetrievedError
from syft_core.hook.hook import FrameworkHook
from syft_core.network.client import WebsocketClientWorker
from syft_core.values import Tensor

T = TypeVar("T")


async def connect(hook: FrameworkHook, host: str, port: int, **options: object) -> AsyncWorker:
    """Connect to a worker; the arguments are those of ``WebsocketClientWorker``."""
    worker = AsyncWorker()
    try:
        worker.location = await worker.run(WebsocketClientWorker, hook, host, port, **options)
    except BaseException:
        worker.stop_thread()
        raise
    return worker


class AsyncWorker:
    """The location of a worker on the network, with awaitable forms of the calls that wait.

    Send objects to ``location``, and use pointers as always: those operations do not wait. If a task is cancelled, its
    pending calls are not made; a running call is completed in the background, and its result is dropped, except that a
    fetched object is kept for the next ``get``.
    """

    location: WebsocketClientWorker

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "worker")
        self._arrived: dict[int, tuple[Tensor, Tensor]] = {}
        """Pointers and their fetched objects, until a task has received them; by identity of the pointer."""

    async def run(self, function: Callable[..., T], /, *args: object, **kwargs: object) -> T:
        """Call a function that uses this worker, after all earlier calls; return its result."""
        call = partial(contextvars.copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def get(self, pointer: Any, **options: Any) -> Any:
        """Fetch what a pointer, or a model, refers to."""

        def fetch() -> Tensor:
            try:
                value = pointer.get(**options)
            except AlreadyRetrievedError:
                if id(pointer) not in self._arrived:
                    raise
                _, value = self._arrived[id(pointer)]
            self._arrived[id(pointer)] = pointer, value
            return value

        value = await self.run(fetch)
        self._arrived.pop(id(pointer), None)
        return value

    async def search(self, query: object = ()) -> list[Any]:
        """Return pointers to the objects that match all parts of ``query``."""
        return await self.run(self.location.search, query)

    async def flush(self) -> None:
        """Wait until all operations have been executed; raise the first error."""
        await self.run(self.location.flush)

    async def close(self) -> None:
        """Close the connection."""
        await self.run(self.location.close)
        self.stop_thread()

    def stop_thread(self) -> None:
        """Let the thread end after its last call."""
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncWorker:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location!r}>"
