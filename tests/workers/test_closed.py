"""Attacks over ``deliver`` that once worked, or hung the worker."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import SerdeError  # noqa: E402
from syft_core.messages import Batch, Fetch, Reply, Run, Search, Store  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.serde import PEER_LIMITS, Context, Limits, frames, from_frames  # noqa: E402
from syft_core.workers.virtual import VirtualWorker  # noqa: E402

STRANGER = Peer("stranger")


@pytest.fixture
def bob(hook: Any) -> Any:
    return VirtualWorker(hook, id="bob")


def say(worker: Any, *commands: Any, compression: str = "none") -> Reply:
    sent = frames(Batch(1, commands, True), Context(worker=worker, compression=compression))
    reply = from_frames(worker.deliver(sent, STRANGER), Context(worker=worker))
    assert type(reply) is Reply
    return reply


def refusal(reply: Reply) -> str:
    assert isinstance(reply.failure.error, SerdeError)
    return str(reply.failure.error)


# --- ranges


@pytest.mark.parametrize(
    "command",
    [
        Search((range(10**12),)),  # type: ignore[arg-type]  # as a hostile peer would
        Search(range(10**12)),  # type: ignore[arg-type]
        Run("torch", "torch.Tensor.__getitem__", (torch.ones(3), range(10**12)), None, 1),
        Run("torch", "torch.tensor", (range(10**12),), None, 1),
        Run("torch", "torch.tensor", ([range(50_001), range(50_001)],), None, 1),
        Run("torch", "torch.add", (torch.ones(3),), {"other": [range(10**12)]}, 1),
    ],
)
def test_a_worker_does_not_iterate_over_a_long_range(bob: Any, command: Any) -> None:
    refusal(say(bob, command))

    assert bob.objects_count == 0


def test_a_short_range_is_an_index(bob: Any) -> None:
    assert say(bob, Run("torch", "torch.Tensor.__getitem__", (torch.arange(5), range(3)), None, 1)).failure is None
    assert say(bob, Fetch(1)).value.tolist() == [0, 1, 2]


# --- limits


def test_a_message_has_at_most_64_mebibytes(bob: Any) -> None:
    large = torch.empty(64 * 2**18 + 1)

    assert "bytes: the limit is 67108864" in refusal(say(bob, Store(1, large)))


def test_a_message_expands_to_at_most_64_mebibytes(bob: Any) -> None:
    sent = frames(Batch(1, (Store(1, torch.zeros(20 * 2**20)),), True), Context(worker=bob, compression="zlib"))
    assert sum(map(len, sent)) < 2**20

    reply = from_frames(bob.deliver(sent, STRANGER), Context(worker=bob))

    assert "the limit is 67108864" in refusal(reply)


def test_a_message_has_at_most_100_000_nodes(bob: Any) -> None:
    assert "more than 100000 nodes" in refusal(say(bob, *[Fetch(1)] * 100_000))


def test_the_part_that_becomes_python_objects_is_shorter_still(bob: Any) -> None:
    assert "bytes of structure: the limit is 8388608" in refusal(say(bob, Search(("x" * 2**23,))))


def test_the_limits_of_a_worker_can_be_set(hook: Any) -> None:
    carol = VirtualWorker(hook, id="carol", limits=Limits(max_bytes=1000, max_structure=1000))

    assert "bytes: the limit is 1000" in refusal(say(carol, Store(1, torch.ones(1000))))
    carol.limits = PEER_LIMITS
    assert say(carol, Store(1, torch.ones(1000))).failure is None


def test_messages_of_the_worker_itself_are_not_limited(hook: Any) -> None:
    carol = VirtualWorker(hook, id="carol", limits=Limits(max_nodes=10))
    for number in range(20):
        carol.register_obj(torch.ones(1), number)
        carol.object_store.tag(number, ["#many"])

    assert len(say(carol, Search(("#many",))).value) == 20


# --- ids


@pytest.mark.parametrize("id", [10**5000, -(10**5000)], ids=["positive", "negative"])
def test_an_id_that_cannot_be_printed_is_refused(bob: Any, id: int) -> None:
    bob.register_obj(torch.ones(1), 1)

    refusal(say(bob, Run("torch", "torch.Tensor.add", (torch.ones(1), 1), None, id)))
    refusal(say(bob, Fetch(id)))

    str(bob.ledger)


def test_tags_that_cannot_be_sorted_do_not_break_searches(bob: Any) -> None:
    bob.register_obj(torch.ones(1).tag("#data"), 1)
    chain = torch.ones(1).private_tensor(["me"])
    chain._syft_tags = {"#data", 1}

    refusal(say(bob, Store(2, chain)))

    assert say(bob, Search(("#data",))).failure is None
