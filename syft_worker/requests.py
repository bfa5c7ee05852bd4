"""The command ``syft-core requests``: the owner of a running worker reviews requests and decides."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from syft_core.exceptions import ConfigurationError
from syft_core.pictures.tables import one_line, text_table, to_moment
from syft_core.values import Table
from syft_worker.desk.patterns import LEGEND, describe_forms
from syft_worker.desk.rules_in_words import describe_any_program, shorten_programs
from syft_worker.tokens import parse_lifetime

if TYPE_CHECKING:
    from syft_worker.desk.client import Desk

_STATES = ("open", "approved", "granted", "denied", "released", "expired", "lapsed")
_OF_PROGRAMS = ("program", "free", "samples", "labels", "numbers_per_row", "rows_behind", "any_program")
SECONDS = 20
"""How long to wait for the worker."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core requests list``, ``show``, ``approve``, ``deny``, ``withdraw`` and ``rules``."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--url", default="ws://127.0.0.1:8777", help="the worker (default: ws://127.0.0.1:8777)")
    shared.add_argument("--ca", type=Path, help="who signed its certificate, if that is not known to this machine")
    shared.add_argument("--name", help="the name in its certificate, if the address is that of a tunnel")
    shared.add_argument("--token-from", type=Path, help="a file with the token (default: the variable SYFT_TOKEN)")
    shared.add_argument("--json", action="store_true", help="print JSON")
    actions = commands.add_parser("requests", help="decide on release requests to a running worker").add_subparsers(
        required=True, metavar="action"
    )

    def add(name: str, text: str, run: Callable[[argparse.Namespace, Desk], object]) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=text, parents=[shared])
        parser.set_defaults(run=lambda args: _run(args, run))
        return parser

    listing = add("list", "list requests", _list)
    listing.add_argument("--state", choices=_STATES, help="only these")
    show = add("show", "show one request", _show)
    show.add_argument("--values", action="store_true", help="also what it would release; the ledger records that")
    approve = add("approve", "approve a request: the user who asked can fetch it, once", _decide("approve"))
    deny = add("deny", "deny a request", _decide("deny"))
    withdraw = add("withdraw", "take back an approval that was not used yet", _decide("withdraw"))
    for parser in (show, approve, deny, withdraw):
        parser.add_argument("id", help="the id of the request")
    for parser in (approve, withdraw):
        parser.add_argument("--answer", default="", help="a note for the user and the ledger")
    deny.add_argument("--answer", required=True, help="what the user and the ledger are told")
    approve.add_argument("--rule", metavar="NAME", help="approve this program from now on, by a rule of this name")
    approve.add_argument("--count", type=int, default=20, help="how often that rule may be used in all (default: 20)")
    for parser in (approve, deny):
        parser.add_argument("--digest", help="the digest of what was reviewed; if it differs, nothing is decided")
    rules = add("rules", "list, add or revoke rules", _rules)
    rules.add_argument("--add", metavar="NAME", help="add one, with the conditions below")
    rules.add_argument("--revoke", metavar="NAME", help="revoke one")
    rules.add_argument("--request", metavar="ID", help="take user, form and data from this request")
    rules.add_argument("--user", help="who may have it")
    rules.add_argument("--form", help=f"the form, as requests show it. {LEGEND}")
    rules.add_argument("--computed-from", nargs="+", metavar="TAG", help="the only data that may be in it")
    rules.add_argument("--count", type=int, help="how often in all")
    rules.add_argument("--per-day", type=int, help="how often within 24 hours")
    rules.add_argument("--program", nargs="+", metavar="DIGEST", help="only what these programs computed")
    rules.add_argument("--free", nargs="+", metavar="INPUT", help="supplied inputs that may be anything of their form")
    rules.add_argument("--samples", type=int, help="only from at least so many rows, as the worker counts them")
    rules.add_argument("--labels", metavar="TAG", help="only votes with noise on these labels, as they were loaded")
    rules.add_argument("--numbers-per-row", type=float, help="at most so many numbers for each row (default: 0.33)")
    rules.add_argument("--rows-behind", type=int, help="at least so many rows behind each number (default: 10)")
    rules.add_argument("--any-program", action="store_true", default=None, help="whatever computed it: also the data")
    rules.add_argument("--until", help="a date such as 2027-01-31, or a time from now such as 7d")


def _run(args: argparse.Namespace, run: Callable[[argparse.Namespace, Desk], object]) -> str:
    with _open_desk(args) as desk:
        answer = run(args, desk)
    return json.dumps(answer, indent=1) if args.json or not isinstance(answer, str) else answer


@contextmanager
def _open_desk(args: argparse.Namespace) -> Iterator[Desk]:
    # They load the libraries of the network, which other commands do not need.
    from syft_core.network.address import Address  # noqa: PLC0415
    from syft_core.network.client import WebsocketLocation  # noqa: PLC0415
    from syft_core.network.tokens import find_token, read_token  # noqa: PLC0415
    from syft_core.workers.party.base import BaseWorker  # noqa: PLC0415
    from syft_worker.desk.client import Desk  # noqa: PLC0415

    token = find_token() if args.token_from is None else read_token(_read(args.token_from), "the token in this file")
    if token is None:
        raise ConfigurationError(
            "cannot decide on requests: there is no token; put the owner's in the variable SYFT_TOKEN, or give "
            "`--token-from FILE`"
        )
    here = BaseWorker(None, "desk", auto_add=False)
    address = Address.parse(args.url, timeout=SECONDS, ca=args.ca, name=args.name)
    location = WebsocketLocation(here, None, address, f"desk-{secrets.token_hex(6)}", f"Bearer {token}")
    try:
        yield Desk(location)
    finally:
        location.close()


