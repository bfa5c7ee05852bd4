"""Lengths and strides in a plan: computed anew in each call, or refused; never silently frozen."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import SerdeError
from syft_core.messages import Store
from syft_core.plans.errors import PlanError
from syft_core.plans.program import FACT, GUARD, Slot, Step
from syft_core.plans.traced import Number

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from .programs import RUN, program  # noqa: E402  # torch may be missing
from .traps import DECIDED, FIXED, RIGHT  # noqa: E402  # the same

LENGTHS = (1, 2, 3, 4, 5, 8, 17)


def record(function: Any) -> sy.Plan:
    return sy.Plan(None, function, args_shape=[(-1, 4)]).build()


def outcomes(function: Any, worker: Any) -> list[bool]:
    """Return for each length whether a plan computes it; fail if it computes anything but what the function does."""
    there, found = record(function).send(worker), []
    for length in LENGTHS:
        x = torch.randn(length, 4)
        try:
            result = there(x.send(worker)).get()
        except PlanError:
            found.append(False)
        else:
            assert torch.equal(result, function(x)), length
            found.append(True)
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_computed_from_a_length_is_right_for_all(hook: Any, bob: Any, name: str) -> None:
    assert all(outcomes(RIGHT[name], bob))


@pytest.mark.parametrize("name", DECIDED)
def test_what_is_decided_by_a_length_is_right_or_refused(hook: Any, bob: Any, name: str) -> None:
    try:
        assert any(outcomes(DECIDED[name], bob))
    except PlanError as error:
        assert "compute with `x.shape[0]`" in str(error)  # noqa: PT017  # some are refused at once


@pytest.mark.parametrize("name", FIXED)
def test_what_needs_a_length_as_a_number_is_refused_with_its_line(hook: Any, name: str) -> None:
    with pytest.raises(PlanError, match=r"\.py:\d+ .*; (a plan|the plan|use) "):
        record(FIXED[name])


@pytest.mark.parametrize("name", ["a branch", "half by slice", "ghost norm", "len"])
def test_a_plan_of_one_length_does_what_the_function_does(hook: Any, bob: Any, name: str) -> None:
    function, x = {**RIGHT, **DECIDED, **FIXED}[name], torch.randn(9, 4)

    assert torch.equal(sy.Plan(None, function).build(x).send(bob)(x.send(bob)).get(), function(x))


def test_a_guard_says_what_it_has_found(hook: Any, bob: Any) -> None:
    there = record(lambda x: x * 2 if x.shape[0] > 6 else x).send(bob)

    with pytest.raises(PlanError, match=r"8 > 6 was False when it was recorded, which decides its steps; record it"):
        there(torch.ones(8, 4).send(bob)).get()


def test_numbers_are_written_as_code(hook: Any) -> None:
    plan = record(lambda x: x[: x.shape[0] // 2] * 2 if x.shape[0] < 9 else x)

    assert [line.replace(" ", "") for line in plan.actions[:2]] == [
        "v0=torch.Tensor.shape.__get__(x0)[0]",
        "assertv0<9",
    ]
    assert plan.actions[3] == "v2 = v1 // 2"
    assert "slice(None, v2, None)" in plan.actions[4]


def test_lengths_of_several_arguments_are_apart(hook: Any, bob: Any) -> None:
    plan = sy.Plan(None, lambda x, y: x.sum(0) / y.shape[0], args_shape=[(-1, 2), (-1, 3)]).build().send(bob)

    assert plan(torch.ones(6, 2).send(bob), torch.ones(3, 3).send(bob)).get().tolist() == [2.0, 2.0]


def test_arguments_that_must_have_one_length_are_guarded(hook: Any, bob: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        if x.shape[0] != y.shape[0]:
            raise ValueError("other lengths")
        return x + y

    plan = sy.Plan(None, function, args_shape=[(-1,), (-1,)]).build().send(bob)

    assert plan(torch.ones(5).send(bob), torch.ones(5).send(bob)).get().sum() == 10
    with pytest.raises(PlanError, match="5 != 1 was False"):
        plan(torch.ones(5).send(bob), torch.ones(1).send(bob)).get()


def test_a_length_that_a_function_has_kept_is_a_number_afterwards(hook: Any, bob: Any) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            self.length = x.shape[0]
            return x * 2

    net = Net()
    record(net)

    assert list(range(net.length)) == [0, 1]
    assert net.length + 1 == 3
    assert not issubclass(type(net.length + 1), Number)


def test_private_data_of_any_length_is_computed(hook: Any, bob: Any) -> None:
    x = torch.randn(7, 4)
    bob.load_data([x.clone().private_tensor([str(hook.local_worker.id)]).tag("#x")])
    there = record(lambda x: x[: x.shape[0] // 2] / x.shape[0]).send(bob)

    entry = there(bob.search("#x")[0]).child._id_at_location

    found = bob.object_store.entry(entry).value
    assert torch.equal(getattr(found, "child", found), x[:3] / 7)


# --- strides

LAYOUTS = {
    "strides": lambda x: x * 2 if x.stride() == (4, 1) else x,
    "one stride": lambda x: x * x.stride(0),
    "contiguous": lambda x: x * 2 if x.is_contiguous() else x,
    "channels last": lambda x: x * 2 if x[None, :, :, None].is_contiguous(memory_format=torch.channels_last) else x,
    "of a result": lambda x: x * 2 if (x + 1).is_contiguous() else x,
    "offset": lambda x: x * (x.storage_offset() + 1),
}


@pytest.mark.parametrize("args_shape", [None, [(-1, 4)]])
@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_that_a_function_reads_are_right_or_refused(hook: Any, bob: Any, name: str, args_shape: Any) -> None:
    plan = sy.Plan(None, LAYOUTS[name], args_shape=args_shape)
    there = plan.build(*[] if args_shape else [torch.ones(4, 4)]).send(bob)

    layouts = torch.randn(4, 4), torch.randn(4, 4).t(), torch.randn(5, 4)[1:], torch.randn(4, 8)[:, ::2]
    for number, x in enumerate(layouts):
        bob.load_data([x.tag(f"#layout{number}")])
        try:
            result = there(bob.search(f"#layout{number}")[0]).get()
        except PlanError as error:
            assert "when it was recorded, which decides its steps" in str(error)  # noqa: PT017  # one of two outcomes
        else:
            assert torch.equal(result, LAYOUTS[name](x))


def test_an_error_that_the_function_catches_is_refused(hook: Any) -> None:
    def flatten(x: Any) -> Any:
        try:
            return x.t().view(-1)
        except RuntimeError:
            return x.t().reshape(-1) * 2

    with pytest.raises(PlanError, match=r"test_traced\.py:\d+ raises a RuntimeError, which the function catches"):
        sy.Plan(None, flatten).build(torch.ones(3, 4))


def test_a_refusal_that_the_function_catches_is_a_refusal(hook: Any) -> None:
    def guess(x: Any, rate: Any) -> Any:
        try:
            return x * int(rate)
        except Exception:  # noqa: BLE001  # as programs do
            return x

    with pytest.raises(PlanError, match="reads a number that changes from call to call"):
        sy.Plan(None, guess).build(torch.ones(3), 0.5)


# --- as received

FORGED = {
    "an operation that is not a fact": ("torch", "torch.Tensor.item", None, Slot(0)),
    "an unknown operation": ("torch", "os.system", None, Slot(0)),
    "data": ("torch", "torch.Tensor.__getitem__", 0, Slot(0)),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_fact_reads_forms_only(hook: Any, bob: Any, name: str) -> None:
    with pytest.raises(Exception, match=r"is not a fact about a form|may not|cannot"):
        hook.local_worker.location_of(bob).ask(
            Store(9, program(Step("", FACT, FORGED[name], {}, 1), RUN, answer=Slot(2)))
        )


@pytest.mark.parametrize(
    "step",
    [
        Step("", GUARD, ("system", Slot(0), 1, True), {}, 0),
        Step("", GUARD, ("lt", Slot(0), "x", True), {}, 0),
        Step("", GUARD, ("lt", Slot(0), 1, 1), {}, 0),
        Step("", GUARD, ("lt", Slot(0), 1, True), {}, 1),
        Step("", FACT, ("torch", "torch.Tensor.size", 0), {}, 1),
        Step("", FACT, ("torch", "torch.Tensor.size", "0", Slot(0)), {}, 1),
        Step("", "floordiv", (Slot(0),), {}, 1),
    ],
)
def test_a_malformed_number_is_refused(step: Step) -> None:
    with pytest.raises(SerdeError, match="is not arithmetic"):
        program(step, RUN, answer=Slot(1))


def test_integers_stay_small(hook: Any, bob: Any) -> None:
    there = record(lambda x: x * ((x.shape[0] * 10**9) * (x.shape[0] * 10**8)) / 10**17).send(bob)

    with pytest.raises(ValueError, match="too large; use floats"):
        there(torch.ones(50, 4).send(bob)).get()


def test_strides_of_arrays_are_guarded(numpy_hook: Any) -> None:
    carol = sy.VirtualWorker(numpy_hook, id="carol")
    x = numpy.arange(16.0).reshape(4, 4)
    there = sy.Plan(None, lambda x: x * x.strides[0]).build(x).send(carol)

    assert numpy.array_equal(there(x).get(), x * 32)
    with pytest.raises(PlanError, match="8 == 32 was True when it was recorded"):
        there(x.T).get()
