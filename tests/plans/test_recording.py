"""What a plan records, what it prints, and what it refuses to record."""

from __future__ import annotations

import gc
import math
import random
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import syft_core as sy
from syft_core.plans.errors import PlanError

torch = pytest.importorskip("torch")

X = torch.arange(6.0).reshape(3, 2)


def refusal(function: Any, *args: Any) -> str:
    with pytest.raises(PlanError) as caught:
        sy.Plan(None, function).build(*args)
    return str(caught.value)


def here(function: Any, offset: int) -> str:
    """Return the place of a line of a function as errors name it."""
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def test_the_code_of_a_plan_has_one_line_per_operation(hook: Any) -> None:
    @sy.func2plan(args_shape=[(2,)])
    def double(x: Any) -> Any:
        return (x * 2).abs()

    assert double.is_built
    assert str(double) == double.code
    assert double.code.splitlines() == [
        "def double(x0):",
        "    # modes: True False torch.float32 None",
        "    v0 = torch.Tensor.__mul__(x0, 2)",
        "    v1 = torch.Tensor.abs(v0)",
        "    return v1",
    ]
    assert double.actions == ["v0 = torch.Tensor.__mul__(x0, 2)", "v1 = torch.Tensor.abs(v0)"]


def test_recording_changes_neither_the_model_nor_its_optimizer_nor_the_random_numbers(hook: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    optimizer = torch.optim.Adam(model.parameters())
    before = [parameter.detach().clone() for parameter in model.parameters()]
    parameters = list(model.parameters())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    torch.manual_seed(0)
    sy.Plan("step", step).build(X)

    assert torch.rand(1).item() == torch.rand(1, generator=torch.Generator().manual_seed(0)).item()
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in parameters)
    assert not optimizer.state


@pytest.mark.parametrize("read", ["item", "bool", "float", "tolist"])
def test_reading_a_value_is_refused_with_its_line(hook: Any, read: str) -> None:
    reads = {"item": lambda t: t.item(), "bool": bool, "float": float, "tolist": lambda t: t.tolist()}

    def program(x: Any) -> Any:
        reads[read](x.sum())
        return x

    line = here(reads[read], 0) if read in ("item", "tolist") else here(program, 1)
    error = refusal(program, X)

    assert line in error
    assert "reads a value" in error
    assert "return the tensor instead" in error


def test_a_branch_on_values_is_refused_with_its_line(hook: Any) -> None:
    def program(x: Any) -> Any:
        if x.sum() > 3:
            return x
        return x * 2

    assert f"{here(program, 1)} reads a value" in refusal(program, X)


def test_a_number_that_changes_from_run_to_run_is_refused_with_its_line(hook: Any) -> None:
    calls = [0]

    def counts(x: Any) -> Any:
        calls[0] += 1
        return x * calls[0]

    def draws(x: Any) -> Any:
        return x + torch.tensor([random.random(), 1.0])

    assert f"{here(counts, 2)} calls 'mul' with other arguments in each run" in refusal(counts, X)
    assert f"{here(draws, 0)} draws random numbers from Python's `random`" in refusal(draws, X)


def test_steps_that_differ_from_run_to_run_are_refused_with_their_line(hook: Any) -> None:
    calls = [0]

    def grows(x: Any) -> Any:
        calls[0] += 1
        for _ in range(calls[0]):
            x = x + 1
        return x

    assert "calls 'add' in some runs only; a plan repeats what it recorded" in refusal(grows, X)


@pytest.mark.parametrize("function", [lambda x: x[x > 2], torch.nonzero, lambda x: torch.masked_select(x, x > 2)])
def test_a_shape_that_depends_on_values_is_refused(hook: Any, function: Any) -> None:
    assert "whose result has a shape that depends on values" in refusal(lambda x: function(x).sum(), X)


