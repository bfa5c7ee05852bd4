"""A published plan survives its worker: training goes on where it was, whatever ended the process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import ConnectionLostError

from ..syft_worker.test_storage import Party
from .supervised import supervise

torch = pytest.importorskip("torch")
STEPS = 6


class Training:
    """A model with Adam, whose first step creates the state of the optimizer, and what training it here gives."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.data, self.target = torch.rand(8, 3), torch.rand(8, 1)
        model = torch.nn.Linear(3, 1)
        self.plan = sy.Plan("step", self._make_step(model)).build(self.data, self.target)
        step = self._make_step(model.copy())
        self.losses = [step(self.data, self.target).item() for _ in range(STEPS)]

    @staticmethod
    def _make_step(model: Any) -> Any:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    def publish(self, location: Any) -> Any:
        return self.plan.send(location).tag("#step").publish()

    def run(self, there: Any, location: Any, times: int) -> list[float]:
        x, y = self.data.send(location), self.target.send(location)
        return [there(x, y).detach().get().item() for _ in range(times)]


@pytest.mark.parametrize("serialize", [False, True], ids=["in_process", "by_wire"])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_training_goes_on_after_a_restart(torch_hook: Any, tmp_path: Path, serialize: bool, before: int) -> None:
    party, training = Party(torch_hook, tmp_path / "store", serialize), Training()
    there = training.publish(party.worker)
    losses = training.run(there, party.worker, before)

    bob = party.restart()
    (found,) = bob.search("#step")

    assert losses + training.run(found, bob, STEPS - before) == training.losses
    party.storage.close()


def test_a_first_call_that_a_crash_interrupted_can_be_made_again(torch_hook: Any, tmp_path: Path) -> None:
    party, training = Party(torch_hook, tmp_path / "store", True), Training()
    there = training.publish(party.worker)
    saved = {path: path.read_bytes() for path in party.folder.glob("*.object")}
    training.run(there, party.worker, 1)
    for path, content in saved.items():  # Only the new state was written before the crash.
        path.write_bytes(content)

    bob = party.restart()
    (found,) = bob.search("#step")

    assert training.run(found, bob, STEPS) == training.losses
    party.storage.close()


def test_an_unpublished_plan_is_not_kept(torch_hook: Any, tmp_path: Path) -> None:
    party, training = Party(torch_hook, tmp_path / "store", True), Training()
    there = training.plan.send(party.worker).tag("#step")

    assert party.restart().search("#step") == []
    party.storage.close()
    del there


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor relies on Linux")
def test_training_goes_on_after_the_process_was_killed(torch_hook: Any, tmp_path: Path) -> None:
    training = Training()
    options = ("--framework", "torch", "--id", "north", "--store", str(tmp_path / "store"))
    with supervise(*options) as worker:
        far = worker.connect(torch_hook, worker.read_token())
        losses = training.run(training.publish(far), far, 3)

        os.kill(worker.wait_for("worker is ready")["process"], signal.SIGKILL)
        worker.wait_for("worker is ready", 2)
        with pytest.raises(ConnectionLostError, match="the worker's process ended, and was started again"):
            far.search("#step")
        (found,) = far.search("#step")

        assert losses + training.run(found, far, STEPS - 3) == training.losses
        far.close()
