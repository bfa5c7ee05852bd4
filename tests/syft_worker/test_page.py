"""The page of a worker: who sees it, what it shows, and what an owner can do there."""

from __future__ import annotations

import html
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from syft_core.exceptions import AuthenticationError, GetNotPermittedError
from syft_core.network.credentials import Credentials, make_server_context
from syft_core.network.identity import Identity
from syft_core.network.server import Server
from syft_core.network.websocket_worker import WebsocketServerWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker import page as page_module
from syft_worker.allowances import Allowance
from syft_worker.desk.errors import ReleasePendingError
from syft_worker.desk.handle import RequestHandle
from syft_worker.incidents import Ban, Incident, Incidents
from syft_worker.page import Page, SignIns
from syft_worker.quotas import QuotaGuard
from syft_worker.throttle import FREE

from ..network.served import Served, serve
from .browsing import Browser, ask_for_release, path_of

torch = pytest.importorskip("torch")


@pytest.fixture
def served(hook: Any) -> Iterator[Served]:
    with serve(hook) as served:
        yield served


# --- who sees it


def test_the_page_needs_a_sign_in(served: Served) -> None:
    for path in ("/", "/requests/1", "/anything"):
        answer = Browser(served.page).get(path)
        assert (answer.status, answer.headers["Location"], answer.body) == (303, "/login", "")


@pytest.mark.parametrize("path", ["{}/approve", "{}/deny", "/logout", "/login"])
def test_a_form_from_elsewhere_is_refused(served: Served, path: str) -> None:
    pointer = ask_for_release(served)
    path = path.format(path_of(served))
    browser = Browser(served.page)
    browser.sign_in()

    for csrf in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": Browser(served.page).csrf("/login")}):
        answer = browser.post(path, token="owner-secret", answer="no", **csrf)
        assert answer.status == 403
        assert "not from this page" in answer.body
    assert served.worker.requests[0].state == "open"
    assert browser.get("/").status == 200
    del pointer


def test_an_owner_signs_in_and_out(served: Served) -> None:
    browser = Browser(served.page)
    before = browser.csrf("/login"), browser.cookie

    answer = browser.post("/login", token="owner-secret", csrf=before[0])

    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert browser.cookie != before[1]
    flags = answer.headers["Set-Cookie"].split("; ")[1:]
    assert flags == ["Path=/", "Max-Age=28800", "HttpOnly", "SameSite=Strict"]
    shown = browser.get("/")
    assert shown.status == 200
    assert "signed in as Dr. Noor" in shown.body
    old = Browser(served.page)
    old.cookie = browser.cookie
    assert browser.post("/logout", csrf=browser.csrf("/")).headers["Location"] == "/login"
    assert old.get("/").status == 303


def test_a_wrong_token_and_one_without_rights_do_not_sign_in(served: Served) -> None:
    browser = Browser(served.page)

    wrong, weak = browser.sign_in("guess"), browser.sign_in("ana-secret")

    assert (wrong.status, weak.status) == (401, 403)
    assert "This token is not valid." in wrong.body
    assert "This token is not that of an owner." in weak.body
    assert browser.get("/").status == 303
    assert Browser(served.page).get("/", "ana-secret").status == 403
    assert Browser(served.page).get("/", "guess").status == 401


def test_a_revoked_token_ends_its_sign_ins(served: Served) -> None:
    browser = Browser(served.page)
    browser.sign_in()
    assert browser.get("/").status == 200

    del served.tokens["owner-secret"]

    assert browser.get("/").status == 303


def test_a_sign_in_expires() -> None:
    now = [0.0]
    sign_ins = SignIns(lambda: now[0])
    credentials = Credentials("secret", None)
    cookie = sign_ins.add(credentials)

    now[0] = page_module.SIGNED_IN_SECONDS - 1
    assert sign_ins.find(cookie) is credentials
    now[0] += 1
    assert sign_ins.find(cookie) is None
    assert sign_ins.find("") is None


