"""The command ``syft-core key``: the key with which a worker signs in sums of several workers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from syft_core.exceptions import ConfigurationError
from syft_core.files import lock_folder
from syft_sums.keys import KEY_FILE, MemberKey
from syft_worker.config import read_config


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``syft-core key``."""
    key = commands.add_parser("key", help="print the fingerprint with which other owners list a worker for sums")
    key.add_argument("action", nargs="?", choices=("show", "new"), default="show", help="new: replace the key")
    key.add_argument("--config", type=Path, default=Path("worker.toml"), help="the configuration of the worker")
    key.add_argument("--store", type=Path, help="its store, instead of the one in the configuration")
    key.add_argument("--json", action="store_true", help="print JSON")
    key.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> str:
    store = args.store or read_config(args.config).store
    if store is None:
        raise ConfigurationError("cannot keep a key: the worker has no store; give `store` in its configuration")
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = _replace(store) if args.action == "new" else MemberKey.load(store / KEY_FILE)
    if args.json:
        return json.dumps({"fingerprint": key.fingerprint})
    return key.fingerprint


def _replace(store: Path) -> MemberKey:
    """Write a new key; raise while the worker runs, which would go on with the old one."""
    try:
        with lock_folder(store, wait=False):
            key = MemberKey()
            key.save(store / KEY_FILE)
            return key
    except BlockingIOError:
        raise ConfigurationError(
            f"cannot make a new key in {store}: the worker is running; stop it first, and give the other owners the "
            f"new fingerprint"
        ) from None
