"""WebsocketClientWorker: the location of a worker on the network."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from syft_core.exceptions import AuthenticationError, ConnectionLostError, WorkerError
from syft_core.hook.hook import FrameworkHook, current_hook
from syft_core.location import Location
from syft_core.messages import GetTicket, Introduce, Message
from syft_core.network.address import DEFAULT_PORT, Address, explain_address, explain_certificate, is_loopback
from syft_core.network.connection import Connection, Envelope, Purpose
from syft_core.network.errors import AddressError
from syft_core.network.session import (
    CLIENT,
    HEARTBEAT,
    LOST,
    PROTOCOL,
    REASON,
    RECEIVED,
    RESUMED,
    SESSION,
    STATE,
    WORKER,
    Session,
)
from syft_core.peer import Id, Peer
from syft_core.serde import Limits
from syft_core.serde.layout import Frame
from syft_core.values import Kwargs
from syft_core.workers.addresses.far import FarWorker
from syft_core.workers.addresses.wire import WireLocation
from syft_core.workers.moving import codecs as _codecs  # noqa: F401  # registers codecs
from syft_core.workers.party.base import BaseWorker

_log = logging.getLogger(__name__)
MAX_REPLY = Limits().max_bytes
MAX_HANDSHAKE = 1 << 14
"""How many bytes each end may send in the opening handshake."""
MAX_SILENCE = 60.0
"""How many seconds a worker may be silent at most, whatever its heartbeat is, unless the timeout is longer."""
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds to wait before each attempt to connect again; the last is repeated."""
_instance = secrets.token_hex(6)
"""Distinguishes this process from others whose local worker has the same id."""
_opened: weakref.WeakSet[WebsocketLocation] = weakref.WeakSet()


_TEMPORARY = (408, 502, 503, 504)
"""The answers of a proxy whose worker is being started."""


class NotHttpError(ConnectionLostError):
    """The other end of a connection speaks another protocol."""


