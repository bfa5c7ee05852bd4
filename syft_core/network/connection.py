"""Connection: messages of several buffers over one websocket, without joining, copying or encoding the buffers.

One message is one binary websocket message: an envelope, followed by the buffers. The library ``websockets`` does the
opening handshake; the frames are read and written here, because the library copies every payload several times and
needs a thread or an event loop for each connection (see benchmarks/README.md).
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import islice
from typing import Any, NamedTuple

from websockets.utils import apply_mask

from syft_core.exceptions import ConnectionLostError
from syft_core.network.pieces import MAX_BUFFERS, Assembly, split
from syft_core.serde.layout import Frame

MAX_FRAME = 1 << 26
"""The maximum size in bytes of buffers in one websocket message; larger ones are split, see ``pieces.py``."""
MAX_CONTROL = 125
"""The maximum size in bytes of a ping, a pong or a close, by the standard."""
_CHUNK = 1 << 14
"""How many bytes to read ahead; longer payloads are received in place."""
_SMALL = 1 << 14
"""Over TLS, buffers up to this size are joined, because each call writes a separate record."""
_MAX_PARTS = min(os.sysconf("SC_IOV_MAX"), 512) if hasattr(os, "sysconf") else 16
_ENVELOPE = struct.Struct("<B?xxIQQ")
_SHORT, _LONG = struct.Struct(">H"), struct.Struct(">Q")
_BINARY, _CLOSE, _PING, _PONG = 0x2, 0x8, 0x9, 0xA
_CONTROL = (_CLOSE, _PING, _PONG)
_FIN, _MASKED = 0x80, 0x80
_NO_MASK = bytes(4)


class Purpose(IntEnum):
    """The purpose of a message."""

    BATCH = 0
    """Commands of the client, or the reply to them."""
    REQUEST = 1
    """Commands of the worker to its client."""
    RESPONSE = 2
    """The reply to them."""
    NOTE = 3
    """A note, which has no reply unless it is refused; from the worker, that reply, or only the envelope."""


_KINDS = tuple(Purpose)


class Envelope(NamedTuple):
    """The part of a message that the transport needs."""

    kind: Purpose
    number: int
    """The position of the message in its direction, counted from 1 in each session."""
    received: int
    """The number of the last message that the sender has received."""
    more: bool = False
    """Whether the message continues in the next one of its kind."""


class Connection:
    """A websocket over a connected socket, for one reading thread and any number of writing threads.

    A client must mask its frames; it uses the mask 0, which changes nothing. Masks protect proxies from scripts in
    browsers; these connections are encrypted, or do not leave the machine.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        is_client: bool,
        max_bytes: int,
        unread: bytes = b"",
        require_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._socket = sock
        self._require_room = require_room
        self.arriving = 0
        """The size of the arriving message in bytes; ``require_room`` raises if it is too large."""
        self._timeout = sock.gettimeout()
        """Seconds to wait for the rest of a message; None to wait forever."""
        sock.setblocking(False)
        self._arrival = select.poll()
        self._arrival.register(sock, select.POLLIN)
        self._calling = threading.Lock()
        """Held during each call of the socket: two threads must not use a TLS connection at the same time."""
        self._is_client = is_client
        self._max_bytes = max_bytes
        self._encrypted = isinstance(sock, ssl.SSLSocket)
        self._writing = threading.Lock()
        self._wanted = select.POLLOUT
        """The event needed by the last call that would have blocked."""
        self._early: deque[tuple[Envelope, list[bytearray]]] = deque()
        self._ahead = bytearray(max(_CHUNK, len(unread)))
        self._ahead[: len(unread)] = unread
        self._view = memoryview(self._ahead)
        self._start, self._end = 0, len(unread)
        """The bounds of the bytes that were read ahead."""
        self._assembly = Assembly()
        self._left = 0
        self._mask = b""
        """Empty for the mask 0."""
        self._final = True
        self.bytes_in = self.bytes_out = 0

    # --- messages

    def send(self, envelope: Envelope, buffers: Sequence[Frame]) -> None:
        """Send one message; the buffers may be overwritten when this returns."""
        lengths = [len(buffer) if type(buffer) is bytes else memoryview(buffer).nbytes for buffer in buffers]
        kind, number, received, more = envelope
        head = struct.pack(f"<B?xxIQQ{len(lengths)}Q", kind, more, len(lengths), number, received, *lengths)
        with self._writing:
            self._write_locked(_BINARY, [head, *buffers], len(head) + sum(lengths))

    def send_whole(self, kind: Purpose, number: int, buffers: Sequence[Frame]) -> None:
        """Send a message outside of any session, in as many pieces as necessary."""
        for piece, more in split(buffers):
            self.send(Envelope(kind, number, 0, more), piece)

    def join(self, envelope: Envelope, buffers: list[bytearray]) -> list[bytearray] | None:
        """Add a piece sent by ``send_whole``; return the message, or None if another piece follows."""
        return self._assembly.join(buffers, envelope.more)

    @property
    def joined(self) -> int:
        """The size in bytes of incomplete messages."""
        return self._assembly.size

    def receive(self, seconds: float | None = None) -> tuple[Envelope, list[bytearray]] | None:
        """Return the next message, in memory of its own; raise if the other end is silent for ``seconds``.

        With 0 seconds, return None if no message has arrived. After an error, the connection cannot be used.
        """
        if self._early:
            return self._early.popleft()
        try:
            return self._receive_message(seconds)
        except BaseException:  # Even an interrupt from the keyboard may come in the middle of a message.
            self.interrupt()
            raise

    def _receive_message(self, seconds: float | None) -> tuple[Envelope, list[bytearray]] | None:
        if not self._start_message(seconds):
            return None
        kind, more, count, number, received = _ENVELOPE.unpack(self._take(_ENVELOPE.size))
        if count > MAX_BUFFERS or kind >= len(_KINDS):
            raise ConnectionLostError.malformed("its envelope is wrong")
        lengths = struct.unpack(f"<{count}Q", self._take(8 * count))
        if (size := sum(lengths)) > self._max_bytes:
            raise ConnectionLostError.malformed(f"it has {size} bytes, and the limit is {self._max_bytes}")
        self.arriving = size
        try:
            if self._end - self._start < size:  # Part of it has not arrived.
                self._require_room()
            buffers = [self._take(length) for length in lengths]
        finally:
            self.arriving = 0
        while not self._left and not self._final:  # The last frame may be empty.
            self._continue_message()
        if self._left:
            raise ConnectionLostError.malformed("it is longer than its envelope says")
        return Envelope(_KINDS[kind], number, received, more), buffers

    def ping(self) -> None:
        """Send a ping, which shows that this end is alive."""
        self._write_control(_PING, b"")

    def close(self, code: int = 1000) -> None:
        """Send a close frame if possible, then close the socket."""
        with contextlib.suppress(OSError, ConnectionLostError):
            self._timeout = 1
            if self._writing.acquire(timeout=1):
                try:
                    self._write_locked(_CLOSE, [struct.pack(">H", code)], 2)
                finally:
                    self._writing.release()
        self.abort()

    def drain(self, seconds: float | None = None) -> None:
        """Stop sending, and wait until the other end has read everything and closes the connection.

        Closing the socket at once would discard unread bytes. By default, wait as long as for the rest of a message.
        """
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)
        self._timeout = self._timeout if seconds is None else seconds
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        with contextlib.suppress(ConnectionLostError):
            while deadline is None or time.monotonic() < deadline:
                self._receive(self._view, self._timeout)

    def interrupt(self) -> None:
        """Make the thread that uses the connection fail; that thread closes the socket."""
        interrupt(self._socket)

    def leave(self) -> None:
        """Close the socket in this process only."""
        self._socket.close()

    def abort(self) -> None:
        """Close the socket."""
        abort(self._socket)

    # --- writing frames

    def _write_control(self, opcode: int, payload: Frame) -> None:
        """Write a ping or a pong, unless a message is being written: that is a sign of life, too."""
        if self._writing.acquire(blocking=False):
            try:
                self._write_locked(opcode, [payload], len(payload))
            finally:
                self._writing.release()

    def _write_locked(self, opcode: int, parts: list[Frame], length: int) -> None:
        masked = _MASKED if self._is_client else 0
        if length < 126:
            head = struct.pack(">BB", _FIN | opcode, masked | length)
        elif length < 1 << 16:
            head = struct.pack(">BBH", _FIN | opcode, masked | 126, length)
        else:
            head = struct.pack(">BBQ", _FIN | opcode, masked | 127, length)
        if masked:
            head += _NO_MASK
        self.bytes_out += len(head) + length
        try:
            self._send_all([head, *parts], len(head) + length)
        except (OSError, ValueError) as error:
            self.interrupt()
            raise ConnectionLostError.during("sending", error) from None
        except BaseException:  # The rest of the frame is missing.
            self.interrupt()
            raise

    def _send_all(self, parts: Sequence[Frame], length: int) -> None:
        if self._encrypted:
            for part in _join_small(parts):
                left = memoryview(part).cast("B")
                while left:
                    left = left[self._send(self._socket.send, left) :]
            return
        try:
            sent = self._socket.sendmsg(parts[:_MAX_PARTS])
        except BlockingIOError:
            sent = 0
        if sent == length:
            return
        views = deque(memoryview(part).cast("B") for part in parts if len(part))
        while True:
            while views and sent >= len(views[0]):
                sent -= len(views.popleft())
            if not views:
                return
            views[0] = views[0][sent:]
            sent = self._send(self._socket.sendmsg, list(islice(views, _MAX_PARTS)))

    def _send(self, method: Callable[[Any], int], argument: object) -> int:
        """Send some bytes, and return how many.

        A client keeps reading: the worker may be sending a reply, and will not read until it has arrived.
        """
        sent = self._call(method, argument, select.POLLOUT, 0 if self._is_client else self._timeout)
        while sent is None and self._is_client and self._wait_for(self._wanted | select.POLLIN, self._timeout):
            if self._arrival.poll(0) and (received := self._receive_message(0)) is not None:
                self._early.append(received)
            sent = self._call(method, argument, select.POLLOUT, 0)
        if sent is None:
            raise TimeoutError("the other end does not read")
        return sent

    def _call(self, method: Callable[[Any], int], argument: object, event: int, seconds: float | None) -> int | None:
        """Call a method of the socket as soon as it does not block; return None after ``seconds``."""
        while True:
            try:
                with self._calling:
                    return method(argument)
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except BlockingIOError:
                pass
            if seconds == 0:
                self._wanted = event
                return None
            if not self._wait_for(event, seconds):
                return None

    def _wait_for(self, events: int, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self._socket, events)
        return bool(poll.poll(None if seconds is None else seconds * 1000))

    # --- reading frames

    def _start_message(self, seconds: float | None) -> bool:
        while True:
            if self._start == self._end:
                self._start, self._end = 0, self._receive(self._view, seconds)
                if not self._end:
                    return False
            opcode = self._read_head()
            if opcode == _BINARY:
                return True
            self._answer_control(opcode)

    def _read_head(self) -> int:
        self._read_ahead(2)
        first, second = self._ahead[self._start : self._start + 2]
        length, size = second & 0x7F, 2
        if first & 0x70 or bool(second & _MASKED) is self._is_client:
            raise ConnectionLostError.malformed("its frame is not masked, or uses an extension")
        if length >= 126:
            number = _SHORT if length == 126 else _LONG
            self._read_ahead(2 + number.size)
            (length,) = number.unpack_from(self._ahead, self._start + 2)
            size += number.size
        opcode = first & 0x0F
        if opcode >= _CLOSE and (length > MAX_CONTROL or not first & _FIN):
            raise ConnectionLostError.malformed("its control frame is too long")
        if opcode < _CLOSE:
            self._final = bool(first & _FIN)
        self._start += size
        mask = b"" if self._is_client else bytes(self._take_raw(4))
        self._mask = mask if mask != _NO_MASK else b""
        self._left = length
        return opcode

    def _answer_control(self, opcode: int) -> None:
        if opcode not in _CONTROL:  # Checked before reading its payload, whose length is not limited.
            raise ConnectionLostError.malformed("its frame is of an unknown kind")
        payload = self._take(self._left)
        if opcode == _PING:
            self._write_control(_PONG, payload)
        elif opcode == _CLOSE:
            raise ConnectionLostError.closed()

    def _take(self, length: int) -> bytearray:
        if length <= self._left:
            data = self._take_raw(length)
            self._left -= length
            return self._unmask(data) if self._mask else data
        data = bytearray()
        while len(data) < length:
            while not self._left:
                if self._final:
                    raise ConnectionLostError.malformed("it is shorter than its envelope says")
                self._continue_message()
            size = min(self._left, length - len(data))
            piece = self._take_raw(size)
            self._left -= size
            data += self._unmask(piece)
        return data

    def _continue_message(self) -> None:
        opcode = self._read_head()
        if opcode >= _CLOSE:
            self._answer_control(opcode)
        elif opcode != 0:
            raise ConnectionLostError.malformed("a new message begins before it has ended")

    def _unmask(self, data: bytearray) -> bytearray:
        if not self._mask or not data:
            return data
        plain = bytearray(apply_mask(bytes(data), self._mask))
        shift = len(data) % 4
        self._mask = self._mask[shift:] + self._mask[:shift]
        return plain

    def _take_raw(self, length: int) -> bytearray:
        if length > _CHUNK and self._end - self._start < length:
            return self._take_long(length)
        self._read_ahead(length)
        start = self._start
        self._start = end = start + length
        return self._ahead[start:end]

    def _read_ahead(self, length: int) -> None:
        rest = self._end - self._start
        if rest >= length:
            return
        if self._start + length > len(self._ahead) or not rest:
            self._ahead[:rest] = self._ahead[self._start : self._end]
            self._start, self._end = 0, rest
        while self._end - self._start < length:
            self._end += self._receive(self._view[self._end :], self._timeout)

    def _take_long(self, length: int) -> bytearray:
        taken, done = bytearray(length), self._end - self._start
        view = memoryview(taken)
        view[:done] = self._view[self._start : self._end]
        self._start = self._end = 0
        while done < length:
            done += self._receive(view[done:], self._timeout)
        return taken

    def _receive(self, view: memoryview, seconds: float | None) -> int:
        """Receive some bytes and return their number; with 0 seconds, return 0 if none have arrived."""
        count: int | None = None
        try:
            if self._encrypted or seconds == 0 or self._arrival.poll(None if seconds is None else seconds * 1000):
                count = self._call(self._socket.recv_into, view, select.POLLIN, seconds)
        except (OSError, ValueError) as error:
            raise ConnectionLostError.during("receiving", error) from None
        if count is None:
            if seconds == 0:
                return 0
            raise ConnectionLostError.during("receiving", TimeoutError("no sign of life"))
        if not count:
            raise ConnectionLostError.closed()
        self.bytes_in += count
        return count


def interrupt(sock: socket.socket) -> None:
    """Make a thread that waits for a socket fail; the file descriptor stays in use until that thread closes it."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # With TLS too: only its own thread may send a close alert.


def abort(sock: socket.socket) -> None:
    """Close a socket; a thread that reads or writes it fails."""
    interrupt(sock)
    sock.close()


def _join_small(parts: Sequence[Frame]) -> list[Frame]:
    """Join consecutive small parts, so that TLS writes few records."""
    joined: list[Frame] = []
    small = bytearray()
    for part in parts:
        if len(part) <= _SMALL:
            small += part
            continue
        if small:
            joined.append(small)
            small = bytearray()
        joined.append(part)
    if small:
        joined.append(small)
    return joined
