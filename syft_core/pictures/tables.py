"""Tables, as text and as HTML."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from html import escape

from syft_core.printing import printable

MAX_ROWS = 100
"""The number of rows in an HTML table; the number of omitted rows is given below it."""

_CELL = "border:1px solid rgba(128,128,128,.4);padding:2px 8px;text-align:left"


def one_line(text: str) -> str:
    r"""Escape text from a peer so that it cannot fake another row or column of a table.

    >>> print(one_line("a\nb\x1b[2K  c"))
    a\nb\x1b[2K \x20c
    """
    return re.sub("(?<= ) ", r"\\x20", printable(text.replace("\\", "\\\\")))


def truncate(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters; a longer one ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def to_moment(seconds: float) -> str:
    """Format seconds since 1970 as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def to_size(count: float) -> str:
    """Return a number of bytes as text.

    >>> to_size(999), to_size(2_340_000)
    ('999 B', '2.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as aligned text.

    >>> print(text_table(("who", "what"), [("bob", "add"), ("alice", "mul")]))
    who    what
    bob    add
    alice  mul
    """
    lines = [tuple(map(printable, line)) for line in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], limit: int = MAX_ROWS) -> str:
    """Return the first ``limit`` rows of a table as HTML; every cell is escaped."""
    head = "".join(f'<th style="{_CELL}">{escape(printable(cell))}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(printable(cell))}</td>' for cell in row) + "</tr>"
        for row in rows[:limit]
    )
    more = f"<div>… and {len(rows) - limit} more</div>" if len(rows) > limit else ""
    return (
        '<table style="border-collapse:collapse;color:inherit">'
        f'<caption style="text-align:left;padding:4px 0">{escape(printable(caption))}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )
