"""Printing: text from another party, with everything escaped that a terminal or a browser would interpret."""

from __future__ import annotations


def printable(text: str, lines: bool = False) -> str:
    r"""Escape control and formatting characters; with ``lines``, keep line ends and tabs.

    Apply it wherever text from another party is shown; applying it twice is harmless.

    >>> print(printable("a\nb\x1b[2K"))
    a\nb\x1b[2K
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join([c if c.isprintable() or c in kept else c.encode("unicode_escape").decode("ascii") for c in text])
