"""Lines through points as SVG, with axes and the name of each line at its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from math import ceil, floor, inf, isfinite, log10
from typing import TypeAlias

from syft_core.printing import printable

Points: TypeAlias = Sequence[tuple[int, float]]
"""The points of a line: a round, and a value."""

COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626")
"""The colours of lines, readable on light and on dark pages."""
MUTED = "#747d91"
"""The colour of lines for comparison."""
FONT_SIZE = 12
CHARACTER = 6.6
"""The estimated width of a character, in pixels."""
MAX_TICKS = 6
TOP, BOTTOM, LEFT = 14, 34, 46


def draw_lines(
    lines: Mapping[str, Points],
    width: int = 640,
    height: int = 320,
    percent: bool = False,
    muted: Collection[str] = (),
) -> str:
    """Return lines through points as SVG; values that are not finite are left out.

    ``percent`` writes values as percentages. The lines named in ``muted`` are thin and gray.
    """
    finite = {name: [(x, y) for x, y in points if isfinite(y)] for name, points in lines.items()}
    scale = _Scale(finite, width, height, max(map(len, lines), default=0), percent)
    colours = iter([COLOURS[place % len(COLOURS)] for place in range(len(lines))])
    styles = {name: (MUTED, 1.4) if name in muted else (next(colours), 2.4) for name in lines}
    # Lines for comparison are drawn first, below the others.
    order = sorted(finite, key=lambda name: name not in muted)
    drawn = [_draw_line(finite[name], *styles[name], scale) for name in order if finite[name]]
    names = _draw_names({name: points for name, points in finite.items() if points}, styles, scale)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui,sans-serif" font-size="{FONT_SIZE}">'
        f"{_draw_axes(scale)}{''.join(drawn)}{names}</svg>"
    )


class _Scale:
    """Where values and rounds are in a picture."""

    def __init__(self, lines: Mapping[str, Points], width: int, height: int, longest: int, percent: bool) -> None:
        rounds = [x for points in lines.values() for x, _ in points] or [1]
        values = [y for points in lines.values() for _, y in points] or [0.0, 1.0]
        self.width, self.height, self.percent = width, height, percent
        self.right = width - longest * CHARACTER - 14
        self.rounds = _choose_ticks(min(rounds), max(rounds), 1)
        self.values = _choose_ticks(min(values), max(values))
        self._first, self._last = min(rounds), max(rounds)
        self._low, self._high = min(self.values[0], *values), max(self.values[-1], *values)

    def place_round(self, number: float) -> float:
        """Return the horizontal position of a round."""
        return LEFT + (self.right - LEFT) * (number - self._first) / max(self._last - self._first, 1)

    def place_value(self, value: float) -> float:
        """Return the vertical position of a value."""
        return TOP + (self.height - TOP - BOTTOM) * (self._high - value) / ((self._high - self._low) or 1.0)

    def write(self, value: float) -> str:
        """Return a value as text."""
        return f"{100 * value:.4g}%" if self.percent else f"{value:.4g}"


def _choose_ticks(low: float, high: float, smallest: float = 0.0) -> list[float]:
    """Return at most ``MAX_TICKS`` round numbers that cover a range, or lie in it if they are counts.

    >>> _choose_ticks(0.512, 0.934)
    [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    >>> _choose_ticks(1, 10, 1)
    [2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** floor(log10(span / MAX_TICKS))
    for factor in (1, 2, 5, 10, 20):
        step = max(factor * power, smallest)
        first, last = (ceil(low / step), floor(high / step)) if smallest else (floor(low / step), ceil(high / step))
        if last - first < MAX_TICKS:
            break
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)] or [float(low)]


def _draw_axes(scale: _Scale) -> str:
    floor_, text = scale.height - BOTTOM, 'fill="currentColor" opacity=".75"'
    lines = [
        f'<path d="M{LEFT} {y:.1f}H{scale.right:.1f}" stroke="currentColor" opacity=".14"/>'
        f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end" {text}>{scale.write(value)}</text>'
        for value in scale.values
        for y in [scale.place_value(value)]
    ]
    rounds = [
        f'<text x="{scale.place_round(number):.1f}" y="{floor_ + 16}" text-anchor="middle" {text}>{number:g}</text>'
        for number in scale.rounds
    ]
    middle = (LEFT + scale.right) / 2
    title = f'<text x="{middle:.1f}" y="{scale.height - 4}" text-anchor="middle" {text}>round</text>'
    return "".join([*lines, *rounds, title])


def _draw_line(points: Points, colour: str, thickness: float, scale: _Scale) -> str:
    places = [(scale.place_round(x), scale.place_value(y)) for x, y in points]
    path = " ".join([f"{x:.1f},{y:.1f}" for x, y in places])
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thickness}"/>'
    return line + "".join(
        [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{thickness}" fill="{colour}"/>' for x, y in places[-1:]]
    )


def _draw_names(lines: Mapping[str, Points], styles: Mapping[str, tuple[str, float]], scale: _Scale) -> str:
    """Write the name of each line at its end, moved up or down so that names do not overlap."""
    ends = sorted([(scale.place_value(points[-1][1]), name) for name, points in lines.items()])
    places, last = [], -inf
    for y, _ in ends:
        last = max(y, last + FONT_SIZE + 2)
        places.append(last)
    lowest: float = scale.height - BOTTOM
    for place in reversed(range(len(places))):  # What has moved below the axis moves back up.
        lowest = places[place] = min(places[place], lowest)
        lowest -= FONT_SIZE + 2
    return "".join([
        f'<text x="{scale.right + 8:.1f}" y="{y + 4:.1f}" fill="{styles[name][0]}">{escape(printable(name))}</text>'
        for y, (_, name) in zip(places, ends, strict=True)
    ])  # fmt: skip
