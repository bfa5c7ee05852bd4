from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import syft_core as sy
from syft_core.workers.party.status import add_bit
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
