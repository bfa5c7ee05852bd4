"""The part of a worker in a protocol is a task: authorized, restricted and recorded like any other."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, SyftError  # noqa: E402
from syft_core.workers.party.status import add_bit  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_core.workers.road import procedure  # noqa: E402
from syft_core.workers.road.procedure import add_stage  # noqa: E402
from syft_mpc.channel import Channels  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.messages import Prepare, RunProtocol  # noqa: E402
from syft_mpc.tasks import MAX_TIMES, Participation, Preparation  # noqa: E402

EMBARGO = add_bit("tests: embargoed shares")


@pytest.fixture
def workers(torch_hook: Any) -> dict[str, Any]:
    return {name: VirtualWorker(torch_hook, id=name, serialize=False) for name in ("bob", "alice", "carol")}


@pytest.fixture
def torch_hook() -> Any:
    from syft_torch.hook import TorchHook  # noqa: PLC0415  # torch may be missing

    with TorchHook(torch) as hook:
        yield hook


@pytest.fixture
def shared(workers: dict[str, Any]) -> Any:
    bob, alice, carol = workers.values()
    return torch.tensor([1, 2, 3]).share(bob, alice, crypto_provider=carol)


@pytest.fixture
def _embargo() -> Any:
    kept = list(procedure._added)

    def refuse(_proceed: Any, task: Any) -> Any:
        raise GetNotPermittedError(f"cannot {task.kind} {task.name!r}: by a test")

    add_stage(EMBARGO, refuse)
    yield
    procedure._added[:] = kept
    procedure._procedures.clear()


@pytest.mark.usefixtures("_embargo")
def test_a_restriction_of_one_share_ends_the_protocol_at_all_parties(workers: dict[str, Any], shared: Any) -> None:
    entry = workers["alice"].object_store.entry(shared.child.child["alice"].id_at_location)
    entry.mark(EMBARGO)
    workers["alice"].trust(*workers)

    with pytest.raises(SyftError, match="by a test"):
        (shared * shared).get()

    entry.status &= ~EMBARGO
    assert (shared * shared).get().tolist() == [1, 4, 9]  # Nobody waits for the run that was refused.


@pytest.mark.usefixtures("shared")
def test_how_often_correlations_are_prepared_is_limited(workers: dict[str, Any]) -> None:
    bob = workers["bob"]
    (peer,) = bob.part(Channels)._channels
    ((id, channel),) = bob.part(Channels)._channels[peer].items()

    for times in (0, MAX_TIMES + 1):
        task = Preparation(bob, Prepare(id, 1, "spdz_mul", (), {}, times), peer, channel)
        with pytest.raises(ProtocolError, match=f"{times} times: the limit is {MAX_TIMES}"):
            task.authorize()


def test_a_task_has_the_shares_and_what_was_opened_of_them_as_operands(workers: dict[str, Any], shared: Any) -> None:
    bob = workers["bob"]
    (peer,) = bob.part(Channels)._channels
    ((id, channel),) = bob.part(Channels)._channels[peer].items()
    pointer = shared.child.child["bob"]

    task = Participation(bob, RunProtocol(id, 9, "spdz_mul", (pointer, pointer), {}, 77, 1, waits=False), peer, channel)
    task.find_operands()

    assert task.kind == "protocol"
    assert [entry.id for entry in task.parents] == [pointer.id_at_location] * 2
    assert task.keeps_results
