"""A graph keeps the tensors that it saved: values that are written into one later must not reach public gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.messages import Batch, Fetch, Release, Reply, Run, Store  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.pointer_tensor import PointerTensor  # noqa: E402
from syft_core.serde import Context, frames, from_frames  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.serde import kinds  # noqa: E402

SECRET, WEIGHT, SAVED, LOSS, OTHER = range(1, 6)
STRANGER = Peer("stranger")


@pytest.fixture
def bob(hook: Any) -> Any:
    bob = VirtualWorker(hook, id="bob")
    bob.register_obj(torch.tensor([86753.0, 1.0, 4.0]).private_tensor(["owner"]), SECRET)
    return bob


def say(bob: Any, *commands: Any) -> Reply:
    reply = from_frames(bob.deliver(frames(Batch(1, commands, True)), STRANGER), Context(worker=bob))
    assert type(reply) is Reply
    return reply


def at(bob: Any, id: int, attr: str | None = None) -> PointerTensor:
    pointer = PointerTensor(bob, id, bob.hook.attributes, owner=bob.hook.local_worker, garbage_collect_data=False)
    pointer.point_to_attr = attr
    return pointer


def run(op: str, *args: Any, result: int = 100) -> Run:
    return Run("torch", f"torch.{op}", args, None, result)


def alias_data(bob: Any) -> tuple[Any, ...]:
    alias = run("Tensor.data.__get__", at(bob, SAVED), result=OTHER)
    return alias, Release((SAVED,)), run("Tensor.copy_", at(bob, OTHER), at(bob, SECRET))


def alias_own_data(bob: Any) -> tuple[Any, ...]:
    alias, *write = alias_data(bob)
    return alias, run("Tensor.data.__set__", at(bob, SAVED), at(bob, OTHER)), *write


def update_statistics(bob: Any) -> tuple[Any, ...]:
    batch = run("Tensor.expand", at(bob, SECRET), 2, 3, result=OTHER)
    variance = Store(OTHER + 1, torch.ones(3))
    norm = run("nn.functional.batch_norm", at(bob, OTHER), at(bob, SAVED), at(bob, OTHER + 1), None, None, True, 1.0)
    return batch, variance, norm


WRITES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "in place": lambda bob: (run("Tensor.copy_", at(bob, SAVED), at(bob, SECRET)),),
    "data set": lambda bob: (run("Tensor.data.__set__", at(bob, SAVED), at(bob, SECRET)),),
    "its data": alias_data,
    "its data, set to itself": alias_own_data,
    "running statistics": update_statistics,
}


@pytest.mark.parametrize("way", WRITES)
def test_private_values_written_into_a_saved_tensor_do_not_reach_a_gradient(bob: Any, way: str) -> None:
    say(bob, Store(WEIGHT, torch.ones(3, requires_grad=True)), Store(SAVED, torch.ones(3)))
    say(bob, run("Tensor.mul", at(bob, WEIGHT), at(bob, SAVED), result=10))
    say(bob, run("Tensor.sum", at(bob, 10), result=LOSS))
    for command in WRITES[way](bob):
        assert say(bob, command).failure is None

    failure = say(bob, run("Tensor.backward", at(bob, LOSS))).failure

    assert "modified by an inplace operation" in str(failure.error)
    assert say(bob, Fetch(WEIGHT, "grad", True)).value is None


def test_private_values_written_into_a_saved_gradient_do_not_reach_another(bob: Any) -> None:
    say(bob, Store(SAVED, torch.ones(3, requires_grad=True)), Store(WEIGHT, torch.ones(3, requires_grad=True)))
    say(bob, run("Tensor.sum", at(bob, SAVED), result=10))
    say(bob, run("Tensor.backward", at(bob, 10)))
    say(bob, run("Tensor.mul", at(bob, WEIGHT), at(bob, SAVED, "grad"), result=11))
    say(bob, run("Tensor.sum", at(bob, 11), result=LOSS))
    say(bob, Store(OTHER, torch.ones(3)))
    norm = run("nn.functional.batch_norm", at(bob, 12), at(bob, SAVED, "grad"), at(bob, OTHER), None, None, True, 1.0)
    say(bob, run("Tensor.expand", at(bob, SECRET), 2, 3, result=12))
    assert say(bob, norm).failure is None

    failure = say(bob, run("Tensor.backward", at(bob, LOSS))).failure

    assert "modified by an inplace operation" in str(failure.error)


def test_setting_data_shares_no_memory(bob: Any) -> None:
    say(bob, Store(SAVED, torch.zeros(3)), Store(OTHER, torch.zeros(3)))
    say(bob, run("Tensor.data.__set__", at(bob, SAVED), at(bob, OTHER)))

    assert say(bob, run("Tensor.copy_", at(bob, OTHER), at(bob, SECRET))).failure is None

    assert say(bob, Fetch(SAVED, None, True)).value.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["created", "received"])
def test_a_sparse_tensor_shares_no_memory_with_the_tensors_it_was_made_of(
    bob: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, places = torch.ones(3), torch.tensor([[0, 1, 2], [0, 1, 2]])
    say(bob, Store(WEIGHT, torch.ones(3, 1, requires_grad=True)))
    if way == "created":
        say(bob, Store(SAVED, values))
        say(bob, run("sparse_coo_tensor", places, at(bob, SAVED), (3, 3), result=OTHER))
    else:  # The message refers to the values twice.
        sparse = torch.sparse_coo_tensor(places, values, (3, 3))
        monkeypatch.setattr(kinds, "simplify_coo", lambda tensor: (tensor.shape, False, places, values))
        say(bob, Store(SAVED, values), Store(OTHER, sparse))
    say(bob, run("Tensor.matmul", at(bob, OTHER), at(bob, WEIGHT), result=10))
    say(bob, run("Tensor.sum", at(bob, 10), result=LOSS))
    assert say(bob, run("Tensor.copy_", at(bob, SAVED), at(bob, SECRET))).failure is None

    assert say(bob, run("Tensor.backward", at(bob, LOSS))).failure is None

    assert say(bob, Fetch(WEIGHT, "grad", True)).value.flatten().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.filterwarnings("ignore")
def test_scales_of_a_received_quantized_tensor_are_its_own(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scales, zeros = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
    quantized = torch.quantize_per_channel(torch.ones(3), scales, zeros, 0, torch.qint8)
    number, integers, _, _, axis = kinds.simplify_quantized(quantized)
    monkeypatch.setattr(kinds, "simplify_quantized", lambda _tensor: (number, integers, scales, zeros, axis))
    say(bob, Store(SAVED, scales), Store(OTHER, quantized))

    assert say(bob, run("Tensor.copy_", at(bob, SAVED), at(bob, SECRET))).failure is None

    assert bob.get_obj(OTHER).q_per_channel_scales().tolist() == [1.0, 1.0, 1.0]


def test_a_model_still_learns_from_private_data_with_running_statistics(bob: Any) -> None:
    say(bob, Store(SAVED, torch.zeros(3)), Store(OTHER, torch.ones(3)))
    say(bob, Store(WEIGHT, torch.ones(3, requires_grad=True)))
    say(bob, run("Tensor.expand", at(bob, SECRET), 2, 3, result=10))
    args = at(bob, 10), at(bob, SAVED), at(bob, OTHER), at(bob, WEIGHT), None, True
    for first in (20, 30):  # Both passes are pending when the backward passes run.
        assert say(bob, run("nn.functional.batch_norm", *args, result=first)).failure is None
        say(bob, run("Tensor.sum", at(bob, first), result=first + 1))

    for first in (20, 30):
        assert say(bob, run("Tensor.backward", at(bob, first + 1))).failure is None
