"""A TCP proxy on 127.0.0.1 that delays what passes, and cuts connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque


class Proxy:
    """Passes connections on to ``port``; ``budget`` bytes after the start of each connection, it is cut."""

    def __init__(self, port: int, delay: float = 0) -> None:
        self._target, self._delay = port, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.budgets: deque[int] = deque()
        """After how many bytes, in both directions together, the next connections are cut; then none is."""
        self.connections = 0
        self.seen: tuple[bytearray, bytearray] | None = None
        """What came from the worker and what went to it, if a test puts two empty bytearrays here."""
        self._sockets: list[socket.socket] = []
        self._is_closed = False
        self._changing = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Cut all connections and accept no more."""
        self._is_closed = True
        _close(self._listener)
        self.cut()

    def cut(self) -> None:
        """Cut all connections."""
        with self._changing:
            while self._sockets:
                _close(self._sockets.pop())

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target), 60)
                far.settimeout(None)
            except OSError:
                near.close()
                return
            self.connections += 1
            with self._changing:
                self._sockets += [near, far]
            if self._is_closed:  # It was closed while this connection was made.
                self.cut()
                return
            left = [self.budgets.popleft() if self.budgets else 1 << 62]
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass_on, args=(near, far, left, True), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(far, near, left, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, left: list[int], to_worker: bool) -> None:
        queue: deque[tuple[float, bytes]] = deque()
        arrived = threading.Condition()
        if self._delay:
            threading.Thread(target=self._send_later, args=(target, queue, arrived), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                data = data[: max(left[0], 0)]
                left[0] -= len(data)
                if self.seen is not None:
                    self.seen[to_worker].extend(data)
                if self._delay:
                    with arrived:
                        queue.append((time.monotonic() + self._delay, data))
                        arrived.notify()
                else:
                    target.sendall(data)
                if left[0] <= 0:
                    break
        _close(source)
        if not self._delay:
            _close(target)

    def _send_later(
        self, target: socket.socket, queue: deque[tuple[float, bytes]], arrived: threading.Condition
    ) -> None:
        with contextlib.suppress(OSError):
            while True:
                with arrived:
                    while not queue:
                        arrived.wait()
                    due, data = queue.popleft()
                time.sleep(max(due - time.monotonic(), 0))
                target.sendall(data)


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
