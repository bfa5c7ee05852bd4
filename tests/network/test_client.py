from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network.server import Server

from .processes import authenticate

torch = pytest.importorskip("torch")


def test_a_closed_connection_continues_its_session(connect: Any) -> None:
    far = connect()
    x = torch.ones(2).send(far)
    far.close()
    with pytest.raises(ConnectionLostError, match=r"call `connect\(\)` first"):
        (x + 1).get()

    far.connect()

    assert (x + 1).get().tolist() == [2.0, 2.0]


def test_a_worker_that_was_started_again_is_reported_and_usable(hook: Any, connect: Any, far: Any, server: Any) -> None:
    location = connect()
    x = torch.ones(2).send(location)
    location.flush()
    server.stop(1)
    second = Server(far, "127.0.0.1", server.port, authenticate)
    far.clear_objects()
    second.start()
    try:
        with pytest.raises(ConnectionLostError, match="cannot continue the session on worker 'far'"):
            (x + 1).get()

        assert (torch.ones(2).send(location) + 1).get().tolist() == [2.0, 2.0]
    finally:
        location.close()
        second.stop(1)


def test_a_worker_that_stays_away_is_named(connect: Any, server: Any) -> None:
    location = connect()
    server.stop(1)
    location.timeout = 0.3

    with pytest.raises(ConnectionLostError, match="cannot reach the worker at ws://127.0.0.1"):
        location.flush()


def test_connecting_twice_returns_the_same_location(connect: Any, server: Any) -> None:
    first = connect()
    x = torch.ones(2).send(first)

    second = connect()

    assert second is first
    assert (x + torch.ones(2).send(second)).get().tolist() == [2.0, 2.0]
    assert len(server.sessions) == 1
