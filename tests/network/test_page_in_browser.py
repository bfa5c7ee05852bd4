"""The page of a worker in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from syft_core.network.tokens import Identity

from .browser import BROWSER, DRIVER, open_browser
from .served import serve

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
        shown = browser.text("main")
        assert "#ages" in shown
        assert "in years" in shown
        assert "86753" not in shown
        browser.click("td a.button")
        assert "for the paper" in browser.text("section")
        browser.click("form[action$=approve] button")

        assert browser.text("span.approved") == "approved"
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
        assert browser.text("main").count("<script>document") >= 4
        assert browser.run("return document.querySelectorAll('script, img').length") == 0
