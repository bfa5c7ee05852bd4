"""torch and numpy hooked together: one local worker, whichever hook came first and whichever goes first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import syft_core as sy  # noqa: E402  # the frameworks may be missing
from syft_core.exceptions import GetNotPermittedError, LocalWorkerConflictError, ValueRefusedError  # noqa: E402  # the same

from .conftest import worker  # noqa: E402  # the same


class Hooks:
    """Both hooks, with a worker that was created between them."""

    def __init__(self, order: str, serialize: bool, on_exit: ExitStack) -> None:
        kinds = {"torch": (sy.TorchHook, torch), "numpy": (sy.NumpyHook, np)}
        first, second = order.split(" then ")
        made = {first: kinds[first][0](kinds[first][1])}
        on_exit.callback(made[first].unhook)
        self.me = made[first].local_worker
        self.bob = worker(made[first], "bob", serialize)
        made[second] = kinds[second][0](kinds[second][1])
        on_exit.callback(made[second].unhook)
        self.torch, self.numpy = made["torch"], made["numpy"]


@pytest.fixture(params=["torch then numpy", "numpy then torch"])
def hooks(request: pytest.FixtureRequest, serialize: bool) -> Iterator[Hooks]:
    with ExitStack() as on_exit:
        yield Hooks(request.param, serialize, on_exit)


def test_both_hooks_have_the_same_local_worker(hooks: Hooks) -> None:
    assert hooks.torch.local_worker is hooks.numpy.local_worker is hooks.me is sy.local_worker


def test_a_worker_is_found_by_name_from_both_frameworks(hooks: Hooks) -> None:
    p, q = torch.ones(2).send("bob"), hooks.numpy.ones(2).send("bob")

    assert p.location is q.location is hooks.bob
    assert p.owner is q.owner is hooks.me
    assert (p + 1).get().tolist() == (q + 1).get().tolist() == [2.0, 2.0]


def test_a_worker_created_with_either_hook_is_the_same(hooks: Hooks) -> None:
    assert sy.VirtualWorker(hooks.torch, id="bob") is sy.VirtualWorker(hooks.numpy, id="bob") is hooks.bob


def test_tensors_of_both_frameworks_live_on_one_worker(hooks: Hooks) -> None:
    p, q = torch.arange(3).tag("#x").send(hooks.bob), hooks.numpy.arange(3).tag("#x").send(hooks.bob)

    found = hooks.bob.search("#x")

    assert hooks.bob.tensors_count == 2
    assert {item.id_at_location for item in found} == {p.id_at_location, q.id_at_location}
    assert torch.sum(p).get().item() == np.sum(q).get().item() == 3


def test_the_user_of_the_local_worker_holds_for_both_frameworks(hooks: Hooks) -> None:
    secrets = [torch.ones(2), hooks.numpy.ones(2)]
    hooks.bob.load_data([secret.private_tensor(["alice"]).tag("#secret") for secret in secrets])
    found = hooks.bob.search("#secret")
    for pointer in found:
        with pytest.raises(GetNotPermittedError, match="me'"):
            pointer.copy().get()

    hooks.torch.local_worker.user = "alice"

    for pointer in found:
        pointer.get()
    assert {line.user for line in hooks.bob.ledger} == {"alice"}


def test_gradients_find_the_tensor_that_was_sent(hooks: Hooks) -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    p = w.send("bob", requires_grad=True)

    (p * 3).sum().backward()

    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]


def test_a_model_trains_on_a_worker_that_is_named(hooks: Hooks) -> None:
    model, data = torch.nn.Linear(2, 1).send("bob"), torch.ones(3, 2).send("bob")
    before = model.weight.copy().get().tolist()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    model(data).sum().backward()
    optimizer.step()

    assert model.owner is hooks.me
    assert model.get().weight.tolist() != before


def test_consent_to_revealing_holds_for_both_frameworks(hooks: Hooks) -> None:
    p, q = torch.tensor([2.0]).send("bob"), hooks.numpy.array([3.0]).send("bob")

    with sy.revealing("a test"):
        assert (p.item(), q.item()) == (2.0, 3.0)

    for pointer in (p, q):
        with pytest.raises(ValueRefusedError):
            pointer.item()


def test_the_consent_of_the_user_is_not_that_of_other_workers(hooks: Hooks) -> None:
    alice = worker(hooks.torch, "alice", serialize=False)
    pointer = hooks.bob.send(torch.ones(1), alice)

    with sy.revealing("a test"), pytest.raises(ValueRefusedError):
        pointer.item()


@pytest.mark.parametrize("stays", ["torch", "numpy"])
def test_the_other_framework_works_on_after_one_is_unhooked(hooks: Hooks, stays: str) -> None:
    p, q = torch.ones(2).send("bob"), hooks.numpy.ones(2).send("bob")
    remaining, leaving = (hooks.torch, hooks.numpy) if stays == "torch" else (hooks.numpy, hooks.torch)
    pointer = p if stays == "torch" else q

    leaving.unhook()

    assert sy.local_worker is hooks.me
    assert hooks.me.hook is remaining
    assert (pointer + 1).get().tolist() == [2.0, 2.0]
    created = torch.zeros(1) if stays == "torch" else hooks.numpy.zeros(1)
    assert created.send("bob").location is hooks.bob
    assert sy.VirtualWorker(remaining, id="bob") is hooks.bob
    remaining.unhook()
    assert sy.local_worker is None


def test_a_framework_that_comes_back_finds_the_workers_again(hooks: Hooks) -> None:
    p = torch.ones(2).send("bob")
    hooks.torch.unhook()

    with sy.TorchHook(torch):
        assert (p + torch.ones(2).send("bob")).get().tolist() == [2.0, 2.0]


def test_a_second_local_worker_is_refused_and_torch_stays_as_it_is() -> None:
    before = dict(vars(torch.Tensor))
    with sy.NumpyHook(np) as hook:
        other = sy.VirtualWorker(id="me")

        with pytest.raises(LocalWorkerConflictError, match="unhook numpy first"):
            sy.TorchHook(torch, local_worker=other)

        assert dict(vars(torch.Tensor)) == before
        assert sy.local_worker is hook.local_worker
        with sy.TorchHook(torch, local_worker=hook.local_worker) as accepted:
            assert accepted.local_worker is hook.local_worker
