"""The first stage of an operation: refuse what its sender may not run, use or change."""

from __future__ import annotations

from syft_core.exceptions import OperationNotAllowedError, ValueRefusedError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.values import Nested
from syft_core.workers.party.status import OTHERS, POLICY
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.execution import Execution
from syft_core.workers.seeing.permissions import require_right_to_change, require_right_to_use


def authorize(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation if the sender may run it on these operands."""
    op, worker, peer = execution.op, execution.worker, execution.peer
    if op.is_special:
        require_command(worker, op, execution.framework)
    require_right_to_use(worker, execution.parents, peer)
    if op.tier != "reviewed" and not execution.is_readable:
        raise ValueRefusedError.unreviewed(op.name, str(worker.id), op.instead)
    if execution.status & (OTHERS | POLICY):
        _require_writable(execution)
    return proceed(execution)


def require_command(worker: Worker, op: Op, framework: FrameworkAttributes) -> None:
    """Raise if an operation may not run on a worker."""
    if op.reveals:
        raise ValueRefusedError.of(op.name, str(worker.id))
    if op.local or (op.spelling == "getter" and op.attr == framework.gradient):
        raise ValueRefusedError.only_local(op.name, str(worker.id))
    if op.tier == "off":
        raise OperationNotAllowedError.off(op.name, op.instead)


def is_always_allowed(op: Op, framework: FrameworkAttributes) -> bool:
    """Return whether ``require_command`` never raises for an operation that only reads operands of its sender."""
    is_gradient = op.spelling == "getter" and op.attr == framework.gradient
    return op.tier == "reviewed" and not (op.reveals or op.local or is_gradient)


def _require_writable(execution: Execution) -> None:
    """Raise unless the sender may change all targets; ``track_gradients`` checks gradients."""
    op = execution.op
    if op.accumulates:
        return
    alters = op.retains or op.alters_autograd
    changed = [*execution.targets(), *(execution.parents[:1] if alters else ())]
    for parent, operand in zip(execution.parents, execution.operands, strict=True):
        if any(parent is entry for entry in changed):
            require_right_to_change(execution.worker, parent, execution.peer, operand)
