"""Prevent leaks and unauthorized changes through shared, uninitialized and out-of-view memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from syft_core.exceptions import OperationNotAllowedError, ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, is_form_only
from syft_core.hook.rules import leaves
from syft_core.messages import Placed
from syft_core.peer import Peer
from syft_core.values import Nested, Tensor
from syft_core.workers.party.store import Stored, share_memory
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.task import Task
from syft_core.workers.seeing.permissions import may_change

Compute = Callable[[], Any]


def is_seen_elsewhere(worker: Worker, targets: Sequence[Stored], ends: Sequence[Tensor]) -> bool:
    """Return whether objects other than ``targets`` may share memory with ``ends``, the targets' plain tensors."""
    alike = worker.object_store.alike
    for target in targets:
        if len(alike.get(target.key, ())) > 1:
            return True
    return not all(framework_of(end).is_alone(end) for end in ends)


def change_count(end: Tensor) -> int | None:
    """Return how often a plain tensor was changed.

    None for tensors made in inference mode. 0 for numpy, whose operations change only their declared targets.
    """
    try:
        return end._version  # type: ignore[no-any-return]  # torch's version counter
    except RuntimeError:
        return None
    except AttributeError:
        return 0


def is_new(result: Tensor, execution: Execution) -> bool:
    """Return whether a plain tensor certainly shares no memory with an operand, and no operand has changed."""
    if execution.op.alters_autograd or any(result is operand for operand in execution.operands):
        return False
    framework = framework_of(result)
    is_own = framework.owner_of is None or framework.owner_of(result) is result
    return is_own and framework.is_alone(result)


def require_data(proceed: Stage, task: Task) -> Nested:
    """Run a task unless it needs data of an operand that has none.

    Kernels compute nothing if some operands have only a form: their results would be memory that others have freed.
    """
    args = (task.args, task.kwargs) if isinstance(task, Execution) else task.operands
    ends = [end for leaf in leaves(args) if (end := plain_end(leaf)) is not None]
    if task.kind != "run" or not all(map(is_form_only, ends)):
        raise OperationNotAllowedError.refused_by("worker", task.name, _WITHOUT_DATA)
    return proceed(task)


_WITHOUT_DATA = (
    "an operand has a form and no data, such as a tensor of torch's meta device, and others have data; "
    "send tensors with data"
)


def guard_results(worker: Worker, sender: Peer, parents: Sequence[Stored], result: Nested) -> None:
    """Guard the results that share memory with an object that the sender may not change."""
    protected = [parent for parent in parents if not may_change(worker, parent, sender)]
    if protected:
        for placed in leaves(result):
            if type(placed) is Placed:
                guard(worker.object_store.entry(placed.id), protected)


def guard(entry: Stored, protected: Sequence[Stored]) -> None:
    """Guard an object if it shares memory with one of ``protected``."""
    for parent in protected:
        if parent is not entry and share_memory(entry.value, parent.value):
            entry.share_memory_with(parent.guard or parent)


def confine(proceed: Stage, execution: Execution) -> Nested:
    """Prevent an operation from reading memory outside its operands, or uninitialized memory."""
    op, worker = execution.op, execution.worker
    if op.uninitialized:
        return _clear(proceed(execution))
    ends = [end for parent in execution.parents if (end := plain_end(parent.value)) is not None]
    if any(framework_of(end).is_partial_view(end) for end in ends):
        raise ValueRefusedError.beyond(op.name, str(worker.id))
    if not (op.inplace and ends):
        return proceed(execution)
    framework = framework_of(ends[0])
    sharing = worker.object_store.find_sharing(ends[0])
    framework.make_resizable([plain_end(entry.value) for entry in sharing])
    worker.object_store.note_move(*sharing)
    cleared = framework.clear_growth(ends[0])
    if cleared is None:
        raise OperationNotAllowedError.refused_by("worker", op.name, _NOT_CLEARED)
    with cleared:
        return proceed(execution)


_NOT_CLEARED = (
    "the memory that it adds to a tensor of this kind would not be cleared; create a tensor of that size instead"
)


def _clear(result: Nested) -> Nested:
    end = plain_end(result)
    framework_of(end).clear(end)
    return result
