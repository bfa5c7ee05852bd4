"""A forked process leaves the connections of its parent alone, and may open its own."""

from __future__ import annotations

import os
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.network.client import WebsocketClientWorker

from .processes import start_worker

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def run_in_fork(function: Any) -> None:
    """Run a function in a forked process; fail unless it returns."""
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture(scope="module")
def far(hook: Any) -> Any:
    with start_worker("torch syft_torch.hook TorchHook", "forked") as (_, port, _):
        location = WebsocketClientWorker(hook, "127.0.0.1", port, token="secret of ana")
        yield location
        location.close()
        hook.local_worker.remove_worker_from_registry("forked")


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_does_not_disturb_the_session_of_its_parent(far: Any) -> None:
    x = torch.ones(2).send(far)
    far.flush()
    x += 1
    x += 1  # One of them is still in the buffer.

    def use() -> None:
        with pytest.raises(ConnectionLostError, match=r"the connection was closed; call `connect\(\)` first"):
            far.flush()

    run_in_fork(use)
    assert x.get().tolist() == [3.0, 3.0]


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_that_connects_is_another_client(far: Any) -> None:
    x = torch.ones(2).send(far)
    far.flush()
    parent = far.client_id

    def use() -> None:
        far.connect()
        assert far.client_id != parent
        with pytest.raises(RuntimeError):
            (torch.ones(2).send(far) + torch.ones(3).send(far)).get()
        assert (torch.ones(2).send(far) + 1).get().tolist() == [2.0, 2.0]

    run_in_fork(use)
    assert (x + 1).get().tolist() == [2.0, 2.0]
