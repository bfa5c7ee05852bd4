"""Views: what the page of a worker shows; names, forms and counts, but no values and no scripts."""

from __future__ import annotations

import base64
import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from syft_core.desk.releases import releases_of
from syft_core.desk.requests import ReleaseRequest
from syft_core.hook.hook import FrameworkHook
from syft_core.network.server import ClientSession, Server
from syft_core.operating.markup import Html, element, join, shorten, table
from syft_core.peer import Id
from syft_core.pictures import form_of, one_line, to_moment, to_size
from syft_core.values import Json, Table
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.ledger import Ledger

MAX_ROWS = 100
"""How many rows of each kind are shown."""
MAX_NAMES = 8
"""How many columns of a table are named."""
LOCK_SECONDS = 1
"""How long to wait for the lock of a worker that computes."""
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # With "no-referrer", browsers hide the origin of forms from this page too.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer: nothing is loaded from anywhere, and nothing is kept."""


# --- whole pages


def overview(
    server: Server, user: str, csrf: str, speeds: Sequence[float], query: Mapping[str, str] | None = None
) -> Html:
    """Return the page that shows everything about a worker; ``query`` filters the ledger by user and event.

    The worker may compute for long while it holds its lock, so this reads copies of its lists without the lock.
    """
    worker, clients = server.worker, server.sessions
    entries, requests = worker.object_store.entries(), list(releases_of(worker).requests)
    held = Counter(holder for entry in entries for holder in entry.holders)
    waiting = sum(request.state == "open" for request in requests)
    stats, recent = worker.stats, speeds[-5:]
    cards = element(
        "div",
        _card(f"{sum(recent) / max(len(recent), 1):,.0f}", "operations per second", _curve(speeds)),
        _card(f"{stats.operations:,}", f"operations in {stats.messages:,} messages"),
        _card(to_size(stats.bytes_in + stats.bytes_out), "received and sent"),
        _card(str(sum(client.connection is not None for client in clients)), "clients connected"),
        _card(f"{len(entries):,}", "objects"),
        _card(str(waiting), "requests to decide on"),
        class_="cards",
    )
    header = element(
        "header",
        element("h1", f"{worker.id} ", element("small", "syft-core worker")),
        element(
            "p",
            " · ".join([f"signed in as {user}", *_threads(), f"as of {to_moment(time.time())} {time.strftime('%Z')}"]),
        ),
        element("a", "Reload", href="/", class_="button"),
        _form("/logout", csrf, element("button", "Sign out", class_="quiet")),
    )
    main = element(
        "main",
        cards,
        _section("Release requests", _requests(requests), "what leaves only with your approval"),
        _section("Standing approvals", _approvals(worker, csrf), "what leaves without a decision for each request"),
        _section("Objects", _objects(entries), "names and forms, no values"),
        _section("Sessions", _sessions(clients, held)),
        _section("Users and quotas", _users(worker, clients)),
        _section("Ledger", _ledger(worker.ledger, query), "what has left, was refused and was decided, latest first"),
    )
    return _page(f"{worker.id}: worker", join([header, main]))


def login(worker: Id, csrf: str, error: str = "") -> Html:
    """Return the page on which an owner signs in."""
    token = _field("Token", "token", type="password", name="token", autocomplete="off", autofocus="")
    form = _form("/login", csrf, token, element("button", "Sign in"))
    text = element("p", "Sign in with the token of an owner of this worker.", class_="nothing")
    return _single(f"Worker {worker}", *([element("p", error, class_="error")] if error else []), text, form)


def review(request: ReleaseRequest, shown: Table, csrf: str, values: Sequence[Table] | None = None) -> Html:
    """Return the page on which an owner decides about a release request; ``values`` are summaries of what leaves."""
    _, state, who, forms, sources, reason, answer = request.cells()
    facts = [
        ("asked by", f"{who}, with the token of an owner" if request.is_of_owner else who),
        ("asked", to_moment(request.asked_at)),
        ("object", one_line(request.names)),
        ("form", forms),
        ("computed from", sources),
        ("reason", reason),
        ("of this form", f"{shown['released_before']} were released to this user before"),
    ]
    facts += [("program", f"{request.line} (as the user says)")] if request.line else []
    facts += [("a share", f"held by {', '.join(request.parties)} (as the user says)")] if request.parties else []
    if request.decided_by and request.decided_at is not None:
        facts.append(("decided", f"{to_moment(request.decided_at)} by {one_line(request.decided_by)}"))
    facts += [("answer", answer)] if answer else []
    facts += [("fetched", to_moment(request.released_at))] if request.released_at is not None else []
    parts = [_facts(facts)]
    if values is not None:
        parts += [element("h2", "What would leave"), *[_summary(summary) for summary in values]]
    parts += _decisions(request, shown, csrf, values is None)
    title = join([f"Request {request.id} ", _badge(state)])
    return _single(title, *parts, element("p", element("a", "Back to the worker", href="/")))