def test_a_learning_rate_scheduler_is_refused(hook: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()
        scheduler.step()

    assert f"{here(step, 2)} calls 'foreach_add' with other arguments in each run" in refusal(step, X)
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_an_optimizer_that_decides_by_its_step_is_refused(hook: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.RAdam(model.parameters())

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()

    error = refusal(step, X)

    assert f"cannot record the plan 'step': {here(step, 2)} reads a number that changes from call to call" in error
    assert "compute with the number only" in error


def test_changing_a_tensor_that_the_plan_does_not_know_is_refused(hook: Any) -> None:
    hidden = ModuleType("installed")  # The variables of installed modules are not searched.
    hidden.total = torch.zeros(2)  # type: ignore[attr-defined]  # as programs do

    def program(x: Any) -> Any:
        hidden.total.add_(1)  # type: ignore[attr-defined]  # the same
        return x

    error = refusal(program, X)

    assert f"{here(program, 1)} calls 'add_' on a tensor that is not part of the plan" in error
    assert "pass it as an argument or in `state`" in error
    assert sy.Plan("known", program, state=[hidden.total]).build(X).is_built


def test_assigning_to_a_buffer_is_refused_and_leaves_the_model_as_it_was(hook: Any) -> None:
    class Smooth(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("average", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.average = 0.9 * self.average + 0.1 * x
            return x - self.average

    model = Smooth()
    average = model.average

    with pytest.raises(
        PlanError, match=r"assigns a new tensor to the buffer 'average' of a Smooth; .*`self\.average\.copy_"
    ):
        sy.Plan("smooth", lambda x: model(x)).build(torch.ones(2))
    assert model.average is average
    assert average.tolist() == [0.0, 0.0]


def test_fetching_is_refused(hook: Any) -> None:
    assert "a plan contains only operations; fetch and move things outside" in refusal(lambda x: x.get(), X)


def test_a_part_of_the_state_is_not_returned(hook: Any) -> None:
    weight = torch.ones(2)

    assert "returns a part of its state; return a copy" in refusal(lambda x: (x * weight, weight), X)


def test_other_arguments_than_tensors_and_floats_are_refused(hook: Any) -> None:
    assert "has an argument of type int; pass tensors and floats" in refusal(lambda x, n: x * n, X, 2)


def test_a_plan_that_is_not_recorded_cannot_be_sent(hook: Any, bob: Any) -> None:
    with pytest.raises(PlanError, match="it is not recorded yet; call `plan.build"):
        sy.Plan("idle", lambda x: x).send(bob)


def test_a_float_argument_may_differ_in_each_call(hook: Any, bob: Any) -> None:
    plan = sy.Plan("scale", lambda x, rate: x - rate * 2 * x).build(X, 0.1).send(bob)

    assert torch.equal(plan(X.send(bob), 0.3).get(), X - 0.3 * 2 * X)
    assert torch.equal(plan(X.send(bob), 2).get(), X - 2.0 * 2 * X)


def test_a_float_argument_that_becomes_a_constant_is_refused(hook: Any) -> None:
    assert "reads a number that changes from call to call, with '__float__'" in refusal(
        lambda x, rate: x * math.sqrt(rate), X, 0.1
    )


def test_a_function_of_any_length_computes_with_the_length(hook: Any, bob: Any) -> None:
    @sy.func2plan(args_shape=[(-1, 2)])
    def mean(x: Any) -> Any:
        return x.sum(0) / x.shape[0]

    assert torch.equal(mean.send(bob)(torch.ones(7, 2).send(bob)).get(), torch.ones(2))
    with pytest.raises(PlanError, match="does something else for each length of its arguments; a plan for any length"):

        @sy.func2plan(args_shape=[(-1, 2)])
        def by_length(x: Any) -> Any:
            return x.sum(0) / len(x)


def test_arguments_of_another_shape_are_refused(hook: Any, bob: Any) -> None:
    plan = sy.Plan("thirds", lambda x: x / x.shape[0]).build(X).send(bob)

    with pytest.raises(
        PlanError, match=r"recorded for torch.float32\[3, 2\], but was called with torch.float32\[5, 2\]"
    ):
        plan(torch.ones(5, 2).send(bob))
    with pytest.raises(PlanError, match="was called with nothing"):
        plan()


def test_recording_on_pointers_reads_no_values(hook: Any, bob: Any) -> None:
    x = torch.full((3, 2), 5.0).send(bob)
    fetched = len(bob.ledger)

    plan = sy.Plan("double", lambda x: x * 2).build(x)

    assert len(bob.ledger) == fetched
    assert torch.equal(plan.send(bob)(x).get(), torch.full((3, 2), 10.0))


def test_tensors_that_the_function_refers_to_are_sent_along(hook: Any, bob: Any) -> None:
    mask = torch.tensor([1.0, 0.0])
    plan = sy.Plan("mask", lambda x: x * mask + torch.tensor([5.0, 6.0])).build(X)

    assert torch.equal(plan.send(bob)(X.send(bob)).get(), X * mask + torch.tensor([5.0, 6.0]))
    assert len(plan.parameters()) == 1


def test_a_constant_is_new_in_each_call(hook: Any, bob: Any) -> None:
    def count(x: Any) -> Any:
        total = torch.tensor([0.0, 0.0])
        total += x.sum(0)
        return total

    plan = sy.Plan("count", count).build(X).send(bob)
    x = X.send(bob)

    assert torch.equal(plan(x).get(), plan(x).get())


def test_a_class_with_layers_and_a_function_with_state_are_plans(hook: Any, bob: Any) -> None:
    class Net(sy.Plan):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.second(torch.relu(self.first(x)))

    @sy.func2plan(args_shape=[(1,)], state=(torch.tensor([2.0]),))
    def add_bias(x: Any, state: Any) -> Any:
        (bias,) = state.read()
        return x + bias

    net = Net().build(X)

    assert torch.equal(net.send(bob)(X.send(bob)).get(), net(X).detach())
    assert add_bias.send(bob)(torch.ones(1).send(bob)).get().tolist() == add_bias(torch.ones(1)).tolist() == [3.0]


def test_numpy_functions_are_recorded(numpy_hook: Any, serialize: bool) -> None:
    numpy = pytest.importorskip("numpy")
    carol = sy.VirtualWorker(numpy_hook, id="carol", serialize=serialize)
    weights = numpy.array([1.0, 2.0, 3.0])

    plan = sy.Plan("score", lambda x: numpy.tanh(x * weights).sum(axis=0)).build(numpy.ones(3))

    x = numpy.array([0.3, 0.2, 0.1])
    assert plan.send(carol)(x).get() == numpy.tanh(x * weights).sum(axis=0)
    assert "v1 = numpy.tanh(v0)" in plan.actions


def test_a_recording_leaves_no_copy_of_the_state(hook: Any) -> None:
    weight = torch.zeros(17, 3)
    gc.collect()
    gc.disable()
    try:
        sy.Plan("scaled", lambda x: x @ weight, state=(weight,), args_shape=[(-1, 17)]).build()

        tensors = [leaf for leaf in gc.get_objects() if type(leaf) is torch.Tensor and leaf.shape == weight.shape]
        assert [tensor.data_ptr() for tensor in tensors] == [weight.data_ptr()]
    finally:
        gc.enable()


ZEROS: dict[str, tuple[Any, Any, Any]] = {
    "labels from 1": (lambda x, y: torch.nn.functional.cross_entropy(x, y - 1), (3, 3), [1, 3, 2]),
    "classes from 1": (lambda x, y: x * torch.nn.functional.one_hot(y - 1, 3), (3, 3), [1, 3, 2]),
    "last of a length": (lambda x, y: x.gather(1, (y - 1)[:, None]), (3, 3), [1, 3, 2]),
    "inverse": (lambda x, y: torch.linalg.inv(x) * y, (3, 3), [1, 3, 2]),
    "Cholesky": (lambda x, y: torch.linalg.cholesky(x @ x.t()) + y, (3, 3), [1, 3, 2]),
    "written": (lambda x, y: (x * 2).scatter_(1, (y - 1)[:, None], 0.0), (3, 3), [1, 3, 2]),
}


@pytest.mark.parametrize("name", ZEROS)
@pytest.mark.parametrize("as_pointers", [False, True])
def test_what_fails_for_zeros_is_recorded(hook: Any, name: str, as_pointers: bool) -> None:
    function, shape, numbers = ZEROS[name]
    torch.manual_seed(0)
    bob = sy.VirtualWorker(hook, id="bob")
    x, y = torch.randn(shape), torch.tensor(numbers)
    given = [x.clone().send(bob), y.clone().send(bob)]
    shapes = {"args_shape": [shape, y.shape], "args_dtypes": [torch.float32, torch.int64]}

    plan = sy.Plan("zeros", function, **({} if as_pointers else shapes)).build(*(given if as_pointers else ()))

    assert torch.equal(plan(x, y), function(x, y))
    assert torch.equal(plan.send(bob)(*given).get(), function(x, y))


def test_a_gradient_is_recorded_behind_what_fails_for_zeros(hook: Any) -> None:
    def differentiate(x: Any, y: Any) -> Any:
        x = x.clone().requires_grad_()
        return torch.autograd.grad(torch.nn.functional.cross_entropy(x, y - 1), x)[0]

    x, y = torch.randn(3, 3), torch.tensor([1, 3, 2])

    plan = sy.Plan("zeros", differentiate, args_shape=[(3, 3), (3,)], args_dtypes=[None, torch.int64]).build()

    assert torch.equal(plan(x, y), differentiate(x, y))


def test_an_error_of_the_form_or_of_given_values_is_raised(hook: Any) -> None:
    with pytest.raises(RuntimeError, match="square"):
        sy.Plan("form", lambda x: torch.linalg.inv(x), args_shape=[(2, 3)]).build()
    with pytest.raises(RuntimeError, match="singular"):
        sy.Plan("values", lambda x: torch.linalg.inv(x)).build(torch.zeros(2, 2))
    plan = sy.Plan("zeros", lambda x: torch.linalg.inv(x), args_shape=[(2, 2)]).build()
    with pytest.raises(RuntimeError, match="singular"):
        plan(torch.zeros(2, 2))


FRESH = """
import torch, syft_core as sy
hook = sy.TorchHook(torch)
print(sy.Plan(None, lambda x: torch.as_tensor([1.0, 2.0]) * x).build(torch.ones(2)).code)
"""


@pytest.mark.slow
def test_a_constant_is_recorded_although_features_are_loaded_meanwhile() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False, timeout=120)

    assert "torch.Tensor.__mul__(v0, x0)" in done.stdout, done.stderr
