from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.network.identity import Identity
from syft_worker import views
from syft_worker.allowances import Allowance
from syft_worker.desk.patterns import LEGEND
from syft_worker.quotas import QuotaGuard

from ..network.served import Served, serve
from .browsing import Browser, ask_for_release, path_of

torch = pytest.importorskip("torch")


EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture
def served(hook: Any) -> Iterator[Served]:
    with serve(hook) as served:
        yield served


def test_the_page_shows_names_forms_and_counts_but_no_values(served: Served) -> None:
    pointer = ask_for_release(served)
    served.worker.load_data([torch.tensor([[1.5, 2.5]]).tag("#dose").describe("milligrams")])
    bob = served.clients[0]
    (bob.search("#dose")[0] + 1).get(reason="a look")

    shown = Browser(served.page).get("/", "owner-secret").body

    for text in ("#ages", "PrivateTensor&gt;Tensor[1]", "#dose", "Tensor[1, 2]", "milligrams", "nobody", "the owner"):
        assert text in shown
    for text in ("ana", bob.client_id, "a look", "for the paper", "no quotas", "operations per second"):
        assert text in shown
    assert "86753" not in shown
    assert "1.5" not in re.sub(r"<style>.*</style>|<svg.*?</svg>", "", shown, flags=re.DOTALL)
    del pointer


def test_what_peers_write_is_escaped_wherever_it_is_shown(hook: Any) -> None:
    with serve(hook, id=f"bob{EVIL}") as served:
        served.tokens["evil"] = Identity(f"eve{EVIL}", True)
        bob = served.connect("evil")
        data = torch.ones(2).tag(f"#t{EVIL}").describe(f"d{EVIL}").send(bob)
        data.publish()
        served.worker.load_data([torch.ones(3).private_tensor([f"user{EVIL}"]).tag("#mine")])
        secret = bob.search("#mine")[0] + 1
        data.copy().get(reason=f"because{EVIL}")
        secret.request(f"reason{EVIL}")
        secret.request(f"again{EVIL}")
        first, second = path_of(served), path_of(served, 1)
        browser = Browser(served.page)
        browser.sign_in("evil")
        browser.post(f"{first}/deny", answer=f"answer{EVIL}", **browser.review(first))
        limit(served, f"quota{EVIL}")

        pages = [browser.get(path).body for path in ("/", first, second, "/login", f"/{EVIL[:8]}")]

    for shown in pages:
        assert "<script" not in shown
        assert "<img" not in shown
        assert "onerror=alert(2)&gt;" in shown or "onerror" not in shown
    for word in ("bob", "eve", "#t", "d", "user", "because", "reason", "again", "answer", "quota"):
        assert f"{word}&lt;script&gt;" in "".join(pages), word


def test_long_texts_of_peers_are_cut(served: Served) -> None:
    bob, long = served.connect(), "x" * 4000
    users = [f"{long}{number}" for number in range(100)]
    kept = [torch.ones(1).private_tensor(users).tag(*[f"#{long}{number}" for number in range(64)]).describe(long)]
    served.worker.load_data(kept)
    bob.search(f"#{long}0")[0].request(long)
    torch.ones(1).send(bob).get(reason=long)
    browser = Browser(served.page)
    browser.sign_in()

    assert len(browser.get("/").body) < 50_000


def limit(served: Served, user: str) -> None:
    """Limit what a user may use of the worker."""
    guard = QuotaGuard(served.worker, {user: Allowance(objects=100, bytes=2_000_000, cpu_seconds=30)})
    guard.account_of(user)
    served.worker.guard = guard


def test_quotas_are_shown_with_the_users(served: Served) -> None:
    limit(served, "ana")
    x = torch.ones(1000).send(served.connect())
    served.clients[0].flush()

    shown = Browser(served.page).get("/", "owner-secret").body

    for text in ("1 of 100", "4.0 kB of 2.0 MB", "30 per minute", "no limit"):
        assert text in shown
    assert "no quotas" not in shown
    del x


def test_a_long_list_is_cut(served: Served) -> None:
    served.worker.load_data([torch.ones(1) for _ in range(views.MAX_ROWS + 7)])

    browser = Browser(served.page)
    browser.sign_in()
    first = browser.get("/").body
    (later,) = re.findall(r'href="/(\?[^"]*#objects)"', first)
    second = browser.get(f"/{html.unescape(later).partition('#')[0]}").body

    assert f"1 to {views.MAX_ROWS} of {views.MAX_ROWS + 7}" in first
    assert first.count("Tensor[1]") == views.MAX_ROWS
    assert second.count("Tensor[1]") == 7
    assert second.count("<details open") == 1


@pytest.mark.parametrize("query", ["objects=99999", "objects=-1", "objects=x", "objects=", "open=2&rules=3&ledger=1"])
def test_a_page_that_a_list_does_not_have_is_the_nearest_one(served: Served, query: str) -> None:
    served.worker.load_data([torch.ones(1) for _ in range(views.MAX_ROWS + 7)])

    assert "of 27" in Browser(served.page).get(f"/?{query}", "owner-secret").body


def test_requests_for_the_same_are_one_group_and_rules_that_ended_are_folded(served: Served) -> None:
    ask_for_release(served)
    data = served.clients[0].search("#ages")[0]
    for number in range(5):
        (data * number).request(f"try {number}")
    (data.sum() * 2).request("another form")
    for number, name in enumerate(("old", "new")):
        served.worker.allow(
            name, user="ana", computed_from=["#ages"], form=f"Tensor[{number}, 9]", count=1, any_program=True
        )
    served.worker.revoke("old")

    shown = Browser(served.page).get("/", "owner-secret").body

    assert shown.count("<article>") == 2
    assert "5 more of the same form from the same data" in shown
    assert "1 revoked, expired or used up" in shown
    assert "Tensor[1, 9] (default float)" in shown
    assert LEGEND.partition(".")[0] in shown
    assert shown.count(", expires ") == 7


def test_what_changes_the_direction_of_text_or_is_not_seen_is_escaped_on_the_page(served: Served) -> None:
    served.worker.load_data([torch.ones(1).tag("#a\u202eb").describe("x\u200by\x1b[2J")])

    shown = Browser(served.page).get("/", "owner-secret").body

    assert r"#a\u202eb" in shown
    assert not {"\u202e", "\u200b", "\x1b"} & set(shown)


def test_a_rule_that_nobody_can_use_says_so(served: Served) -> None:
    served.worker.load_data([torch.ones(2).private_tensor([]).tag("#ages")])
    approvals = served.worker.rules
    approvals.list_users = lambda: {"ana"}
    approvals.configure(
        {name: {"user": name, "computed_from": ["#ages"], "any_program": True} for name in ("ana", "anna")}
    )

    shown = html.unescape(Browser(served.page).get("/", "owner-secret").body)

    assert shown.count("never used: ") == 1
    assert "no user of this worker has the name 'anna' (did you mean 'ana'?)" in shown
