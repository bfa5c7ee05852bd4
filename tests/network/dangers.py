"""Operations that no worker should have, and a loader that adds them to a worker's op table."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import time
from typing import Any

import numpy as np

from syft_core.hook.hook import attached_hooks
from syft_core.serde import Context, register_codec


def crash(x: Any) -> Any:
    return ctypes.string_at(0)


def hang(x: Any) -> Any:
    while True:
        time.sleep(0.01)


def hog(x: Any) -> Any:
    kept = []
    while True:
        kept.append(np.zeros(10**6))  # counts as used before it is written to


def read_passwords(x: Any) -> Any:
    with open("/etc/passwd", encoding="utf-8") as file:
        file.read()
    return x


def start_program(x: Any) -> Any:
    os.posix_spawn("/bin/true", ["true"], {})
    return x


def open_socket(x: Any) -> Any:
    socket.socket().close()
    return x


def fill_disk(x: Any) -> Any:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    return x


def signal_supervisor(x: Any) -> Any:
    os.kill(os.getppid(), 0)
    return x


class Bomb:
    """An object that a worker cannot read."""


def explode(_payload: Any, _context: Context) -> Bomb:
    if IS_WORKER:
        ctypes.string_at(0)
    return Bomb()


IS_WORKER = False
register_codec(Bomb, code=1_234_567, simplify=lambda _bomb, _context: (), detail=explode)


def load() -> dict[str, Any]:
    """Return the data of a worker."""
    global IS_WORKER  # noqa: PLW0603  # the process of the tests imports this module too
    IS_WORKER = True
    (hook,) = attached_hooks()
    for function in (crash, hang, hog, read_passwords, start_program, open_socket, signal_supervisor, fill_disk):
        hook.attributes.allow(function, f"test.{function.__name__}", writes=frozenset(), reads_beyond=False)
    return {"ages": hook.create_tensor([30.0, 40.0, 50.0])}


def end_at_once() -> Any:
    os._exit(7)
