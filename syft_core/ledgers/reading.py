"""Read the entries of ledger files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from syft_core.ledgers.entry import Entry
from syft_core.ledgers.journal import find_earlier, iter_lines


def read_ledger(path: str | Path) -> Iterator[Entry]:
    """Yield the entries of a file and of those it continues; raise ``LedgerError`` at the first changed line."""
    for file in (*find_earlier(Path(path)), Path(path)):
        for line in iter_lines(file):
            yield Entry.from_line(line.content)
