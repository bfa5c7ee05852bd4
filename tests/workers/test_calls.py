"""What an operation on a pointer takes, counted in Python calls, files and messages: none depends on the machine."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import pytest

from syft_core.plans.errors import PlanError
from syft_core.plugins.manager import load_backend
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.trace import trace
from syft_worker.quotas import QuotaGuard
from tests.network.served import serve

torch = pytest.importorskip("torch")

CALLS, FILES = 25, 12
GUARD_CALLS = 13
PRIVATE_TIMES = 3


def count(run: Callable[[], object]) -> dict[tuple[str, str], int]:
    """Return how often a warm call runs each function of the library, by file and name."""
    for _ in range(20):
        run()
    profile = cProfile.Profile()
    profile.runcall(run)
    found = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]  # not in its stub
    return {(file, name): calls for (file, _, name), (calls, *_) in found if "syft_" in file and "/tests/" not in file}


@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_an_addition_of_pointers_takes_few_calls_in_few_files(name: str) -> None:
    framework = pytest.importorskip(name)
    with load_backend(name)(framework) as hook:
        bob = VirtualWorker(hook, id="bob", serialize=False)
        create = hook.arange if name == "numpy" else framework.arange
        x, y = create(10).send(bob), create(10).send(bob)

        found = count(lambda: x + y)

    assert sum(found.values()) <= CALLS, found
    assert len({file for file, _ in found}) <= FILES, found


def test_a_guard_adds_few_calls_to_an_addition(hook: Any) -> None:
    free, guarded = (VirtualWorker(hook, id=name, serialize=False) for name in ("free", "guarded"))
    guarded.guard = QuotaGuard(guarded, {})
    x, y = torch.rand(10).send(free), torch.rand(10).send(guarded)

    without, with_guard = count(lambda: x + x), count(lambda: y + y)

    assert sum(with_guard.values()) <= sum(without.values()) + GUARD_CALLS, with_guard


def test_private_operands_multiply_the_calls_of_an_addition_by_three_at_most(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=False)
    x = torch.rand(10).send(bob)
    hook.local_worker.user = "zoe"
    y = torch.rand(10).private_tensor(["zoe"]).send(bob)
    hook.local_worker.user = "ann"

    plain, private = count(lambda: x + x), count(lambda: y + y)

    assert sum(private.values()) <= PRIVATE_TIMES * sum(plain.values()), private


def test_a_training_step_by_wire_takes_at_most_900_calls(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=True)

    assert sum(count(make_step(bob)).values()) <= 900


@pytest.mark.parametrize("with_plan", [False, True])
def test_a_trace_does_not_change_what_runs(hook: Any, serialize: bool, with_plan: bool) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=serialize)
    step = make_plan(hook, bob) if with_plan else make_step(bob)
    step()
    step()
    before = bob.stats.operations
    step()
    alone = bob.stats.operations - before

    with trace():
        step()

    assert bob.stats.operations - before == 2 * alone


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_the_arguments_of_a_recurrent_layer_are_checked_once_per_signature(hook: Any, layer: str) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=False)
    model, data = getattr(torch.nn, layer)(4, 3).send(bob), torch.rand(2, 4).send(bob)
    longer = torch.rand(5, 4).send(bob)
    model(data)

    again = count_once(lambda: model(data))
    other = count_once(lambda: model(longer))

    assert "_run_on_meta" not in {name for _, name in again}
    assert "_run_on_meta" in {name for _, name in other}


def test_weights_of_a_wrong_shape_are_refused_again_after_a_call_that_worked(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=False)
    model, data = torch.nn.LSTM(4, 3), torch.rand(2, 4)
    model.send(bob)(data.send(bob))
    model.get()
    model.weight_ih_l0 = torch.nn.Parameter(torch.rand(12, 2))
    model.send(bob)

    for _ in range(2):
        with pytest.raises(RuntimeError):
            model(data.send(bob))


def test_a_plan_reads_settings_again_only_if_something_was_replaced(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=False)
    model = torch.nn.Linear(3, 2)
    plan = hook_plan(model, bob)
    data = torch.rand(4, 3).send(bob)
    plan(data)

    same = count_once(lambda: plan(data))
    model.note = "another object"

    assert "find_settings" not in {name for _, name in same}
    with pytest.raises(PlanError, match="note"):
        plan(data)


def test_found_objects_are_described_once(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=True)
    hook.local_worker.user = "zoe"
    torch.rand(3, 2).private_tensor(["zoe"]).tag("#data").send(bob).publish()
    hook.local_worker.user = "ann"
    (found,) = bob.search("#data")

    with trace() as events:
        for _ in range(3):
            result = found + 1

    assert [event.kind for event in events] == ["Describe", "Run", "Run", "Run"]
    assert result.shape == (3, 2)


def test_a_training_step_on_the_network_runs_the_same_operations(hook: Any) -> None:
    near = VirtualWorker(hook, id="near", serialize=True)
    with serve(hook, "far") as served:
        far = served.connect()
        counts = []
        for address, worker in ((near, near), (far, served.worker)):
            step = make_step(address)
            step()
            step()
            address.search("#nothing")
            before = worker.stats.operations
            for _ in range(5):
                step()
            address.search("#nothing")
            counts.append(worker.stats.operations - before)

    assert counts[0] == counts[1], "buffered commands must not keep gradients that the program has dropped"


def test_a_transposed_leaf_gets_its_gradient_by_wire(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=True)
    leaf = torch.rand(3, 2).t().requires_grad_().send(bob)

    (leaf * 2).sum().backward()

    assert leaf.grad.get().tolist() == [[2.0, 2.0, 2.0]] * 2


def count_once(run: Callable[[], object]) -> dict[tuple[str, str], int]:
    profile = cProfile.Profile()
    profile.runcall(run)
    found = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]  # not in its stub
    return {(file, name): calls for (file, _, name), (calls, *_) in found}


def make_step(worker: Any) -> Callable[[], None]:
    model = torch.nn.Linear(3, 2).send(worker)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.rand(4, 3).send(worker), torch.rand(4, 2).send(worker)

    def step() -> None:
        optimizer.zero_grad()
        ((model(data) - target) ** 2).mean().backward()
        optimizer.step()

    return step


def make_plan(hook: Any, worker: Any) -> Callable[[], object]:
    plan, data = hook_plan(torch.nn.Linear(3, 2), worker), torch.rand(4, 3).send(worker)
    return lambda: plan(data)


def hook_plan(model: Any, worker: Any) -> Any:
    from syft_core.plans.plan import Plan  # noqa: PLC0415  # needs a hook

    return Plan("forward", model, args_shape=[(-1, 3)]).build().send(worker)
