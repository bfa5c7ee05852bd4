from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from syft_core.exceptions import (
    OperationNotAllowedError,
    SerdeError,
    ValueRefusedError,
)
from syft_core.messages import Store
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import ITEM, MAX_STEPS, Routine, Slot, Step
from syft_core.serde import deserialize, serialize

torch = pytest.importorskip("torch")

from .programs import RUN, program  # noqa: E402  # torch may be missing


def test_a_program_survives_the_wire() -> None:
    sent = program(RUN, answer=[Slot(1), None])

    received = deserialize(serialize(sent))

    assert received.text == sent.text
    assert received.routines == sent.routines


MALFORMED = {
    "a later result": lambda: program(replace(RUN, args=(Slot(1),)), answer=Slot(1)),
    "its answer is wrong": lambda: program(RUN, answer=Slot(2)),
    "an attribute of a tensor": lambda: program(RUN, answer=Slot(1, "grad")),
    "is not arithmetic": lambda: program(Step("", "eval", (Slot(0),), {}, 1)),
    "a step has a wrong type": lambda: program("rm -rf"),
    "too many results": lambda: program(replace(RUN, count=1 << 40)),
    "more than": lambda: program(*[RUN] * (MAX_STEPS + 1)),
    "its state has a wrong size": lambda: program(RUN, made=1),
    "its carry is wrong": lambda: program(routines=(Routine((RUN,), None, ((0, 1),)),)),
    "an input is not a form": lambda: program(inputs=("x",)),
    "no routine": lambda: program(routines=()),
    "a number": lambda: program(Step("", ITEM, (Slot(0),), {}, 1), answer=Slot(1)),
}


@pytest.mark.parametrize("problem", MALFORMED)
def test_a_malformed_program_is_refused(problem: str) -> None:
    text = "its answer is wrong" if problem == "a number" else problem
    with pytest.raises(SerdeError, match=text):
        MALFORMED[problem]()


@pytest.mark.parametrize("op", ["os.system", "torch.load", "torch.Tensor.item", "torch.Tensor.numpy"])
def test_a_plan_with_an_operation_that_may_not_run_is_not_stored(hook: Any, bob: Any, op: str) -> None:
    location = hook.local_worker.location_of(bob)

    with pytest.raises((OperationNotAllowedError, ValueRefusedError)):
        location.ask(Store(9, program(replace(RUN, op=op), answer=Slot(1))))
    assert 9 not in bob.object_store


def test_a_plan_cannot_read_any_attribute_of_an_object(hook: Any, bob: Any) -> None:
    location = hook.local_worker.location_of(bob)
    x = torch.ones(2).send(bob)
    for id, attr in ((10, "__class__"), (11, "owner")):
        location.tell(Store(id, program(replace(RUN, args=(Slot(0, attr),)), answer=Slot(1))))
        with pytest.raises((SerdeError, ValueRefusedError)):
            location.ask(RunPlan(id, (x.child,), 20))