def _facts(facts: Iterable[tuple[str, str]]) -> Html:
    return element("dl", *[part for name, text in facts for part in (element("dt", name), element("dd", text))])


def _summary(summary: Table) -> Html:
    """Return what the owner sees of a value."""
    counts = summary.get("histogram")
    facts = [(name.replace("_", " "), _to_text(value)) for name, value in summary.items() if name != "histogram"]
    if counts is None:
        return _facts(facts)
    facts.append(("histogram", ", ".join(map(str, counts))))
    top = max(counts)
    bars = [
        element("rect", x=str(place * 10), y=f"{40 - 40 * n / top:.1f}", width="9", height=f"{40 * n / top:.1f}")
        for place, n in enumerate(counts)
    ]
    picture = element("svg", *bars, viewBox=f"0 0 {10 * len(counts)} 40", class_="histogram", aria_hidden="true")
    return join([_facts(facts), picture])


def _to_text(value: Json) -> str:
    """Return numbers with six digits: an owner does not read more."""
    if isinstance(value, list):
        return f"[{', '.join(map(_to_text, value))}]"
    return f"{value:.6g}" if type(value) is float else str(value)


def _decisions(request: ReleaseRequest, shown: Table, csrf: str, may_show: bool) -> list[Html]:
    """Return the forms with which an owner decides."""
    path = f"/requests/{request.id}"
    digest = element("input", type="hidden", name="digest", value=request.digest)
    if request.state == "approved":
        withdraw = element("button", "Take the approval back", class_="no")
        return [_form(f"{path}/withdraw", csrf, digest, withdraw)]
    if request.state != "open":
        return []
    look = [_form(f"{path}/show", csrf, element("button", "Show what would leave", class_="quiet"))] if may_show else []
    why = _field("Reason, for the user", "why", name="why", required="", maxlength="500")
    rule = shown["rule"]
    forms = [
        *look,
        _form(f"{path}/approve", csrf, digest, element("button", "Approve")),
        _form(f"{path}/deny", csrf, digest, why, element("button", "Deny", class_="no")),
    ]
    if rule["user"] and rule["computed_from"]:
        name = f"{rule['user']}-{request.id[:4]}"
        inputs = [
            _field("Name of the rule", "rule-name", name="name", required="", value=name),
            _field("How often in all", "rule-count", name="count", type="number", min="1", value="20"),
            _field("How often within 24 hours", "rule-day", name="per_day", type="number", min="1"),
            _field("Until", "rule-until", name="until", type="date"),
        ]
        what = f"{rule['user']} may have {rule['form']}, computed from {', '.join(rule['computed_from'])}"
        button = element("button", "Approve this, and add the rule", class_="quiet")
        warning = "This covers whatever has this form, however it was computed: also rows of the data itself."
        forms += [element("h2", "Standing approval"), element("p", one_line(what)), element("p", warning),
                  _form(f"{path}/rule", csrf, digest, *inputs, button)]  # fmt: skip
    return forms


def message(title: str, text: str) -> Html:
    """Return a page with one message."""
    return _single(title, element("p", text), element("p", element("a", "Back to the worker", href="/")))


# --- sections


def _threads() -> list[str]:
    """Return with how many threads each framework computes, if it says so."""
    counts = {name: attached.first.attributes.count_threads() for name, attached in FrameworkHook._attached.items()}
    return [f"{name}: {one_line(str(count))} threads" for name, count in counts.items() if count is not None]