def test_wrong_tokens_are_throttled_but_never_delay_a_right_one_of_the_same_address(served: Served) -> None:
    browser = Browser(served.page)
    for _ in range(FREE):
        assert browser.get("/", "guess").status == 401

    refused = browser.get("/", "guess")

    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert browser.sign_in("guess").status == 429
    assert browser.get("/metrics", "guess").status == 429
    assert Browser(served.page, "127.0.0.2").get("/", "guess").status == 401
    assert browser.get("/", "owner-secret").status == 200
    assert browser.get("/metrics", "owner-secret").status == 200
    assert browser.sign_in().status == 303
    assert served.connect().search() == []


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.nip.io", "", "0.0.0.0", "a@localhost"],
)
def test_the_page_does_not_answer_to_the_name_of_a_stranger(served: Served, host: str) -> None:
    browser = Browser(served.page)
    for path in ("/", "/login", "/health", "/metrics", "/anything"):
        headers = {"Host": host.format(port=served.page.port), "Authorization": "Bearer owner-secret"}
        answer = browser.request("GET", path, **headers)
        assert answer.status == 421
        assert "does not answer to this name" in answer.body
    assert browser.request("POST", "/login", "", Host=host.format(port=served.page.port)).status == 421


def test_the_page_answers_to_the_names_that_its_owner_lists(served: Served) -> None:
    page = Page(served.server, names=["ward.example.org", "*.wild.example"])
    page.start()
    try:
        for host in ("ward.example.org", "WARD.example.org:443", "a.wild.example", "localhost", "[::1]:8778"):
            assert Browser(page).request("GET", "/health", Host=host).status == 200
        for host in ("wild.example", "a.b.wild.example", "example.org"):
            assert Browser(page).request("GET", "/health", Host=host).status == 421
    finally:
        page.stop()


@pytest.mark.parametrize("origin", ["null", "", "http://evil.example", "http://127.0.0.1", "file://127.0.0.1:{port}"])
def test_every_change_needs_the_origin_of_the_page(served: Served, origin: str) -> None:
    pointer = ask_for_release(served)
    browser, path = Browser(served.page), path_of(served)
    browser.sign_in()
    fields, origin = browser.review(path), origin.format(port=served.page.port)

    for target in (f"{path}/approve", f"{path}/deny", "/logout", "/login"):
        body = urlencode({**fields, "why": "no", "token": "owner-secret"})
        assert browser.request("POST", target, body, Origin=origin).status == 403
        answer = browser.request("POST", target, body, Origin=origin, Authorization="Bearer owner-secret")
        assert answer.status == 403

    assert served.worker.requests[0].state == "open"
    assert browser.get("/").status == 200
    del pointer


@pytest.mark.parametrize("name", ["Authorization: Bearer owner-secret", "Content-Length: 0"])
def test_a_header_that_is_repeated_is_refused(served: Served, name: str) -> None:
    method = "GET" if name.startswith("A") else "POST"
    with socket.create_connection(("127.0.0.1", served.page.port), 60) as sock:
        sock.sendall(f"{method} / HTTP/1.1\r\n{name}\r\n{name}\r\n\r\n".encode())

        assert sock.recv(4096).startswith(b"HTTP/1.0 400 Bad Request")


def test_without_tls_the_page_is_for_this_machine_only(hook: Any) -> None:
    server = Server(Served(hook).worker, "127.0.0.1", 0, lambda credentials: None)

    with pytest.raises(AuthenticationError) as caught:
        Page(server, 8080, host="0.0.0.0")

    assert str(caught.value) == (
        "cannot connect to http://0.0.0.0:8080: without TLS, others on the network can read the owner's token; "
        "give the server a certificate and its key, or listen on 127.0.0.1"
    )


def test_a_user_with_a_certificate_needs_no_token_but_the_form_of_the_page(hook: Any) -> None:
    served = Served(hook)
    served.server.authenticate = lambda given: Identity("Dr. Noor", True) if given.certificate == "noor" else None
    here = {"Host": "localhost", "Origin": "http://localhost"}
    get = page_module.PageRequest("GET", "/", here, certificate="noor")
    post = page_module.PageRequest("POST", "/logout", here, certificate="noor")

    assert served.page.respond(get).status == 200
    assert served.page.respond(post).status == 403
    assert served.page.respond(page_module.PageRequest("GET", "/", here)).status == 303


