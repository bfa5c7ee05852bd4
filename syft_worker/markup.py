"""Markup: HTML that is escaped by construction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from syft_core.printing import printable

MAX_CELL = 300
"""Maximum characters of a text in a cell of a table: peers choose some of the texts."""
_VOID = frozenset({"input", "meta"})


class Html(str):
    """Text that is HTML already; every other text is escaped when it becomes part of a page."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str) -> Html:
    """Return an element. The attribute ``class_`` is called "class", and ``data_label`` "data-label".

    >>> print(element("p", "1 < 2 ", element("b", "!"), class_='"'))
    <p class="&quot;">1 &lt; 2 <b>!</b></p>
    """
    start = "".join([f' {key.rstrip("_").replace("_", "-")}="{escape(text)}"' for key, text in attributes.items()])
    return Html(f"<{name}{start}>") if name in _VOID else Html(f"<{name}{start}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Join parts of a page; escape those that are not HTML, including characters that change how others appear."""
    return Html("".join([part if type(part) is Html else escape(printable(part)) for part in parts]))


def shorten(text: str) -> str:
    """Return the beginning of a long text; HTML is returned as it is."""
    return text if type(text) is Html or len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> Html:
    """Return a table whose cells know the name of their column, so that a small screen can show it in each."""
    if not rows:
        return element("p", nothing, class_="nothing")
    head = element(
        "tr", *[element("th", name or element("span", "action", class_="hidden"), scope="col") for name in header]
    )
    lines = [
        element("tr", *[element("td", shorten(cell), data_label=name) for name, cell in zip(header, row, strict=True)])
        for row in rows
    ]
    return element("table", element("thead", head), element("tbody", *lines))
