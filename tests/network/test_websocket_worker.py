from __future__ import annotations

from typing import Any

import pytest

from syft_core.network.client import connect
from syft_core.network.credentials import Credentials
from syft_core.network.identity import Identity
from syft_core.network.websocket_worker import WebsocketServerWorker


@pytest.mark.parametrize(
    ("token", "identity"), [("token", Identity("user")), ("owner_token", Identity("owner", True)), ("", None)]
)
def test_each_of_the_two_tokens_of_a_worker_identifies_one_user(hook: Any, token: str, identity: Identity) -> None:
    worker = WebsocketServerWorker(hook, id="served", auto_add=False)
    secret = getattr(worker, token) if token else "guessed"

    assert worker.server.authenticate(Credentials(secret, None)) == identity
    assert worker.token != worker.owner_token


def test_a_worker_with_its_own_authentication_has_no_tokens(hook: Any) -> None:
    worker = WebsocketServerWorker(hook, id="served", auto_add=False, authenticate=lambda _credentials: None)

    assert worker.token is worker.owner_token is None
    assert worker.server.authenticate(Credentials("", None)) is None


def test_a_worker_serves_in_the_background_until_it_is_stopped(hook: Any) -> None:
    worker = WebsocketServerWorker(hook, id="served", auto_add=False)
    worker.start(block=False)
    try:
        far = connect(f"ws://127.0.0.1:{worker.port}", token=worker.token)
        assert far.id == "served"
        far.close()
    finally:
        worker.stop()

    assert not worker.server.is_serving
