"""Printing: text from another party, without anything that a terminal or a browser would obey."""

from __future__ import annotations


def printable(text: str, lines: bool = False) -> str:
    r"""Escape control characters and those that change how others are shown; with ``lines``, keep line ends and tabs.

    Everything that shows text of another party applies it, and it may be applied twice.

    >>> print(printable("a\nb\x1b[2K"))
    a\nb\x1b[2K
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join([c if c.isprintable() or c in kept else c.encode("unicode_escape").decode("ascii") for c in text])
