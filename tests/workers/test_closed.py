"""Attacks over ``deliver`` that once worked, or hung the worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import MixedLayersError, SerdeError, TooManyHopsError  # noqa: E402
from syft_core.messages import Batch, Fetch, Lease, Reply, Run, Search, Store, Tag  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.pointer_tensor import PointerTensor  # noqa: E402
from syft_core.serde import PEER_LIMITS, Context, Limits, frames, from_frames  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402

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


def test_a_message_has_at_most_a_gibibyte_or_what_its_worker_allows(bob: Any) -> None:
    assert bob.limits.max_bytes == 2**30
    bob.limits = replace(bob.limits, max_bytes=2**20)

    assert "bytes: the limit is 1048576" in refusal(say(bob, Store(1, torch.empty(2**18 + 1))))


def test_a_message_expands_to_at_most_64_mebibytes(bob: Any) -> None:
    sent = frames(Batch(1, (Store(1, torch.zeros(20 * 2**20)),), True), Context(worker=bob, compression="zlib"))
    assert sum(map(len, sent)) < 2**20

    reply = from_frames(bob.deliver(sent, STRANGER), Context(worker=bob))

    assert "the limit is 67108864" in refusal(reply)


def test_a_message_has_at_most_100_000_nodes(bob: Any) -> None:
    assert "more than 100000 parts" in refusal(say(bob, *[Fetch(1)] * 100_000))


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


# --- work that grows faster than the message


def test_skipped_commands_cost_no_more_than_their_bytes(bob: Any) -> None:
    skipped = [Run("torch", "torch.add", (), None, place << 17, None, 1 << 16) for place in range(5000)]

    reply = say(bob, Fetch(1), *skipped)

    assert "cannot find object 1 " in str(reply.failure.error)
    assert len(bob.sessions[STRANGER.id].poisoned) <= 4096


def test_leases_for_many_holders_take_linear_time(bob: Any) -> None:
    assert say(bob, Store(1, torch.ones(1)), *[Lease((1,), f"holder {n}") for n in range(20_000)]).failure is None

    assert bob.object_store.entry(1).pointers == 20_001


def test_an_object_has_at_most_64_tags(bob: Any) -> None:
    tags = tuple(f"#{n}" for n in range(64))
    assert say(bob, Store(1, torch.ones(1), tags=tags)).failure is None

    assert "the limit is 64 tags" in str(say(bob, Tag(1, ("#more",))).failure.error)
    assert "the limit is 64 tags" in str(say(bob, Store(2, torch.ones(1), tags=(*tags, "#more"))).failure.error)
    assert 2 not in bob.object_store


def test_a_query_has_at_most_32_parts(bob: Any) -> None:
    say(bob, Store(1, torch.ones(1), description="x" * 100))

    assert len(say(bob, Search(tuple("x" * n for n in range(1, 33)))).value) == 1
    error = say(bob, Search(tuple("x" * n for n in range(1, 34)))).failure.error
    assert str(error) == "cannot search for 33 words at once: the limit is 32; use fewer"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            ("Tensor.split", 1),
            "cannot keep 70000 results of 'torch.Tensor.split': the limit is 65536; make fewer parts",
        ),
        (("Tensor.tensor_split", 2**40), "cannot run 'tensor_split' with an integer above 65536"),
    ],
)
def test_an_operation_has_at_most_65536_results(bob: Any, command: tuple[str, int], text: str) -> None:
    op, size = command

    error = say(bob, Run("torch", f"torch.{op}", (torch.ones(70_000), size), None, 1)).failure.error

    assert text in str(error)
    assert bob.objects_count == 0


# --- arrays of Python objects, which compute with ints of any length


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("ndarray.astype", ("O",), {}),
        ("full_like", (3,), {"dtype": "object"}),
        ("multiply", (1,), {"dtype": "O"}),
        ("multiply", (1,), {"signature": "OO->O"}),
        ("multiply.reduce", (0, "O"), {}),
        ("multiply", (3**90_000,), {}),
        ("add", ([3**90_000],), {}),
    ],
)
def test_a_worker_does_not_compute_with_python_objects(
    numpy_hook: Any, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    import numpy as np  # noqa: PLC0415  # may be missing

    worker = VirtualWorker(numpy_hook, id="bob")

    reply = say(worker, Run("numpy", f"numpy.{op}", (np.array([2, 3]), *args), kwargs, 1))

    assert "Python objects" in str(reply.failure.error)
    assert worker.objects_count == 0


@pytest.mark.parametrize("values", [[None], [{}], ["a", None], [3**90_000]])
def test_a_worker_creates_no_array_of_python_objects(numpy_hook: Any, values: Any) -> None:
    worker = VirtualWorker(numpy_hook, id="bob")

    assert "Python objects" in str(say(worker, Run("numpy", "numpy.array", (values,), None, 1)).failure.error)
    assert worker.objects_count == 0


def test_the_name_of_a_dtype_can_be_compared(numpy_hook: Any) -> None:
    import numpy as np  # noqa: PLC0415  # may be missing

    worker = VirtualWorker(numpy_hook, id="bob")

    assert say(worker, Run("numpy", "numpy.equal", (np.array(["O", "N"]), "O"), None, 1)).failure is None
    assert say(worker, Fetch(1)).value.tolist() == [True, False]


# --- memory that two frameworks share


@pytest.mark.parametrize("way", ["stored", "in the message"])
@pytest.mark.parametrize("op", ["reshape", "ravel", "atleast_1d", "expand_dims"])
def test_an_operation_takes_no_tensor_of_another_framework(hook: Any, numpy_hook: Any, op: str, way: str) -> None:
    worker, tensor, args = VirtualWorker(hook, id="bob"), torch.zeros(3), {"reshape": (3,), "expand_dims": (0,)}
    place: Any = tensor
    if way == "stored":
        place = PointerTensor(worker, 1, hook.attributes, owner=hook.local_worker, garbage_collect_data=False)
    command = Run("numpy", f"numpy.{op}", (place, *args.get(op, ())), None, 2)

    reply = say(worker, Store(1, tensor), command)  # In the message, both are the same tensor.

    assert isinstance(reply.failure.error, MixedLayersError)
    assert "it mixes a numpy wrapper with a torch wrapper" in str(reply.failure.error)
    assert 2 not in worker.object_store


def test_an_argument_contains_no_pointer_of_the_worker_to_itself(hook: Any) -> None:
    worker = VirtualWorker(hook, id="bob")
    say(worker, Store(1, torch.zeros(3)))
    pointer = PointerTensor(worker, 1, hook.attributes, owner=hook.local_worker, garbage_collect_data=False)
    layer = LoggingTensor()
    layer.child = pointer

    error = say(worker, Run("torch", "torch.Tensor.add", (hook.attributes.wrapper(layer), 1), None, 2)).failure.error

    assert isinstance(error, TooManyHopsError)