def _make_tls(folder: Path) -> ssl.SSLContext:
    cert, key = folder / "cert.pem", folder / "key.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*make.split(), *names], check=True, capture_output=True, timeout=120)
    return make_server_context(cert, key)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_with_tls_the_page_is_encrypted_and_a_stalled_handshake_holds_up_nobody(hook: Any, tmp_path: Path) -> None:
    context = _make_tls(tmp_path)
    trust = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    with serve(hook, tls=context) as served:
        stalled = socket.create_connection(("127.0.0.1", served.page.port), timeout=20)
        connection = http.client.HTTPSConnection("127.0.0.1", served.page.port, timeout=20, context=trust)
        with closing(stalled), closing(connection):
            connection.request("GET", "/login")
            response = connection.getresponse()
            cookie = response.headers["Set-Cookie"]
            response.read()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            Browser(served.page).get("/login")

    assert response.status == 200
    assert served.page.url == f"https://127.0.0.1:{served.page.port}/"
    assert cookie.startswith(f"__Host-syft-{served.page.port}=")
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")


def test_the_owner_of_a_websocket_worker_has_a_token_of_their_own(hook: Any) -> None:
    worker = WebsocketServerWorker(hook, id="clinic", auto_add=False)
    page = Page(worker.server)

    def ask(token: str | None) -> int:
        headers = {"Host": "localhost", "Authorization": f"Bearer {token}"}
        return page.respond(page_module.PageRequest("GET", "/", headers)).status

    assert (ask(worker.owner_token), ask(worker.token), ask("")) == (200, 403, 401)


# --- what it shows


def test_every_answer_forbids_scripts_frames_and_caches(served: Served) -> None:
    browser = Browser(served.page)
    answers = [
        browser.get("/login"),
        browser.sign_in(),
        browser.get("/"),
        browser.get("/health"),
        browser.get("/nothing"),
    ]
    answers += [browser.request("BREW", "/"), browser.get("/metrics", "ana-secret"), browser.post("/login")]

    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "<script" not in answer.body
        assert "http:" not in answer.body
        assert "style=" not in answer.body


def limit(served: Served, user: str) -> None:
    """Limit what a user may use of the worker."""
    guard = QuotaGuard(served.worker, {user: Allowance(objects=100, bytes=2_000_000, cpu_seconds=30)})
    guard.account_of(user)
    served.worker.guard = guard


def test_the_page_is_shown_while_the_worker_computes(served: Served) -> None:
    limit(served, "ana")
    served.connect()
    with served.worker.lock:
        shown = Browser(served.page).get("/", "owner-secret").body

    assert "not known while it computes" in shown


# --- what an owner can do


def test_an_approved_request_lets_the_user_get_the_object(served: Served) -> None:
    pointer = ask_for_release(served)
    with pytest.raises(GetNotPermittedError):
        pointer.get()
    browser = Browser(served.page)
    browser.sign_in()
    path = path_of(served)
    assert "for the paper" in browser.get(path).body

    answer = browser.post(f"{path}/approve", **browser.review(path))

    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert torch.equal(pointer.get(), torch.tensor([173506.0]))
    assert served.worker.ledger[0].reason == f"request {path[-16:]}, approved by Dr. Noor"


def test_a_denied_request_tells_the_user_why(served: Served) -> None:
    pointer = ask_for_release(served)
    browser = Browser(served.page)
    browser.sign_in()
    path = path_of(served)
    fields = browser.review(path)
    assert browser.post(f"{path}/deny", **fields, answer="  ").status == 400
    assert browser.post(f"{path}/deny", **fields, answer="x" * 501).status == 400

    assert browser.post(f"{path}/deny", **fields, answer="too few patients").status == 303

    with pytest.raises(GetNotPermittedError, match="too few patients"):
        pointer.get()
    again = browser.post(f"{path}/approve", **fields)
    assert again.status == 409
    assert "denied" in again.body


def test_a_program_decides_with_the_token_of_an_owner(served: Served) -> None:
    pointer = ask_for_release(served)
    program, path = Browser(served.page), path_of(served)
    body = urlencode({"digest": served.worker.requests[0].digest})

    weak = program.request("POST", f"{path}/approve", body, Authorization="Bearer ana-secret")
    answer = program.request("POST", f"{path}/approve", body, Authorization="Bearer owner-secret")

    assert (weak.status, answer.status) == (403, 303)
    assert pointer.get().shape == (1,)


def test_a_decision_about_something_else_than_what_was_reviewed_is_refused(served: Served) -> None:
    pointer = ask_for_release(served)
    other = pointer + 1
    other.request("for the paper")
    browser = Browser(served.page)
    browser.sign_in()
    fields = browser.review(path_of(served))

    for digest in ("", "0" * 64, browser.review(path_of(served, 1))["digest"]):
        for verb in ("approve", "deny"):
            answer = browser.post(f"{path_of(served)}/{verb}", csrf=fields["csrf"], digest=digest, answer="no")
            assert answer.status == 409
            assert "it is not what was reviewed" in answer.body

    assert [request.state for request in served.worker.requests] == ["open", "open"]
    assert browser.post(f"{path_of(served)}/approve", **fields).status == 303


