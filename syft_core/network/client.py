"""WebsocketClientWorker: the location of a worker on the network."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import ssl
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from syft_core.exceptions import (
    AuthenticationError,
    ConnectionLostError,
    MessageSizeError,
    SessionLostError,
    WorkerError,
)
from syft_core.hook.hook import FrameworkHook, current_hook
from syft_core.location import Location
from syft_core.messages import GetTicket, Introduce, Message
from syft_core.network.address import (
    DEFAULT_PORT,
    Address,
    explain_address,
    explain_certificate,
    explain_failure,
    is_cut,
    is_loopback,
)
from syft_core.network.connection import MAX_FRAME, Connection, Envelope, Purpose
from syft_core.network.errors import AddressError, ProxyError
from syft_core.network.pieces import split
from syft_core.network.session import (
    BEGUN,
    CLIENT,
    HEARTBEAT,
    LIMIT,
    LOST,
    PROTOCOL,
    REASON,
    RECEIVED,
    SESSION,
    STATE,
    WORKER,
    Session,
)
from syft_core.network.tokens import conceal, find_token
from syft_core.peer import Id, Peer
from syft_core.printing import printable
from syft_core.serde.layout import Frame
from syft_core.values import Kwargs
from syft_core.workers.addresses.far import FarWorker
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.moving import codecs as _codecs  # noqa: F401  # registers codecs
from syft_core.workers.party.base import BaseWorker

_log = logging.getLogger(__name__)
MAX_HANDSHAKE = 1 << 14
"""The maximum size in bytes of each end's part of the opening handshake."""
MAX_DIGITS = 20
"""The maximum number of digits in a number of a header."""
MAX_SILENCE = 60.0
"""The longest silence of a worker in seconds, whatever its heartbeat, unless the timeout is longer."""
MAX_AHEAD = 4
"""The number of pieces of a large message to send before the worker has confirmed the first."""
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds to wait before each attempt to reconnect; the last is repeated."""
_FIRST_ATTEMPTS = 4
"""The number of initial attempts if connections are cut during the opening handshake."""
UNLOGGED = logging.Logger("syft_core.network.handshake", logging.CRITICAL + 1)
"""At level DEBUG the library would log all headers, which include the token."""
_instance = secrets.token_hex(6)
"""Distinguishes this process from others whose local worker has the same id."""
_opened: weakref.WeakSet[WebsocketLocation] = weakref.WeakSet()


_TEMPORARY = (408, 502, 503, 504)
"""Responses of a proxy whose worker is starting."""


def _leave(frame: Frame) -> Frame:
    return frame


class NotHttpError(ConnectionLostError):
    """The other end of a connection does not speak HTTP."""


class WebsocketLocation(WireLocation):
    """The location of a worker on the network.

    Except on this machine, the connection is encrypted and the worker's certificate is verified. After a lost
    connection, the client reconnects and the session continues: nothing is executed twice, and nothing is lost.
    """

    def __init__(self, client: BaseWorker, id: Id | None, address: Address, name: str, authorization: str) -> None:
        self._address, self._name, self._authorization = address, name, authorization
        self.timeout = address.timeout
        self._silence = 0.0
        """How many seconds a busy worker may be silent; it shows signs of life less often."""
        self._tls = address.make_context()
        self._session, self._secret = Session(), secrets.token_hex(16)
        self._expected = id
        self._begun: str | None = None
        """Names the session, once the worker has reported that it has begun."""
        self._connection: Connection | None = None
        self._arrived: deque[tuple[Envelope, list[bytearray]]] = deque()
        self._connected = 0.0
        """When the last connection began; 0 before the first."""
        self._progress: object = None
        self._broken, self._attempts = 0.0, 0
        """The time of the first break without progress since, and the number of attempts."""
        self._closed = False
        self._local = client
        super().__init__(client, "" if id is None else id)
        _opened.add(self)
        self.connect()

    @property
    def url(self) -> str:
        """The address of the worker."""
        return self._address.url

    def connect(self) -> None:
        """Connect, or reconnect and continue the session."""
        with self._lock:
            self._closed = False
            if self._connection is None:
                self._progress, self._attempts = None, 0
                self._connect(time.monotonic() + self._patience)

    @property
    def _patience(self) -> float:
        return self.timeout if self._connected else self._address.wait or self.timeout

    def close(self) -> None:
        """Send what is buffered and close the connection; ``connect`` continues the session."""
        with self._lock:
            if self._buffer and self._connection is not None:
                self._post(asks=False)
            self._closed = True
            self.disconnect(graceful=True)

    def _prepare(self, message: Message) -> None:
        """Refuse a message while the connection is closed: it must not be executed later, after the error."""
        if self._closed:
            raise ConnectionLostError.disconnected(self.id)
        super()._prepare(message)

    # --- the transport

    def send_frames(self, sent: Sequence[Frame]) -> None:
        """Send one batch; copy whatever the worker has not confirmed, because the frames may be overwritten."""
        self.transmit(Purpose.BATCH, sent, bytes)

    def transmit(self, kind: Purpose, frames: Sequence[Frame], copy: Callable[[Frame], Frame] = _leave) -> None:
        """Send a message; resend it if the connection breaks; frames that ``copy`` does not copy must not change."""
        session, pieces = self._session, list(split(frames))
        before = session.sent
        try:
            for piece, more in pieces:
                kept = [part if type(part) is bytes else copy(part) for part in piece]
                self._transmit_kept(session.keep(kept, kind, more), kept)
                if more:
                    self._let_worker_keep_up(session)
        except BaseException:
            rest = pieces[session.sent - before :]
            if rest and session is self._session:
                self._keep_rest(rest, kind)
            raise

    def _transmit_kept(self, envelope: Envelope, frames: Sequence[Frame]) -> None:
        if self._connection is None:
            self._reconnect(ConnectionLostError.closed())
            return
        try:
            self._connection.send(envelope, frames)
        except ConnectionLostError as error:
            self._reconnect(error)

    def _let_worker_keep_up(self, session: Session) -> None:
        """Read arrived messages, and wait while too many pieces are unconfirmed.

        A worker that waits for an answer itself confirms nothing.
        """
        while True:
            is_asked = any(envelope.kind is Purpose.REQUEST for envelope, _ in self._arrived)
            wait = session.sent - session.acknowledged > MAX_AHEAD and not is_asked
            if not self._take(wait):
                return

    def _keep_rest(self, pieces: Iterable[tuple[Sequence[Frame], bool]], kind: Purpose) -> None:
        """Keep the unsent rest of an interrupted message: a session continues with whole messages only."""
        self.disconnect()  # The next connection sends all kept pieces.
        try:
            for piece, more in pieces:
                self._session.keep([bytes(part) for part in piece], kind, more)
        except BaseException:
            self._forget_session()
            raise

    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return the next reply; answer the worker's requests that arrive before it."""
        while True:
            while self._arrived:
                envelope, frames = self._arrived.popleft()
                if envelope.kind is not Purpose.REQUEST:
                    return frames
                self._answer(envelope, frames)
            if not self._take(wait):
                return None

    def _take(self, wait: bool) -> bool:
        try:
            if self._connection is None:
                raise ConnectionLostError.closed()
            received = self._connection.receive(max(self.timeout, self._silence) if wait else 0)
            if received is not None:
                self._sort(self._connection, *received)
        except ConnectionLostError as error:
            self._reconnect(error)
            return True
        return received is not None

    def _sort(self, connection: Connection, envelope: Envelope, frames: list[bytearray]) -> None:
        if envelope.kind is Purpose.NOTE:
            self._session.acknowledge(envelope.received)
            if frames:
                errors: list[Exception] = []
                self._decode(frames, -1, [], errors)
                self._errors = self._errors or errors
            return
        is_last_of_several = False
        if envelope.kind is Purpose.REQUEST:
            whole = connection.join(envelope, frames)
        elif self._session.accept(envelope):
            is_last_of_several = not envelope.more and self._session.arriving.size > 0
            whole = self._join(frames, envelope.more)
        else:
            return
        if whole is not None:
            self._arrived.append((envelope, whole))
        if is_last_of_several:  # The worker need not keep it until the next message.
            connection.send(Envelope(Purpose.NOTE, 0, self._session.received), ())

    def _join(self, piece: list[bytearray], more: bool) -> list[bytearray] | None:
        try:
            return self._session.arriving.join(piece, more)
        except MemoryError:  # The rest of the reply cannot be used.
            self.disconnect()
            self._forget_session()
            raise

    def _answer(self, envelope: Envelope, frames: Sequence[object]) -> None:
        aliases = self._local.aliases  # The worker acts for this client, which waits for it, or for itself.
        reply = self._local.deliver(frames, Peer(self.id), delegates=lambda peer: peer.id in aliases)
        try:
            self.measure(reply)
        except MessageSizeError as error:
            reply = self._local.refuse(error, Peer(self.id))
        try:
            if self._connection is not None:
                self._connection.send_whole(Purpose.RESPONSE, envelope.number, reply)
        except ConnectionLostError as error:
            self._reconnect(error)

    # --- connecting

    def _reconnect(self, error: ConnectionLostError) -> None:
        self.disconnect()
        if self._closed:
            raise ConnectionLostError.disconnected(self.id)
        _log.warning("connection to worker %r lost, connecting again: %s", self.id, error)
        now, progress = time.monotonic(), (self._session, self._session.acknowledged, self._session.received)
        if progress != self._progress or now - self._connected > self.timeout:
            self._progress, self._broken, self._attempts = progress, now, 0
        else:
            self._attempts += 1
        self._connect(self._broken + self.timeout, error)

    def disconnect(self, graceful: bool = False) -> None:
        """Close the connection without sending what is buffered."""
        if self._connection is not None:
            (self._connection.close if graceful else self._connection.abort)()
            self._connection = None
        replies = [item for item in self._arrived if item[0].kind is not Purpose.REQUEST]  # It no longer waits.
        self._arrived = deque(replies)

    def _connect(self, deadline: float, error: Exception | None = None) -> None:
        while True:
            pause = _PAUSES[min(self._attempts, len(_PAUSES) - 1)]
            if error is not None and time.monotonic() + pause > deadline:
                self._progress = None
                raise ConnectionLostError.unreachable(self.url, self._patience, error) from None
            time.sleep(pause)
            try:
                self._connection = self._open(max(deadline - time.monotonic(), 1))
            except (OSError, WebSocketException, ConnectionLostError, ValueError, OverflowError) as problem:
                self._require_hope(problem)
                error = problem
                self._attempts += 1
            else:
                self._connected = time.monotonic()
                return

    def _open(self, seconds: float) -> Connection:
        sock, response, unread = self._shake_hands(seconds)
        connection = Connection(sock, is_client=True, max_bytes=MAX_FRAME, unread=unread)
        try:
            self._check_worker(response)
            self._begun = response.headers.get(BEGUN)
            self._session.resume(connection, _read_number(response, RECEIVED, 0))
        except BaseException:
            connection.abort()
            raise
        self.max_message = _read_number(response, LIMIT, sys.maxsize)
        return connection

    def _require_hope(self, error: Exception) -> None:
        """Raise if reconnecting cannot help, or if there was no connection yet and the caller did not ask to wait."""
        if isinstance(error, AuthenticationError | AddressError | SessionLostError):
            raise error
        is_first = not self._connected and not self._address.wait
        found = explain_address(error, self._address.host, is_first)
        if found is None and is_first and not (is_cut(error) and self._attempts < _FIRST_ATTEMPTS):
            found = explain_failure(error, self.timeout)
        if found is not None:
            why, advice = found
            raise AddressError.wrong(self.url, why, advice) from None

    def _check_worker(self, response: Response) -> None:
        id = response.headers.get(WORKER, "")
        if self._conceal(id) != id:  # It repeats the token, or has control characters.
            raise AddressError.wrong(self.url, "what answers there is not a worker", "check the address and the port")
        if self._expected is not None and str(self._expected) != id:
            raise AuthenticationError.refused(
                self.url, f"the worker there is {id!r}, not {self._expected!r}", "check the address and the id"
            )
        with contextlib.suppress(ValueError):
            self._silence = min(2 * float(response.headers.get(HEARTBEAT, 0)), MAX_SILENCE)
        self.client_id = response.headers.get(CLIENT, self.client_id)
        self._local.add_alias(self.client_id)
        if not self.id:
            self.id = self._expected = id
            self._context = replace(self._context, receiver=id)

    def _forget_session(self) -> None:
        self._session, self._secret, self._begun = Session(), secrets.token_hex(16), None
        self.failures += 1
        self._arrived.clear()
        for forgotten in (self._in_flight, self._buffer, self._issued, self._dropped, self._errors, self._unclaimed):
            forgotten.clear()
        self._last_epochs = None
        self.forget_forms()
        self.forget_gradients()

    def leave_to_parent(self) -> None:
        """In a forked process, leave the connection to the parent; ``connect`` begins a new session."""
        if self._connection is not None:
            self._connection.leave()
        self._connection, self._closed, self._lock = None, True, threading.RLock()
        self._forget_session()

    def _shake_hands(self, seconds: float) -> tuple[socket.socket, Response, bytes]:
        host, port = self._address.host, self._address.port
        sock = socket.create_connection((host, port), timeout=min(seconds, self.timeout))
        try:
            prepare(sock)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_hostname=self._address.name or host)
            protocol = ClientProtocol(parse_uri(self.url), subprotocols=[Subprotocol(PROTOCOL)], logger=UNLOGGED)
            request = protocol.connect()
            headers = {CLIENT: self._name, SESSION: self._secret, RECEIVED: str(self._session.received)}
            if self._begun is not None and (self._session.sent or self._session.received):
                headers[BEGUN] = self._begun
            if self._authorization:
                headers["Authorization"] = self._authorization
            request.headers.update(headers)
            protocol.send_request(request)
            for data in protocol.data_to_send():
                sock.sendall(data)
            response, unread = self._read_answer(protocol, sock)
            self._require_acceptance(response, protocol.handshake_exc)
        except BaseException as error:
            sock.close()
            if isinstance(error, ssl.SSLError) and (refusal := explain_certificate(error)) is not None:
                raise AuthenticationError.refused(self.url, *refusal) from None
            raise
        return sock, response, unread

    def _require_acceptance(self, response: Response, problem: Exception | None) -> None:
        why = self._conceal(response.headers.get(REASON, "the token is not valid"))
        if response.headers.get(STATE) == LOST:
            self._check_worker(response)
            self._forget_session()
            raise SessionLostError.on(self.id, why)
        if response.status_code == 429:
            raise AuthenticationError.refused(self.url, why, "close other connections, or ask the owner")
        if response.status_code in (401, 403):
            raise AuthenticationError.refused(self.url, why)
        if response.status_code in _TEMPORARY:
            raise ProxyError.answered(response.status_code)
        if problem is not None:
            why = response.headers.get(REASON, f"a server that is not a worker answers ({problem})")
            raise AddressError.wrong(self.url, self._conceal(why), "check the address and the port")

    def _conceal(self, text: str) -> str:
        return conceal(text, self._authorization.partition(" ")[2])

    def _read_answer(self, protocol: ClientProtocol, sock: socket.socket) -> tuple[Response, bytes]:
        try:
            return _read_response(protocol, sock, *read_head(sock, b"HTTP/"))
        except NotHttpError:
            advice = "check the port; if the worker uses TLS, leave `secure` out or give `ca`"
            raise AddressError.wrong(self.url, "what answers there is not a worker", advice) from None

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} id:{self.id} at {self.url}>")


