from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import WorkerIdTakenError  # noqa: E402
from syft_core.workers.party.base import BaseWorker  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402


def test_a_worker_created_again_is_the_same_worker() -> None:
    with TorchHook(torch) as hook:
        zoe = VirtualWorker(hook, id="zoe")
        x = torch.ones(2).send(zoe)
        assert VirtualWorker(hook, id="zoe") is zoe
        assert (x + 1).get().tolist() == [2.0, 2.0]


def test_a_worker_of_another_kind_cannot_take_an_id() -> None:
    with TorchHook(torch) as hook:
        zoe = VirtualWorker(hook, id="zoe")
        with pytest.raises(WorkerIdTakenError, match="cannot create worker 'zoe': a VirtualWorker"):
            BaseWorker(hook, id="zoe")
        assert hook.local_worker.get_worker("zoe") is zoe


def test_a_worker_counts_what_it_does() -> None:
    with TorchHook(torch) as hook:
        zoe = VirtualWorker(hook, id="zoe", serialize=True)
        (torch.ones(2).send(zoe) + 1).get()
        assert zoe.stats.operations == 1
        assert zoe.stats.messages == 3
        assert zoe.stats.bytes_in > 0
        assert zoe.stats.bytes_out > 0
