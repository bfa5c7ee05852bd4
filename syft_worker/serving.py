"""The serving process: loads a worker as its configuration says, gives up rights, and serves clients.

``Supervisor`` starts it, and again if it dies. It reads its configuration as one line of JSON from standard input, and
ends when that is closed: it never outlives its supervisor, whatever it is executing.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from syft_core.conditions import DAY
from syft_core.exceptions import SyftError
from syft_core.features import import_everything
from syft_core.network.address import Address
from syft_core.network.credentials import Credentials, make_server_context
from syft_core.network.identity import Identity
from syft_core.network.links import PeerLocation
from syft_core.network.server import Server
from syft_core.plugins.backend import find_installed
from syft_core.plugins.manager import plugin_manager
from syft_core.serde import PEER_LIMITS, Limits
from syft_core.values import Table
from syft_core.workers.moving import codecs as _codecs  # noqa: F401  # registers codecs
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.ledger import Ledger
from syft_core.workers.seeing.permissions import POLICIES
from syft_sums.keys import KEY_FILE
from syft_sums.studies import studies_of
from syft_worker.activity import FINISH_SECONDS, MISCONFIGURED, STOP_SECONDS, Activity
from syft_worker.allowances import limit_bytes, make_policy
from syft_worker.certificates import check_validity, names_in, user_in
from syft_worker.checks import USER, list_users
from syft_worker.config import WorkerConfig, parse_config
from syft_worker.data import choose_backend, load
from syft_worker.desk.releases import releases_of
from syft_worker.incidents import NAME, Incidents, read_incidents
from syft_worker.isolation import Isolation, end_with_parent, isolate
from syft_worker.logs import configure_logs, log_event
from syft_worker.machine import choose_memory, find_memory
from syft_worker.metrics import Files
from syft_worker.notices import make_notice, send_notice
from syft_worker.page import Page
from syft_worker.quotas import QuotaGuard
from syft_worker.storage import Storage
from syft_worker.tokens import TokenFile

HANDSHAKE_STACK = 1 << 19
"""Stack size in bytes of a thread until its client has authenticated: it counts towards the memory limit."""
CLOSE_SECONDS = 1.0
"""How long to wait for the lock of the worker before its files are closed."""
_log = logging.getLogger(__name__)


def main() -> NoReturn:
    """Serve until the supervisor asks to stop, or is gone, and end this process.

    The interpreter does not end by itself: it would abort while a thread executes native code.
    """
    code = _serve()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def _serve() -> int:
    end_with_parent()
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        given = json.loads(stdin.readline())
    config = parse_config(given["config"])
    configure_logs(config.log_format, config.log_level)
    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # Nothing is executed yet, and loading may take long.
    try:
        worker, close = build_worker(config, given)
        server = _make_server(worker, config, given)
        _warn(config)
        names = (*config.page_hosts, *([] if config.cert is None else names_in(config.cert)))
        applied = isolate(_list_needs(config))
    except SyftError as error:
        log_event(_log, logging.ERROR, str(error))
        return MISCONFIGURED
    reload = partial(_reload, worker, server)
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threading.Thread(target=_wait_for_supervisor, args=(stopping, reload), daemon=True).start()
    server.start()
    page = _start_page(server, names, config, given)
    requests = releases_of(worker).requests
    requests.on_request = lambda request: send_notice(given["ready"], make_notice(config.id, request))
    os.write(given["ready"], json.dumps({"isolation": applied, "objects": worker.objects_count}).encode() + b"\n")
    stopping.wait()
    if page is not None:
        page.stop()
    server.stop(FINISH_SECONDS)
    return _close(worker, close)


def _close(worker: BaseWorker, close: Callable[[], None]) -> int:
    """Write unsaved data; return the exit code."""
    if not worker.lock.wait(seconds=CLOSE_SECONDS):
        log_event(_log, logging.WARNING, "an operation did not finish; all that clients were told is on disk")
        worker.ledger.close()
        return 0
    try:
        close()
    except SyftError as error:  # The disk is full, for instance.
        log_event(_log, logging.ERROR, str(error))
        return 1
    finally:
        worker.lock.release()
    return 0


def build_worker(config: WorkerConfig, given: Table) -> tuple[BaseWorker, Callable[[], None]]:
    """Return a worker with its data, and a function that closes its files."""
    chosen = choose_backend(config.framework)
    installed = [chosen] if config.framework else find_installed(list(plugin_manager().backends.values()))
    hooks = {backend.name: backend.load()(backend.import_framework(), verbose=False) for backend in installed}
    hook = hooks[chosen.name]
    for attached in hooks.values():
        attached.attributes.warm_up()
    import_everything()
    size = config.limits.message_bytes or Limits().max_bytes
    worker = BaseWorker(
        hook,
        config.id,
        auto_add=False,
        policy=make_policy(config.users, POLICIES[config.policy]),
        limits=replace(PEER_LIMITS, max_bytes=size, max_expanded=min(size, PEER_LIMITS.max_expanded)),
        ledger=None if config.ledger is None else Ledger(config.id, config.ledger, limit=config.ledger_bytes),
    )
    files = ExitStack()
    files.callback(worker.ledger.close)
    data = load(config.data, hook)
    if config.store is None:
        worker.load_data(data)
    else:
        files.callback(Storage(config.store, worker, data).close)
    _configure_releases(worker, config)
    for name, peer in config.peers.items():
        worker.add_worker(PeerLocation(worker, name, Address.parse(peer.url, ca=peer.ca, name=peer.name)))
    worker.trust(*config.trusted)
    activity = Activity(given["activity"])
    users = limit_bytes(config.users, _find_memory(config) // 2)
    file = None if config.store is None else config.store / NAME
    incidents = Incidents(config.limits.ban_seconds, file, read_incidents(given["incidents"]))
    worker.guard = QuotaGuard(worker, users, incidents, activity)
    return worker, files.close


def _configure_releases(worker: BaseWorker, config: WorkerConfig) -> None:
    releases = releases_of(worker)
    releases.requests.set_lifetime(config.request_days * DAY or None)
    releases.approvals.list_users = partial(list_users, config)
    for warning in releases.approvals.configure(config.rules):
        log_event(_log, logging.WARNING, warning)
    studies = studies_of(worker)
    studies.key_file = None if config.store is None else config.store / KEY_FILE
    studies.round_seconds = config.limits.session_seconds
    studies.configure(config.members, config.aggregates)


def _try_to_reload(line: bytes, reload: Callable[[WorkerConfig], None]) -> None:
    try:
        reload(parse_config(json.loads(line)["config"]))
    except (SyftError, OSError) as error:
        log_event(_log, logging.ERROR, f"the configuration is used only in part: {error}")


def _reload(worker: BaseWorker, server: Server, config: WorkerConfig) -> None:
    """Apply settings that may change while a worker is served: certificates, users and rules."""
    if config.cert is not None and server.tls is not None:
        make_server_context(config.cert, config.key, config.client_ca)  # Raises unless all of them can be used.
        server.tls.load_cert_chain(str(config.cert), None if config.key is None else str(config.key))
    with worker.lock:
        worker.policy = make_policy(config.users, POLICIES[config.policy])
        worker.guard.configure(limit_bytes(config.users, _find_memory(config) // 2))
        _configure_releases(worker, config)
    log_event(_log, logging.INFO, "the configuration was read again")


def _warn(config: WorkerConfig) -> None:
    if config.cert is not None and (problem := check_validity(config.cert)) is not None:
        log_event(_log, logging.WARNING, problem)
    if (config.limits.memory or 0) > (most := find_memory()):
        text = f"`limits.memory` is more than the {most:,} bytes of this machine, or of its control group"
        log_event(_log, logging.WARNING, f"{text}: the system may end the process before; lower it")
    if config.ledger is None:
        log_event(_log, logging.WARNING, "what leaves is recorded in memory only, until the worker ends; give `ledger`")


class Authentication:
    """Authenticates clients: by token, by certificate, or by ``secret`` if the configuration has neither."""

    def __init__(self, config: WorkerConfig, secret: str | None) -> None:
        self._tokens = None if config.token_file is None else TokenFile(config.token_file)
        self._has_certificates = config.client_ca is not None
        self._secret = secret

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return the owner of credentials; if a token is given, the certificate is ignored."""
        token = credentials.token
        if token is not None and self._tokens is not None:
            return self._tokens.authenticate(token)
        if token is not None and self._secret is not None:
            valid = hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._secret.encode())
            return Identity(USER, admin=True) if valid else None
        user = user_in(credentials.certificate) if self._has_certificates else None
        return None if user is None else Identity(user)

    def is_valid(self, identity: Identity) -> bool:
        """Return whether the token of an identity, if it has one, is still valid."""
        return not identity.name or self._tokens is None or self._tokens.is_valid(identity)