class WebsocketLocation(WireLocation):
    """The location of a worker on the network.

    The connection is encrypted and the certificate of the worker is verified, except on this machine. A lost connection
    is made again, and the session continues: nothing is executed twice, and nothing is lost.
    """

    def __init__(self, client: BaseWorker, id: Id | None, address: Address, name: str, authorization: str) -> None:
        self._address, self._name, self._authorization = address, name, authorization
        self.timeout = address.timeout
        self._silence = 0.0
        """How many seconds a worker that is busy may be silent, because it shows signs of life less often."""
        self._tls = address.make_context()
        self._session, self._secret = Session(), secrets.token_hex(16)
        self._expected = id
        self._connection: Connection | None = None
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
        """Connect, or connect again and continue the session."""
        with self._lock:
            self._closed = False
            if self._connection is None:
                self._connect(time.monotonic() + self.timeout)

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
        """Send one batch; keep a copy until the worker has confirmed it."""
        self.transmit(Purpose.BATCH, [frame if type(frame) is bytes else bytes(frame) for frame in sent])

    def transmit(self, kind: Purpose, frames: Sequence[Any]) -> None:
        """Send a message, and again if the connection breaks; the frames must not change."""
        envelope = self._session.keep(frames, kind)
        if self._connection is None:
            self._reconnect(ConnectionLostError.closed())
            return
        try:
            self._connection.send(envelope, frames)
        except ConnectionLostError as error:
            self._reconnect(error)

    def receive_frames(self, wait: bool) -> Sequence[Frame] | None:
        """Return the next reply, answering the requests of the worker that arrive before it."""
        while True:
            try:
                if self._connection is None:
                    raise ConnectionLostError.closed()
                received = self._connection.receive(max(self.timeout, self._silence) if wait else 0)
            except ConnectionLostError as error:
                self._reconnect(error)
                continue
            if received is None:
                return None
            envelope, frames = received
            if envelope.kind is Purpose.REQUEST:
                self._answer(envelope, frames)
            elif envelope.kind is Purpose.NOTE:
                self._session.acknowledge(envelope.received)
                if frames:
                    errors: list[Exception] = []
                    self._decode(frames, -1, [], errors)
                    self._errors = self._errors or errors
            elif self._session.accept(envelope):
                return frames

    def _answer(self, envelope: Envelope, frames: Sequence[object]) -> None:
        """Execute commands of the worker on the client, such as the return of a gradient."""
        aliases = self._local.aliases  # The worker acts for this client, which waits for it, or for itself.
        reply = self._local.deliver(frames, Peer(self.id), delegates=lambda peer: peer.id in aliases)
        try:
            if self._connection is not None:
                self._connection.send(Envelope(Purpose.RESPONSE, envelope.number, 0), reply)
        except ConnectionLostError as error:
            self._reconnect(error)

    # --- connecting

    def _reconnect(self, error: ConnectionLostError) -> None:
        self.disconnect()
        if self._closed:
            raise ConnectionLostError.disconnected(self.id)
        _log.warning("connection to worker %r lost, connecting again: %s", self.id, error)
        self._connect(time.monotonic() + self.timeout)

    def disconnect(self, graceful: bool = False) -> None:
        """Close the connection without sending what is buffered."""
        if self._connection is not None:
            (self._connection.close if graceful else self._connection.abort)()
            self._connection = None

    def _connect(self, deadline: float) -> None:
        """Connect and continue the session; try again until the deadline."""
        attempt = 0
        while True:
            try:
                sock, response, unread = self._shake_hands(max(deadline - time.monotonic(), 1))
                break
            except (OSError, WebSocketException, ConnectionLostError, ValueError, OverflowError) as error:
                if isinstance(error, AuthenticationError | AddressError):
                    raise
                is_first = not (self._session.sent or self._session.received)
                if (wrong := explain_address(error, self._address.host, is_first)) is not None:
                    why, advice = wrong
                    raise AddressError.wrong(self.url, why, advice) from None
                pause = _PAUSES[min(attempt, len(_PAUSES) - 1)]
                attempt += 1
                if time.monotonic() + pause > deadline:
                    raise ConnectionLostError.unreachable(self.url, self.timeout, error) from None
                time.sleep(pause)
        connection = Connection(sock, is_client=True, max_bytes=MAX_REPLY, unread=unread)
        try:
            self._check_worker(response)
        except AuthenticationError:
            connection.abort()
            raise
        if response.headers.get(STATE) == LOST:
            self._connection = connection
            self._forget_session()
            why = response.headers.get(REASON, "the worker has forgotten it")
            raise ConnectionLostError.restarted(self.id, why)
        try:
            self._session.resume(connection, int(response.headers.get(RECEIVED, 0)))
        except ConnectionLostError as error:
            connection.abort()
            if time.monotonic() > deadline:
                raise ConnectionLostError.unreachable(self.url, self.timeout, error) from None
            self._connect(deadline)
            return
        self._connection = connection

    def _check_worker(self, response: Response) -> None:
        id = response.headers.get(WORKER, "")
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
        """Forget everything about a session that cannot continue."""
        self._session = Session()
        self.failures += 1
        for forgotten in (self._in_flight, self._buffer, self._issued, self._dropped, self._errors, self._unclaimed):
            forgotten.clear()
        self._last_epochs = None
        self.forget_forms()
        self.forget_gradients()

    def leave_to_parent(self) -> None:
        """In a forked process, leave the connection to the parent; ``connect`` begins a session of its own."""
        if self._connection is not None:
            self._connection.leave()
        self._connection, self._closed, self._lock = None, True, threading.RLock()
        self._secret = secrets.token_hex(16)
        self._forget_session()

    def _shake_hands(self, seconds: float) -> tuple[socket.socket, Response, bytes]:
        host, port = self._address.host, self._address.port
        sock = socket.create_connection((host, port), timeout=min(seconds, self.timeout))
        try:
            prepare(sock)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_hostname=self._address.name or host)
            protocol = ClientProtocol(parse_uri(self.url), subprotocols=[Subprotocol(PROTOCOL)])
            request = protocol.connect()
            headers = {CLIENT: self._name, SESSION: self._secret, RECEIVED: str(self._session.received)}
            if self._session.sent or self._session.received:
                headers[STATE] = RESUMED
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
        """Raise unless the worker accepts the connection."""
        why = response.headers.get(REASON, "the token is not valid")
        if response.status_code == 429:
            raise AuthenticationError.refused(self.url, why, "close other connections, or ask the owner")
        if response.status_code in (401, 403):
            raise AuthenticationError.refused(self.url, why)
        if response.status_code in _TEMPORARY:
            raise ConnectionLostError(f"cannot connect to {self.url}: HTTP status {response.status_code}")
        if problem is not None:
            why = response.headers.get(REASON, f"a server that is not a worker answers ({problem})")
            raise AddressError.wrong(self.url, why, "check the address and the port")

    def _read_answer(self, protocol: ClientProtocol, sock: socket.socket) -> tuple[Response, bytes]:
        try:
            return _read_response(protocol, sock, *read_head(sock, b"HTTP/"))
        except NotHttpError:
            advice = "check the port; if the worker uses TLS, leave `secure` out or give `ca`"
            raise AddressError.wrong(self.url, "what answers there is not a worker", advice) from None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} id:{self.id} at {self.url}>"


