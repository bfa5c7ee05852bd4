"""Workers on the network, served from threads of the test process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from syft_core.network.client import WebsocketClientWorker
from syft_core.network.server import Server
from syft_core.plugins.manager import load_backend
from syft_core.testing.transport import equip
from syft_core.workers.party.virtual import VirtualWorker

from ..hooks import hook_for_test
from .processes import authenticate
from .proxy import Proxy


@pytest.fixture(scope="module")
def hook() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    with load_backend("torch")(torch) as hook:
        hook.attributes.warm_up()
        yield hook


@pytest.fixture(params=["torch", "numpy"])
def any_hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A hook on each framework, whose local worker acts for the user eve."""
    yield from hook_for_test(request, request.param, user="eve")


@pytest.fixture
def torch_hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "torch", user="eve")


@pytest.fixture
def far(hook: Any) -> Iterator[VirtualWorker]:
    """A worker that only the network leads to."""
    worker = VirtualWorker(hook, id="far", auto_add=False, serialize=False)
    equip(worker, hook)
    yield worker
    hook.local_worker._known_workers.pop("far", None)


@pytest.fixture
def server(far: VirtualWorker) -> Iterator[Server]:
    server = Server(far, "127.0.0.1", 0, authenticate, heartbeat=0.2)
    server.start()
    yield server
    server.stop(1)


Connect = Callable[..., WebsocketClientWorker]


@pytest.fixture
def connect(hook: Any, server: Server) -> Iterator[Connect]:
    """Connect a client: the local worker, or another one."""
    with ExitStack() as stack:

        def connect(user: str = "ana", port: int | None = None, **options: Any) -> WebsocketClientWorker:
            options.setdefault("timeout", 60)
            location = WebsocketClientWorker(
                hook, "127.0.0.1", port or server.port, token=f"secret of {user}", **options
            )
            stack.callback(location.close)
            return location

        yield connect


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()
