"""Run every claimed environment with tox, one after the other, and complete the table of versions."""

from __future__ import annotations

import argparse
import configparser
import dataclasses
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

from .matrix_page import PAGE, ROOT, Row, read_rows, write_rows
from .matrix_row import COMMIT

NO_INTERPRETER = re.compile(r"could not find python interpreter.*")


def main(arguments: list[str] | None = None, page: Path = PAGE, tox: str = "tox") -> int:
    """Run environments, all by default; return 1 if one did not pass."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("environments", nargs="*", help="which to run (default: all of the label `matrix`)")
    parser.add_argument("--mark", action="store_true", help="run nothing; mark rows older than the release")
    options = parser.parse_args(arguments)
    claimed = list_claimed()
    unknown = [name for name in options.environments if name not in claimed]
    if unknown:
        raise SystemExit(f"cannot run {', '.join(unknown)}: not in the matrix; there are {', '.join(claimed)}")
    chosen = [] if options.mark else options.environments or claimed
    commit = find_commit()
    failures = [name for name in chosen if not run_environment(name, commit, page, tox)]
    complete(page, claimed)
    print("\n".join([f"of {commit}: {len(chosen) - len(failures)} passed", *(f"not: {name}" for name in failures)]))  # noqa: T201
    return 1 if failures else 0


def list_claimed() -> list[str]:
    """Return the environments that tox.ini claims."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    labels = dict(line.split(" = ") for line in settings["tox"]["labels"].strip().splitlines())
    return labels["matrix"].split(", ")


def find_commit() -> str:
    """Return the commit under test, with a plus if files were changed since."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def run_environment(name: str, commit: str, page: Path, tox: str) -> bool:
    """Run one environment, which writes its row; if it did not, write why. Return whether it passed."""
    before = read_rows(page)[0].get(name)
    command = [tox, "run", "-e", name, "--skip-missing-interpreters", "false"]
    settings = {**os.environ, COMMIT: commit}
    with subprocess.Popen(
        command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        said = []
        for line in running.stdout or ():
            sys.stdout.write(line)
            said.append(line.strip())
    rows, skips = read_rows(page)
    if rows.get(name) == before:
        state = f"not run on {datetime.datetime.now(datetime.timezone.utc).date()}: {find_cause(name, said)}"
        write_rows(page, {**rows, name: dataclasses.replace(before or Row(name), state=state)}, skips)
        return False
    return running.returncode == 0


def find_cause(name: str, said: list[str]) -> str:
    """Return why an environment wrote no row, from the output of tox."""
    text = "\n".join(said)
    missing = NO_INTERPRETER.search(text)
    recorded = re.findall(r"^not recorded: (.*)$", text, re.MULTILINE)
    failed = re.findall(rf"^{re.escape(name)}: (.*)$", text, re.MULTILINE)
    cause = missing.group() if missing else (recorded or failed or ["tox ended without a result"])[-1]
    return cause.replace("|", "/").replace(";", ",")


def complete(page: Path, claimed: list[str]) -> None:
    """Give every claimed environment a row, and drop those that are no longer claimed."""
    rows, skips = read_rows(page)
    kept = {name: rows.get(name, Row(name, state="never run")) for name in claimed}
    write_rows(page, kept, {name: reasons for name, reasons in skips.items() if name in kept})


if __name__ == "__main__":
    sys.exit(main())
