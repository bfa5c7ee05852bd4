"""A plan runs on a worker in another process."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy

from ..transports import pipe
from .test_training import OPTIMIZERS, Training, equal

torch = pytest.importorskip("torch")


@pytest.mark.slow
def test_a_plan_trains_in_another_process_and_waits_only_at_the_end(hook: Any) -> None:
    near, eve = (sy.VirtualWorker(hook, id=name, serialize=False) for name in ("near", "eve"))
    remote, local = Training(OPTIMIZERS["adam"]), Training(OPTIMIZERS["adam"])
    with pipe.start_far_worker("torch syft_torch.hook TorchHook", hook.local_worker, near, eve) as (_, far, far_of_eve):
        plan = sy.Plan("step", remote.step).build(*remote.data[0])
        there = plan.send(far).tag("#train")
        data = [(x.send(far), y.send(far)) for x, y in remote.data]
        losses = [there(*batch) for batch in data[:1]]
        waits = far.waits
        losses += [there(*batch) for batch in data[1:]]
        assert far.waits == waits

        expected = [local.step(x, y).detach() for x, y in local.data]
        assert equal([loss.get() for loss in losses], expected)
        (found,) = eve.request_search("#train", far_of_eve)
        with pytest.raises(PermissionError):
            found(*remote.data[0])
        there.get()
        assert equal(remote.tensors(), local.tensors())


def test_calls_on_data_that_was_found_wait_only_for_its_forms(hook: Any) -> None:
    near, eve = (sy.VirtualWorker(hook, id=name, serialize=False) for name in ("near", "eve"))
    training = Training(OPTIMIZERS["sgd"])
    with pipe.start_far_worker("torch syft_torch.hook TorchHook", hook.local_worker, near, eve) as (_, far, far_of_eve):
        for number, batch in enumerate(training.data):
            for name, tensor in zip("xy", batch, strict=True):
                eve.send(tensor.clone().tag(f"#{name}{number}"), far_of_eve).publish()
        far_of_eve.flush()
        there = sy.Plan("step", training.step).build(*training.data[0]).send(far)
        search = hook.local_worker.request_search
        data = [[search(f"#{name}{place}", far)[0] for name in "xy"] for place in range(len(training.data))]
        there(*data[0])
        waits = far.waits

        for batch in data[1:] * 3:
            there(*batch)

        assert far.waits == waits + len(data) - 1


def test_a_failed_call_poisons_its_results(hook: Any) -> None:
    near, eve = (sy.VirtualWorker(hook, id=name, serialize=False) for name in ("near", "eve"))
    with pipe.start_far_worker("torch syft_torch.hook TorchHook", hook.local_worker, near, eve) as (
        _,
        far,
        _far_of_eve,
    ):
        there = sy.Plan("root", lambda x: torch.linalg.cholesky(x) + 1).build(torch.eye(2)).send(far)

        failed = there((-torch.eye(2)).send(far)) * 2

        with pytest.raises(RuntimeError, match="cholesky") as caught:
            failed.get()
        assert any(note.startswith("in step 1 of 2 of the plan 'root'") for note in caught.value.__notes__)
        assert torch.equal(there(torch.eye(2).send(far)).get(), torch.eye(2) + 1)
