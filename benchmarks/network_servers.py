"""The servers that ``network.py`` measures, each in a process of its own: a worker, a proxy, and bare echoes.

An echo of a websocket library answers a message with itself, one that begins with ``STORE`` with ``STORE`` alone, and
``FETCH`` with 8 MB, so that both directions of a transfer can be measured.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import Any, NamedTuple

import measure  # noqa: F401  # makes this checkout importable

STORE, FETCH = b"s", b"f"
BIG = bytes(8 << 20)


class Running(NamedTuple):
    """A server in a process of its own."""

    process: Any
    port: int
    ask: Callable[[Any], Any]
    """Sends something to the server and returns its answer, if it takes anything but its end."""

    def memory(self) -> float:
        """Return the resident memory of the server, in MB."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def start(serve: Callable[..., None], *args: Any) -> Iterator[Running]:
    """Run ``serve(pipe, *args)``, which sends its port and ends when the pipe is closed, in a second process."""
    context = get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_run, args=(serve, theirs, *args), daemon=True)
    process.start()
    theirs.close()

    def ask(request: Any) -> Any:
        mine.send(request)
        return mine.recv()

    try:
        yield Running(process, mine.recv(), ask)
    finally:
        mine.close()
        process.join(10)
        process.kill()


def _run(serve: Callable[..., None], pipe: Any, *args: Any) -> None:
    logging.disable(logging.WARNING)  # Nothing here is encrypted.
    serve(pipe, *args)


def answer(message: bytes | bytearray) -> bytes | bytearray:
    """Return what a bare server answers."""
    return {STORE: STORE, FETCH: BIG}.get(bytes(message[:1]), message)


def serve_worker(pipe: Any, id: str) -> None:
    _wait(pipe, start_worker(id).port)


def serve_party(pipe: Any, id: str) -> None:
    """Serve a worker that reaches others: it takes the ports of all workers, by id."""
    from syft_core.network.address import Address  # noqa: PLC0415  # only this server needs it
    from syft_core.network.links import PeerLocation  # noqa: PLC0415

    server = start_worker(id)
    pipe.send(server.port)
    for other, port in pipe.recv().items():
        if other != id:
            location = PeerLocation(server.worker, other, Address("127.0.0.1", port, secure=False))
            server.worker.add_worker(location)
    _wait(pipe, server.port)


def start_worker(id: str) -> Any:
    """Serve the worker that ``syft-core worker`` serves: with quotas, a ledger file and a record of what it does.

    Only its users differ: a token is the name of a user, who may have any number of connections.
    """
    import torch  # noqa: PLC0415  # only these servers need it

    from syft_core.network.server import Identity, Server  # noqa: PLC0415
    from syft_worker.activity import SIZE  # noqa: PLC0415
    from syft_worker.config import parse_config  # noqa: PLC0415
    from syft_worker.serving import build_worker  # noqa: PLC0415

    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="syft-benchmark-")
    activity = os.memfd_create("activity")
    os.truncate(activity, SIZE)
    config = parse_config({"id": id, "ledger": f"{folder}/ledger", "users": {"default": {"connections": 10_000}}})
    worker, _close = build_worker(config, {"activity": activity, "incidents": []})
    server = Server(worker, "127.0.0.1", 0, lambda given: Identity(given.token or "nobody"))
    server.start()
    return server


def serve_proxy(pipe: Any, port: int, delay: float) -> None:
    from tests.network.proxy import Proxy  # noqa: PLC0415

    _wait(pipe, Proxy(port, delay).port)


def serve_tcp(pipe: Any) -> None:
    """Echo messages that begin with their length, on a bare socket."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(EOFError):
            while True:
                send_tcp(sock, answer(receive_tcp(sock)))

    _wait(pipe, listener.getsockname()[1], serve)


def send_tcp(sock: socket.socket, message: bytes | bytearray) -> None:
    parts = [len(message).to_bytes(8, "little"), message]
    sent = sock.sendmsg(parts)
    if sent < 8 + len(message):
        sock.sendall(memoryview(message)[sent - 8 :])


def receive_tcp(sock: socket.socket) -> bytearray:
    head = sock.recv(8, socket.MSG_WAITALL)
    if not head:
        raise EOFError
    message = bytearray(int.from_bytes(head, "little"))
    view, done = memoryview(message), 0
    while done < len(message):
        done += sock.recv_into(view[done:])
    return message


def serve_frames(pipe: Any) -> None:
    """Echo messages with the frames of this library, without a worker behind them."""
    from syft_core.network.connection import Connection  # noqa: PLC0415

    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(sock, is_client=False, max_bytes=1 << 30)
        with suppress(ConnectionError):
            while received := connection.receive():
                connection.send(received[0], [answer(received[1][0])])

    _wait(pipe, listener.getsockname()[1], serve)


def serve_websockets(pipe: Any) -> None:
    from websockets.sync.server import serve  # noqa: PLC0415

    def echo(connection: Any) -> None:
        for message in connection:
            connection.send(answer(message))

    server = serve(echo, "127.0.0.1", 0, compression=None, max_size=None, ping_interval=None)
    _wait(pipe, server.socket.getsockname()[1], server.serve_forever)


def serve_websockets_asyncio(pipe: Any) -> None:
    from websockets.asyncio.server import serve  # noqa: PLC0415

    async def echo(connection: Any) -> None:
        async for message in connection:
            await connection.send(answer(message))

    async def main() -> None:
        async with serve(echo, "127.0.0.1", 0, compression=None, max_size=None, ping_interval=None) as server:
            await _wait_in_loop(pipe, server.sockets[0].getsockname()[1])

    asyncio.run(main())


def serve_picows(pipe: Any) -> None:
    import picows  # noqa: PLC0415

    class Echo(picows.WSListener):
        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            transport.send(picows.WSMsgType.BINARY, answer(frame.get_payload_as_bytes()))

    async def main() -> None:
        server = await picows.ws_create_server(
            lambda _request: Echo(), "127.0.0.1", 0, max_frame_size=1 << 30, websocket_handshake_timeout=5
        )
        await _wait_in_loop(pipe, server.sockets[0].getsockname()[1])

    importlib.import_module("uvloop").run(main())


def _wait(pipe: Any, port: int, serve: Callable[[], None] | None = None) -> None:
    """Report the port, and serve until the pipe is closed."""
    if serve is not None:
        threading.Thread(target=serve, daemon=True).start()
    pipe.send(port)
    try:
        pipe.recv()
    except EOFError:
        os._exit(0)


async def _wait_in_loop(pipe: Any, port: int) -> None:
    pipe.send(port)
    await asyncio.get_running_loop().run_in_executor(None, pipe.poll, None)
    os._exit(0)
