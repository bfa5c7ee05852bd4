"""A worker in a second process, reached over pipes: a complete transport, as an example.

On the side of the client a transport is a ``WireLocation`` with two methods. On the side of the worker it calls
``deliver`` with the frames that came in and the ``Peer`` that it knows to be at the other end.
"""

from __future__ import annotations

import importlib
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from syft_core.peer import Peer
from syft_core.testing.transport import equip
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.party.virtual import VirtualWorker


class PipeLocation(WireLocation):
    """The location of a worker at the other end of a pipe."""

    def __init__(self, client: Any, id: str, connection: Connection) -> None:
        super().__init__(client, id)
        self.connection = connection

    def send_frames(self, sent: Sequence[Any]) -> None:
        send(self.connection, sent)

    def receive_frames(self, wait: bool) -> Sequence[Any] | None:
        return receive(self.connection) if wait or self.connection.poll() else None


def send(connection: Connection, frames: Sequence[Any]) -> None:
    """Write how many frames follow, and then each."""
    connection.send_bytes(struct.pack("<I", len(frames)))
    for frame in frames:
        connection.send_bytes(frame)


def receive(connection: Connection) -> list[bytes]:
    """Read one message."""
    (count,) = struct.unpack("<I", connection.recv_bytes())
    return [connection.recv_bytes() for _ in range(count)]


def serve(worker: VirtualWorker, connection: Connection, peer: Peer, is_worker: bool = False) -> None:
    """Answer one client until it closes its end; each client has a thread, and the worker sees one at a time.

    A worker at the other end, which belongs to the same owner, may act for its clients.
    """
    try:
        while True:
            send(connection, worker.deliver(receive(connection), peer, delegates=lambda _peer: is_worker))
    except (EOFError, OSError):
        return


def run_worker(backend: str, clients: dict[Peer, Connection], links: dict[str, Connection]) -> None:
    """Run the second process: a worker that serves ``clients`` and reaches others over ``links``."""
    framework, hook_module, hook_name = backend.split(" ")
    hook = getattr(importlib.import_module(hook_module), hook_name)(importlib.import_module(framework))
    far = VirtualWorker(hook, id="far", auto_add=False, serialize=False)
    equip(far, hook)
    for id, connection in links.items():
        far.add_worker(PipeLocation(far, id, connection))
    threads = [
        threading.Thread(target=serve, args=(far, pipe, peer, peer.id == "near")) for peer, pipe in clients.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def start_far_worker(backend: str, me: Any, near: VirtualWorker, eve: VirtualWorker) -> Iterator[tuple[Any, Any, Any]]:
    """Start a worker in a second process; yield its process and the locations of two clients."""
    context = get_context("spawn")
    clients = (me, near, eve)
    pipes = [context.Pipe() for _ in clients]
    to_near, at_near = context.Pipe()
    theirs = {client.peer: pipe for client, (_, pipe) in zip(clients, pipes, strict=True)}
    process = context.Process(target=run_worker, args=(backend, theirs, {near.id: to_near}))
    process.start()
    for given in (*theirs.values(), to_near):
        given.close()
    answering = threading.Thread(target=serve, args=(near, at_near, Peer("far"), True))
    answering.start()
    locations = [PipeLocation(client, "far", pipe) for client, (pipe, _) in zip(clients, pipes, strict=True)]
    for client, location in zip(clients, locations, strict=True):
        client.add_worker(location)
    try:
        yield process, locations[0], locations[2]
    finally:
        for pipe, _ in pipes:
            pipe.close()
        process.join(30)
        answering.join(30)
