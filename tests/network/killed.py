"""A served worker with a ledger and a store that is killed at a chosen write to disk, and started again.

Start it with ``python -m tests.network.killed FOLDER KEEPS``; ``KEEPS`` says what the worker has: "store", "ledger" or
"both". It prints its port. Each line ``NUMBER NAME`` that it reads starts a new worker in ``FOLDER/NAME``, which kills
itself at that point: before a step of writing, or after the last one. It prints "ready", and is started again when it
has died.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from syft_core.network.credentials import Credentials
from syft_core.network.identity import Identity
from syft_core.network.server import Server
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger
from syft_numpy.hook import NumpyHook
from syft_worker.storage import Storage

TOKENS = {"owner": Identity("noor", True), "asker": Identity("ana"), "other": Identity("bo")}


def authenticate(credentials: Credentials) -> Identity | None:
    return TOKENS.get(credentials.token or "")


def kill_at(point: int) -> None:
    """Kill this process before or after one of its next writes to disk."""
    count = 0

    def pass_point() -> None:
        nonlocal count
        if count == point:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            pass_point()
            result = function(*args, **kwargs)
            if function is sync:
                pass_point()
            return result

        return call

    sync = os.fsync
    for name in ("fsync", "replace", "write", "unlink"):
        setattr(os, name, counted(getattr(os, name)))


def serve(folder: Path, keeps: str, listener: socket.socket, point: int) -> None:
    hook = NumpyHook(np)
    ledger = Ledger("hospital", folder / "ledger") if keeps != "store" else None
    worker = VirtualWorker(hook, id="hospital", auto_add=False, serialize=False, ledger=ledger)
    data = [hook.array([10.0, 20.0]).private_tensor([]).tag("#ages")]
    if keeps == "ledger":
        worker.load_data(data)
    else:
        Storage(folder / "store", worker, data)
    server = Server(worker, "127.0.0.1", 0, authenticate, listener=listener)
    server.start()
    os.write(1, b"ready\n")
    if point >= 0:
        kill_at(point)
    server.wait()


def main(folder: Path, keeps: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    os.write(1, f"{listener.getsockname()[1]}\n".encode())
    child, name = 0, ""
    while True:
        if select.select([0], [], [], 0.01)[0]:
            line = os.read(0, 1 << 12).decode().split()
            if child:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            if not line:
                return
            point, name = int(line[0]), line[1]
            (folder / name).mkdir()
            child = start(folder / name, keeps, listener, point)
        elif child and os.waitpid(child, os.WNOHANG)[0]:
            child = start(folder / name, keeps, listener, -1)


def start(folder: Path, keeps: str, listener: socket.socket, point: int) -> int:
    if child := os.fork():
        return child
    try:
        serve(folder, keeps, listener, point)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
