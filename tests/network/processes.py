"""Workers in processes of their own, for tests."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from syft_core.network.address import Address
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.credentials import Credentials
from syft_core.network.identity import Identity
from syft_core.network.links import PeerLocation
from syft_core.network.server import Server
from syft_core.testing.transport import equip
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.data import DataSource, load
from tests.waiting import wait_for_result, wait_until


def authenticate(credentials: Credentials) -> Identity | None:
    """Accept a token that names its user: "secret of ana"."""
    start, _, user = (credentials.token or "").partition(" of ")
    return Identity(user) if start == "secret" and user else None


def run_worker(backend: str, id: str, data: Sequence[str], links: dict[str, int], pipe: Connection) -> None:
    """Run a worker that is served on the network, until the pipe is closed.

    ``data`` are files that it loads. ``links`` are workers that it reaches with its own token; the pipe names those
    that it reaches with tickets.
    """
    framework, hook_module, hook_name = backend.split(" ")
    hook = getattr(importlib.import_module(hook_module), hook_name)(importlib.import_module(framework))
    worker = VirtualWorker(hook, id=id, auto_add=False, serialize=False)
    equip(worker, hook)
    worker.load_data(load([DataSource.parse(source) for source in data], hook))
    for other, port in links.items():
        WebsocketClientWorker(hook, "127.0.0.1", port, id=other, client=worker, token=f"secret of {id}")
    server = Server(worker, "127.0.0.1", 0, authenticate)
    server.start()
    pipe.send(server.port)
    try:
        while True:
            for other, port in pipe.recv().items():
                worker.add_worker(PeerLocation(worker, other, Address("127.0.0.1", port, secure=False)))
            pipe.send("done")
    except EOFError:
        server.stop()


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Wait until somebody accepts connections."""

    def is_accepting() -> bool:
        with socket.socket() as sock:
            sock.settimeout(60)
            return sock.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_accepting, pause=0.05)


@contextmanager
def start_worker(backend: str, id: str, data: Sequence[str] = (), **links: int) -> Iterator[tuple[Any, int, Any]]:
    """Start a worker in a second process; yield its process, its port, and a function that adds peers."""
    context = get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=run_worker, args=(backend, id, data, links, theirs))
    process.start()
    theirs.close()

    def add_peers(ports: dict[str, int]) -> None:
        mine.send(ports)
        wait_for_result(mine.recv)

    try:
        yield process, wait_for_result(mine.recv), add_peers
    finally:
        mine.close()
        process.join(30)
        process.kill()
