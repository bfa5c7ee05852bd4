"""Parties that compute on shares, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from syft_core.network.client import WebsocketClientWorker
from syft_core.plugins.manager import load_backend
from syft_core.workers.party.virtual import VirtualWorker

from ..hooks import hook_for_test
from ..network.processes import start_worker
from .groups import Group, make_kernels
from .settings import Setting

TORCH = "torch syft_torch.hook TorchHook"
NUMPY = "numpy syft_numpy.hook NumpyHook"
NAMES = ("bob", "alice", "dora", "carol")


@pytest.fixture(scope="module")
def hook() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    with load_backend("torch")(torch) as hook:
        hook.attributes.warm_up()
        yield hook


class Parties:
    """Workers in processes of their own, each of which knows the addresses of all others."""

    def __init__(self, hook: Any, backend: str = TORCH) -> None:
        self.hook, self._backend, self._stack = hook, backend, ExitStack()
        self.processes: dict[str, Any] = {}
        self.ports: dict[str, int] = {}
        self._adders: dict[str, Callable[[dict[str, int]], None]] = {}

    def start(self, *names: str) -> None:
        """Start workers, and introduce them to those that run already."""
        for name in names:
            process, port, add_peers = self._stack.enter_context(start_worker(self._backend, name))
            self.processes[name], self.ports[name], self._adders[name] = process, port, add_peers
        for name, add_peers in self._adders.items():
            new = [other for other in self.ports if other != name and (name in names or other in names)]
            if self.processes[name].is_alive():
                add_peers({other: self.ports[other] for other in new})

    def connect(self, name: str, user: str = "ana", client: VirtualWorker | None = None, **options: Any) -> Any:
        """Connect a client, by default the local worker."""
        location = WebsocketClientWorker(
            self.hook,
            "127.0.0.1",
            options.pop("port", self.ports[name]),
            id=name,
            token=f"secret of {user}",
            client=client,
            timeout=options.pop("timeout", 60),
        )
        self._stack.callback(self._disconnect, location)
        return location

    def _disconnect(self, location: Any) -> None:
        location.close()
        location.client._known_workers.pop(location.id, None)

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()


@pytest.fixture(scope="module")
def parties(hook: Any) -> Iterator[Parties]:
    parties = Parties(hook)
    try:
        parties.start(*NAMES)
        yield parties
    finally:
        parties.close()


@pytest.fixture
def torch_hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "torch", user="me")


@pytest.fixture(params=["torch", "numpy"])
def any_hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, request.param, user="me")


@pytest.fixture(params=[0, 2, 3], ids=["unshared", "two", "three"])
def anywhere(request: pytest.FixtureRequest, any_hook: Any) -> Setting:
    """Numbers of either framework, shared or not."""
    return Setting(any_hook, request.param)


@pytest.fixture(params=[2, 3], ids=["two", "three"])
def shared(request: pytest.FixtureRequest, any_hook: Any) -> Setting:
    """Shared numbers of either framework."""
    return Setting(any_hook, request.param)


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def two(request: pytest.FixtureRequest, torch_hook: Any) -> Setting:
    """Two parties with torch, in both modes."""
    return Setting(torch_hook, 2, request.param)


@pytest.fixture(params=[0, 2, 3], ids=["unshared", "two", "three"])
def torch_anywhere(request: pytest.FixtureRequest, torch_hook: Any) -> Setting:
    """Numbers of torch, shared or not."""
    return Setting(torch_hook, request.param)


LIMITS = {"int64": 1 << 61, "int32": 1 << 29}
"""Numbers of each ring that protocols compare."""


@pytest.fixture(params=[("numpy", 2), ("numpy", 3), ("numpy", 5), ("torch", 2), ("torch", 4)], ids=str)
def group(request: pytest.FixtureRequest) -> Group:
    """Parties with the kernels of either framework."""
    framework, count = request.param
    return Group(count, make_kernels(framework))


@pytest.fixture(params=["int64", "int32"])
def values(request: pytest.FixtureRequest) -> Any:
    """Two arrays of numbers of each ring, with the largest and some that are equal."""
    limit = LIMITS[request.param]
    random = np.random.default_rng(7)
    x = random.integers(-limit, limit, (300,)).astype(request.param)
    x[:8] = [0, 1, -1, limit - 1, -limit + 1, 2, -2, 255]
    y = random.integers(-limit, limit, (300,)).astype(request.param)
    y[::5] = x[::5]
    return x, y
