"""Views: the pages of a worker; names, forms and counts, but no values and no scripts."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlencode

from syft_core.hook.hook import FrameworkHook
from syft_core.network.client_session import ClientSession
from syft_core.network.server import Server
from syft_core.peer import Id
from syft_core.pictures.tables import one_line, to_moment, to_size
from syft_core.values import Json, Table
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.ledger import Ledger, describe_value
from syft_sums.keys import write_fingerprint
from syft_sums.rules import SumRule
from syft_sums.studies import Studies, studies_of
from syft_worker.desk.approvals import StandingApproval
from syft_worker.desk.patterns import LEGEND, count_numbers, describe_forms
from syft_worker.desk.releases import name_rule, releases_of
from syft_worker.desk.requests import ReleaseRequest
from syft_worker.desk.rules_in_words import shorten_programs
from syft_worker.desk.terms import Terms
from syft_worker.markup import Html, element, join, shorten, table

T = TypeVar("T")
MAX_ROWS = 20
"""Maximum rows of each list that are shown at once; links lead to the others."""
MAX_GROUPS = 6
"""Maximum groups of requests, and rules, that are shown at once."""
MAX_NAMES = 8
"""Maximum columns of a table that are named."""
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
    """Return the page that shows everything about a worker.

    ``query`` filters the ledger by user and event, and says which rows of each list are shown, by the list's name.

    The worker may compute for long while it holds its lock, so this reads copies of its lists without the lock.
    """
    worker, clients, query = server.worker, server.sessions, query or {}
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
        _section("Requests to decide on", _open_requests(requests, query), "nothing of this leaves without you"),
        _section("Rules", _approvals(worker, csrf, query), "what leaves without a decision each time"),
        _fold(
            "Sums",
            _sums(studies_of(worker), csrf),
            query,
            "sums",
            "results that leave only with those of other workers",
        ),
        _fold("Decided requests", _closed_requests(requests, query), query, "decided"),
        _fold("Objects", _objects(entries, query), query, "objects", f"{len(entries):,}: names and forms, no values"),
        _fold("Sessions", _sessions(clients, held, query), query, "sessions", f"{len(clients):,}"),
        _fold("Users and quotas", _users(worker, clients, query), query, "users"),
        _section("Bans", _bans(worker, csrf, query), "what ended the process, and is refused to the user who sent it"),
        _fold("Ledger", _ledger(worker.ledger, query), query, "ledger", "what has left, was refused and was decided"),
    )
    return _page(f"{worker.id}: worker", join([header, main]))


def login(worker: Id, csrf: str, error: str = "") -> Html:
    """Return the page on which an owner signs in."""
    token = _field("Token", "token", type="password", name="token", autocomplete="off", autofocus="")
    form = _form("/login", csrf, token, element("button", "Sign in"))
    text = element("p", "Sign in with an owner's token of this worker.", class_="nothing")
    return _single(f"Worker {worker}", *([element("p", error, class_="error")] if error else []), text, form)


def review(request: ReleaseRequest, shown: Table, csrf: str, values: Sequence[Table] | None = None) -> Html:
    """Return the page on which an owner decides about a release request; ``values`` are summaries of the copies."""
    _, state, who, forms, sources, reason, answer = request.cells()
    facts = [
        ("asked by", f"{who}, with an owner's token" if request.is_of_owner else who),
        ("asked", to_moment(request.asked_at)),
        ("object", one_line(request.names)),
        ("form", f"{forms}{_size(request)}"),
        ("computed from", sources),
        *[("how", one_line(how)) for how in dict.fromkeys(request.how) if how],
        *[("supplied by the user", one_line(text)) for text in shown.get("supplied", ())],
        *[("checked", text) for text in shown.get("checks", ())],
        ("reason", reason),
        ("of this form from this data", f"{shown['released_before']} were released to this user before"),
    ]
    facts += [("program", f"{request.line} (as the user says)")] if request.line else []
    facts += [("a share", f"held by {', '.join(request.parties)} (as the user says)")] if request.parties else []
    if request.decided_by and request.decided_at is not None:
        facts.append(("decided", f"{to_moment(request.decided_at)} by {one_line(request.decided_by)}"))
    facts += [("answer", answer)] if answer else []
    facts += [("expires", to_moment(request.expires_at))] if request.expires_at is not None else []
    facts += [("fetched", to_moment(request.released_at))] if request.released_at is not None else []
    parts = [_facts(facts)]
    if values is not None:
        parts += [element("h2", "What would leave"), *[_summary(summary) for summary in values]]
    parts += _decisions(request, shown, csrf, values is None)
    title = join([f"Request {request.id} ", _badge(state)])
    return _single(title, *parts, element("p", element("a", "Back to the worker", href="/")))


def _facts(facts: Iterable[tuple[str, str]]) -> Html:
    return element("dl", *[part for name, text in facts for part in (element("dt", name), element("dd", text))])


_MARKED = ("warning", "data", "failed")


def _summary(summary: Table) -> Html:
    counts = summary.get("histogram")
    facts: list[tuple[str, str]] = [
        (name.replace("_", " "), element("strong", text, class_="error") if name in _MARKED else text)
        for name, value in summary.items()
        if name != "histogram" and (text := _to_text(value))
    ]
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
    """Return numbers with six digits, which is enough for an owner."""
    if isinstance(value, list):
        return f"[{', '.join(map(_to_text, value))}]"
    return f"{value:.6g}" if type(value) is float else str(value)


def _decisions(request: ReleaseRequest, shown: Table, csrf: str, may_show: bool) -> list[Html]:
    path = f"/requests/{request.id}"
    digest = element("input", type="hidden", name="digest", value=request.digest)
    if request.state == "approved":
        withdraw = element("button", "Take the approval back", class_="no")
        return [_form(f"{path}/withdraw", csrf, digest, withdraw)]
    if request.state != "open":
        return []
    look = [_form(f"{path}/show", csrf, element("button", "Show what would leave", class_="quiet"))] if may_show else []
    if request.terms is not None:
        granting = _offer_study(request, request.terms, shown["rule"], csrf, digest)
        denying = _form(f"{path}/deny", csrf, digest, _answer(), element("button", "Deny", class_="no"))
        return [*granting, *look, denying]
    forms = [
        *look,
        _form(f"{path}/approve", csrf, digest, element("button", "Approve")),
        _form(f"{path}/deny", csrf, digest, _answer(), element("button", "Deny", class_="no")),
    ]
    return [*forms, *_offer_rule(request, shown["rule"], csrf, digest)]


def _answer() -> Html:
    return _field("Answer, for the user", "answer", name="answer", required="", maxlength="500")


def _offer_study(request: ReleaseRequest, terms: Terms, rule: Table, csrf: str, digest: Html) -> list[Html]:
    """Return what a study asks for, and one button that makes a rule of it."""
    digests = rule.get("programs") or rule.get("program")
    if not (rule["user"] and rule["computed_from"] and digests):
        why = "No rule can be made of it: its results were not computed by programs from tagged data of this worker."
        return [element("p", why, class_="error")]
    labels = request.labels or ("",) * len(request.results)
    rows = [(one_line(label), one_line(result.form)) for label, result in zip(labels, request.results, strict=False)]
    inputs = [
        _field("Name of the rule", "rule-name", name="name", required="", value=name_rule(request)),
        _field(
            "How often in all", "rule-count", name="count", type="number", min="1", value=str(terms.count), required=""
        ),
        _field("How often within 24 hours", "rule-day", name="per_day", type="number", min="1"),
        _field("Until", "rule-until", name="until", type="date"),
    ]
    if terms.is_summed:
        least = f"at least {rule['at_least']} workers, this one included, whose keys are listed in [members]"
        about = f"Nothing leaves but sums over {least}. A sum over few workers, or a program that was made for it, can "
        about += "still show much about one record; only noise prevents that."
    else:
        about = "Results leave one by one, as they are: only noise limits what they reveal about one record."
    programs = f"Only results of these programs are covered: {shorten_programs(digests)}. Which columns they get, how "
    programs += "missing values are filled and how columns are scaled is for the user; rows are not."
    stated = [text for key, text in _STATED.items() if key in rule]
    texts = (f"{one_line(rule['user'])} asks: {one_line(terms.describe())}.", programs, about, *stated)
    button = element("button", "Approve the study")
    return [
        element("h2", "What leaves, as the user names it"),
        table(("what", "form"), rows, ""),
        element("h2", "Approve the study: this makes one rule"),
        *[element("p", text) for text in texts],
        _form(f"/requests/{request.id}/rule", csrf, digest, *inputs, button),
    ]


_STATED = {
    "numbers_per_row": "It has many numbers for each row of the data: they could contain the rows.",
    "rows_behind": "It is not certain that at least 10 rows are behind each number.",
}
"""What an owner is told when a result does not pass a check, which the rule then leaves out."""


def _offer_rule(request: ReleaseRequest, rule: Table, csrf: str, digest: Html) -> list[Html]:
    try:
        form = describe_forms(rule["form"])
    except ValueError:
        return []
    if not (rule["user"] and rule["computed_from"] and rule.get("program")):
        return []
    inputs = [
        _field("Name of the rule", "rule-name", name="name", required="", value=name_rule(request)),
        _field(
            "How often in all, with this", "rule-count", name="count", type="number", min="1", value="20", required=""
        ),
        _field("How often within 24 hours", "rule-day", name="per_day", type="number", min="1"),
        _field("Until", "rule-until", name="until", type="date"),
    ]
    what = f"{rule['user']} may have {form}, computed from {', '.join(rule['computed_from'])}"
    button = element("button", "Approve this, and add the rule", class_="quiet")
    about = f"Only results of this program are covered: {shorten_programs(rule['program'])}."
    stated = [text for key in ("numbers_per_row", "rows_behind") if key in rule for text in [_STATED[key]]]
    heading, texts = element("h2", "Approve this program from now on"), (one_line(what), about, *stated, LEGEND)
    adding = _form(f"/requests/{request.id}/rule", csrf, digest, *inputs, button)
    return [heading, *[element("p", text) for text in texts], adding]


def message(title: str, text: str) -> Html:
    """Return a page with one message."""
    return _single(title, element("p", text), element("p", element("a", "Back to the worker", href="/")))


# --- sections


def _threads() -> list[str]:
    counts = {name: attached.first.attributes.count_threads() for name, attached in FrameworkHook._attached.items()}
    return [f"{name}: {one_line(str(count))} threads" for name, count in counts.items() if count is not None]


def _open_requests(requests: Sequence[ReleaseRequest], query: Mapping[str, str]) -> Html:
    """Return the requests that wait, the oldest first; those for the same form from the same data are one group."""
    groups: dict[tuple[str, ...], list[ReleaseRequest]] = {}
    for request in requests:
        if request.state == "open":
            groups.setdefault((str(request.peer), request.forms, request.sources), []).append(request)
    if not groups:
        return element("p", "nobody is waiting for you", class_="nothing")
    shown, pages = _take_page(list(groups.values()), query, "open", MAX_GROUPS)
    return join([*map(_request_group, shown), pages])


def _request_group(group: Sequence[ReleaseRequest]) -> Html:
    first, *others = group
    _, _, who, forms, sources, *_ = first.cells()
    what = [element("b", who), " asks for ", element("b", shorten(forms)), _size(first)]
    what += [", computed from ", element("b", shorten(sources))] if sources else []
    parts = [element("p", *what), _request_line(first)]
    if others:
        more = [_request_line(request) for request in others]
        count = f"{len(others)} more of the same form from the same data"
        parts.append(element("details", element("summary", count), *more))
    return element("article", *parts)


def _size(request: ReleaseRequest) -> str:
    count = count_numbers(request.forms)
    return "" if count is None else f" ({count:,} {'number' if count == 1 else 'numbers'})"


def _request_line(request: ReleaseRequest) -> Html:
    times = f"asked {to_moment(request.asked_at)}"
    if request.expires_at is not None:
        times += f", expires {to_moment(request.expires_at)[:10]}"
    link = element(
        "a", "Review", href=f"/requests/{request.id}", class_="button", aria_label=f"Review request {request.id}"
    )
    why = element("span", shorten(f"“{one_line(request.reason)}”"))
    return element("div", why, element("span", times, class_="nothing"), link, class_="line")


def _closed_requests(requests: Sequence[ReleaseRequest], query: Mapping[str, str]) -> Html:
    header = ("", "state", "who", "form", "computed from", "reason", "decided", "answer")
    closed = [request for request in requests if request.state != "open"][::-1]
    shown, pages = _take_page(closed, query, "decided")
    rows = []
    for request in shown:
        id, state, *rest, answer = request.cells()
        link = element("a", "Show", href=f"/requests/{id}", aria_label=f"Show request {id}")
        decided = "" if request.decided_at is None else f"{to_moment(request.decided_at)} by {request.decided_by}"
        rows.append((link, _badge(state), *rest, one_line(decided), answer))
    return join([table(header, rows, "nothing was decided yet"), pages])


def _approvals(worker: BaseWorker, csrf: str, query: Mapping[str, str]) -> Html:
    rules = list(releases_of(worker).approvals)[::-1]
    standing = [rule for rule in rules if rule.state == "standing"]
    ended = [rule for rule in rules if rule.state != "standing"]
    problems = {rule.name: why for rule in standing if (why := releases_of(worker).approvals.explain_user(rule))}
    parts = [_rules(standing, csrf, query, "rules", "every release needs a decision", problems)]
    if standing:
        parts.append(element("p", LEGEND, class_="nothing"))
    if ended:
        old = _rules(ended, csrf, query, "ended", "")
        count = element("summary", f"{len(ended)} revoked, expired or used up")
        parts.append(element("details", count, old, **({"open": ""} if "ended" in query else {})))
    return join(parts)


def _rules(
    rules: Sequence[StandingApproval],
    csrf: str,
    query: Mapping[str, str],
    name: str,
    nothing: str,
    problems: Mapping[str, str] = MappingProxyType({}),
) -> Html:
    """Return a table of rules; ``problems`` explains why some of them can never be used."""
    rows = []
    shown, pages = _take_page(rules, query, name, MAX_GROUPS)
    for rule in shown:
        label, state, what, *rest = rule.cells()
        button = element("button", "Revoke", class_="no", aria_label=f"Revoke {label}")
        form = "" if rule.is_revoked else _form(f"/rules/{label}/revoke", csrf, button)
        title = join([label, " ", _badge(state, state.replace(" ", "-"))]) if state != "standing" else label
        if (why := problems.get(label)) is not None:
            what = join([what, " ", element("strong", f"never used: {one_line(why)}", class_="error")])
        rows.append((title, what, *rest, form))
    return join([table(("name", "what", "used", "made by", ""), rows, nothing), pages])


def _sums(studies: Studies, csrf: str) -> Html:
    """Return the key of a worker, the members and rules of its owner, and the last rounds."""

    def revoke(rule: SumRule) -> Html:
        """Return a button that revokes a rule; those of the configuration are removed there."""
        button = element("button", "Revoke", class_="no", aria_label=f"Revoke {rule.name}")
        return join([]) if rule.is_configured else _form(f"/rules/{rule.name}/revoke", csrf, button)

    members = [(name, ", ".join(map(write_fingerprint, keys))) for name, keys in studies.members.items()]
    rules = [
        (rule.name, one_line(rule.describe()), f"{rule.hides_among} workers", str(len(rule.uses)), revoke(rule))
        for rule in studies.rules.values()
    ]
    return join(
        [
            element("p", f"The key of this worker: {studies.fingerprint}"),
            table(("member", "key"), members, "no members: give their fingerprints in [members]"),
            table(("rule", "what", "hides each result among", "rounds", ""), rules, "no rule: nothing leaves in a sum"),
            table(("data", "different lists of workers"), studies.describe_changes(), "nothing was summed"),
            table(studies.HEADER, studies.cells()[::-1][:MAX_ROWS], "no rounds"),
        ]
    )


def _objects(entries: Sequence[Stored], query: Mapping[str, str]) -> Html:
    header = ("id", "form", "tags", "description", "kept by", "private to")
    shown, pages = _take_page(sorted(entries, key=lambda entry: entry.published)[::-1], query, "objects")
    rows = [
        (
            _shorten(entry.id),
            one_line(describe_value(entry.value)),
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
        for entry in shown
    ]
    return join([table(header, rows, "the worker has no objects"), pages])


def _describe(entry: Stored) -> str:
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


def _sessions(clients: Sequence[ClientSession], held: Counter[Any], query: Mapping[str, str]) -> Html:
    header = ("user", "client", "since", "state", "in flight", "objects", "bytes")
    ordered = sorted(clients, key=lambda client: (client.connection is None, -client.since))
    shown, pages = _take_page(ordered, query, "sessions")
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
        for client in shown
    ]
    return join([table(header, rows, "no client has connected"), pages])


def _state_of(client: ClientSession) -> str:
    busy = client.busy_since
    if client.connection is None:
        return "disconnected"
    return "idle" if busy is None else f"computing for {time.monotonic() - busy:.0f} s"


def _users(worker: BaseWorker, clients: Sequence[ClientSession], query: Mapping[str, str]) -> Html:
    counts = Counter(str(client.peer) for client in clients)
    guard, accounts = getattr(worker, "guard", None), {}
    if guard is not None and worker.lock.wait(seconds=LOCK_SECONDS):  # The guard counts with the lock held.
        try:
            accounts = {account.user: account for account in guard.accounts}
        finally:
            worker.lock.release()
    names, pages = _take_page(sorted({*counts, *accounts}), query, "users")
    header = ("user", "sessions", *(_QUOTAS if accounts else ["quotas"]))
    unknown = [""] * len(_QUOTAS) if accounts else ["no quotas" if guard is None else "not known while it computes"]
    rows = [
        (one_line(name), str(counts[name]), *(_usage(accounts[name]) if name in accounts else unknown))
        for name in names
    ]
    return join([table(header, rows, "no users yet"), pages])


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


def _bans(worker: BaseWorker, csrf: str, query: Mapping[str, str]) -> Html:
    header = ("", "id", "user", "refused", "because", "until")
    bans, pages = _take_page(list(getattr(worker.guard, "bans", ())), query, "bans")
    rows = []
    for ban in bans:
        id, user, *rest = ban.cells()
        button = element("button", "Lift", class_="no", aria_label=f"Lift the ban {id} of {user}")
        rows.append((_form(f"/bans/{id}/lift", csrf, button), id, user, *rest))
    return join([table(header, rows, "nothing is refused"), pages])


def _to_share(used: str, limit: object) -> str:
    return used if limit is None else f"{used} of {limit:,}" if isinstance(limit, int) else f"{used} of {limit}"


def _ledger(ledger: Ledger, query: Mapping[str, str]) -> Html:
    user, event = query.get("user", ""), query.get("event", "")
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
        element("input", type="hidden", name="ledger", value="1"),
        element("button", "Filter", class_="quiet"),
        *([] if ledger.file is None else [element("a", "Download", href="/ledger", class_="button")]),
        method="get",
        action="/",
        class_="filter",
    )
    rows = []
    shown, pages = _take_page(chosen, query, "ledger")
    for entry in shown:
        when, who, id, shape, _, *rest = entry.cells()
        sources, approver = entry.describe_sources(), one_line(entry.approver)
        rows.append((when, entry.event, who, _shorten(id), shape, sources, *rest, approver))
    header = ("when", "event", *ledger.HEADER[1:], "approved by")
    return join([form, table(header, rows, "nothing has left"), pages])


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


def _take_page(
    rows: Sequence[T], query: Mapping[str, str], name: str, size: int = MAX_ROWS
) -> tuple[Sequence[T], Html]:
    given = query.get(name, "")
    last = max(-(-len(rows) // size), 1)
    page = min(max(int(given), 1), last) if re.fullmatch("[0-9]{1,6}", given) else 1
    start = (page - 1) * size
    if last == 1:
        return rows, Html("")
    links = [
        element("a", text, href=f"/?{urlencode({**query, name: str(to)})}#{name}", aria_label=f"{text}: {name}")
        for text, to in (("Earlier in the list", page - 1), ("Later in the list", page + 1))
        if 1 <= to <= last
    ]
    shown = f"{start + 1:,} to {min(start + size, len(rows)):,} of {len(rows):,}"
    parts = [part for link in links for part in (" · ", link)]
    return rows[start : start + size], element("p", shown, *parts, class_="nothing", id=name)


def _fold(title: str, content: Html, query: Mapping[str, str], name: str, note: str = "") -> Html:
    heading = element("summary", element("h2", f"{title} ", element("small", note)))
    return element("section", element("details", heading, content, **({"open": ""} if name in query else {})))


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
    top = max([*speeds, 1.0])
    points = " ".join([f"{place},{25 - 24 * speed / top:.1f}" for place, speed in enumerate(speeds)])
    line = element("polyline", points=points, vector_effect="non-scaling-stroke", stroke_width="1.5")
    return element("svg", line, viewBox="0 0 59 26", preserveAspectRatio="none", aria_hidden="true")


def _shorten(id: object) -> Html:
    text = one_line(str(id))
    return element("span", text if len(text) <= 12 else f"{text[:10]}…", class_="id")
