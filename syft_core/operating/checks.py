"""Checks: find what is wrong with a configuration before a framework is imported, all of it at once."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from syft_core.exceptions import SyftError
from syft_core.files import require_secrecy
from syft_core.network.address import Address
from syft_core.network.server import make_server_context
from syft_core.operating.certificates import check_validity
from syft_core.operating.config import PeerConfig, WorkerConfig
from syft_core.operating.data import DataSource, choose_backend
from syft_core.operating.tokens import TokenFile

PEER_SECONDS = 0.8
"""How long a peer may take to accept a connection."""


def find_problems(config: WorkerConfig, peers: bool = True) -> list[str]:
    """Return everything that would keep a worker from starting and, with ``peers``, which peers cannot be reached."""
    problems = list(_collect([config.require_valid, lambda: choose_backend(config.framework)]))
    for source in config.data:
        problems += _check_data(source)
        problems += _check_data(mock) if (mock := source.of_mock) is not None else []
    problems += _check_access(config)
    for name, folder in (("ledger", config.ledger and config.ledger.parent), ("store", _parent_of(config.store))):
        if folder is not None and not os.access(folder, os.W_OK | os.X_OK):
            why = "it does not exist" if not folder.exists() else "it cannot be written to"
            problems.append(f"cannot use `{name}` in the folder {folder}: {why}; create it, or check its owner")
    if config.ledger is not None and config.ledger.exists() and not os.access(config.ledger, os.R_OK | os.W_OK):
        problems.append(f"cannot use the ledger {config.ledger}: it cannot be read and written; check its owner")
    if peers and config.peers:
        with ThreadPoolExecutor(min(len(config.peers), 16)) as threads:
            problems += filter(None, threads.map(_check_peer, config.peers, config.peers.values()))
    return problems


def _collect(checks: list[Callable[[], object]]) -> Iterator[str]:
    """Yield the errors of checks."""
    for check in checks:
        if (why := _explain(check)) is not None:
            yield why


def _explain(check: Callable[[], object]) -> str | None:
    try:
        check()
    except (SyftError, OSError) as error:
        return str(error)
    return None


def _check_access(config: WorkerConfig) -> list[str]:
    """Return what is wrong with the token file and the certificates."""
    checks: list[Callable[[], object]] = []
    problems: list[str] = []
    if (tokens := config.token_file) is not None:
        checks.append(lambda: TokenFile(tokens))
    if (key := config.key) is not None and key.exists():
        checks.append(lambda: require_secrecy(key))
    if (cert := config.cert) is not None:
        checks.append(lambda: make_server_context(cert, config.key, config.client_ca))
        if cert.exists() and (problem := check_validity(cert, 0)) is not None:
            problems.append(problem)
    return [*_collect(checks), *problems]


def _parent_of(folder: Path | None) -> Path | None:
    """Return the nearest folder that exists: a store is created with its parents."""
    while folder is not None and not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _check_data(source: DataSource) -> list[str]:
    if (file := source.file) is not None:
        if not file.is_file():
            return [f"cannot load {file}: there is no such file; check the path"]
        return [] if os.access(file, os.R_OK) else [f"cannot load {file}: it cannot be read; check its mode"]
    module = str(source.loader).partition(":")[0]
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    return [] if found is not None else [f"cannot load {source.loader}: no module {module!r}; check `sys.path`"]


def _check_peer(name: str, peer: PeerConfig) -> str | None:
    try:
        address = Address.parse(peer.url, ca=peer.ca, name=peer.name)
        address.make_context()
        with socket.create_connection((address.host, address.port), PEER_SECONDS):
            return None
    except SyftError as error:
        return str(error)
    except OSError as error:
        why = error.strerror or str(error) or "it does not answer"
        return f"cannot reach the peer {name!r} at {peer.url}: {why}; check the address, or start it"
