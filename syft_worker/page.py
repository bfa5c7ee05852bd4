"""Page: shows a served worker to its owner in a browser, and lets the owner decide about release requests.

Every answer is made by ``Page.respond``, which does no input or output of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import http.server
import ipaddress
import json
import logging
import os
import re
import secrets
import socket
import socketserver
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import parse_qs

from syft_core.exceptions import AuthenticationError, SyftError
from syft_core.network.address import is_loopback, is_unspecified, listen
from syft_core.network.connection import interrupt
from syft_core.network.credentials import Credentials, read_authorization, read_certificate
from syft_core.network.identity import Identity
from syft_core.network.server import Server
from syft_core.network.threads import start_thread
from syft_core.pictures.tables import one_line
from syft_core.values import Json, Table
from syft_worker import views
from syft_worker.desk.approvals import suggest_conditions
from syft_worker.desk.errors import ReleaseError
from syft_worker.desk.handlers import describe_request, look_at
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import TRANSITIONS, Decision, ReleaseRequest
from syft_worker.incidents import Ban
from syft_worker.logs import log_event
from syft_worker.metrics import CONTENT_TYPE, Files, render_metrics
from syft_worker.throttle import Throttle
from syft_worker.views import LOCK_SECONDS

_log = logging.getLogger(__name__)
MAX_BODY = 8192
"""Maximum bytes of the body of a request."""
MAX_CONNECTIONS = 32
"""Maximum number of requests that are answered at the same time."""
READ_SECONDS, REQUEST_SECONDS = 10, 30
"""How long a client may pause within a request, and how long a request may take."""
SIGNED_IN_SECONDS = 8 * 3600
MAX_SIGNED_IN = 1000
MAX_REASON = 500
MAX_LEDGER = 64 * 2**20
"""Maximum bytes of a ledger that are downloaded: the latest."""
T = TypeVar("T")
Headers: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class PageRequest:
    """A request, with the parts that the page uses."""

    method: str
    path: str
    headers: Mapping[str, str]
    address: str = ""
    body: bytes = b""
    certificate: Any = None
    is_encrypted: bool = False
    """Whether the browser uses TLS, to the page or to a proxy in front of it."""

    @property
    def token(self) -> str | None:
        """The token of a program, which a browser never sends by itself."""
        kind, secret = read_authorization(self.headers)
        return secret if kind == "bearer" else None

    @property
    def query(self) -> dict[str, str]:
        """The fields in the address; the first of each name."""
        return _parse_fields(self.path.partition("?")[2])

    @property
    def form(self) -> dict[str, str]:
        """The fields of a form; the first of each name."""
        return _parse_fields(self.body)


@dataclass(frozen=True)
class Response:
    """An answer."""

    body: str
    status: int = 200
    type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


class RefusalError(Exception):
    """A request is answered with an error."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class SignIns:
    """Who is signed in, by the hash of a random cookie."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[Credentials, float]] = OrderedDict()

    def add(self, credentials: Credentials) -> str:
        """Return the cookie of a new sign-in."""
        cookie = secrets.token_urlsafe(32)
        self._known[_digest(cookie)] = credentials, self._clock() + SIGNED_IN_SECONDS
        if len(self._known) > MAX_SIGNED_IN:
            self._known.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> Credentials | None:
        """Return the credentials of a session cookie, or None if it is unknown or expired; the caller checks them."""
        credentials, until = self._known.get(_digest(cookie), (None, 0.0))
        if credentials is not None and self._clock() >= until:
            self.remove(cookie)
            return None
        return credentials

    def remove(self, cookie: str) -> None:
        """Sign out."""
        self._known.pop(_digest(cookie), None)


class Page:
    """Serves the page of a worker, its metrics and its health on a port of their own.

    The page has the TLS context and the authentication of the worker's server; only administrators see it.

    Args:
        server: the server of the worker.
        port: the port, or 0 for any that is free.
        host: the address to listen on; by default that of the server.
        listener: a socket that listens already, and is shared with a supervisor.
        restarts: how often the supervisor has started the worker again.
        names: other names by which browsers may ask for the page, besides its address and this machine's name.
        proxies: the addresses of proxies that add ``X-Forwarded-For`` and ``X-Forwarded-Proto`` to each request.
        files: the files of the worker whose expiry and disk the metrics show.
        on_lift: called when an owner lifts the ban of a command that had ended the process.

    """

    def __init__(
        self,
        server: Server,
        port: int = 0,
        host: str | None = None,
        *,
        listener: socket.socket | None = None,
        restarts: int = 0,
        names: Iterable[str] = (),
        proxies: Iterable[str] = (),
        files: Files | None = None,
        on_lift: Callable[[Ban], object] = bool,
    ) -> None:
        self.server, self.port, self.host = server, port, server.host if host is None else host
        if server.tls is None and not is_loopback(self.host):
            raise AuthenticationError.refused(
                f"http://{self.host}:{port}",
                "without TLS, others on the network can read the owner's token",
                "give the server a certificate and its key, or listen on 127.0.0.1",
            )
        self._listener, self._restarts, self._proxies = listener, restarts, frozenset(proxies)
        self._files, self._on_lift = files or Files(), on_lift
        own = () if is_unspecified(self.host) else (self.host,)
        self._names = {name.lower() for name in ("localhost", "127.0.0.1", "::1", *own, *names)}
        self.sign_ins, self.throttle = SignIns(), Throttle()
        self._key = secrets.token_bytes(32)
        self._speeds: deque[float] = deque([0.0] * 60, maxlen=60)
        """Operations per second in the last minute."""
        self._http: _HttpServer | None = None
        self._stopping = threading.Event()

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.server.tls is None else 'https'}://{host}:{self.port}/"

    def start(self) -> None:
        """Listen, and answer in the background."""
        if self._listener is None:
            self._listener = listen(self.host, self.port)
        self.port = self._listener.getsockname()[1]
        self._http = _HttpServer(self, self._listener)
        for target in (partial(self._http.serve_forever, 0.1), self._keep_house):
            threading.Thread(target=target, name=f"{self.server.worker.id}: page", daemon=True).start()
        log_event(_log, logging.INFO, "serving the page of the worker", url=self.url)

    def stop(self) -> None:
        """Stop listening."""
        self._stopping.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    def _keep_house(self) -> None:
        """Measure the speed of the worker every second, and end slow requests."""
        before, then = self.server.worker.stats.operations, time.monotonic()
        while not self._stopping.wait(1):
            count, now = self.server.worker.stats.operations, time.monotonic()
            self._speeds.append((count - before) / (now - then))
            before, then = count, now
            if self._http is not None:
                self._http.end_slow_requests()

    # --- answers

    def respond(self, request: PageRequest) -> Response:
        """Answer a request."""
        path = request.path.partition("?")[0]
        try:
            self._require_name(request)
            if request.method != "GET":
                self._require_same_origin(request)
            if (request.method, path) == ("GET", "/health"):
                return self._health()
            if (request.method, path) == ("GET", "/metrics"):
                return self._metrics(request)
            if request.method == "POST" and request.token is None:
                self._require_csrf(request)
            if path == "/login":
                return self._login(request)
            return self._respond_to_owner(request, path, self._require_admin(request))
        except RefusalError as refusal:
            return refusal.response

    def locate(self, address: str, headers: Message) -> tuple[str, bool]:
        """Return the address of a browser and whether it uses TLS, as reported by a trusted proxy."""
        if address not in self._proxies:
            return address, self.server.tls is not None
        forwarded = ",".join(headers.get_all("X-Forwarded-For", ())).split(",")[-1].strip()
        with suppress(ValueError):
            address = str(ipaddress.ip_address(forwarded))  # The last one is from the proxy, the others may be forged.
        schemes = ",".join(headers.get_all("X-Forwarded-Proto", ())).split(",")
        return address, self.server.tls is not None or schemes[-1].strip().lower() == "https"

    def _require_name(self, request: PageRequest) -> None:
        """Refuse requests for other host names: an attacker's may resolve to this address (DNS rebinding)."""
        matched = _HOST.fullmatch(request.headers.get("Host", "").lower())
        name = "" if matched is None else matched[1].strip("[]")
        if not {name, f"*.{name.partition('.')[2]}"} & self._names:
            raise _refuse(421, "the page does not answer to this name; its owner may add it to `page_hosts`")

    def _require_same_origin(self, request: PageRequest) -> None:
        """Refuse forms of other pages; programs, which send a token and no cookie, have no origin."""
        origin = request.headers.get("Origin")
        if origin is None and request.token is not None:
            return
        scheme, _, authority = (origin or "").lower().partition("://")
        if scheme not in ("http", "https") or authority != request.headers.get("Host", "").lower():
            raise _refuse(403, "this form is not from this page; open the page itself")

    def _health(self) -> Response:
        healthy = self.server.is_serving
        return Response("ok\n" if healthy else "not serving\n", 200 if healthy else 503, "text/plain; charset=utf-8")

    def _metrics(self, request: PageRequest) -> Response:
        """Answer any user of the worker, so that the program that collects metrics needs no rights of an owner."""
        identity = self._authenticate_bearer(request)
        if identity is None:
            raise _refuse(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        return Response(render_metrics(self.server, self._restarts, identity.admin, self._files), type=CONTENT_TYPE)

    def _respond_to_owner(self, request: PageRequest, path: str, owner: Identity) -> Response:
        cookie = self._cookie_of(request) or secrets.token_urlsafe(32)
        headers = {} if self._cookie_of(request) else self._set_cookie(request, cookie)
        worker, name = self.server.worker, (request.method, path)
        with suppress(RefusalError):  # It computes for long: the next visit closes expired requests.
            self._locked(releases_of(worker).requests.expire, LOCK_SECONDS)
        if name == ("GET", "/"):
            csrf, query = self._csrf_of(cookie), request.query
            return Response(views.overview(self.server, owner.user, csrf, list(self._speeds), query), headers=headers)
        if name == ("GET", "/requests"):
            return _to_json([describe_request(worker, found) for found in releases_of(worker).requests], headers)
        if name == ("GET", "/ledger"):
            return self._ledger(headers)
        if name == ("POST", "/logout"):
            self.sign_ins.remove(cookie)
            return _redirect("/login", self._set_cookie(request, ""))
        if matched := re.fullmatch(r"/requests/([0-9a-f]{16})(?:/(approve|deny|withdraw|show|rule))?", path):
            return self._respond_about(request, matched[1], matched[2], cookie, headers, owner)
        return self._withdraw(request, path, owner)

    def _withdraw(self, request: PageRequest, path: str, owner: Identity) -> Response:
        if request.method == "POST" and (rule := re.fullmatch(r"/rules/([A-Za-z0-9._-]{1,64})/revoke", path)):
            revoke = partial(releases_of(self.server.worker).revoke, rule[1], owner.user)
            return self._change(revoke, "revoked a rule", owner)
        if request.method == "POST" and (banned := re.fullmatch(r"/bans/([0-9a-f]{12})/lift", path)):
            return self._lift(banned[1], owner)
        raise _refuse(404, "there is no such page")

    def _respond_about(
        self, request: PageRequest, id: str, verb: str | None, cookie: str, headers: Headers, owner: Identity
    ) -> Response:
        found = next((r for r in releases_of(self.server.worker).requests if r.id == id), None)
        if found is None:
            raise _refuse(404, "there is no such request")
        if request.method != ("GET" if verb is None else "POST"):
            raise _refuse(405, "this page does not take that method")
        if verb in (None, "show"):
            return self._show(request, found, cookie, headers, None if verb is None else owner)
        if verb == "rule":
            return self._add_rule(found, request.form, owner)
        return self._decide(found, cast("Decision", verb), request.form, owner)

    def _show(
        self, request: PageRequest, found: ReleaseRequest, cookie: str, headers: Headers, looks: Identity | None = None
    ) -> Response:
        worker = self.server.worker
        values = None if looks is None else self._locked(lambda: look_at(worker, found, looks.user))
        shown = describe_request(worker, found)
        if "application/json" in request.headers.get("Accept", ""):
            return _to_json(shown if values is None else {**shown, "values": values}, headers)
        return Response(views.review(found, shown, self._csrf_of(cookie), values), headers=headers)

    def _decide(self, found: ReleaseRequest, verb: Decision, form: Mapping[str, str], owner: Identity) -> Response:
        worker, answer, digest = self.server.worker, form.get("answer", "").strip(), form.get("digest", "")
        if (verb == "deny" and not answer) or len(answer) > MAX_REASON:
            raise _refuse(400, f"give the user an answer of at most {MAX_REASON} characters")
        change = partial(releases_of(worker).requests.decide, verb, found, answer, owner.user, digest)
        return self._change(change, f"request {TRANSITIONS[verb][2]}", owner, id=found.id)

    def _add_rule(self, found: ReleaseRequest, form: Mapping[str, str], owner: Identity) -> Response:
        worker = self.server.worker
        limits: Table = {}
        if not form.get("count", "").strip():
            raise _refuse(400, "say how often in all the rule may be used: without that, it has no limit")
        for name in ("count", "per_day"):
            if text := form.get(name, "").strip():
                limits[name] = int(text) if re.fullmatch("[0-9]{1,9}", text) else text
        if text := form.get("until", "").strip():
            limits["until"] = text

        def change() -> None:
            releases = releases_of(worker)
            if releases.requests.find(found, form.get("digest", "")).state != "open":
                raise ReleaseError.decided(found.id, str(worker.id), found.state)
            if found.terms is not None:
                releases.grant(found, owner.user, form.get("name", ""), limits)
                return
            releases.approvals.add(form.get("name", ""), {**suggest_conditions(worker, found), **limits}, owner.user)
            if found.state == "open":  # The rule may have settled it.
                releases.requests.decide("approve", found, "", owner.user, form.get("digest", ""))

        return self._change(change, "added a rule", owner, id=found.id)

    def _lift(self, id: str, owner: Identity) -> Response:
        guard = self.server.worker.guard
        ban = next((ban for ban in getattr(guard, "bans", ()) if ban.id == id), None)
        if ban is None:
            raise _refuse(404, "nothing of that name is refused any more")

        def lift() -> None:
            guard.lift(ban)
            self._on_lift(ban)

        return self._change(lift, "lifted a ban", owner, user=ban.user, operation=ban.operation)

    def _change(self, change: Callable[[], object], event: str, owner: Identity, **fields: str) -> Response:
        self._locked(change)
        log_event(_log, logging.INFO, event, by=owner.user, **fields)
        return _redirect("/")

    def _locked(self, act: Callable[[], T], seconds: float = READ_SECONDS) -> T:
        worker = self.server.worker
        if not worker.lock.wait(seconds=seconds):
            raise _refuse(503, "the worker is computing; try again later")
        try:
            return act()
        except SyftError as error:
            raise _refuse(409, str(error)) from None
        finally:
            worker.lock.release()

    def _ledger(self, headers: Headers) -> Response:
        """Return the end of the ledger file, whole lines of at most ``MAX_LEDGER`` bytes."""
        file = self.server.worker.ledger.file
        if file is None:
            raise _refuse(404, "the worker keeps no ledger file")
        with file.path.open("rb") as opened:
            start = max(opened.seek(0, os.SEEK_END) - MAX_LEDGER, 0)
            opened.seek(start)
            text = opened.read(MAX_LEDGER).decode("ascii", "replace")
        name = f'attachment; filename="{file.path.name}"' if file.path.name.isascii() else "attachment"
        shown = text.partition("\n")[2] if start else text
        return Response(shown, type="application/jsonl", headers={**headers, "Content-Disposition": name})

    # --- authentication

    def _login(self, request: PageRequest) -> Response:
        if request.method == "GET":
            cookie = self._cookie_of(request) or secrets.token_urlsafe(32)
            return Response(self._login_form(cookie), headers=self._set_cookie(request, cookie))
        if request.method != "POST":
            raise _refuse(405, "this page does not take that method")
        credentials = Credentials(request.form.get("token", "").strip(), request.certificate)
        identity = self._authenticate(request, credentials)
        if identity is None or not identity.admin:
            cookie = self._cookie_of(request)
            why = "This token is not valid." if identity is None else "This token is not that of an owner."
            return Response(self._login_form(cookie, why), 401 if identity is None else 403)
        log_event(_log, logging.INFO, "signed in", user=identity.user, address=request.address)
        return _redirect("/", self._set_cookie(request, self.sign_ins.add(credentials)))

    def _login_form(self, cookie: str, error: str = "") -> str:
        return views.login(self.server.worker.id, self._csrf_of(cookie), error)

    def _require_admin(self, request: PageRequest) -> Identity:
        """Return the administrator who makes a request, known by its token, its cookie or its certificate."""
        if request.token is not None:
            identity = self._authenticate_bearer(request)
        else:
            cookie = self._cookie_of(request)
            credentials = self.sign_ins.find(cookie) or Credentials(None, request.certificate)
            identity = self.server.authenticate(credentials)
            if identity is None and request.method == "GET":
                raise RefusalError(_redirect("/login"))
        if identity is None:
            raise _refuse(401, "sign in first", {"WWW-Authenticate": "Bearer"})
        if not identity.admin:
            raise _refuse(403, "only owners of the worker may see this")
        return identity

    def _authenticate_bearer(self, request: PageRequest) -> Identity | None:
        if request.token is None:
            return None
        return self._authenticate(request, Credentials(request.token, request.certificate))

    def _authenticate(self, request: PageRequest, credentials: Credentials) -> Identity | None:
        """Return the owner of credentials. Only wrong ones are throttled: others at the address may have right ones."""
        identity = self.server.authenticate(credentials)
        if identity is None:
            if pause := self.throttle.wait_for(request.address):
                raise _refuse(429, "too many wrong tokens; wait a little", {"Retry-After": str(int(pause) + 1)})
            self.throttle.note_failure(request.address)
            log_event(_log, logging.WARNING, "refused a token", address=request.address)
        return identity

    # --- cookies

    def _require_csrf(self, request: PageRequest) -> None:
        """Refuse forms that are not from this page: browsers send cookies and certificates along with any form."""
        cookie, given = self._cookie_of(request), request.form.get("csrf", "")
        if not cookie or not hmac.compare_digest(self._csrf_of(cookie).encode(), given.encode()):
            raise _refuse(403, "this form is not from this page, or too old; load the page again")

    def _csrf_of(self, cookie: str) -> str:
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def _cookie_name(self, request: PageRequest) -> str:
        """Return the name of the cookie: browsers share cookies between the ports of a host."""
        return f"__Host-syft-{self.port}" if request.is_encrypted else f"syft-{self.port}"

    def _set_cookie(self, request: PageRequest, cookie: str) -> dict[str, str]:
        secure = "; Secure" if request.is_encrypted else ""
        age = SIGNED_IN_SECONDS if cookie else 0
        flags = f"Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        return {"Set-Cookie": f"{self._cookie_name(request)}={cookie}; {flags}"}

    def _cookie_of(self, request: PageRequest) -> str:
        parts = [part.strip().partition("=") for part in request.headers.get("Cookie", "").split(";")]
        return next((value for name, _, value in parts if name == self._cookie_name(request)), "")


_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
"""The header ``Host``: a name or an address, and a port."""


def _parse_fields(text: str | bytes) -> dict[str, str]:
    try:
        decoded = text if isinstance(text, str) else text.decode()
        fields = parse_qs(decoded, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()


def _to_json(value: Json, headers: Headers) -> Response:
    return Response(json.dumps(value, indent=1) + "\n", type="application/json", headers=headers)


def _refuse(status: int, why: str, headers: Mapping[str, str] | None = None) -> RefusalError:
    return RefusalError(Response(views.message(HTTPStatus(status).phrase, why), status, headers=headers or {}))


def _redirect(path: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response("", 303, headers={"Location": path, **(headers or {})})


# --- HTTP


class _HttpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    block_on_close = False

    def __init__(self, page: Page, listener: socket.socket) -> None:
        # Not of TCPServer, which makes a socket: an isolated process may not.
        socketserver.BaseServer.__init__(self, listener.getsockname(), _Handler)
        self.page, self.socket = page, listener
        self._open: dict[socket.socket, float] = {}
        self._unread: dict[socket.socket, None] = {}
        """The connections whose request has not arrived as a whole, in the order in which they were opened."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread of its own; if there are too many, it replaces the slowest client."""
        if len(self._open) >= MAX_CONNECTIONS:
            slowest = next(iter(list(self._unread)), None)
            if slowest is None:
                self.shutdown_request(request)
                return
            self._forget(slowest)
            interrupt(slowest)
        self._open[request] = time.monotonic() + REQUEST_SECONDS
        self._unread[request] = None
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        try:
            start_thread(thread, self.page.server.handshake_stack)
        except (RuntimeError, MemoryError):
            _log.error("refused a request from %s: there is no memory for it", client_address[0])
            self._forget(request)
            self.shutdown_request(request)

    def note_arrival(self, request: socket.socket) -> None:
        self._unread.pop(request, None)

    def _forget(self, *sockets: socket.socket) -> None:
        for sock in sockets:
            self._open.pop(sock, None)
            self._unread.pop(sock, None)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a request, encrypted if the worker is; the handshake must not hold up other requests."""
        request.settimeout(READ_SECONDS)
        deadline, plain = self._open.get(request, 0.0), request
        try:
            if self.page.server.tls is not None:
                # The handshake comes later: until it ends, only the new socket can be interrupted.
                request = self.page.server.tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
                self._forget(plain)
                self._open[request], self._unread[request] = deadline, None
                request.do_handshake()
            super().finish_request(request, client_address)
        except OSError as error:
            _log.info("request from %s ended: %s", client_address[0], one_line(str(error)))
        finally:
            self._forget(plain, request)
            if request is not plain:
                self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.exception("cannot answer a request from %s", client_address[0])

    def end_slow_requests(self) -> None:
        now = time.monotonic()
        for sock, deadline in list(self._open.items()):
            if now > deadline:
                interrupt(sock)


_SINGLE = ("Authorization", "Content-Length", "Cookie", "Host", "Origin")
"""Headers that must not be repeated: parsers disagree on which duplicate wins."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _HttpServer
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,6}", length) or int(length) > MAX_BODY:
            self.send_error(413 if length.isdigit() else 411)
            return
        self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        self.server.note_arrival(self.connection)
        if any(len(self.headers.get_all(name, ())) > 1 for name in _SINGLE):
            self.send_error(400)
            return
        certificate = read_certificate(self.connection)
        headers = {name.title(): value for name, value in self.headers.items()}
        address, is_encrypted = self.server.page.locate(self.client_address[0], self.headers)
        request = PageRequest(str(self.command), self.path, headers, address, body, certificate, is_encrypted)
        self._send(self.server.page.respond(request))

    def _send(self, response: Response) -> None:
        body = response.body.encode()
        self.send_response(response.status)
        content = {"Content-Type": response.type, "Content-Length": str(len(body))}
        for name, value in {**content, **views.HEADERS, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request, without quoting it."""
        # Without a version, which a malformed request may lack, the answer would have no headers.
        self.request_version = self.protocol_version
        self._send(Response(f"{HTTPStatus(code).phrase}\n", code, "text/plain; charset=utf-8"))

    def version_string(self) -> str:
        return "syft-core"

    def log_message(self, format: str, *args: object) -> None:
        _log.debug("%s: %s", self.client_address[0], one_line(format % args))
