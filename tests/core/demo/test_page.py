from __future__ import annotations

import re
from pathlib import Path

from syft_core.demo.page import DemoPage


def test_the_page_loads_nothing_and_escapes_text() -> None:
    page = DemoPage()
    page.add("a < b", "c & d", "<svg/>")

    html = page.html()

    assert "a &lt; b" in html
    assert "c &amp; d" in html
    assert "<figure><svg/></figure>" in html
    assert not re.search(r"https?:|<script|<link|@import|url\(", html)


def test_the_results_are_above_the_pictures(tmp_path: Path) -> None:
    page = DemoPage()
    page.title, page.lead, page.footer = "What we <did>", "in short", "in small print"
    page.add_figure("91%", "right & good")
    page.add_figure("0", "rows that left", is_good=True)
    page.add_chart("By round", "a caption", lambda width, height: f"<svg width={width} height={height}/>")

    html = page.save(tmp_path / "page.html").read_text(encoding="utf-8")

    body = html.partition("<body>")[2]
    shown = [
        "What we &lt;did&gt;",
        "in short",
        "<b>91%</b><span>right &amp; good",
        'good"><b>0</b>',
        "By round",
        "small",
    ]
    assert [body.index(text) for text in shown] == sorted(body.index(text) for text in shown)
    assert body.count("<svg width") == 2
    assert 'class="wide"' in body
