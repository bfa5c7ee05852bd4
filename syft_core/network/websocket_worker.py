"""WebsocketServerWorker: a worker that serves itself, with one token for its users and one for its owner."""

from __future__ import annotations

import hmac
import secrets
import ssl
from collections.abc import Sequence
from typing import Any

from syft_core.hook.hook import FrameworkHook
from syft_core.network.credentials import Authenticate, Credentials, make_server_context
from syft_core.network.identity import Identity
from syft_core.network.server import Server
from syft_core.peer import Id
from syft_core.workers.party.base import BaseWorker


class WebsocketServerWorker(BaseWorker):
    """A worker that is served on the network.

    Args:
        hook: the hook of the framework.
        host: the address to listen on.
        port: the port, or 0 for any that is free.
        id: the id of the worker.
        log_msgs: whether to keep every message in ``msg_history``.
        verbose: whether to log every message.
        data: objects to load, which the worker keeps permanently.
        loop: not used; the worker has threads of its own.
        cert_path: a file with the certificate of the worker; without it, only clients of this machine are served.
        key_path: a file with the key of the certificate.
        authenticate: identifies a user by credentials; the default accepts ``token`` and, for the worker's page,
            ``owner_token``, which are new secrets.
        options: further options of ``BaseWorker``, and of ``Server``.

    """

    def __init__(
        self,
        hook: FrameworkHook | None,
        host: str = "127.0.0.1",
        port: int = 0,
        id: Id = 0,
        log_msgs: bool = False,
        verbose: bool = False,
        data: Sequence[Any] | None = None,
        loop: object = None,
        cert_path: str | None = None,
        key_path: str | None = None,
        *,
        authenticate: Authenticate | None = None,
        tls: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        serving = {name: options.pop(name) for name in _SERVING if name in options}
        super().__init__(hook, id, data, log_msgs=log_msgs, verbose=verbose, **options)
        self.token: str | None = None if authenticate is not None else secrets.token_urlsafe(32)
        self.owner_token: str | None = None if authenticate is not None else secrets.token_urlsafe(32)
        if cert_path is not None:
            tls = make_server_context(cert_path, key_path)
        self.server = Server(self, host, port, authenticate or self._check_token, tls, **serving)

    def start(self, block: bool = True) -> None:
        """Serve clients until interrupted, or in the background."""
        self.server.start()
        if not block:
            return
        try:
            self.server.wait()
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Disconnect all clients."""
        self.server.stop()

    @property
    def port(self) -> int:
        """The port on which the worker is served."""
        return self.server.port

    def _check_token(self, credentials: Credentials) -> Identity | None:
        given, found = (credentials.token or "").encode(), None
        for token, identity in ((self.token, Identity("user")), (self.owner_token, Identity("owner", True))):
            if token is not None and hmac.compare_digest(given, token.encode()):
                found = identity
        return found


_SERVING = ("max_connections", "session_timeout", "heartbeat", "io_timeout")
