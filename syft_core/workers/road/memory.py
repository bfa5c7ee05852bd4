"""Prevent leaks and unauthorized changes through shared, uninitialized and out-of-view memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.rules import leaves
from syft_core.messages import Placed
from syft_core.peer import Peer
from syft_core.values import Nested, Tensor
from syft_core.workers.party.store import Stored, share_memory
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.execution import Execution
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
    with framework.clear_growth(ends[0]):
        return proceed(execution)


def _clear(result: Nested) -> Nested:
    end = plain_end(result)
    framework_of(end).clear(end)
    return result
