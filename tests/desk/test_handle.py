from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.desk.errors import ReleaseDeniedError, ReleasePendingError


@pytest.fixture
def mean(bob: Any, me: Any) -> Any:
    """A pointer of eve's to the mean of private data."""
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    return bob.search("#ages")[0].mean()


def test_a_handle_follows_its_request(bob: Any, mean: Any) -> None:
    first, second = mean.request("table 1"), mean.request("table 2")
    assert bob.requests() == [first, second]
    assert (first.state, first.purpose, first.reason) == ("open", "table 1", "")
    with pytest.raises(ReleasePendingError, match=f"request {first} to worker 'bob' is waiting"):
        first.wait(0)
    bob.approve(first, why="fine")
    bob.deny(second, "once is enough")

    assert (first.wait(), first.reason, first.get().item()) == (first, "fine", 15.0)
    with pytest.raises(ReleaseDeniedError, match="once is enough"):
        second.wait()
    with pytest.raises(ReleaseDeniedError, match="it was fetched already"):
        first.get()
    assert repr(first) == f"<RequestHandle {first.id} to 'bob': released>"
