"""Two users of a served worker: what one writes while a command of the other runs does not reach its result."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import OperandChangedError
from syft_core.network.identity import Identity
from syft_core.workers.party.turns import yield_turn

from ..waiting import wait_until
from .served import Served, serve

torch = pytest.importorskip("torch")


@pytest.fixture
def served(torch_hook: Any) -> Iterator[Served]:
    with serve(torch_hook) as served:
        served.tokens["eve-secret"] = Identity("eve")
        served.worker.load_data([torch.tensor([3.0, 5.0, 7.0]).private_tensor(["zoe"]).tag("#secret")])
        yield served


class Turn:
    """A turn that ends when the test says so."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.began.set()
        self.ended.wait(60)
        yield_turn()


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Turn]:
    turn = Turn()
    for module in ("syft_core.plans.running", "syft_torch.federated.loops"):
        monkeypatch.setattr(f"{module}.TURN_SECONDS", -1)
    monkeypatch.setattr("syft_core.workers.party.worker.yield_turn", turn)
    yield turn
    turn.ended.set()


@pytest.mark.parametrize("drops", [True, False])
@pytest.mark.slow
def test_a_secret_does_not_reach_the_result_of_a_plan_that_runs(served: Served, turn: Turn, drops: bool) -> None:
    ana, store = served.connect(), served.worker.object_store
    phone = sy.VirtualWorker(served.hook, id="phone", auto_add=False)
    eve = served.connect("eve-secret", client=phone)
    v = phone.send(torch.zeros(3).tag("#shared"), eve)
    eve.flush()
    (found,) = ana.search("#shared")
    x, w = torch.zeros(3).send(ana), found[:]

    plan = sy.Plan("slow", lambda x, w: (x + 1 + 1) * 0 + w * 1).build(torch.zeros(3), torch.zeros(3)).send(ana)
    ana.flush()  # So that the call is sent at once.
    result = plan(x, w)
    assert wait_until(turn.began.is_set)
    if drops:
        with served.worker.lock:
            entry = store.entry(w.id_at_location)
            store.release(deque([(entry.id, entry.holder)]))
    (secret,) = phone.request_search("#secret", eve)
    v.copy_(secret)
    eve.flush()
    turn.ended.set()

    with pytest.raises(OperandChangedError, match="cannot finish 'run plan' on worker 'hospital': meanwhile another"):
        result.get()
    assert wait_until(lambda: not store._held)
