from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import syft_core as sy
from syft_core.workers.party import status
from syft_core.workers.party.status import add_bit
from syft_core.workers.running import procedure
from syft_core.workers.running.procedure import add_stage, find_stages

torch = pytest.importorskip("torch")


def names(hook: Any, op: str, bits: int) -> list[str]:
    stages = find_stages("run", hook.attributes.method(op), bits, hook.attributes)
    return [stage.__name__.strip("_") for stage in stages]


def test_an_empty_status_needs_only_the_stages_that_run_and_keep(hook: Any) -> None:
    assert names(hook, "__add__", 0) == ["keep", "run_plain"]


def test_every_status_adds_its_own_stage(hook: Any) -> None:
    assert names(hook, "__add__", status.QUOTA) == ["meter", "keep", "run_plain"]
    assert names(hook, "__add__", status.PRIVATE | status.LAYERED) == ["keep", "conceal", "run_layers"]
    assert names(hook, "add_", status.FOREIGN) == ["authorize", "keep", "track", "run_plain"]
    assert names(hook, "__add__", status.REMOTE | status.LAYERED) == ["relay", "run_layers"]
    assert names(hook, "backward", 0) == ["keep", "track_gradients", "run_plain"]


@pytest.fixture
def _without_added_stages() -> Iterator[None]:
    kept = list(procedure._added)
    yield
    procedure._added[:] = kept
    procedure._procedures.clear()


@pytest.mark.usefixtures("_without_added_stages")
def test_a_new_restriction_is_one_bit_and_one_stage(hook: Any) -> None:
    embargoed = add_bit(inherited=True)

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
