from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import RegistryError
from syft_core.workers.party import status
from syft_core.workers.party.status import add_bit
from syft_core.workers.party.store import Stored
from syft_core.workers.road import procedure
from syft_core.workers.road.procedure import add_stage, find_stages

torch = pytest.importorskip("torch")


@pytest.fixture
def _without_added_stages() -> Iterator[None]:
    kept = list(procedure._added)
    yield
    procedure._added[:] = kept
    procedure._procedures.clear()


@pytest.mark.usefixtures("_without_added_stages")
def test_a_new_restriction_is_one_bit_and_one_stage(hook: Any) -> None:
    embargoed = add_bit("tests: not multiplied", inherited=True)

    def refuse(proceed: Any, execution: Any) -> Any:
        if execution.op.operation == "mul":
            raise PermissionError("cannot multiply embargoed data: its owner has not released it; ask the owner")
        return proceed(execution)

    add_stage(embargoed, refuse, kinds={"run"})
    bob = sy.VirtualWorker(hook, id="bob")
    x, y = torch.ones(2).send(bob), torch.ones(2).send(bob)
    bob.object_store.entry(x.id_at_location).mark(embargoed)

    assert (y * y + x).copy().get().tolist() == [2.0, 2.0]
    with pytest.raises(PermissionError, match="embargoed"):
        (x + y) * y


@pytest.mark.usefixtures("_without_added_stages")
def test_what_authorizes_a_task_comes_before_what_features_add_and_the_rest_after(hook: Any) -> None:
    bit = add_bit("tests: nothing")

    def stage(proceed: Any, task: Any) -> Any:
        return proceed(task)

    add_stage(bit, stage)

    found = find_stages("leave", None, bit, None)

    assert [each.__name__.strip("_") for each in found] == ["permit", "stage", "record", "detach_all"]


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        ({"bit": status.PRIVATE}, "cannot add a stage for 1: it is not a bit of a restriction"),
        ({"kinds": {"leev"}}, "it is not a set of run, train, call, protocol, leave; correct it"),
        ({"kinds": "leave"}, "cannot add a stage for 'leave': it is not a set"),
        ({"stage": lambda task: task}, r"cannot be called; write `def stage\(proceed, task\)`"),
    ],
)
def test_a_stage_that_would_never_run_is_refused(mistake: dict[str, Any], error: str) -> None:
    right = {"bit": add_bit("tests: nothing"), "stage": lambda proceed, task: proceed(task), "kinds": None}

    with pytest.raises(RegistryError, match=error):
        add_stage(**{**right, **mistake})


def test_only_bits_of_restrictions_mark_an_object() -> None:
    with pytest.raises(ValueError, match="0x1 has bits that `add_bit` has not returned"):
        Stored(None, None).mark(status.PRIVATE)