def _read(file: Path) -> str:
    """Return the text of a file; errors do not name it, because it may be the token, given in place of a file."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text"
    raise ConfigurationError(f"cannot read the file with the token: {why}; check `--token-from FILE`")


def _list(args: argparse.Namespace, desk: Desk) -> object:
    found = desk.requests(args.state)
    if args.json:
        return found
    header = ("id", "state", "who", "form", "computed from", "reason", "asked", "expires", "decided")
    return text_table(header, [_cells(request) for request in found]) if found else "no requests"


def _cells(request: Table) -> tuple[str, ...]:
    decided = f"{to_moment(request['decided'])} by {request['decided_by']}" if request["decided"] else ""
    texts = request["user"] or request["peer"], request["form"], request["computed_from"], request["reason"]
    times = to_moment(request["asked"]), to_moment(request["expires"]) if request.get("expires") else ""
    return request["id"], request["state"], *map(one_line, texts), *times, one_line(decided)


def _show(args: argparse.Namespace, desk: Desk) -> object:
    found = desk.show(args.id)
    if args.values:
        found["values"] = desk.values(args.id)
    if args.json:
        return found
    return "\n".join(_to_lines(found))


def _to_lines(table: Table, indent: str = "") -> Iterator[str]:
    for key, value in table.items():
        name = one_line(key)
        if value in (None, "", [], False):
            continue
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _to_lines(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for part in value:
                yield f"{indent}{name}:"
                yield from _to_lines(part, indent + "  ")
        else:
            text = (
                to_moment(value)
                if key in ("asked", "decided", "released", "expires", "made", "last_used")
                else str(value)
            )
            yield f"{indent}{name}: {one_line(text)}"


def _decide(decision: str) -> Callable[[argparse.Namespace, Desk], object]:
    def run(args: argparse.Namespace, desk: Desk) -> object:
        if decision == "approve" and args.rule is not None:
            return _approve_program(args, desk)
        if decision == "withdraw":
            found = desk.withdraw(args.id, args.answer)
        else:
            found = (desk.approve if decision == "approve" else desk.deny)(args.id, args.answer, args.digest)
        if decision == "approve" and found["asked_by_owner"]:
            sys.stderr.write("syft-core: warning: the request was made with an owner's token\n")
        return found if args.json else f"request {found['id']} of {one_line(found['user'])} is {found['state']}"

    return run


def _approve_program(args: argparse.Namespace, desk: Desk) -> object:
    """Add a rule for the program of a request, which settles it."""
    if args.digest is not None and desk.show(args.id)["digest"] != args.digest:
        raise ConfigurationError("cannot approve the program: the digest is that of something else; review it again")
    desk.approve_program(args.id, args.rule, args.count)
    found = desk.show(args.id)
    if args.json:
        return found
    return f"request {found['id']} of {one_line(found['user'])} is {found['state']}, and the rule {args.rule} stands"


def _rules(args: argparse.Namespace, desk: Desk) -> object:
    if args.revoke is not None:
        found = desk.revoke(args.revoke)
        return found if args.json else f"the rule {found['name']} is revoked"
    if args.add is not None:
        names = ("user", "form", "computed_from", "count", "per_day", *_OF_PROGRAMS)
        conditions = {name: value for name in names if (value := getattr(args, name)) is not None}
        if args.until is not None:
            conditions["until"] = _to_date(args.until)
        found = desk.allow(args.add, args.request, **conditions)
        return found if args.json else f"the rule {found['name']} is {found['state']}"
    rules = desk.rules()
    return rules if args.json else _to_table(rules)


def _to_table(rules: Sequence[Table]) -> str:
    header = ("name", "state", "user", "form", "computed from", "program", "used", "until", "made by")
    rows = []
    for rule in rules:
        limits = [f" of {rule['count']}" if "count" in rule else ""]
        limits += [f", {rule['used_today']} of {rule['per_day']} today"] if "per_day" in rule else []
        used = f"{rule['used']}{''.join(limits)}"
        tags = ", ".join(rule["computed_from"])
        texts = (
            rule["user"],
            describe_forms(rule["form"]) if "form" in rule else "every form",
            tags,
            _describe_program(rule),
            used,
            rule.get("until", ""),
            rule["made_by"],
        )
        rows.append((rule["name"], rule["state"], *map(one_line, texts)))
    return text_table(header, rows) if rows else "no rules"


def _describe_program(rule: Table) -> str:
    """Return what a rule asks about how results are computed."""
    if rule.get("any_program"):
        return f"any: {describe_any_program(rule)}"
    programs = [shorten_programs(rule["program"])] if "program" in rule else []
    rows = [f"from at least {rule['samples']:,} rows"] if "samples" in rule else []
    return ", ".join([*programs, *rows])


def _to_date(text: str) -> str:
    """Return a date unchanged, and a time from now as a date and a time."""
    if text[-1:] not in "mhd":
        return text
    return datetime.fromtimestamp(time.time() + (parse_lifetime(text) or 0)).isoformat(timespec="seconds")