W = TypeVar("W", bound="WebsocketClientWorker")


class WebsocketClientWorker(FarWorker, WebsocketLocation):
    """The location of a worker on the network: pointers, ``send`` and ``search`` work as with a virtual worker.

    Connecting to the same address again returns the existing location, so that a notebook cell can run twice; changed
    options, such as ``ca`` or ``token``, apply from then on.

    Args:
        hook: the hook whose local worker is the client.
        host: the name or the address of the machine.
        port: the port.
        secure: whether to use TLS; by default for all other machines, and if ``ca``, ``cert`` or ``name`` is given.
        id: the id that the worker must have; by default the id that it reports.
        is_client_worker: not used, nor are ``log_msgs`` and ``verbose``: the worker itself has these options.
        log_msgs: see above.
        verbose: see above.
        data: objects to send, which the worker keeps permanently.
        timeout: seconds without a sign of life after which a worker counts as unreachable.
        token: the secret that authenticates the user; by default ``SYFT_TOKEN`` in the environment.
        ca: a file with the certificates to trust, instead of those of the system.
        cert: a file with the certificate of the client, and its key unless ``key`` has it.
        key: a file with the key of the certificate.
        client: the worker that connects, if it is not the local worker.
        name: the name that the certificate of the worker must have, if it is not ``host``, e.g. behind a tunnel.
        wait: how many seconds to wait for a worker that is being started, before the first connection.

    """

    def __new__(cls: type[W], hook: Any, host: str, port: int, *_args: Any, **options: Any) -> W:
        """Return the existing location for this address, or a new one."""
        client = options.get("client") or hook.local_worker
        for known in list(client._known_workers.values()):
            same = type(known) is cls and known.client is client
            if same and (known._address.host, known._address.port) == (host, port):
                return known  # type: ignore[no-any-return]  # its type was compared
        return super().__new__(cls)

    def __init__(
        self,
        hook: FrameworkHook,
        host: str,
        port: int,
        secure: bool | None = None,
        id: Id | None = None,
        is_client_worker: bool = False,
        log_msgs: bool = False,
        verbose: bool = False,
        data: Sequence[object] | None = None,
        timeout: float = 60,
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        client: BaseWorker | None = None,
        name: str | None = None,
        wait: float = 0,
    ) -> None:
        local: BaseWorker = client if client is not None else hook.local_worker
        found = find_token(token)
        if secure is None:
            secure = not is_loopback(host) or not (ca is None and cert is None and name is None)
        address = Address(host, port, secure, timeout, ca, cert, key, name, wait)
        authorization = "" if found is None else f"Bearer {found}"
        if "_session" in self.__dict__:
            self._connect_with(address, authorization, id)
            return
        super().__init__(local, id, address, f"{str(local.id).replace('@', '_')}-{_instance}", authorization)
        try:
            local.add_worker(self)
        except WorkerError:
            self.close()
            raise
        for obj in data or ():
            local.send(obj, self, create_pointer=False)

    def _connect_with(self, address: Address, authorization: str, id: Id | None) -> None:
        with self._lock:
            before, was_closed = (self._address, self._authorization, self._tls, self._expected), self._closed
            tls, expected = address.make_context(), self._expected if id is None else id
            if (address, authorization, expected) != (before[0], before[1], before[3]):
                self.disconnect(graceful=True)
            self._address, self._authorization, self._tls, self._expected = address, authorization, tls, expected
            try:
                self.connect()
            except (AuthenticationError, AddressError):
                self._address, self._authorization, self._tls, self._expected = before
                self._closed = was_closed
                if not was_closed:
                    with contextlib.suppress(WorkerError):
                        self.connect()
                raise
            finally:
                self.timeout = self._address.timeout

    def introduce(self, other: Location, ids: Sequence[Id]) -> None:
        """Let this worker reach another one on the network on behalf of the client, for some objects there."""
        if isinstance(other, WebsocketClientWorker) and other.id != self.id:
            self.tell(Introduce(other.id, other.ask(GetTicket(self.id, tuple(ids)))))


