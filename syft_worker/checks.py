"""Checks: find all problems of a configuration at once, before a framework is imported."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from syft_core.exceptions import ConfigurationError, SyftError
from syft_core.files import require_secrecy
from syft_core.network.address import Address
from syft_core.network.credentials import make_server_context
from syft_worker.allowances import DEFAULT
from syft_worker.certificates import check_validity
from syft_worker.config import PeerConfig, WorkerConfig
from syft_worker.data import DataSource, choose_backend
from syft_worker.desk.approvals import explain_user
from syft_worker.notices import is_address
from syft_worker.tokens import TokenFile

USER = "user"
"""The user name of a client with the secret of a worker without tokens and certificates."""
PEER_SECONDS = 0.8
"""How long a peer may take to accept a connection."""
_ONE_TENSOR = frozenset({".npy", ".csv", ".parquet"})
"""Files that become one tensor, which has the tags of its source only."""


def find_problems(config: WorkerConfig, peers: bool = True) -> list[str]:
    """Return everything that would keep a worker from starting.

    With ``peers``, add what may be in order later: peers that cannot be reached, and rules for users without a token.
    """
    problems = list(_collect([config.require_valid, lambda: choose_backend(config.framework)]))
    for source in config.data:
        problems += _check_data(source)
        problems += _check_data(mock) if (mock := source.of_mock) is not None else []
    problems += [*_check_access(config), *_check_folders(config), *_check_approvals(config)]
    if config.on_request is not None and not is_address(config.on_request):
        program, *_ = shlex.split(config.on_request) or [""]
        if shutil.which(program) is None:
            problems.append(f"cannot use `on_request`: there is no program {program!r}; check the path")
    return problems + ([*_check_users(config), *_check_peers(config.peers)] if peers else [])


def _check_folders(config: WorkerConfig) -> list[str]:
    problems = []
    for name, folder in (("ledger", config.ledger and config.ledger.parent), ("store", _parent_of(config.store))):
        if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            exists = "it is not a folder" if not folder.is_dir() else "it cannot be written to"
            why = exists if folder.exists() else "it does not exist"
            problems.append(f"cannot use `{name}` in the folder {folder}: {why}; create it, or check its owner")
    ledger = config.ledger
    if ledger is not None and ledger.exists() and not (ledger.is_file() and os.access(ledger, os.R_OK | os.W_OK)):
        why = "it cannot be read and written" if ledger.is_file() else "it is not a file"
        problems.append(f"cannot use the ledger {ledger}: {why}; check the path and its owner")
    return problems


def _check_approvals(config: WorkerConfig) -> list[str]:
    """Return which rules match nothing, if all tags of the worker's data are known without loading it."""
    is_known = [source.file is not None and source.file.suffix.lower() in _ONE_TENSOR for source in config.data]
    if config.store is not None or not all(is_known):
        return []
    tags = {tag for source in config.data for tag in source.tags}
    return [
        f"cannot use the rule {name!r}: no data of this worker has the tag {tag!r}; check the tags"
        for name, conditions in config.every_rule.items()
        for tag in conditions["computed_from"]
        if tag not in tags
    ]


def _check_users(config: WorkerConfig) -> list[str]:
    try:
        users = list_users(config)
    except (SyftError, OSError):  # The token file is a problem of its own.
        return []
    found = {name: explain_user(conditions["user"], users) for name, conditions in config.every_rule.items()}
    return [f"cannot use the rule {name!r}: {why}; correct it" for name, why in found.items() if why]


def list_users(config: WorkerConfig) -> set[str] | None:
    """Return the names of all users who may connect; None if certificates can have any name."""
    if config.client_ca is not None:
        return None
    if config.token_file is None:
        return {USER}
    return {*[token.user for token in TokenFile(config.token_file)], *config.users} - {DEFAULT}


def _collect(checks: list[Callable[[], object]]) -> Iterator[str]:
    for check in checks:
        try:
            check()
        except (SyftError, OSError) as error:  # noqa: PERF203  # each check is made
            yield str(error)


def _check_access(config: WorkerConfig) -> list[str]:
    checks: list[Callable[[], object]] = []
    problems: list[str] = []
    if (tokens := config.token_file) is not None:
        checks.append(lambda: TokenFile(tokens))
    if (key := config.key) is not None and key.exists():
        checks.append(lambda: require_secrecy(key))
    if (cert := config.cert) is not None:
        checks.append(lambda: make_server_context(cert, config.key))
        if cert.exists() and (problem := check_validity(cert, 0)) is not None:
            problems.append(problem)
    if (ca := config.client_ca) is not None:
        checks.append(lambda: _require_authority(ca))
    return [*_collect(checks), *problems]


def _require_authority(file: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(str(file))
    except OSError as error:  # This includes errors of OpenSSL.
        why = error.strerror or "it has no certificates in PEM format"
        raise ConfigurationError(f"cannot use `client_ca` {file}: {why}; `syft-core certs` makes one") from None


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


def _check_peers(peers: Mapping[str, PeerConfig]) -> list[str]:
    """Return which peers cannot be reached; all are tried in parallel, with a common deadline."""
    found: dict[str, str | None] = {name: _describe(name, peer, "it does not answer") for name, peer in peers.items()}

    def check(name: str, peer: PeerConfig) -> None:
        found[name] = _check_peer(name, peer)

    threads = [threading.Thread(target=check, args=item, daemon=True) for item in peers.items()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PEER_SECONDS + 0.1
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))  # Looking up a name may take longer.
    return [why for why in list(found.values()) if why is not None]


def _check_peer(name: str, peer: PeerConfig) -> str | None:
    try:
        address = Address.parse(peer.url, ca=peer.ca, name=peer.name)
        if peer.ca is not None and not os.access(peer.ca, os.R_OK):
            return f"cannot verify the peer {name!r} with {peer.ca}: it cannot be read; check the path"
        address.make_context()
        with socket.create_connection((address.host, address.port), PEER_SECONDS):
            return None
    except SyftError as error:
        return f"the peer {name!r}: {error}"
    except OSError as error:
        return _describe(name, peer, error.strerror or str(error) or "it does not answer")


def _describe(name: str, peer: PeerConfig, why: str) -> str:
    return f"cannot reach the peer {name!r} at {peer.url}: {why}; check the address, or start it"