W = TypeVar("W", bound="WebsocketClientWorker")


class WebsocketClientWorker(FarWorker, WebsocketLocation):
    """The location of a worker on the network: pointers, ``send`` and ``search`` work as with a virtual worker.

    Connecting to the same address again returns the existing location, so that a notebook cell can run twice; other
    options than before, such as ``ca`` or ``token``, are used from then on.

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
    ) -> None:
        local: BaseWorker = client if client is not None else hook.local_worker
        found = find_token(token)
        if secure is None:
            secure = not is_loopback(host) or not (ca is None and cert is None and name is None)
        address = Address(host, port, secure, timeout, ca, cert, key, name)
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
        """Continue the session with other options; if that fails, keep those from before."""
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
) -> WebsocketClientWorker:
    """Connect to a worker on a network, e.g. ``connect("wss://hospital.example:8777", token="...")``.

    The scheme and the port may be left out: ``wss``, except on this machine, and 8777. ``name`` is the name in the
    worker's certificate if the address is that of a tunnel. The other options are those of ``WebsocketClientWorker``.
    """
    hook = current_hook()
    if hook is None:
        raise WorkerError("cannot connect to a worker: no framework is hooked; hook one first, e.g. `TorchHook(torch)`")
    scheme, _, rest = url.rpartition("://")
    address = Address.parse(f"{scheme or 'wss'}://{rest}", default_port=DEFAULT_PORT)
    secure = None if not scheme else address.secure
    credentials: Kwargs = {"token": token, "ca": ca, "cert": cert, "key": key, "name": name}
    return WebsocketClientWorker(hook, address.host, address.port, secure, id, timeout=timeout, **credentials)


def prepare(sock: socket.socket) -> None:
    """Send small messages at once, and let the system notice that the other machine is gone."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def read_head(sock: socket.socket, start: bytes) -> tuple[bytes, bytes]:
    """Read the head of an HTTP message; return it, and what came after it.

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
    """Return the answer to the opening handshake, and what came after it."""
    if not head.startswith(b"HTTP/1.1 101"):  # A refusal may have a body.
        head, unread = head + unread, b""
    received = 0
    while True:
        protocol.receive_data(head)
        for event in protocol.events_received():
            if isinstance(event, Response):
                return event, unread
        received += len(head)
        failed = protocol.handshake_exc is not None or received >= MAX_HANDSHAKE
        head = b"" if failed else sock.recv(4096)
        if not head:
            raise NotHttpError("it is not an answer to the opening handshake")


def _leave_to_parent() -> None:
    """Give a forked process names of its own, and no connection."""
    global _instance  # one for each process
    before, _instance = _instance, secrets.token_hex(6)
    for location in list(_opened):
        location._name = location._name.replace(before, _instance)
        location.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def find_token(given: str | None) -> str | None:
    """Return the given token, or that of the environment."""
    return given if given is not None else os.environ.get("SYFT_TOKEN")
