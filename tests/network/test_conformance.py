"""A worker in a second process, reached by websocket, passes the suite for transports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from syft_core.exceptions import TicketError
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.server import Server
from syft_core.testing.transport import TransportConformance, World, _tensor

from .processes import authenticate, start_worker

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from syft_numpy.hook import NumpyHook  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402


class Websocket(TransportConformance):
    backend: str

    @classmethod
    @contextmanager
    def start_worker(cls, hook: Any, near: Any, eve: Any) -> Iterator[Any]:
        server = Server(near, "127.0.0.1", 0, authenticate)
        server.start()
        with start_worker(cls.backend, "far", near=server.port) as (process, port, _):
            locations = [
                WebsocketClientWorker(hook, "127.0.0.1", port, client=client, token=f"secret of {user}")
                for client, user in ((hook.local_worker, "me"), (near, "near"), (eve, "eve"))
            ]
            yield locations[0], locations[2]
            for location in locations:
                location.close()
            server.stop()
        assert process.exitcode == 0

    def test_objects_move_in_both_directions(self, world: World) -> None:
        """Far reaches near with a token of its own, so it cannot act for a client; ``test_links.py`` has tickets."""
        x = _tensor(world.hook, [1.0, 2.0]).send(world.near).move(world.far)

        with pytest.raises(TicketError, match="cannot execute a batch of 'far' on behalf of 'me'"):
            x.move(world.near)
        assert x.get().tolist() == [1.0, 2.0]


class TestTorchOverWebsocket(Websocket):
    framework, hook_class, backend = torch, TorchHook, "torch syft_torch.hook TorchHook"


class TestNumpyOverWebsocket(Websocket):
    framework, hook_class, backend = numpy, NumpyHook, "numpy syft_numpy.hook NumpyHook"
