"""Sequence diagrams as SVG: one lifeline per actor, one arrow per message, time runs down.

The SVG is self-contained (no scripts, fonts or links) and has its own background.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple, TypeVar

from syft_core.pictures.tables import truncate
from syft_core.printing import printable

T = TypeVar("T")

TOP, ROW, MARGIN, MIN_GAP = 48, 42, 34, 150
MAX_NAME, MAX_LABEL, MAX_DETAIL = 26, 64, 80
"""The number of characters drawn of a name, a label and a detail; hovering shows the full text."""
MAX_BLOCK = 120
"""The longest sequence recognised as repeated."""
MAX_ITEMS = 2_000
"""The number of items searched for repetitions; pictures only show the beginning."""
CHARACTER = 6.7
NOTE_CHARACTER = 6.2
"""The estimated width of a character in a label and in a note, in pixels."""

KINDS = {
    "compute": "computes where the data is",
    "data": "data is sent",
    "departure": "data leaves a worker",
    "talk": "names and forms only",
    "failure": "refused or failed",
}
"""The kinds of arrows, and their text in the legend."""

_LIGHT = {
    "ground": "#fbfbfd", "ink": "#1f2430", "faint": "#6b7285", "line": "#c6cad6", "head": "#e9ecf5",
    "compute": "#4f5d7a", "data": "#2563eb", "departure": "#d9480f", "talk": "#9aa1b2", "failure": "#c01048",
}  # fmt: skip
_DARK = {
    "ground": "#171a21", "ink": "#e6e9f0", "faint": "#98a0b3", "line": "#3d4454", "head": "#262b37",
    "compute": "#a9b6d3", "data": "#79a8ff", "departure": "#ff9b5e", "talk": "#6d7589", "failure": "#ff7aa2",
}  # fmt: skip
_RULES = {
    ".ground": "fill:{ground}",
    "text": 'fill:{ink};font-family:system-ui,"Segoe UI","DejaVu Sans",sans-serif;text-anchor:middle',
    ".label": "stroke:{ground};font-size:12px;paint-order:stroke;stroke-width:4px",
    ".detail": "fill:{faint};stroke:{ground};font-size:10px;paint-order:stroke;stroke-width:3px",
    ".failed": "fill:{failure}",
    ".name": "font-size:13px;font-weight:600",
    ".note": "fill:{faint};font-size:11px;text-anchor:start",
    ".times": "fill:{faint};font-size:11px;text-anchor:start;font-weight:600",
    ".life": "stroke:{line};stroke-width:1.5;stroke-dasharray:2 4",
    ".loop": "stroke:{line};fill:none;stroke-dasharray:6 3",
    ".head": "stroke:{line};fill:{head}",
    ".line": "fill:none;stroke-width:1.4",
    ".strong": "stroke-width:2.2",
    ".broken": "stroke-dasharray:4 3",
    **{f".line-{kind}": f"stroke:{{{kind}}}" for kind in KINDS},
    **{f".tip-{kind}": f"fill:{{{kind}}}" for kind in KINDS},
}


def _style_sheet(palette: Mapping[str, str]) -> str:
    """Return a style sheet with literal colours: some SVG viewers do not support variables."""
    return "".join(f".syft-trace {selector}{{{rule.format(**palette)}}}" for selector, rule in _RULES.items())


class Arrow(NamedTuple):
    """One message: sender, receiver, kind, label, a detail line below and a title shown on hovering.

    ``times`` is the number of consecutive repetitions.
    """

    start: str
    end: str
    kind: str
    label: str
    detail: str = ""
    title: str = ""
    times: int = 1


class Repeated(NamedTuple):
    """A sequence of arrows, and how many times it is repeated."""

    arrows: tuple[Arrow, ...]
    times: int = 1


def sequence_svg(actors: Sequence[str], steps: Sequence[Repeated], note: str = "") -> str:
    """Draw the messages between ``actors``."""
    places = _place_lifelines(actors, [arrow for step in steps for arrow in step.arrows])
    reached = [x + _half_width(name) for name, x in places.items()]
    # The label of a message to oneself is to the right of the lifeline.
    to_oneself = [arrow for step in steps for arrow in step.arrows if arrow.start == arrow.end]
    reached += [places[arrow.start] + 34 + _text_width(arrow) for arrow in to_oneself]
    width = max(max(reached, default=0.0) + MARGIN, len(note) * NOTE_CHARACTER + 32)
    parts, y = [], float(TOP)
    for step in steps:
        top = y
        y += 12 if step.times > 1 else 0
        for arrow in step.arrows:
            y += ROW
            parts.append(_draw_arrow(arrow, places, y))
        if step.times > 1:
            parts.append(_draw_loop(step, places, top + 20, y + 20))
            y += 14
    bottom = y + 26
    ground = [_draw_lifeline(name, x, bottom) for name, x in places.items()]
    kinds = dict.fromkeys(arrow.kind for step in steps for arrow in step.arrows)
    legend, height = _draw_legend([kind for kind in KINDS if kind in kinds], bottom + 22, width)
    height += 22 if note else 4
    text = f'<text class="note" x="16" y="{height - 12:g}">{_escape(note)}</text>' if note else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="syft-trace" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" style="color-scheme:light dark">'
        f"<style>{_style_sheet(_LIGHT)}@media (prefers-color-scheme:dark){{{_style_sheet(_DARK)}}}</style>"
        f'<rect class="ground" width="{width:g}" height="{height:g}" rx="8"/>'
        f"{''.join(ground)}{''.join(parts)}{legend}{text}</svg>"
    )


def fold(items: Sequence[T], key: Callable[[T], object]) -> list[tuple[list[T], int]]:
    """Fold consecutive repetitions of a sequence into the sequence and its count; compare items by ``key``.

    >>> fold("xababab!", str)
    [(['x'], 1), (['a', 'b'], 3), (['!'], 1)]
    """
    keys = [key(item) for item in items]
    folded: list[tuple[list[T], int]] = []
    position = 0
    while position < len(items):
        length, times = _best_loop(keys, position)
        block = list(items[position : position + length])
        if times == 1 and folded and folded[-1][1] == 1:
            folded[-1][0].extend(block)
        else:
            folded.append((block, times))
        position += length * times
    return folded


def _best_loop(keys: list[object], start: int) -> tuple[int, int]:
    best, saved = (1, 1), 0
    rest = len(keys) - start
    if start > MAX_ITEMS:
        return best
    for length in range(1, min(MAX_BLOCK, rest // 2) + 1):
        times = 1
        pattern = keys[start : start + length]
        while keys[start + times * length : start + (times + 1) * length] == pattern:
            times += 1
        if length * (times - 1) > saved:
            best, saved = (length, times), length * (times - 1)
    return best


def _place_lifelines(actors: Sequence[str], arrows: Sequence[Arrow]) -> dict[str, float]:
    gaps = [max(MIN_GAP, _half_width(left) + _half_width(right) + 16) for left, right in pairwise(actors)]
    order = {name: number for number, name in enumerate(actors)}
    for arrow in arrows:
        low, high = sorted((order[arrow.start], order[arrow.end]))
        span = max(1, high - low)
        for gap in range(low, min(low + span, len(gaps))):
            gaps[gap] = max(gaps[gap], (_text_width(arrow) + 36) / span)
    places: dict[str, float] = {}
    x = MARGIN + _half_width(actors[0]) if actors else 0.0
    for name, width in zip(actors, [*gaps, 0.0], strict=False):
        places[name], x = x, x + width
    return places


def _text_width(arrow: Arrow) -> float:
    return max(len(_format_label(arrow)), len(truncate(arrow.detail, MAX_DETAIL)) * 0.85) * CHARACTER


def _half_width(name: str) -> float:
    return max(40.0, len(truncate(name, MAX_NAME)) * 4.3 + 14)


def _format_label(arrow: Arrow) -> str:
    return truncate(arrow.label, MAX_LABEL) + (f" ({arrow.times} ×)" if arrow.times > 1 else "")  # noqa: RUF001  # times


def _draw_lifeline(name: str, x: float, bottom: float) -> str:
    half = _half_width(name)
    return (
        f'<line class="life" x1="{x:g}" x2="{x:g}" y1="50" y2="{bottom:g}"/>'
        f'<g class="actor"><title>{_escape(name)}</title>'
        f'<rect class="head" x="{x - half:g}" y="18" width="{2 * half:g}" height="32" rx="7"/>'
        f'<text class="name" x="{x:g}" y="39">{_escape(truncate(name, MAX_NAME))}</text></g>'
    )


def _draw_arrow(arrow: Arrow, places: dict[str, float], y: float) -> str:
    start, end = places[arrow.start], places[arrow.end]
    style = f"line line-{arrow.kind}"
    style += " strong" if arrow.kind in ("departure", "data", "failure") else ""
    style += " broken" if arrow.kind in ("talk", "failure") else ""
    towards = 1 if end > start else -1
    if start == end:
        line = f'<path d="M{start:g} {y - 8:g} h26 v14 h-20" class="{style}"/>'
        tail_y, tip_y, label = y - 8, y + 6, _draw_label(arrow, start + 34, y, "start")
    else:
        line = f'<line x1="{start:g}" x2="{end - 7 * towards:g}" y1="{y:g}" y2="{y:g}" class="{style}"/>'
        tail_y, tip_y, label = y, y, _draw_label(arrow, (start + end) / 2, y, "middle")
    tip = f'<path d="M{end:g} {tip_y:g} l{-9 * towards} -4.5 v9 z" class="tip-{arrow.kind}"/>'
    tail = f'<circle cx="{start:g}" cy="{tail_y:g}" r="2.6" class="tip-{arrow.kind}"/>'
    title = f"<title>{_escape(arrow.title)}</title>" if arrow.title else ""
    return f"<g>{title}{line}{tip}{tail}{label}</g>"


def _draw_label(arrow: Arrow, x: float, y: float, anchor: str) -> str:
    above, below = (y - 8, y + 14) if anchor == "middle" else (y - 4, y + 10)
    place = "" if anchor == "middle" else ' style="text-anchor:start"'
    failed = " failed" if arrow.kind == "failure" else ""
    text = _escape(truncate(arrow.detail, MAX_DETAIL))
    detail = f'<text class="detail{failed}" x="{x:g}" y="{below:g}"{place}>{text}</text>'
    label = f'<text class="label{failed}" x="{x:g}" y="{above:g}"{place}>{_escape(_format_label(arrow))}</text>'
    return label + (detail if arrow.detail else "")


def _draw_loop(step: Repeated, places: dict[str, float], top: float, bottom: float) -> str:
    xs = [places[name] for arrow in step.arrows for name in (arrow.start, arrow.end)]
    left, right = min(xs) - 46, max(xs) + 46
    return (
        f'<rect class="loop" x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" rx="7"/>'
        f'<text class="times" x="{left + 8:g}" y="{top + 15:g}">{step.times} ×</text>'  # noqa: RUF001  # times
    )


def _draw_legend(kinds: Sequence[str], y: float, width: float) -> tuple[str, float]:
    parts, x = [], 16.0
    for kind in kinds:
        text = KINDS[kind]
        needed = 34 + len(text) * NOTE_CHARACTER
        if x > 16 and x + needed > width:
            x, y = 16.0, y + 18
        parts.append(
            f'<line x1="{x:g}" x2="{x + 22:g}" y1="{y - 4:g}" y2="{y - 4:g}" class="line strong line-{kind}"/>'
            f'<text class="note" x="{x + 28:g}" y="{y:g}">{_escape(text)}</text>'
        )
        x += needed + 14
    return "".join(parts), y + 8


def _escape(text: str) -> str:
    return escape(printable(text, lines=True))