def test_unknown_requests_and_methods_are_refused(served: Served) -> None:
    browser = Browser(served.page)
    browser.sign_in()

    assert browser.get(f"/requests/{'0' * 16}").status == 404
    assert browser.get(f"/requests/{'0' * 16}/approve").status == 404
    assert browser.get("/requests/1").status == 404
    assert browser.get("/requests/x").status == 404
    assert browser.request("BREW", "/").status == 501
    pointer = ask_for_release(served)
    assert browser.get(f"{path_of(served)}/approve").status == 405
    assert served.worker.requests[0].state == "open"
    del pointer


# --- metrics, health and logs


def test_health_says_whether_the_worker_serves_and_nothing_else(served: Served) -> None:
    healthy = Browser(served.page).get("/health")
    served.server.stop()
    ill = Browser(served.page).get("/health")

    assert (healthy.status, healthy.body) == (200, "ok\n")
    assert (ill.status, ill.body) == (503, "not serving\n")
    assert healthy.headers["Server"] == "syft-core"


def test_a_supervisor_passes_on_the_socket_and_the_number_of_restarts(hook: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    served = Served(hook)
    page = Page(served.server, listener=listener, restarts=3)
    page.start()
    try:
        metrics = Browser(page).get("/metrics", "ana-secret").body
    finally:
        page.stop()

    assert "syft_restarts_total 3\n" in metrics


# --- bad input


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.0\r\n\r\n", b"414"),
        (b"POST /login HTTP/1.0\r\n\r\n", b"411"),
        (b"POST /login HTTP/1.0\r\nContent-Length: -1\r\n\r\n", b"411"),
        (b"POST /login HTTP/1.0\r\nContent-Length: 99999\r\n\r\n", b"413"),
        (b"POST /login HTTP/1.0\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd", b"403"),
        (b"GET / HTTP/1.0\r\nHost: localhost\r\nCookie: \x00;;=;syft\r\n\r\n", b"303"),
        (b"GET / HTTP/1.0\r\n\r\n", b"421"),
        (b"GET / HTTP/1.0\r\nHost: localhost\r\nHost: evil\r\n\r\n", b"400"),
        (b"GET / HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer \xff\r\n\r\n", b"401"),
    ],
)
def test_a_malformed_request_gets_an_error_and_the_page_goes_on(served: Served, sent: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.page.port), timeout=20) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: sock.recv(4096), b""))

    assert received.split(b" ")[1] == status
    assert Browser(served.page).get("/health").status == 200


def test_clients_that_send_no_request_do_not_keep_others_out(served: Served) -> None:
    address = ("127.0.0.1", served.page.port)
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(address, timeout=20))
            for _ in range(page_module.MAX_CONNECTIONS + 1)
        ]

        assert silent[0].recv(1) == b""  # The one that has been silent for longest.
        for _ in range(page_module.MAX_CONNECTIONS + 1):
            assert Browser(served.page).get("/health").status == 200


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_client_that_never_ends_the_tls_handshake_is_disconnected(
    hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "REQUEST_SECONDS", 0.5)
    with serve(hook, tls=_make_tls(tmp_path)) as served, socket.socket() as sock:
        sock.connect(("127.0.0.1", served.page.port))
        sock.settimeout(0.2)
        sock.sendall(b"\x16\x03\x01\x3f\xff\x01")  # The head of a long record, which arrives byte by byte.
        while True:
            try:
                sock.sendall(b"\x00")
                if not sock.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break


# --- the desk


def test_the_values_are_shown_on_demand_and_recorded_as_seen(hook: Any, tmp_path: Path) -> None:
    with serve(hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        ask_for_release(served)
        browser = Browser(served.page)
        browser.sign_in()
        assert "173506" not in browser.get(path_of(served)).body

        shown = browser.post(f"{path_of(served)}/show", csrf=browser.csrf("/"))

        assert "[173506]" in shown.body
        (seen,) = [entry for entry in read_ledger(tmp_path / "ledger") if entry.event == "seen"]
        assert (seen.approver, seen.request) == ("Dr. Noor", served.worker.requests[0].id)


def test_an_owner_sees_bans_and_lifts_them(served: Served) -> None:
    known = [Incident(user, "f(<x>)", "ended the process (SIGSEGV)", True, time.time()) for user in ("ana", "bo")]
    served.worker.guard = QuotaGuard(served.worker, {}, Incidents(3600, None, known))
    lifted: list[Ban] = []
    served.page._on_lift = lifted.append
    browser = Browser(served.page)
    browser.sign_in()
    ban = next(ban for ban in served.worker.guard.bans if ban.user == "ana")
    shown = browser.get("/").body
    assert f"/bans/{ban.id}/lift" in shown
    assert "f(&lt;x&gt;)" in shown
    assert "it ended the process (SIGSEGV)" in shown

    assert browser.post(f"/bans/{ban.id}/lift").status == 403  # Without the token of the form.
    assert browser.get(f"/bans/{ban.id}/lift").status == 404
    assert browser.post(f"/bans/{ban.id}/lift", csrf=browser.csrf("/")).status == 303

    assert [ban.user for ban in served.worker.guard.bans] == ["bo"]
    assert lifted == [ban]
    assert browser.post(f"/bans/{ban.id}/lift", csrf=browser.csrf("/")).status == 404


def test_one_click_approves_a_study_and_nothing_leaves_with_it(served: Served) -> None:
    client = served.connect()
    rows = served.hook.create_tensor([[1.0] * 4] * 100)
    served.worker.load_data([rows.private_tensor([]).tag("#scans")])
    given = ((client.search("#scans")[0] * 2).mean(0)).child
    examples = {given.id_at_location: "in each of 3 rounds: <means>"}
    request = RequestHandle.ask_study(given.location, examples, "the study", 3)
    assert request is not None
    browser = Browser(served.page)
    browser.sign_in()
    path = f"/requests/{request.id}"
    shown = browser.get(path).body

    assert "in each of 3 rounds: &lt;means&gt;" in shown
    assert "Approve the study" in shown
    assert f"{path}/approve" not in shown
    fields = browser.review(path)
    assert browser.post(f"{path}/rule", **fields, name="study", count="2").status == 303

    assert request.state == "granted"
    assert served.worker.rules.find("study").conditions["count"] == 2
    assert (client.search("#scans")[0] * 2).mean(0).get().shape == (4,)
    assert browser.post(f"{path}/rule", **fields, name="other", count="1").status == 409


def test_one_click_approves_a_request_and_the_like_of_it(served: Served) -> None:
    pointer = ask_for_release(served)
    browser = Browser(served.page)
    browser.sign_in()
    fields = browser.review(path_of(served))

    wrong = browser.post(f"{path_of(served)}/rule", **fields, name="study", count="2", per_day="3")
    assert (wrong.status, len(served.worker.rules)) == (409, 0)
    assert "per_day = 3 contradicts count = 2" in html.unescape(wrong.body)
    emptied = browser.post(f"{path_of(served)}/rule", **fields, name="study", count="", per_day="", until="")
    assert (emptied.status, len(served.worker.rules)) == (400, 0)
    assert "say how often in all the rule may be used" in emptied.body
    assert browser.post(f"{path_of(served)}/rule", **fields, name="study", count="2").status == 303

    assert pointer.get().item() == 173506.0
    again = served.clients[0].search("#ages")[0] * 2
    assert again.get().item() == 173506.0
    assert "2 of 2" in browser.get("/").body  # The request, which the rule has settled, and the second release.
    assert browser.post("/rules/study/revoke", csrf=browser.csrf("/")).status == 303
    with pytest.raises(GetNotPermittedError, match="it was revoked"):
        (served.clients[0].search("#ages")[0] * 4).get()
    assert browser.post(f"{path_of(served)}/rule", **fields, name="other", count="1").status == 409


def test_an_approval_is_taken_back_on_the_page(served: Served) -> None:
    pointer = ask_for_release(served)
    browser = Browser(served.page)
    browser.sign_in()
    fields = browser.review(path_of(served))
    browser.post(f"{path_of(served)}/approve", **fields)

    assert browser.post(f"{path_of(served)}/withdraw", **fields).status == 303

    with pytest.raises(ReleasePendingError):
        pointer.get()


def test_programs_read_requests_as_json(served: Served) -> None:
    ask_for_release(served)
    browser = Browser(served.page)

    assert browser.get("/requests", "ana-secret").status == 403
    answer = browser.get("/requests", "owner-secret")
    (listed,) = json.loads(answer.body)

    assert answer.headers["Content-Type"] == "application/json"
    assert (listed["id"], listed["state"]) == (served.worker.requests[0].id, "open")
    one = browser.request("GET", path_of(served), Authorization="Bearer owner-secret", Accept="application/json")
    assert json.loads(one.body) == listed


def test_the_ledger_is_filtered_and_downloaded_with_refusals_and_decisions(hook: Any, tmp_path: Path) -> None:
    with serve(hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        pointer = ask_for_release(served)
        with pytest.raises(GetNotPermittedError):
            pointer.get()
        served.worker.deny(served.worker.requests[0], "too few", by="Dr. Noor")
        browser = Browser(served.page)
        browser.sign_in()

        refused = browser.get("/?event=refused&user=ana").body.partition("<h2>Ledger")[2]
        nobody = browser.get("/?user=somebody").body.partition("<h2>Ledger")[2]
        downloaded = browser.get("/ledger")

        assert ">refused<" in refused
        assert ">denied</td>" not in refused
        assert "nothing has left" in nobody
        assert downloaded.body == (tmp_path / "ledger").read_text()
        assert downloaded.headers["Content-Disposition"] == 'attachment; filename="ledger"'


def test_the_page_does_not_reload_by_itself(served: Served) -> None:
    browser = Browser(served.page)
    browser.sign_in()

    assert "http-equiv" not in browser.get("/").body


def test_behind_a_trusted_proxy_cookies_are_secure_and_each_client_is_throttled_alone(hook: Any) -> None:
    with serve(hook) as served:
        page = Page(served.server, proxies=["127.0.0.1"])
        page.start()
        try:
            proxied = {"X-Forwarded-For": "6.6.6.6, 10.0.0.9", "X-Forwarded-Proto": "https"}
            answer = Browser(page).request("GET", "/login", **proxied)
            assert "; Secure" in answer.headers["Set-Cookie"]
            assert answer.headers["Set-Cookie"].startswith("__Host-")
            plain = Browser(page).request("GET", "/login", **{"X-Forwarded-Proto": "http"})
            assert "Secure" not in plain.headers["Set-Cookie"]
            for _ in range(FREE + 1):
                wrong = Browser(page).request("GET", "/metrics", Authorization="Bearer wrong", **proxied)
            assert wrong.status == 429
            other = {**proxied, "X-Forwarded-For": "10.0.0.9, 10.0.0.10"}
            assert Browser(page).request("GET", "/metrics", Authorization="Bearer wrong", **other).status == 401
            direct = Browser(served.page).request("GET", "/login", **proxied)
            assert "Secure" not in direct.headers["Set-Cookie"]
        finally:
            page.stop()


def test_the_history_of_requests_is_there_after_a_restart(hook: Any, tmp_path: Path) -> None:
    with serve(hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        ask_for_release(served, "the first")
        served.worker.deny(served.worker.requests[0], "too few", by="Dr. Noor")
        served.worker.search("#ages")
        (served.clients[0].search("#ages")[0] + 1).request("the second")
        served.worker.ledger.close()
    with serve(hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        browser = Browser(served.page)
        browser.sign_in()

        shown = browser.get("/").body

        assert [request.state for request in served.worker.requests] == ["denied", "lapsed"]
        for text in ("the first", "too few", "the second", "by Dr. Noor"):
            assert text in shown
        served.worker.ledger.close()


def test_the_page_of_a_request_says_how_it_was_computed_and_what_a_rule_would_leave_out(served: Served) -> None:
    ask_for_release(served)
    browser = Browser(served.page)
    browser.sign_in()

    shown = html.unescape(browser.get(path_of(served)).body)

    assert "#ages * 2; program " in shown
    assert "rows are behind each number" in shown
    assert "Approve this program from now on" in shown
    assert "Only results of this program are covered: " in shown
    assert "It is not certain that at least 10 rows are behind each number." in shown


def test_a_rule_for_any_program_is_listed_with_the_numbers_that_it_lets_leave(served: Served) -> None:
    ask_for_release(served)
    conditions = {"user": "ana", "computed_from": ["#ages"], "form": "Tensor[114]", "count": 20}
    served.worker.allow("any", **conditions, any_program=True)

    shown = html.unescape(Browser(served.page).get("/", "owner-secret").body)

    assert "by any program: 20 uses of Tensor[114]: up to 2,280 numbers of the data" in shown
