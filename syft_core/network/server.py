"""Server: serves a worker to clients on the network, one thread for each connection.

A thread waits in the kernel, not in Python, so it responds faster than an event loop; the worker executes one message
at a time anyway.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from websockets.datastructures import MultipleValuesError
from websockets.exceptions import WebSocketException
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from syft_core.departures import collect_arrivals
from syft_core.exceptions import (
    AuthenticationError,
    ConnectionLostError,
    MessageSizeError,
    WorkerError,
)
from syft_core.network.address import is_loopback, listen
from syft_core.network.admission import Admission
from syft_core.network.client import MAX_HANDSHAKE, UNLOGGED, NotHttpError, prepare, read_head
from syft_core.network.client_session import ClientSession
from syft_core.network.connection import MAX_FRAME, Connection, Envelope, Purpose, abort, interrupt
from syft_core.network.credentials import Authenticate, read_authorization, read_certificate
from syft_core.network.identity import Identity
from syft_core.network.pieces import PIECE, split
from syft_core.network.session import (
    BEGUN,
    CLIENT,
    HEARTBEAT,
    LIMIT,
    LOST,
    PROTOCOL,
    REASON,
    RECEIVED,
    RESUMED,
    SESSION,
    STATE,
    WORKER,
)
from syft_core.network.threads import start_thread
from syft_core.peer import Peer
from syft_core.pictures.tables import one_line
from syft_core.serde.layout import Frame
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.turns import is_wanted

_log = logging.getLogger(__name__)
HEALTH = "/health"
"""The path at which anyone can check whether the worker is being served."""
HANDSHAKE_SECONDS = 10
"""The time limit for opening a connection."""
MAX_DEPOSITED = 16
"""The number of deposits that are acknowledged together."""
LARGE_DEPOSIT = 1 << 16
LAST_SECONDS = 1
"""The minimum seconds that a stopping server gives its threads to end, and its clients to read the reason."""
_LINGER = 1
"""Seconds to wait for a client to read why its certificate was refused."""
_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n"
    + f"{REASON}: this is not a websocket request, or one end uses TLS and the other does not\r\n\r\n".encode()
)
_FORGOTTEN = "the worker was started again, or the session expired"


class Latencies:
    """A histogram of how long batches of commands took, from arrival to reply."""

    BOUNDS = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0)
    """Upper bounds in seconds; the last part has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts = [0] * (len(self.BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a batch."""
        with self._lock:
            self.counts[bisect_left(self.BOUNDS, seconds)] += 1
            self.seconds += seconds


class Server:
    """Serves a worker on a port.

    Args:
        worker: the worker to serve.
        host: the address to listen on.
        port: the port, or 0 for any that is free.
        authenticate: identifies who presents credentials.
        tls: the TLS context; without one, only clients of this machine can be served.
        max_connections: the maximum number of connected clients.
        session_timeout: seconds after which the session of a disconnected client ends, and its objects are removed.
        heartbeat: seconds between signs of life while a client waits.
        io_timeout: seconds after which a client that stops in the middle of a message is disconnected.
        listener: a listening socket; it is shared with a supervisor, so it is not shut down.
        ended: why sessions of an earlier process are lost, by the id of the client; "" for all others.
        is_valid: returns whether an identity is still valid, for connections that are open.
        handshake_stack: the bytes of the stack of a thread that opens a connection, 0 for the default; for a process
            that starts no other threads at the same time.

    """

    def __init__(
        self,
        worker: BaseWorker,
        host: str,
        port: int,
        authenticate: Authenticate,
        tls: ssl.SSLContext | None = None,
        *,
        max_connections: int = 1000,
        session_timeout: float = 3600,
        heartbeat: float = 5,
        io_timeout: float = 60,
        listener: socket.socket | None = None,
        ended: Mapping[str, str] | None = None,
        is_valid: Callable[[Identity], bool] = lambda _identity: True,
        handshake_stack: int = 0,
    ) -> None:
        if tls is None and not is_loopback(host):
            raise AuthenticationError.refused(
                f"ws://{host}:{port}",
                "without TLS, others on the network can read and change what is sent",
                "give a certificate and its key (`syft-core certs` makes them), or listen on 127.0.0.1",
            )
        self.worker, self.host, self.port = worker, host, port
        self.authenticate, self.tls = authenticate, tls
        self.admission = Admission(worker, authenticate, is_valid)
        self.connections_refused = 0
        self.latencies = Latencies()
        self._max_connections, self._session_timeout = max_connections, session_timeout
        self._heartbeat, self._io_timeout = heartbeat, io_timeout
        self.handshake_stack = handshake_stack
        self._ended = ended or {}
        self._threads: set[threading.Thread] = set()
        self._opening: dict[socket.socket, float] = {}
        """The connections that are not yet authenticated, and when they were opened."""
        self._listener, self._shares_listener = listener, listener is not None
        self._stopping = threading.Event()

    # --- life

    def start(self) -> None:
        """Listen, and serve clients in the background."""
        if self._listener is None:
            self._listener = listen(self.host, self.port)
        else:
            self._listener.settimeout(0.5)  # To notice that the server stops: others may use the socket.
        self.port = self._listener.getsockname()[1]
        if self.tls is None:
            _log.warning("worker %r is served without TLS, to clients of this machine only", self.worker.id)
        self._start_thread("accept_clients", self._accept_clients)
        self._start_thread("run_maintenance", self._run_maintenance)

    def wait(self) -> None:
        """Wait until the server is stopped."""
        self._stopping.wait()

    def stop(self, seconds: float = 5) -> None:
        """Stop listening, end running commands, and disconnect all clients.

        Single operations may finish; commands of several operations, such as training, end at their next turn with an
        error that tells the client why.
        """
        self._stopping.set()
        self.worker.is_stopping = True
        if self._listener is not None:
            (self._listener.close if self._shares_listener else partial(abort, self._listener))()
        deadline = time.monotonic() + seconds
        self._wait_while(lambda client: client.busy_since is not None, deadline)
        self._wait_while(self._is_owed_a_failure, time.monotonic() + LAST_SECONDS)
        for client in self.sessions:
            if (connection := client.connection) is not None:
                (connection.interrupt if client.busy_since is not None else partial(connection.close, 1001))()
        deadline = max(deadline, time.monotonic() + LAST_SECONDS)
        for thread in list(self._threads):
            if thread.is_alive():  # Otherwise it has ended, or is being started and ends at once.
                thread.join(max(deadline - time.monotonic(), 0))
        self.worker.is_stopping = False

    def _wait_while(self, condition: Callable[[ClientSession], bool], deadline: float) -> None:
        while time.monotonic() < deadline and any(map(condition, self.sessions)):
            time.sleep(0.01)

    def _is_owed_a_failure(self, client: ClientSession) -> bool:
        state = self.worker.sessions.get(client.mandate or client.peer.id)
        return client.connection is not None and state is not None and state.failed is not None

    @property
    def is_serving(self) -> bool:
        """Whether clients can connect."""
        return self._listener is not None and not self._stopping.is_set()

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions of all clients."""
        return self.admission.sessions

    def _start_thread(self, name: str, serve: Callable[[], None], stack: int = 0) -> None:
        def run() -> None:
            try:
                serve()
            finally:
                self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=f"{self.worker.id}: {name}", daemon=True)
        self._threads.add(thread)
        try:
            start_thread(thread, stack)
        except BaseException:
            self._threads.discard(thread)
            raise

    def _try_to_start(self, name: str, serve: Callable[[], None], host: str, stack: int = 0) -> bool:
        """Start a thread for a connection; return False if there is no memory for it."""
        try:
            self._start_thread(name, serve, stack)
        except (RuntimeError, MemoryError):
            _log.error("refused a connection from %s: there is no memory for it", host)
            return False
        return True

    def _accept_clients(self) -> None:
        listener = self._listener
        while listener is not None and not self._stopping.is_set():
            try:
                sock, address = listener.accept()
            except TimeoutError:
                continue
            except (OSError, MemoryError):
                if not self._stopping.is_set():
                    time.sleep(0.1)  # E.g. out of file descriptors.
                continue
            if len(self._threads) >= self._max_connections and not self._make_room():
                _log.warning("refused a connection from %s: there are %d", address[0], len(self._threads))
                sock.close()
                continue
            open_connection = partial(self._open_connection, sock, address[0])
            if not self._try_to_start("open_connection", open_connection, address[0], self.handshake_stack):
                sock.close()

    def _make_room(self) -> bool:
        oldest = next(iter(list(self._opening)), None)  # In the order in which they connected.
        if oldest is not None:
            self._opening.pop(oldest, None)
            interrupt(oldest)
        return oldest is not None

    def _run_maintenance(self) -> None:
        while not self._stopping.wait(self._heartbeat):
            now = time.monotonic()
            self.worker.ledger.count_refusals()
            for sock, since in list(self._opening.items()):
                if now - since > HANDSHAKE_SECONDS:
                    interrupt(sock)
            for key, client in self.admission.list_keys():
                try:
                    self._look_after(key, client, now)
                except Exception:  # noqa: BLE001, PERF203  # one client must not affect the others
                    _log.exception("cannot look after the session of %s", one_line(str(client.peer)))

    def _look_after(self, key: str, client: ClientSession, now: float) -> None:
        connection = client.connection
        if connection is None:
            if now - client.seen > self._session_timeout:
                self.admission.end_session(key, client)
        elif not self.admission.is_valid_client(client):
            _log.warning("disconnected %s: its token is not valid any more", one_line(str(client.peer)))
            connection.interrupt()
        elif client.busy_since is not None and now - client.busy_since >= self._heartbeat and not _ping(connection):
            client.gone_since = client.gone_since or now

    def _is_wanted(self, client: ClientSession) -> bool:
        """Return whether a disconnected client may still return for the result of its message.

        Raise if the server stops.
        """
        if self._stopping.is_set():
            raise ConnectionLostError.stopping(self.worker.id)
        if client.gone_since is not None and time.monotonic() - client.gone_since > self._session_timeout:
            return False
        return self.admission.is_valid_client(client)

    # --- one connection

    def _open_connection(self, sock: socket.socket, host: str) -> None:
        with self._report_end(host):
            sock.settimeout(HANDSHAKE_SECONDS)
            prepare(sock)
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            self._opening[sock] = time.monotonic()
            if isinstance(sock, ssl.SSLSocket):
                _encrypt(sock)
            if (opened := self._open(sock)) is not None:
                self._opening.pop(sock, None)
                sock.settimeout(self._io_timeout)
                if self._try_to_start("serve_connection", partial(self._serve_connection, sock, host, *opened), host):
                    return
        self._end_connection(sock)

    def _serve_connection(self, sock: socket.socket, host: str, client: ClientSession, unread: bytes) -> None:
        with self._report_end(host):
            limit = min(MAX_FRAME, self.admission.limit_message(client))
            room = partial(self.admission.require_bytes, client, spare=PIECE)
            connection = Connection(sock, is_client=False, max_bytes=limit, unread=unread, require_room=room)
            self._serve_client(client, sock, connection)
            connection.drain(LAST_SECONDS)  # The server stops, and the client reads why.
        self._end_connection(sock)

    @contextlib.contextmanager
    def _report_end(self, host: str) -> Iterator[None]:
        """Log why a connection ends: an error in one must not end the server."""
        try:
            yield
        except (OSError, WebSocketException, ConnectionLostError, ValueError, MultipleValuesError) as error:
            _log.info("connection from %s ended: %s", host, one_line(str(error)))
        except Exception:  # noqa: BLE001  # a defect must not end the server
            _log.exception("connection from %s ended", host)

    def _end_connection(self, sock: socket.socket) -> None:
        self._opening.pop(sock, None)
        self.admission.forget_connection(sock)
        abort(sock)

    def _open(self, sock: socket.socket) -> tuple[ClientSession, bytes] | None:
        try:
            head, unread = read_head(sock, b"GET ")
        except NotHttpError:
            sock.sendall(_BAD_REQUEST)  # A client that expects TLS notices at once.
            raise
        protocol = ServerProtocol(subprotocols=[Subprotocol(PROTOCOL)], logger=UNLOGGED)
        protocol.receive_data(head)
        request = next((event for event in protocol.events_received() if isinstance(event, Request)), None)
        if request is None:
            return None
        is_probe = request.path == HEALTH and "Upgrade" not in request.headers
        if is_probe:
            response, client = protocol.reject(HTTPStatus.OK, "ok\n"), None
        else:
            response, client = self._respond(protocol, request, sock)
        if client is None:
            self.connections_refused += not is_probe
            response.headers["Connection"] = "close"
        protocol.send_response(response)
        for data in protocol.data_to_send():
            if data:
                sock.sendall(data)
        return None if client is None else (client, unread)

    def _respond(
        self, protocol: ServerProtocol, request: Request, sock: socket.socket
    ) -> tuple[Response, ClientSession | None]:
        name, secret = request.headers.get(CLIENT, ""), request.headers.get(SESSION, "")
        certificate = read_certificate(sock)
        admitted = self.admission.admit(*read_authorization(request.headers), name, f"{name}/{secret}", certificate)
        status, why = 401, "the token or certificate is missing, wrong, expired or revoked"
        if admitted is not None:
            status, why = 429, self.admission.refuse_connection(*admitted[:2], secret, sock)
        if admitted is None or why:
            return _refuse(protocol, status, why), None
        response = protocol.accept(request)
        if response.status_code != 101:
            return response, None
        if protocol.subprotocol != PROTOCOL:
            return _refuse(protocol, 400, f"the worker speaks {PROTOCOL}; install the same release at both ends"), None
        if why := self.admission.refuse_name(name, secret, *admitted):
            return _refuse(protocol, 400, why), None
        return self._continue(
            protocol,
            request,
            response,
            *self.admission.find_session(*admitted, secret, request.headers.get(BEGUN), sock),
            admitted[0],
        )

    def _continue(
        self,
        protocol: ServerProtocol,
        request: Request,
        response: Response,
        client: ClientSession | None,
        state: str,
        peer: Peer,
    ) -> tuple[Response, ClientSession | None]:
        """Complete the answer to a request for a session, or refuse it.

        A lost session stays lost: a client that has not read this answer gets the same one again.
        """
        if client is None and state == LOST:
            refusal = _refuse(protocol, 410, self._ended.get(str(peer.id)) or self._ended.get("", _FORGOTTEN))
            refusal.headers.update({STATE: LOST, WORKER: str(self.worker.id)})
            return refusal, None
        if client is None:
            return _refuse(protocol, 400, "the session of the client has begun on another connection"), None
        try:
            if state == RESUMED and client.busy_since is None:  # Otherwise its next message acknowledges.
                client.session.acknowledge(int(request.headers.get(RECEIVED, "0")))
        except (ValueError, ConnectionLostError):
            return _refuse(protocol, 400, "the session of the client is not in order"), None
        headers = {WORKER: self.worker.id, CLIENT: client.peer.id, STATE: state, BEGUN: client.begun}
        headers |= {RECEIVED: client.session.received, HEARTBEAT: f"{self._heartbeat:g}"}
        headers |= {LIMIT: self.admission.limit_message(client)}
        response.headers.update({name: str(value) for name, value in headers.items()})
        return response, client

    def _serve_client(self, client: ClientSession, sock: socket.socket, connection: Connection) -> None:
        with client.take_over(sock, connection, self._heartbeat):
            client.connection, client.thread = connection, threading.get_ident()
            client.waiting.clear()
            _log.info("serving %s", one_line(str(client.peer)))
            try:
                client.session.resume(connection, 0)
                while not self._stopping.is_set() or self._is_owed_a_failure(client):
                    received = client.waiting.popleft() if client.waiting else connection.receive()
                    if received is not None:
                        self._serve_message(client, connection, *received)
            finally:
                client.connection, client.thread, client.seen = None, None, time.monotonic()
                client.bytes_before += connection.bytes_in + connection.bytes_out

    def _serve_message(
        self, client: ClientSession, connection: Connection, envelope: Envelope, frames: Sequence[bytearray]
    ) -> None:
        if envelope.kind not in (Purpose.BATCH, Purpose.NOTE):
            return
        client.session.acknowledge(envelope.received)
        self.admission.note_arrivals(client, client.session.acknowledged)
        try:  # Before accepting it: a client that reconnects sends it again.
            self.admission.require_room(client, in_pieces=envelope.more or client.session.arriving.size > 0)
        except ConnectionLostError:
            connection.drain()
            raise
        if not client.session.accept(envelope):
            return
        whole = self._join(client, envelope, frames)
        if envelope.more:
            connection.send(Envelope(Purpose.NOTE, 0, client.session.received), ())
        else:
            self._execute(client, connection, envelope, whole)

    def _join(self, client: ClientSession, envelope: Envelope, piece: Sequence[bytearray]) -> list[bytearray] | None:
        arriving = client.session.arriving
        size = arriving.size + sum(map(len, piece)) if envelope.more or arriving.size else 0
        if client.excess is None and size:
            held, limit = self.admission.count_held(client) + size - arriving.size, self.admission.limit_message(client)
            if size > limit:
                client.excess = MessageSizeError.too_large(f"more than {limit:,}", self.worker.id, f"{limit:,}")
            elif held > (most := self.admission.limit_held(client)):
                client.excess = MessageSizeError.too_many(self.worker.id, f"{most:,}")
        if client.excess is None:
            try:
                return arriving.join(list(piece), envelope.more)
            except MemoryError:
                client.excess = MessageSizeError.no_memory(self.worker.id)
        arriving.clear()
        return None

    def _execute(
        self, client: ClientSession, connection: Connection, envelope: Envelope, frames: list[bytearray] | None
    ) -> None:
        """Execute and answer a message; ``None`` frames mean that the message was too large."""
        client.busy_since = time.monotonic()
        try:
            if self.worker.guard is not None and (
                pause := self.worker.guard.admit((client.mandate or client).peer, envelope.number)
            ):
                self._stopping.wait(pause)
            is_wanted.set(partial(self._is_wanted, client))
            with collect_arrivals() as arrivals:
                reply = self._deliver(client, envelope, frames)
            if envelope.kind is Purpose.BATCH:
                self._send_reply(client, connection, reply, arrivals)
            else:
                self._acknowledge(client, connection, frames or (), reply)
        finally:  # A stopping server waits for this.
            self.latencies.add(time.monotonic() - client.busy_since)
            client.busy_since = None

    def _deliver(self, client: ClientSession, envelope: Envelope, frames: list[bytearray] | None) -> list[Frame]:
        if frames is None:
            excess, client.excess = cast("MessageSizeError", client.excess), None
            return self.worker.refuse(excess, client.peer, client.mandate)
        deliver = self.worker.deliver if envelope.kind is Purpose.BATCH else self.worker.deliver_note
        return deliver(frames, client.peer, client.mandate)

    def _send_reply(
        self, client: ClientSession, connection: Connection, reply: list[Frame], arrivals: list[Callable[[], None]]
    ) -> None:
        """Keep a reply, then send it: a client that reconnects gets the rest."""
        pieces = [(client.session.keep(piece, more=more), piece) for piece, more in split(reply)]
        if arrivals:
            client.arrivals.append((client.session.sent, arrivals))
        for envelope, piece in pieces:
            connection.send(envelope, piece)

    def _acknowledge(
        self, client: ClientSession, connection: Connection, frames: Sequence[Any], reply: Sequence[Any]
    ) -> None:
        client.deposited += 1 + sum([len(frame) for frame in frames]) // LARGE_DEPOSIT
        if reply or client.deposited >= MAX_DEPOSITED:
            client.deposited = 0
            connection.send(Envelope(Purpose.NOTE, 0, client.session.received), reply)


def _encrypt(sock: ssl.SSLSocket) -> None:
    try:
        sock.do_handshake()
    except ssl.SSLError as error:
        with contextlib.suppress(OSError):  # Closing a socket with unread data would discard the alert.
            if error.reason == "HTTP_REQUEST":  # The client does not use TLS, and reads this.
                socket.socket.send(sock, _BAD_REQUEST)
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(_LINGER)
            sock.recv(MAX_HANDSHAKE)
        raise


def _refuse(protocol: ServerProtocol, status: int, why: str) -> Response:
    response = protocol.reject(status, f"{why}\n")
    response.headers[REASON] = why
    return response


def _ping(connection: Connection) -> bool:
    try:
        connection.ping()
    except WorkerError:
        connection.interrupt()
        return False
    return True