def connect(
    url: str,
    token: str | None = None,
    ca: str | Path | None = None,
    *,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    id: Id | None = None,
    timeout: float = 60,
    name: str | None = None,
    wait: float = 0,
) -> WebsocketClientWorker:
    """Connect to a worker on a network, e.g. ``connect("wss://hospital.example:8777", token="...")``.

    The scheme defaults to ``wss``, except on this machine, and the port to 8777. ``name`` is the name in the worker's
    certificate if the address is that of a tunnel. The other options are those of ``WebsocketClientWorker``.
    """
    hook = current_hook()
    if hook is None:
        raise WorkerError("cannot connect to a worker: no framework is hooked; hook one first, e.g. `TorchHook(torch)`")
    scheme, _, rest = url.rpartition("://")
    address = Address.parse(f"{scheme or 'wss'}://{rest}", default_port=DEFAULT_PORT)
    secure = None if not scheme else address.secure
    options: Kwargs = {"token": token, "ca": ca, "cert": cert, "key": key, "name": name, "timeout": timeout}
    return WebsocketClientWorker(hook, address.host, address.port, secure, id, wait=wait, **options)


def prepare(sock: socket.socket) -> None:
    """Send small messages at once, and let the system detect that the other machine is gone."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def read_head(sock: socket.socket, start: bytes) -> tuple[bytes, bytes]:
    """Read the head of an HTTP message; return it and the bytes after it.

    Raise ``NotHttpError`` as soon as it does not begin with ``start``.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > MAX_HANDSHAKE:
            raise ConnectionLostError.malformed(f"the opening handshake has more than {MAX_HANDSHAKE} bytes")
        received = sock.recv(4096)
        if not received:
            raise ConnectionLostError.closed()
        data += received
        if not data.startswith(start[: len(data)]):
            raise NotHttpError
    head, _, unread = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", unread


def _read_response(protocol: ClientProtocol, sock: socket.socket, head: bytes, unread: bytes) -> tuple[Response, bytes]:
    if not head.startswith(b"HTTP/1.1 101"):  # A refusal may have a body.
        head, unread = head + unread, b""
    received = 0
    while True:
        protocol.receive_data(head)
        for event in protocol.events_received():
            if isinstance(event, Response):
                return event, unread
        received += len(head)
        if protocol.handshake_exc is not None or received >= MAX_HANDSHAKE:
            raise NotHttpError("it is not an answer to the opening handshake")
        head = sock.recv(4096)
        if not head:
            raise ConnectionLostError.closed()


def _leave_to_parent() -> None:
    """Give a forked process its own names and no connection."""
    global _instance  # One for each process.
    before, _instance = _instance, secrets.token_hex(6)
    for location in list(_opened):
        location._name = location._name.replace(before, _instance)
        location.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _read_number(response: Response, name: str, default: int) -> int:
    text = response.headers.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < MAX_DIGITS):
        raise ConnectionLostError.malformed(f"the header {name} is not a number")
    return int(text)
