"""History: what happened in each round, as a table, a picture, or a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path

from syft_core.files import write_file
from syft_core.peer import Id
from syft_core.pictures.tables import html_table, one_line, text_table
from syft_core.values import Kwargs, Nested


@dataclass
class Row:
    """One round: who took part, who was left out and why."""

    round: int
    loss: float
    """The mean loss in training, over all samples."""
    workers: list[Id]
    left_out: dict[Id, str] = field(default_factory=dict)
    """Why the update of a worker is missing."""
    samples: int = 0
    seconds: float = 0.0

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table row."""
        out = "; ".join([f"{worker}: {why}" for worker, why in self.left_out.items()])
        text = (_shorten(", ".join(map(str, self.workers)), 60), _shorten(out, 160))
        return str(self.round), f"{self.loss:.4g}", str(self.samples), f"{self.seconds:.2f}", *map(one_line, text)


@dataclass
class History:
    """The rounds of a run. It prints as a table and renders in a notebook."""

    rows: list[Row] = field(default_factory=list)

    HEADER = ("round", "loss", "samples", "seconds", "took part", "left out")

    @property
    def losses(self) -> list[float]:
        """The loss of each round."""
        return [row.loss for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __str__(self) -> str:
        return text_table(self.HEADER, [row.cells() for row in self.rows]) if self.rows else "no rounds yet"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("rounds", self.HEADER, [row.cells() for row in self.rows], limit=1000)

    def plot(self, path: str | Path | None = None) -> Nested:
        """Draw the loss by round: with matplotlib if it is installed, otherwise as SVG.

        With ``path``, write the picture to a file.
        """
        try:
            from matplotlib import pyplot  # noqa: PLC0415  # optional
        except ImportError:
            picture = self.draw()
            if path is not None:
                write_file(Path(path), picture.encode(), mode=0o644)
            return Svg(picture)
        figure, axes = pyplot.subplots()
        axes.plot([row.round for row in self.rows], self.losses, marker=".")
        axes.set_xlabel("round")
        axes.set_ylabel("loss")
        if path is not None:
            figure.savefig(path)
        return figure

    def draw(self, width: int = 640, height: int = 320) -> str:
        """Return the loss by round as SVG."""
        return draw_line(self.losses, width, height)

    # --- checkpoints

    def dump(self) -> list[Kwargs]:
        """Return the rows as plain data."""
        return [{**asdict(row), "left_out": list(row.left_out.items())} for row in self.rows]

    @classmethod
    def load(cls, rows: Sequence[Mapping[str, Nested]]) -> History:
        """Invert ``dump``."""
        return cls([Row(**{**row, "left_out": dict(row["left_out"])}) for row in rows])


class Svg(str):
    """A picture that renders in a notebook."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def draw_line(values: Sequence[float], width: int, height: int) -> str:
    """Return a line through values as SVG; values that are not finite are left out."""
    finite = [(place, value) for place, value in enumerate(values) if abs(value) < float("inf")]
    low, high = min([v for _, v in finite], default=0.0), max([v for _, v in finite], default=1.0)
    span, last = (high - low) or 1.0, max(len(values) - 1, 1)
    left, right, top, bottom = 60, 10, 10, 30
    across, down = width - left - right, height - top - bottom
    points = [f"{left + across * x / last:.1f},{top + down * (high - y) / span:.1f}" for x, y in finite]
    text = 'font-family="sans-serif" font-size="12" fill="currentColor"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<path d="M{left} {top}V{height - bottom}H{width - right}" stroke="currentColor" fill="none" opacity=".4"/>'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="#2563eb" stroke-width="2"/>'
        f'<text x="{left - 5}" y="{top + 10}" text-anchor="end" {text}>{high:.3g}</text>'
        f'<text x="{left - 5}" y="{height - bottom}" text-anchor="end" {text}>{low:.3g}</text>'
        f'<text x="{left}" y="{height - 8}" {text}>1</text>'
        f'<text x="{width - right}" y="{height - 8}" text-anchor="end" {text}>round {len(values)}</text></svg>'
    )


def write_report(
    path: str | Path, title: str, facts: Sequence[tuple[str, str]], history: History, more: str = ""
) -> None:
    """Write a page about a run: its settings, the loss by round, and all rounds."""
    page = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>body{font-family:sans-serif;max-width:960px;margin:2em auto;padding:0 1em}</style></head><body>"
        f"<h1>{escape(title)}</h1>{html_table('settings', ('name', 'value'), facts)}"
        f"<h2>Loss</h2>{history.draw()}{more}<h2>Rounds</h2>{history._repr_html_()}</body></html>"
    )
    write_file(Path(path), page.encode(), mode=0o644)


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