def _requests(requests: Sequence[ReleaseRequest]) -> Html:
    header = ("", "id", "state", "who", "form", "computed from", "reason", "asked", "decided", "answer")
    newest = requests[::-1]
    ordered = sorted(newest, key=lambda request: request.state != "open")
    rows = []
    for request in ordered[:MAX_ROWS]:
        id, state, *rest, answer = request.cells()
        text = "Review" if state == "open" else "Show"
        marks = {"class_": "button"} if state == "open" else {}
        link = element("a", text, href=f"/requests/{id}", aria_label=f"{text} request {id}", **marks)
        decided = "" if request.decided_at is None else f"{to_moment(request.decided_at)} by {request.decided_by}"
        rows.append((link, id, _badge(state), *rest, to_moment(request.asked_at), one_line(decided), answer))
    return table(header, rows, "nobody has asked for anything", len(requests) - MAX_ROWS)


def _approvals(worker: BaseWorker, csrf: str) -> Html:
    header = ("", "name", "state", "what", "used", "made by")
    rows = []
    for approval in list(releases_of(worker).approvals)[::-1][:MAX_ROWS]:
        name, state, *rest = approval.cells()
        button = element("button", "Revoke", class_="no", aria_label=f"Revoke {name}")
        form = "" if approval.is_revoked else _form(f"/rules/{name}/revoke", csrf, button)
        rows.append((form, name, _badge(state, state.replace(" ", "-")), *rest))
    return table(header, rows, "every release needs a decision", len(releases_of(worker).approvals) - MAX_ROWS)


def _objects(entries: Sequence[Stored]) -> Html:
    header = ("id", "form", "tags", "description", "kept by", "private to")
    ordered = sorted(entries, key=lambda entry: entry.published)[::-1]
    rows = [
        (
            _shorten(entry.id),
            one_line(form_of(entry.value)),
            join(
                [
                    join([element("span", shorten(one_line(str(tag))), class_="tag"), " "])
                    for tag in sorted(entry.tags, key=str)
                ]
            ),
            one_line(_describe(entry)),
            _keepers(entry),
            "" if entry.access is None else _badge(_list_users(entry.access), "private"),
        )
        for entry in ordered[:MAX_ROWS]
    ]
    return table(header, rows, "the worker has no objects", len(entries) - MAX_ROWS)


def _describe(entry: Stored) -> str:
    """Return the description of an object and, of a table, its first columns."""
    if entry.schema is None or not entry.schema.columns:
        return entry.description or ""
    names, parts = entry.schema.names, [entry.description] if entry.description else []
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return "; ".join([*parts, f"columns {', '.join(map(shorten, names[:MAX_NAMES]))}{more}"])


def _list_users(users: Iterable[str]) -> str:
    return shorten(one_line(", ".join(sorted(users)))) or "nobody"


def _keepers(entry: Stored) -> str:
    if entry.published:
        return "the owner" if entry.publisher is None else f"published by {one_line(str(entry.publisher))}"
    return ", ".join(sorted(one_line(str(holder)) for holder in entry.holders))


def _sessions(clients: Sequence[ClientSession], held: Counter[Any]) -> Html:
    header = ("user", "client", "since", "state", "in flight", "objects", "bytes")
    ordered = sorted(clients, key=lambda client: (client.connection is None, -client.since))
    rows = [
        (
            one_line(str(client.peer)),
            one_line(str(client.peer.id)),
            to_moment(client.since),
            _state_of(client),
            str(client.in_flight),
            f"{held[client.peer.id]:,}",
            to_size(client.bytes_moved),
        )
        for client in ordered[:MAX_ROWS]
    ]
    return table(header, rows, "no client has connected", len(clients) - MAX_ROWS)


def _state_of(client: ClientSession) -> str:
    busy = client.busy_since
    if client.connection is None:
        return "disconnected"
    return "idle" if busy is None else f"computing for {time.monotonic() - busy:.0f} s"


def _users(worker: BaseWorker, clients: Sequence[ClientSession]) -> Html:
    counts = Counter(str(client.peer) for client in clients)
    guard, accounts = getattr(worker, "guard", None), {}
    if guard is not None and worker.lock.acquire(timeout=LOCK_SECONDS):  # The guard counts under the lock.
        try:
            accounts = {account.user: account for account in guard.accounts}
        finally:
            worker.lock.release()
    names = sorted({*counts, *accounts})
    header = ("user", "sessions", *(_QUOTAS if accounts else ["quotas"]))
    unknown = [""] * len(_QUOTAS) if accounts else ["no quotas" if guard is None else "not known while it computes"]
    rows = [
        (one_line(name), str(counts[name]), *(_usage(accounts[name]) if name in accounts else unknown))
        for name in names[:MAX_ROWS]
    ]
    return table(header, rows, "no users yet", len(names) - MAX_ROWS)


