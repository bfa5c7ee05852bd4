from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_worker.desk import waiting
from syft_worker.desk.errors import ReleaseDeniedError, ReleasePendingError


@pytest.fixture
def mean(bob: Any, me: Any) -> Any:
    """A pointer of eve's to the mean of private data."""
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    return bob.search("#ages")[0].mean()


def test_a_handle_follows_its_request(bob: Any, mean: Any) -> None:
    first, second = mean.request("table 1"), mean.request("table 2")
    assert bob.requests() == [first, second]
    assert (first.state, first.reason, first.answer) == ("open", "table 1", "")
    with pytest.raises(ReleasePendingError, match=f"request {first} to worker 'bob' is waiting"):
        first.wait(0)
    bob.approve(first, answer="fine")
    bob.deny(second, "once is enough")

    assert (first.wait(timeout=60), first.answer, first.get().item()) == (first, "fine", 15.0)
    with pytest.raises(ReleaseDeniedError, match="once is enough"):
        second.wait(timeout=60)
    with pytest.raises(ReleaseDeniedError, match="it was fetched already"):
        first.get()
    assert repr(first) == f"<RequestHandle {first.id} to 'bob': released>"


def test_waiting_is_shown_until_the_owner_has_decided(bob: Any, me: Any, monkeypatch: Any) -> None:
    shown: list[str] = []
    monkeypatch.setattr(waiting.LINE, "_find_place", lambda: SimpleNamespace(show=shown.append, end=shown.clear))
    bob.load_data([torch.tensor([1.0, 2.0]).private_tensor([]).tag("#ages")])
    request = bob.search("#ages")[0].sum().request("table 1")

    polls = request._poll(60)
    next(polls)
    assert shown[-1].startswith(f"waiting for the owner of bob to decide on request {request.id}, for ")
    bob.approve(request)

    assert list(polls) == []
    assert shown == []
    with pytest.raises(ReleasePendingError):
        bob.search("#ages")[0].sum().request("table 2").wait(timeout=0)
    assert waiting.LINE._since == {}


def test_the_owner_sees_the_line_of_the_program_that_asks(bob: Any, mean: Any) -> None:
    mean.request("table 1")

    assert bob.requests[0].line.startswith("test_handle.py:")
    assert bob.requests[0].line.endswith('mean.request("table 1")')
