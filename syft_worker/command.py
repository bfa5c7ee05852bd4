"""The command ``syft-core worker``."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from syft_core.exceptions import ConfigurationError
from syft_core.pictures.tables import one_line, text_table
from syft_core.values import Table

if TYPE_CHECKING:
    from syft_worker.config import WorkerConfig
    from syft_worker.incidents import Ban, Incidents

_log = logging.getLogger(__name__)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core worker``."""
    parser = commands.add_parser("worker", help="serve a worker on the network")
    parser.set_defaults(run=run)
    parser.add_argument("config", nargs="?", type=Path, help="a TOML file; the options below take precedence")
    parser.add_argument("--check", action="store_true", help="list what is wrong with the configuration, and exit")
    parser.add_argument(
        "--bans", action="store_true", help="list what is refused because it ended the process, and exit"
    )
    parser.add_argument(
        "--lift", metavar="ID", help="allow again what --bans lists, also while the worker runs, and exit"
    )
    parser.add_argument("--json", action="store_true", help="with --check and --bans, print JSON")
    parser.add_argument("--example", action="store_true", help="print a TOML file that explains every key")
    for name, text in _OPTIONS.items():
        parser.add_argument(f"--{name}", help=text)
    parser.add_argument("--port", type=int, help="the port; 0 for any that is free (default: 8777)")
    parser.add_argument("--page-port", type=int, help="the port of the page for the owner (default: no page)")
    parser.add_argument("--page-hosts", nargs="+", metavar="NAME", help="further names by which browsers ask for it")
    parser.add_argument("--threads", type=int, help="how many threads compute one operation (default: one per core)")
    parser.add_argument("--data", nargs="+", help="FILE#tag,#tag:private=user,user, or module:function")
    parser.add_argument("--trusted", nargs="+", metavar="ID", help="workers that may compute on shares of private data")
    parser.add_argument("--limits", nargs="+", metavar="KEY=VALUE", help="for instance memory=4GB operation_seconds=30")


_OPTIONS = {
    "id": "the name of the worker",
    "host": "the address to listen on (default: 127.0.0.1)",
    "framework": "the only framework to serve (default: all that are installed)",
    "token-file": "the tokens of users, made by `syft-core token add`",
    "cert": "the certificate of the worker, made by `syft-core certs`",
    "key": "the key of the certificate",
    "client-ca": "who signs the certificates of users",
    "policy": "what may leave: unless_private, only_published or nothing",
    "ledger": "the file that records what leaves",
    "store": "the folder that keeps published and tagged objects",
    "log-format": "text or json",
    "log-level": "debug, info, warning or error",
    "on-request": "a command or an address that is told of each release request",
}


def run(args: argparse.Namespace) -> int | str:
    """Serve a worker until it is interrupted."""
    if not (args.example or args.check or args.bans or args.lift):
        _handle_signals(lambda: sys.exit(0))  # Nothing runs yet, and importing takes a moment.
    # They load the libraries of the network, which other commands do not need.
    from syft_worker.checks import find_problems  # noqa: PLC0415
    from syft_worker.config import EXAMPLE, WorkerConfig, override, read_config  # noqa: PLC0415
    from syft_worker.logs import configure_logs, log_event  # noqa: PLC0415
    from syft_worker.supervisor import Supervisor  # noqa: PLC0415

    if args.example:
        return EXAMPLE.read_text(encoding="utf-8").rstrip()
    given = _find_given(args)

    def read() -> WorkerConfig:
        return override(WorkerConfig() if args.config is None else read_config(args.config), given)

    config = read()
    if args.bans or args.lift:
        return _lift(config, args.lift) if args.lift else _list_bans(config, args.json)
    problems = find_problems(config, peers=args.check)
    if args.check:
        return _report(problems, args.json)
    configure_logs(config.log_format, config.log_level)
    for problem in problems:
        log_event(_log, logging.ERROR, problem)
    if problems:
        return 1
    supervisor = Supervisor(config, read)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: supervisor.reload())
    _handle_signals(supervisor.stop)
    if supervisor.secret is not None:
        print(f"The token of this worker: {supervisor.secret}", flush=True)  # noqa: T201  # the user must know it
    return supervisor.run()


def _list_bans(config: WorkerConfig, as_json: bool) -> str:
    bans = _open_incidents(config)[1]
    if as_json:
        return json.dumps([ban.to_table() for ban in bans], indent=1)
    return text_table(("id", "user", "refused", "because", "until"), [ban.cells() for ban in bans])


def _lift(config: WorkerConfig, id: str) -> str:
    incidents, bans = _open_incidents(config)
    ban = next((ban for ban in bans if ban.id == id), None)
    if ban is None:
        listed = ", ".join(ban.id for ban in bans) or "none"
        raise ConfigurationError(f"cannot lift {id!r}: there is no ban of that name; choose one of these: {listed}")
    incidents.lift(ban)
    return f"user {one_line(ban.user)} may {f'run {one_line(ban.operation)}' if ban.operation else 'connect'} again"


def _open_incidents(config: WorkerConfig) -> tuple[Incidents, list[Ban]]:
    from syft_worker.allowances import find_allowance  # noqa: PLC0415
    from syft_worker.incidents import Incidents  # noqa: PLC0415  # see above

    if config.store is None:
        raise ConfigurationError(
            "cannot read the bans of this worker: it has no `store`, so they are in its memory; lift them on its page, "
            "or start it again"
        )
    incidents = Incidents.open(config.limits.ban_seconds, config.store)
    return incidents, incidents.list_bans(lambda user: find_allowance(config.users, user).crashes)


def _handle_signals(stop: Callable[[], object]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())


def _report(problems: list[str], as_json: bool) -> int | str:
    """Print the problems of a configuration and return the exit code, or return a message if there are none."""
    if as_json:
        print(json.dumps(problems, indent=1))  # noqa: T201  # the program that asked reads it
        return 1 if problems else 0
    for problem in problems:
        print(f"syft-core: {problem}", file=sys.stderr)  # noqa: T201  # the user must know it
    return 1 if problems else "the configuration is in order"


def _find_given(args: argparse.Namespace) -> Table:
    others = ("config", "check", "bans", "lift", "json", "example", "run", "parser")
    given = {name: value for name, value in vars(args).items() if value is not None and name not in others}
    if args.limits is not None:
        given["limits"] = {key: _parse_number(value) for key, _, value in (text.partition("=") for text in args.limits)}
    return given


def _parse_number(text: str) -> int | float | str:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
