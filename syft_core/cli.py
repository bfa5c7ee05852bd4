"""The command line: ``syft-core demo``, ``syft-core plugins`` and the commands of a worker's operator."""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from syft_core.demo import PAUSE, DemoOptions, Screen, finish_demo, run_demo
from syft_core.exceptions import SyftError, suggest
from syft_core.packages import find_claimants, find_page, warn_of
from syft_core.pictures.tables import text_table
from syft_core.plugins.backend import Backend, find_installed
from syft_core.plugins.manager import plugin_manager
from syft_core.plugins.template import make_plugin
from syft_core.printing import printable
from syft_core.values import Json


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _build_parser().parse_args(argv)
    try:
        answer = options.run(options)
    except SyftError as error:
        print(f"syft-core: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = "" if error.filename is None else f" with {error.filename}"
        why = error.strerror or type(error).__name__
        print(f"syft-core: cannot continue{where}: {why}; check the path and its permissions", file=sys.stderr)
        return 1
    if isinstance(answer, str):
        print(printable(answer, lines=True))
        return 0
    return int(answer)


class _Parser(argparse.ArgumentParser):
    """Suggests the nearest option or command for one that does not exist."""

    def error(self, message: str) -> NoReturn:
        """Print the usage of this command, the error and a suggestion, and exit."""
        known = list(self._option_string_actions)
        for action in self._actions:
            known += [str(choice) for choice in action.choices or ()]
        words = re.findall(r"(?:invalid choice: '|unrecognized arguments: |ambiguous option: )([^' ]+)", message)
        near = suggest(words[0].partition("=")[0], known) if words else ""
        super().error(f"{message}; {near}" if near else message)

    def parse_args(self, args: Json = None, namespace: Json = None) -> Json:
        """Parse all arguments; errors about unknown ones come from the parser of the subcommand."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(found, "parser", self).error(f"unrecognized arguments: {' '.join(unknown)}")
        return found

    def parse_known_args(self, args: Json = None, namespace: Json = None) -> Json:
        """Parse the known arguments, and remember which parser did."""
        found, unknown = super().parse_known_args(args, namespace)
        if not hasattr(found, "parser"):
            found.parser = self
        return found, unknown


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="syft-core", description="Privacy-preserving machine learning.")
    parser.add_argument("--version", action="version", version=f"syft-core {version('syft-core')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    plugins = commands.add_parser("plugins", help="list the installed plugins and what is wrong with broken ones")
    plugins.add_argument("--json", action="store_true", help="print JSON")
    plugins.add_argument("--check", metavar="NAME", help="run the conformance suite for an installed backend")
    plugins.add_argument("--seconds", type=_to_seconds, help="with --check: try a random part of the operations")
    plugins.add_argument("--seed", type=int, help="with --seconds: try the same part as an earlier run")
    plugins.set_defaults(run=_run_plugins)
    new = commands.add_parser("new-plugin", help="make the package of a new backend, with tests and CI")
    new.add_argument("name", help="the name of the backend, such as that of its framework")
    new.add_argument("--folder", type=Path, default=Path(), help="where to put it (default: the current folder)")
    new.set_defaults(run=_make_plugin)
    demo = commands.add_parser("demo", help="train a model on data you never see, and list what leaves its owners")
    demo.add_argument("backends", nargs="*", help="the frameworks to use (default: one that is installed)")
    demo.add_argument("--fast", action="store_true", help="do not pause between steps")
    demo.add_argument("--page", type=Path, help="the HTML file for the pictures (default: in a temporary folder)")
    demo.add_argument("--seed", type=int, default=1, help="the seed of the made-up patients (default: 1)")
    demo.add_argument("--in-process", action="store_true", help="no processes for the hospitals: a quick look")
    demo.add_argument(
        "--private-dp", action="store_true", help="noise in each step of the training, and what it promises (ε)"
    )
    demo.set_defaults(run=_run_demo)
    plugin_manager().add_commands(commands)
    return parser


def _to_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text}")
    return seconds


def _run_plugins(options: argparse.Namespace) -> int:
    if options.check is None:
        return _list_plugins(options)
    from syft_core.testing.check import BROKEN, NOT_CHECKED, Promise, check_backend  # noqa: PLC0415  # needs pytest

    section = [""]

    def show(promise: Promise) -> None:
        if promise.section != section[0]:
            section[0] = promise.section
            print(f"{promise.section}:")
        print("  " + printable(str(promise), lines=True).replace("\n", "\n  "), flush=True)

    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    promises, untried = check_backend(plugin_manager().backend(options.check), show, options.seconds, seed)
    counts = Counter(promise.state for promise in promises)
    print(f"\n{options.check}: " + ", ".join(f"{state}: {count}" for state, count in counts.items()))
    if untried:
        print(f"{untried} operations were not tried; --seed {seed} tries the same ones again")
    if counts[BROKEN] or counts[NOT_CHECKED]:
        print(f"docs/backends.md explains the sections{find_page('docs/backends.md')}")
    return 1 if counts[BROKEN] else 0


def _make_plugin(options: argparse.Namespace) -> str:
    made = make_plugin(options.name, options.folder, plugin_manager().backends)
    return (
        f"made {made}: a backend for `toy`, a small example framework; replace both file by file\n"
        f"  cd {shlex.quote(str(made))}\n  pip install -e '.[test]'\n  pytest"
    )


def _list_plugins(options: argparse.Namespace) -> int:
    manager = plugin_manager()
    manager.load_all()  # Otherwise it would not be known whether they are broken.
    rows = [("name", "distribution", "state", "provides")]
    for name, origin in sorted(manager.origins.items()):
        if name in manager.failures:
            rows.append((name, origin, "broken", ""))
        elif not manager.provided[name]:
            rows.append((name, origin, "ready", "no backend"))
        rows.extend(
            (name, origin, *_get_state(manager.backends[backend])) for backend in manager.provided.get(name, ())
        )
    if options.json:
        print(json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1:]], indent=1))
    else:
        print(text_table(rows[0], rows[1:]))
    for failure in manager.failures.values():
        print(f"\n{failure}", file=sys.stderr)
    others = find_claimants()
    if others:
        print(f"\n{warn_of(others)}", file=sys.stderr)
    return 1 if manager.failures or others else 0


def _get_state(backend: Backend) -> tuple[str, str]:
    provides = ", ".join(sorted(backend.exports)) or backend.hook
    if backend.is_installed():
        return "ready", provides
    return "not installed", f"{provides}   ({backend.install})"


def _run_demo(options: argparse.Namespace) -> int:
    manager = plugin_manager()
    installed = find_installed(list(manager.backends.values()))
    chosen = [manager.backend(name) for name in options.backends] or installed[:1]
    if not chosen:
        commands = " or ".join(f"`{backend.install}`" for backend in manager.backends.values())
        print(f"syft-core: no framework is installed; run {commands}", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # The terminal may not support all characters.
    screen = Screen(0 if options.fast else PAUSE)
    try:
        for backend in chosen:
            run_demo(screen, backend, DemoOptions(options.seed, options.in_process, options.private_dp))
    except KeyboardInterrupt:
        print("syft-core: the demo was interrupted; all of its workers have stopped", file=sys.stderr)
        return 130
    finish_demo(screen, [backend.name for backend in installed if backend not in chosen], options.page)
    return 0
