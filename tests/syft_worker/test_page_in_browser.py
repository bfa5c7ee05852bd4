"""The page of a worker in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syft_core.network.identity import Identity

from ..network.browser import BROWSER, DRIVER, Chromium, open_browser
from ..network.served import Served, serve
from ..waiting import wait_until

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no browser: `apt-get install chromium chromium-driver` installs one"
)


def test_an_owner_signs_in_sees_an_object_and_releases_it(hook: Any) -> None:
    with serve(hook) as served, open_browser("--window-size=1200,900") as browser:
        served.worker.load_data([torch.tensor([86753.0]).private_tensor([]).tag("#ages").describe("in years")])
        bob = served.connect()
        pointer = bob.search("#ages")[0] * 2
        pointer.request("for the paper")

        browser.open(served.page.url)
        browser.type("input[name=token]", "owner-secret")
        browser.click("button")
        assert "signed in as Dr. Noor" in browser.text("header")
        browser.click("section:has([data-label=tags]) summary")
        shown = browser.text("main")
        assert "#ages" in shown
        assert "in years" in shown
        assert "86753" not in shown
        browser.click("article a.button")
        assert "for the paper" in browser.text("section")
        browser.click("form[action$=approve] button")

        wait_until(lambda: served.worker.requests[0].state == "approved")
        browser.open(served.page.url)
        assert "nobody is waiting for you" in browser.text("main")
        assert torch.equal(pointer.get(), torch.tensor([173506.0]))
        assert [line for line in browser.log() if "favicon" not in line] == []


def test_the_style_is_applied_and_fits_a_phone(hook: Any) -> None:
    with serve(hook) as served, open_browser("--window-size=500,900", "--force-dark-mode") as browser:
        served.worker.load_data([torch.ones(2).tag("#a").describe("d" * 300)])
        browser.open(served.page.url)
        browser.type("input[name=token]", "owner-secret")
        browser.click("button")

        assert "signed in" in browser.text("header")
        assert browser.run("return getComputedStyle(document.querySelector('section')).borderRadius") == "10px"
        assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches") is True
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth") is True


def test_text_from_peers_runs_nothing_in_the_browser(hook: Any) -> None:
    evil = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    with serve(hook) as served, open_browser() as browser:
        served.tokens["evil"] = Identity(evil, True)
        bob = served.connect("evil")
        data = torch.ones(2).tag(evil).describe(evil).send(bob)
        data.publish()
        data.request(evil)
        browser.open(served.page.url)
        browser.type("input[name=token]", "evil")
        browser.click("button")

        assert "signed in" in browser.text("header")
        assert browser.run("return document.title") == "hospital: worker"
        browser.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert browser.text("main").count("<script>document") >= 4
        assert browser.run("return document.querySelectorAll('script, img').length") == 0


AUDIT = """
const found = [];
const visible = (e) => e.offsetParent !== null;
for (const e of document.querySelectorAll("input:not([type=hidden]), select")) {
  if (!document.querySelector(`label[for="${e.id}"]`)) found.push("no label: " + e.name);
}
for (const e of document.querySelectorAll("th")) if (e.scope !== "col") found.push("no scope: " + e.textContent);
for (const e of document.querySelectorAll("a, button")) {
  if (!(e.textContent.trim() || e.getAttribute("aria-label"))) found.push("no name: " + e.outerHTML);
  if (visible(e) && e.tabIndex < 0) found.push("not reachable: " + e.outerHTML);
}
if (!document.documentElement.lang || !document.title) found.push("no language or title");
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
if (new Set(ids).size !== ids.length) found.push("an id is used twice");
const parse = (text) => text.match(/[0-9.]+/g).map(Number);
const light = (c) => {
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = c.slice(0, 3).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const back = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !visible(e)) continue;
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(back(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)}: ${e.tagName} ${e.className} ${e.textContent}`);
}
if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window");
return found;
"""


AXE = Path(os.environ.get("SYFT_AXE", "no axe-core"))
TAB, ENTER = "\ue004", "\ue007"


def open_every_page(served: Served, browser: Chromium) -> Iterator[str]:
    """Open every page of a worker that has everything that a page can show; yield the name of each."""
    served.worker.load_data([torch.linspace(0, 1, 100).private_tensor([]).tag("#ages").describe("d" * 300)])
    bob = served.connect()
    for reason in ("for the paper", "no", "yes", "w" * 200):
        (bob.search("#ages")[0] * 2).request(reason)
    served.worker.deny(served.worker.requests[1], "too few", by="Dr. Noor")
    served.worker.approve(served.worker.requests[2], by="Dr. Noor")
    served.worker.allow("study", user="ana", computed_from=["#ages"], form="Tensor[9]", count=1, any_program=True)
    browser.open(served.page.url)
    yield "sign in"
    browser.type("input[name=token]", "owner-secret")
    browser.click("button")
    browser.find("header")
    yield "overview"
    for request in served.worker.requests:
        browser.open(f"{served.page.url}requests/{request.id}")
        browser.find("dl")
        yield f"request: {request.state}"
    browser.open(f"{served.page.url}requests/{served.worker.requests[0].id}")
    browser.click("form[action$=show] button")
    browser.find("svg.histogram")
    yield "values"
    browser.open(f"{served.page.url}nowhere")
    yield "error"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_page_has_labels_names_contrast_and_fits_390_pixels(hook: Any, mode: str) -> None:
    flags = ["--force-dark-mode"] if mode == "dark" else []
    with serve(hook) as served, open_browser("--window-size=500,900", *flags) as browser:
        browser.resize(390, 844)
        for name in open_every_page(served, browser):
            assert browser.run(AUDIT) == [], name


@pytest.mark.skipif(not AXE.exists(), reason="SYFT_AXE does not name axe.min.js: `npm install axe-core` installs it")
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_any_page(hook: Any, mode: str, width: int) -> None:
    flags = ["--force-dark-mode"] if mode == "dark" else []
    check = """
        const done = arguments[arguments.length - 1];
        const show = (v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html).join(" ");
        axe.run({resultTypes: ["violations"]}).then((r) => done(r.violations.map(show)), (e) => done([String(e)]));
    """
    with serve(hook) as served, open_browser("--window-size=1300,900", *flags) as browser:
        browser.resize(width, 844)
        for name in open_every_page(served, browser):
            assert browser.run_async(AXE.read_text(encoding="utf-8") + check) == [], name


def test_an_owner_decides_with_the_keyboard_alone(hook: Any) -> None:
    with serve(hook) as served, open_browser() as browser:
        served.worker.load_data([torch.ones(2).private_tensor([]).tag("#ages")])
        (served.connect().search("#ages")[0] * 2).request("why")

        def go_to(text: str) -> None:
            """Move the focus until an element with this text has it, and press Enter."""
            for _ in range(40):
                browser.press(TAB)
                if browser.run("return document.activeElement.textContent") == text:
                    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
                    browser.press(ENTER)
                    return
            raise AssertionError(f"{text!r} cannot be reached")

        browser.open(served.page.url)
        browser.type("input[name=token]", "owner-secret" + ENTER)
        browser.find("header")
        go_to("Review")
        browser.find("form[action$=approve]")
        go_to("Approve")

        assert "nobody is waiting for you" in browser.text("main")
        assert served.worker.requests[0].state == "approved"


OPEN_ALL = "for (const e of document.querySelectorAll('details')) e.open = true; return 0"
MANY = 60


@pytest.mark.parametrize("width", [390, 1280])
def test_a_worker_with_many_requests_rules_and_objects_has_a_page_of_a_few_screens(hook: Any, width: int) -> None:
    with serve(hook) as served, open_browser("--window-size=1300,900") as browser:
        browser.resize(width, 844)
        served.worker.load_data([torch.linspace(0, 1, 100).private_tensor([]).tag("#ages")])
        bob = served.connect()
        ages = bob.search("#ages")[0]
        for number in range(MANY):
            (ages[: number % 12 + 1] * 2).request(f"for table {number} of the paper about ages")
            served.worker.allow(
                f"rule-{number}",
                user="ana",
                computed_from=["#ages"],
                form=f"Tensor[{number}, 1]",
                count=20,
                per_day=4,
                any_program=True,
            )
            served.worker.load_data([torch.ones(3).tag(f"#set-{number}").describe("mean waiting time by month")])
        browser.open(served.page.url)
        browser.type("input[name=token]", "owner-secret")
        browser.click("button")
        browser.find("header")

        assert browser.run("return document.documentElement.scrollHeight") < 6 * 844
        assert browser.run(OPEN_ALL) == 0
        assert browser.run(AUDIT) == []
