"""Page: the pictures of a demo in one self-contained HTML file."""

from __future__ import annotations

from html import escape
from pathlib import Path

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 1040px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem }
p { margin: .3rem 0 .8rem } figure { margin: 0; overflow-x: auto } table { font-size: 13px }
"""  # noqa: E501  # one rule per line


class Page:
    """Pictures with a title and a caption each, in the order in which they were added."""

    def __init__(self) -> None:
        self._sections: list[tuple[str, str, str]] = []

    def __len__(self) -> int:
        return len(self._sections)

    def add(self, title: str, caption: str, picture: str) -> None:
        """Add a picture in HTML or SVG."""
        self._sections.append((title, caption, picture))

    def html(self) -> str:
        """Return the page; it loads no other resources."""
        sections = "".join(
            f"<h2>{escape(title)}</h2><p>{escape(caption)}</p><figure>{picture}</figure>"
            for title, caption, picture in self._sections
        )
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>syft-core demo</title>'
            f"<style>{_STYLE}</style></head><body><h1>Trained on data that nobody saw</h1>{sections}</body></html>\n"
        )

    def save(self, path: Path) -> Path:
        """Write the page to a file and return its full path."""
        path.write_text(self.html(), encoding="utf-8")
        return path.resolve()