def _make_server(worker: BaseWorker, config: WorkerConfig, given: Table) -> Server:
    tls = None if config.cert is None else make_server_context(config.cert, config.key, config.client_ca)
    authentication = Authentication(config, given["secret"])
    return Server(
        worker,
        config.host,
        config.port,
        authentication.authenticate,
        tls,
        is_valid=authentication.is_valid,
        max_connections=config.limits.connections,
        session_timeout=config.limits.session_seconds,
        listener=socket.socket(fileno=given["listener"]),
        ended=given["ended"],
        handshake_stack=HANDSHAKE_STACK,
    )


def _start_page(server: Server, names: tuple[str, ...], config: WorkerConfig, given: Table) -> Page | None:
    if given["page"] is None:
        return None
    page = Page(
        server,
        listener=socket.socket(fileno=given["page"]),
        restarts=given["restarts"],
        names=names,
        proxies=config.trusted_proxy,
        files=Files(config.cert, None if config.token_file is None else TokenFile(config.token_file), config.store),
        on_lift=lambda ban: send_notice(given["ready"], json.dumps({"lift": ban.id}).encode() + b"\n"),
    )
    page.start()
    return page


def _find_memory(config: WorkerConfig) -> int:
    return config.limits.memory or choose_memory()


def _list_needs(config: WorkerConfig) -> Isolation:
    own = (config.token_file, config.cert, config.key, config.client_ca)
    files = (*own, *(peer.ca for peer in config.peers.values()))
    folders = (config.store, None if config.ledger is None else config.ledger.parent)
    return Isolation(
        memory=_find_memory(config),
        files=config.limits.connections,
        reads=[file.parent for file in files if file is not None],  # A replaced file is a different file.
        writes=[Path(folder) for folder in folders if folder is not None],
        connects=bool(config.peers),
    )


def _wait_for_supervisor(stopping: threading.Event, reload: Callable[[WorkerConfig], None]) -> None:
    """Read configurations that the supervisor sends, until it is gone."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        while line := stdin.readline():
            _try_to_reload(line, reload)
    stopping.set()
    time.sleep(STOP_SECONDS)
    os._exit(1)  # An operation does not end, and nothing else limits its time.