_QUOTAS = ("objects", "memory", "pointers", "CPU seconds", "messages")


def _usage(account: Any) -> tuple[str, ...]:
    limits = account.allowance
    return (
        _to_share(f"{account.objects:,}", limits.objects),
        _to_share(to_size(account.bytes), None if limits.bytes is None else to_size(limits.bytes)),
        _to_share(f"{account.leases:,}", limits.leases),
        "no limit" if limits.cpu_seconds is None else f"{limits.cpu_seconds:g} per minute",
        "no limit" if limits.messages is None else f"{limits.messages:g} per second",
    )


def _to_share(used: str, limit: object) -> str:
    return used if limit is None else f"{used} of {limit:,}" if isinstance(limit, int) else f"{used} of {limit}"


def _ledger(ledger: Ledger, query: Mapping[str, str] | None) -> Html:
    user, event = (query or {}).get("user", ""), (query or {}).get("event", "")
    entries = ledger.read_last()[::-1]
    events = sorted({entry.event for entry in entries})
    chosen = [e for e in entries if (not user or user in e.user) and event in ("", e.event)]
    options = [element("option", "every event", value="")]
    options += [element("option", name, value=name, **({"selected": ""} if name == event else {})) for name in events]
    form = element(
        "form",
        _field("User", "user", name="user", value=user),
        element("label", "Event", for_="event"),
        element("select", *options, id="event", name="event"),
        element("button", "Filter", class_="quiet"),
        *([] if ledger.file is None else [element("a", "Download", href="/ledger", class_="button")]),
        method="get",
        action="/",
        class_="filter",
    )
    rows = []
    for entry in chosen[:MAX_ROWS]:
        when, who, id, shape, _, *rest = entry.cells()
        sources, approver = entry.describe_sources(), one_line(entry.approver)
        rows.append((when, entry.event, who, _shorten(id), shape, sources, *rest, approver))
    header = ("when", "event", *ledger.HEADER[1:], "approved by")
    return join([form, table(header, rows, "nothing has left", len(chosen) - MAX_ROWS)])


# --- parts


def _page(title: str, body: Html, *head: Html) -> Html:
    parts = (
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        *head,
        element("title", title),
        Html(f"<style>{STYLE}</style>"),
    )
    return Html("<!doctype html>" + element("html", element("head", *parts), element("body", body), lang="en"))


def _single(title: str, *children: Html) -> Html:
    heading = element("h1", title)
    text = title if type(title) is not Html else "Release request"
    return _page(text, element("main", element("section", heading, *children, class_="single")))


def _section(title: str, content: Html, note: str = "") -> Html:
    return element("section", element("h2", f"{title} ", element("small", note)), content)


def _form(action: str, csrf: str, *children: Html) -> Html:
    hidden = element("input", type="hidden", name="csrf", value=csrf)
    return element("form", hidden, *children, method="post", action=action)


def _field(label: str, id: str, **attributes: str) -> Html:
    return join([element("label", label, for_=id), element("input", id=id, **attributes)])


def _card(value: str, name: str, *more: Html) -> Html:
    return element("div", element("b", value), element("span", name), *more)


def _badge(text: str, kind: str = "") -> Html:
    return element("span", text, class_=f"badge {kind or text}")


def _curve(speeds: Sequence[float]) -> Html:
    """Return a curve of the last minute."""
    top = max([*speeds, 1.0])
    points = " ".join([f"{place},{25 - 24 * speed / top:.1f}" for place, speed in enumerate(speeds)])
    line = element("polyline", points=points, vector_effect="non-scaling-stroke", stroke_width="1.5")
    return element("svg", line, viewBox="0 0 59 26", preserveAspectRatio="none", aria_hidden="true")


def _shorten(id: object) -> Html:
    text = one_line(str(id))
    return element("span", text if len(text) <= 12 else f"{text[:10]}…", class_="id")
