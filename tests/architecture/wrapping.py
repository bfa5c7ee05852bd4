"""Wrap pages at one sentence per line, and find paragraphs that are too long.

``python -m tests.architecture.wrapping [--write] [PAGE...]``, by default for all pages but the changelog.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *[ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")],
    *sorted((ROOT / "docs").rglob("*.md")),
]
LONGEST = 600
"""How many characters a paragraph may have."""
LIST_ITEM = re.compile(r"(\s*)((?:[-*+]|\d+\.) +)")
VERBATIM = re.compile(r"\s*(?:\||#|<|\[[^\]]+\]:|---+\s*$)")
"""The lines that stay as they are: tables, headings, HTML, link definitions, rules."""
SPAN = re.compile(r"`+[^`]+`+|\[[^\]]*\]\([^)]*\)")
"""Code and links, in which no sentence ends."""
END = re.compile(r"[.!?][\"')*_]*(?= +(?:[\"'(*_]*[A-ZÀ-Þ\x00]|[\"'(*_]*\d))")
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|al|etc|no|fig|approx|resp|[A-Z])|\d)\.$", re.IGNORECASE)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph; parentheses, code and links are not split.

    >>> split_sentences("It runs, e.g. here (A test. Two). See `a. B`! Then 2. 5 follow.")
    ['It runs, e.g. here (A test. Two).', 'See `a. B`!', 'Then 2. 5 follow.']
    """
    masked = SPAN.sub(lambda match: "\x00" * len(match[0]), text)
    sentences, start = [], 0
    for match in END.finditer(masked):
        before = masked[start : match.end()]
        if before.count("(") > before.count(")") or ABBREVIATION.search(masked[start : match.start() + 1]):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    return [*sentences, text[start:].strip()]


def iter_blocks(page: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the blocks of a page, and whether they are prose: one paragraph or item of a list each."""
    fence = ""
    kinds: list[tuple[int, bool, str]] = []
    number = 0
    for line in page.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        in_fence = bool(fence or mark)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        prose = not in_fence and bool(line.strip()) and not VERBATIM.match(line)
        if not prose or LIST_ITEM.match(line):
            number += 1
        kinds.append((number, prose, line))
        number += not prose
    for _number, lines in groupby(kinds, key=lambda kind: kind[0]):
        block = list(lines)
        yield block[0][1], [line for _, _, line in block]


def wrap(page: str) -> str:
    """Return a page with each sentence on a line of its own."""
    wrapped: list[str] = []
    for prose, lines in iter_blocks(page):
        wrapped += _wrap_block(lines) if prose else lines
    return "\n".join(wrapped) + "\n"


def _wrap_block(lines: list[str]) -> list[str]:
    if any(line.endswith("  ") for line in lines):  # line breaks that the author wants
        return lines
    item = LIST_ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*(?:> ?)?", lines[0])[0]  # type: ignore[index]  # it always matches
    rest = first if first.strip() == ">" else " " * len(first)
    text = " ".join(re.sub(r"^\s*(?:> ?)?", "", line) for line in lines)
    sentences = split_sentences(text[len(item[2]) :] if item else text)
    return [f"{rest if number else first}{sentence}" for number, sentence in enumerate(sentences)]


def find_long(page: str) -> list[str]:
    """Return the beginnings of the paragraphs that are too long."""
    paragraphs = [" ".join(map(str.strip, lines)) for prose, lines in iter_blocks(page) if prose]
    return [
        f"{paragraph[:60]}… has {len(paragraph)} characters" for paragraph in paragraphs if len(paragraph) > LONGEST
    ]


def main() -> None:
    """Wrap the pages with ``--write``, else list what is wrong with them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--write", action="store_true", help="wrap the pages")
    options = parser.parse_args()
    wrong = []
    for path in options.pages or PAGES:
        page = path.read_text(encoding="utf-8")
        if options.write:
            path.write_text(wrap(page), encoding="utf-8")
        elif page != wrap(page):
            wrong.append(f"{path}: not wrapped at one sentence per line")
        wrong += [f"{path}: {paragraph}; split it" for paragraph in find_long(page)]
    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
