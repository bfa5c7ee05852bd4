"""A worker of this process, served on the network with its page, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import Credentials
from syft_core.network.identity import Identity
from syft_core.network.server import Server
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.page import Page

TOKENS = {"owner-secret": Identity("Dr. Noor", True), "ana-secret": Identity("ana")}


class Served:
    """A worker with its server and its page, and the tokens that are valid."""

    def __init__(self, hook: Any, id: str = "hospital", tls: Any = None, **options: Any) -> None:
        self.hook, self.tokens = hook, dict(TOKENS)
        self.worker = VirtualWorker(hook, id=id, auto_add=False, serialize=False, **options)
        self.server = Server(self.worker, "127.0.0.1", 0, self.authenticate, tls)
        self.page = Page(self.server)
        self.clients: list[WebsocketClientWorker] = []

    def authenticate(self, credentials: Credentials) -> Identity | None:
        return self.tokens.get(credentials.token or "")

    def connect(self, token: str = "ana-secret", client: Any = None, **options: Any) -> WebsocketClientWorker:
        location = WebsocketClientWorker(
            self.hook, "127.0.0.1", self.server.port, token=token, client=client, **options
        )
        self.clients.append(location)
        return location


@contextmanager
def serve(hook: Any, id: str = "hospital", **options: Any) -> Iterator[Served]:
    """Serve a worker and its page on free ports."""
    served = Served(hook, id, **options)
    served.server.start()
    served.page.start()
    try:
        yield served
    finally:
        for client in served.clients:
            client.close()
        hook.local_worker._known_workers.pop(id, None)
        served.page.stop()
        served.server.stop()
