"""The interpreter does what the recorded function does, whatever runs the steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import syft_core as sy
from syft_core.plans.errors import PlanError
from syft_core.plans.interpreter import apply_modes, compute, fill, replay, run_steps
from syft_core.plans.program import ITEM, Slot, Step

torch = pytest.importorskip("torch")

from .programs import RUN, program  # noqa: E402  # torch may be missing


def record(function: Any, *example: Any) -> Any:
    return sy.Plan("recorded", function, state=()).build(*example).program


FUNCTIONS: dict[str, Any] = {
    "one operation": lambda x: x.abs(),
    "several results": lambda x: x.sort()[1] + x.max(dim=0)[1],
    "a container": lambda x: {"sum": x.sum(), "parts": [x[:1], x * 2]},
    "a number of its own": lambda x: x * x.shape[0] + 1.5,
    "in place": lambda x: (x * 1).add_(2).mul_(x),
    "a constant": lambda x: x + torch.tensor([1.0, 2.0]),
    "an argument as it is": lambda x: x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_replay_gives_what_the_function_gives(hook: Any, name: str) -> None:
    x = torch.tensor([-1.0, 2.0])
    expected = FUNCTIONS[name](x.clone())

    found = replay(record(FUNCTIONS[name], x), [x.clone()])

    torch.testing.assert_close(found, expected)


def test_the_caller_runs_each_step(hook: Any) -> None:
    names = []

    def run(operation: Any, operands: Any) -> Any:
        names.append(operation.step.op)
        return compute(operation, operands)

    found = replay(record(lambda x: (x.abs() + 1).sum(), torch.ones(2)), [torch.tensor([-3.0, 1.0])], run)

    assert float(found) == 6.0
    assert [name.rpartition(".")[2] for name in names] == ["abs", "__add__", "sum"]


def test_steps_run_in_the_modes_in_which_they_were_recorded(hook: Any) -> None:
    def function(x: Any) -> Any:
        with torch.no_grad():
            y = x * 2
        return y, x * 3

    without, within = replay(record(function, torch.ones(2)), [torch.ones(2, requires_grad=True)])

    assert (without.requires_grad, within.requires_grad) == (False, True)


def test_gradients_and_numbers_in_tensors_are_read(hook: Any) -> None:
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    (x * x).sum().backward()
    read = replace(RUN, args=(Slot(0, "grad"),))
    total = Step("torch", "torch.Tensor.sum", (Slot(1),), {}, 1)
    item = Step("", ITEM, (Slot(2),), {}, 1)
    scale = Step("torch", "torch.Tensor.mul", (Slot(1), Slot(3)), {}, 1)

    found = replay(program(read, total, item, scale, answer=Slot(4)), [x])

    assert found.tolist() == [20.0, 80.0]


def test_slots_may_hold_anything(hook: Any) -> None:
    """As a worker runs a plan: the slots hold its entries, and what is not needed any more is dropped."""

    class Entry:
        def __init__(self, value: Any) -> None:
            self.value = value

    dropped: list[Any] = []

    def run(operation: Any, entries: Any) -> Any:
        args, kwargs = fill(operation, [entry.value for entry in entries])
        result = operation.run(*args, **kwargs)
        return tuple(map(Entry, result)) if isinstance(result, tuple) else Entry(result)

    made = record(lambda x: x.abs().sort()[0] * 2, torch.ones(2))
    slots: list[Any] = [Entry(torch.tensor([-2.0, 1.0])), *[None] * made.made_by_steps[id(made.routine)]]
    run_steps(made, made.routine, slots, run, apply_modes, lambda kind: kind is Entry, dropped.append)

    assert slots[made.routine.answer.number].value.tolist() == [2.0, 4.0]
    assert type(slots[0]) is Entry
    assert [entry.value.tolist() for entry in dropped] == [[2.0, 1.0], [1.0, 2.0]]  # what `abs` and `sort` returned
    assert slots[1] is slots[2] is None


def test_a_step_that_returns_another_number_of_tensors_is_refused(hook: Any) -> None:
    wrong = program(Step("torch", "torch.Tensor.sort", (Slot(0),), {}, 1), answer=Slot(1))

    with pytest.raises(PlanError, match="a step returned 2 tensors instead of 1; record it again"):
        replay(wrong, [torch.ones(2)])
