"""The command ``syft-core verify``: check what workers have signed in the rounds of a study, offline."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from syft_core.pictures.tables import one_line, text_table
from syft_sums.errors import SumError
from syft_sums.evidence import VerifiedRound, find_gaps, read_evidence
from syft_sums.keys import read_fingerprint

HEADER = ("study", "round", "workers", "needed", "noise")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core verify``."""
    verify = commands.add_parser("verify", help="check offline who took part in the rounds of a study")
    verify.add_argument("file", type=Path)
    verify.add_argument(
        "--member", action="append", default=[], metavar="NAME=ED25519:...", help="the only workers to accept, by name"
    )
    verify.add_argument("--at-least", type=int, default=0, help="how many workers each sum must have")
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> str:
    names = dict(map(_read_member, args.member))
    rounds = read_evidence(args.file)
    for each in rounds:
        unknown = [key for key in each.roster if names and key not in names]
        if unknown:
            raise SumError.evidence(args.file, f"{unknown[0]} of round {each.round} is not one of the members given")
        if len(each.signers) < args.at_least:
            why = f"round {each.round} has {len(each.signers)} workers, and {args.at_least} were demanded"
            raise SumError.evidence(args.file, why)
    if args.json:
        return json.dumps([each.__dict__ for each in rounds])
    return _to_text(rounds, names)


def _read_member(text: str) -> tuple[str, str]:
    name, _, key = text.partition("=")
    try:
        read_fingerprint(key)
    except ValueError as error:
        raise SumError.evidence("the members", f"{text!r} {error}") from None
    return key, name


def _to_text(rounds: Sequence[VerifiedRound], names: dict[str, str]) -> str:
    rows = []
    for each in rounds:
        workers = ", ".join([names.get(key, key[:16] + "…") for key in each.signers])
        noise = ", ".join(sorted(set(each.noise)))
        texts = each.study, str(each.round), f"{len(each.signers)} of {len(each.roster)}: {workers}"
        rows.append((*map(one_line, texts), str(each.quorum), one_line(noise)))
    lines = [text_table(HEADER, rows)] if rows else []
    roster = sorted({key for each in rounds for key in each.roster})
    lines += [f"{names.get(key, 'worker')}: {key}" for key in roster]
    if gaps := find_gaps(rounds):
        lines.append(f"not in this file: round {', '.join(map(str, gaps))}")
    lines.append(f"{len(rounds)} rounds: every signature is valid, and no sum had fewer workers than its quorum")
    return "\n".join(lines)
