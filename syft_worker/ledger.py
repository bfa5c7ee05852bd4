"""The command ``syft-core ledger``: show and verify the ledger of a worker."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from syft_core.exceptions import LedgerError
from syft_core.ledgers.entry import Entry, EntryList
from syft_core.ledgers.journal import BEFORE, JournalLine, find_earlier, iter_lines
from syft_core.pictures.tables import one_line, text_table


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core ledger show`` and ``syft-core ledger verify``."""
    actions = commands.add_parser("ledger", help="show or verify the ledger of a worker").add_subparsers(
        required=True, metavar="action"
    )
    show = actions.add_parser("show", help="list what left a worker, what was refused and what was released")
    show.add_argument("file", type=Path)
    show.add_argument("--user", help="only entries of this user")
    show.add_argument("--json", action="store_true", help="one JSON object per line")
    show.set_defaults(run=_show)
    verify = actions.add_parser("verify", help="check that no entry was changed, inserted or removed")
    verify.add_argument("file", type=Path)
    verify.add_argument("--head", help="a hash that an earlier run printed: check that its entry is still there")
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.set_defaults(run=_verify)


def _show(args: argparse.Namespace) -> str:
    lines: list[JournalLine] = []
    try:
        lines.extend(_iter_ledger(args.file))
    except LedgerError:
        if lines:
            sys.stdout.write(_to_text(args, lines) + "\n")  # Show what precedes the line that is wrong.
        raise
    return _to_text(args, lines)


def _iter_ledger(file: Path) -> Iterator[JournalLine]:
    """Yield the lines of a ledger and of the files it continues, numbered from the first of them.

    There is at least the line that was written when it was created.
    """
    number = 0
    for number, line in enumerate(chain.from_iterable(map(iter_lines, (*find_earlier(file), file))), 1):
        yield line._replace(number=number)
    if not number:
        raise LedgerError.incomplete(file, 1)


def _to_text(args: argparse.Namespace, lines: list[JournalLine]) -> str:
    entries = [(line, Entry.from_line(line.content)) for line in lines]
    chosen = [(line, entry) for line, entry in entries if args.user is None or args.user in _users_of(entry)]
    if args.json:
        return "\n".join([json.dumps(line.content) for line, _ in chosen])
    rows = [(str(line.number), entry.event, *entry.cells(), one_line(entry.approver)) for line, entry in chosen]
    return text_table(("line", "event", *EntryList.HEADER, "approved by"), rows)


def _users_of(entry: Entry) -> list[str]:
    return entry.user.split(" through ")


def _verify(args: argparse.Namespace) -> str:
    last, seen = BEFORE, args.head is None
    for last in _iter_ledger(args.file):
        seen = seen or last.hash == args.head
    if not seen:
        raise LedgerError.cut(args.file, args.head)
    if args.json:
        return json.dumps({"file": str(args.file), "lines": last.number, "hash": last.hash})
    return f"{args.file}: {last.number} lines, all intact; the last hash is {last.hash}"
