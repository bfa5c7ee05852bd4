"""DemoPage: what a demo has shown, as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from syft_core.printing import printable

_STYLE = """
:root { color-scheme: light dark; --faint: #5d6577; --line: #d9dce4; --tile: #f4f6fb; --good: #0b7a4b }
@media (prefers-color-scheme: dark) {
  :root { --faint: #a3abbd; --line: #3a4050; --tile: #20242e; --good: #4ade9b }
}
* { box-sizing: border-box }
body { font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 980px; margin: 2.5rem auto 4rem; padding: 0 1.25rem }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .5rem } h2 { font-size: 1.2rem; margin: 2.6rem 0 .3rem }
p { margin: .3rem 0 .8rem; max-width: 46rem } .lead { font-size: 1.05rem; color: var(--faint) }
.figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: .75rem; margin: 1.6rem 0 } .narrow { display: none }
.figure { background: var(--tile); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem }
.figure b { display: block; font-size: 1.7rem; line-height: 1.2; font-variant-numeric: tabular-nums }
.figure span { display: block; font-size: .85rem; line-height: 1.35; color: var(--faint) } .good b { color: var(--good) }
figure { margin: .6rem 0 0; overflow-x: auto } figure svg { display: block; max-width: 100%; height: auto }
figure svg.syft-trace { max-width: none }
table { font-size: .85rem; margin-bottom: .8rem } caption { font-weight: 600 } td { vertical-align: top }
pre { background: var(--tile); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; font-size: .85rem; line-height: 1.45; overflow-x: auto; margin: .4rem 0 }
@media (max-width: 640px) {
  .figures { grid-template-columns: repeat(2, 1fr) } .wide { display: none } .narrow { display: block } h1 { font-size: 1.45rem }
}
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .8rem; font-size: .85rem; color: var(--faint) }
"""  # noqa: E501  # one rule per line


class DemoPage:
    """A headline with a few figures, then sections with a title, a caption and a picture, in the order of adding."""

    def __init__(self) -> None:
        self.title, self.lead, self.footer = "Trained on data that nobody saw", "", ""
        self._figures: list[tuple[str, str, bool]] = []
        self._sections: list[tuple[str, str, str]] = []

    def __len__(self) -> int:
        return len(self._sections)

    def add_figure(self, value: str, label: str, is_good: bool = False) -> None:
        """Add a number that is shown large, below the headline."""
        self._figures.append((value, label, is_good))

    def add(self, title: str, caption: str, picture: str) -> None:
        """Add a picture, given as HTML or SVG."""
        self._sections.append((title, caption, picture))

    def add_chart(self, title: str, caption: str, draw: Callable[[int, int], str]) -> None:
        """Add a picture that ``draw`` makes for a width and a height: one for desks and one for phones."""
        wide, narrow = draw(920, 380), draw(360, 320)
        self.add(title, caption, f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')

    def html(self) -> str:
        """Return the page; it loads no other resources."""
        figures = "".join(
            f'<div class="figure{" good" if is_good else ""}"><b>{_show(value)}</b><span>{_show(label)}</span></div>'
            for value, label, is_good in self._figures
        )
        sections = "".join(
            f"<h2>{_show(title)}</h2><p>{_show(caption)}</p><figure>{picture}</figure>"
            for title, caption, picture in self._sections
        )
        lead = f'<p class="lead">{_show(self.lead)}</p>' if self.lead else ""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_show(self.title)}</title><style>{_STYLE}</style></head><body>"
            f"<h1>{_show(self.title)}</h1>{lead}"
            f"{f'<div class=figures>{figures}</div>' if figures else ''}{sections}"
            f"{f'<footer>{_show(self.footer)}</footer>' if self.footer else ''}</body></html>\n"
        )

    def save(self, path: Path) -> Path:
        """Write the page to a file and return its full path."""
        path.write_text(self.html(), encoding="utf-8")
        return path.resolve()


def _show(text: str) -> str:
    return escape(printable(text))
