"""Prevent leaks and unauthorized changes through shared, uninitialized and out-of-view memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.rules import leaves
from syft_core.messages import Placed
from syft_core.peer import Peer
from syft_core.values import Nested, Tensor
from syft_core.workers.execution import Execution
from syft_core.workers.permissions import may_change
from syft_core.workers.store import Stored, is_leaf
from syft_core.workers.worker import Worker

Compute = Callable[[], Any]


def memory_of(value: object) -> Iterator[Any]:
    """Yield keys that are equal for tensors that share memory: for the data of a chain and for its gradient."""
    end = plain_end(value)
    if end is None:
        return
    framework = framework_of(end)
    yield from framework.memory_of(end) or ()
    if (is_leaf(end) or getattr(end, "retains_grad", False)) and end.grad is not None:
        yield from framework.memory_of(end.grad) or ()


def is_seen_elsewhere(worker: Worker, targets: Sequence[Stored], ends: Sequence[Tensor]) -> bool:
    """Return whether objects other than ``targets`` may share the memory of ``ends``, plain tensors of theirs."""
    uses = worker.object_store.uses
    for target in targets:
        if uses.get(target.key, 0) > (target.id != ""):  # A result of a step of a plan is not stored itself.
            return True
    return bool(ends) and framework_of(ends[0]).is_shared(*ends)


def guard_results(worker: Worker, sender: Peer, parents: Sequence[Stored], result: Nested) -> None:
    """Guard the results that share memory with an object that the sender may not change."""
    protected = [parent for parent in parents if not may_change(worker, parent, sender)]
    if protected:
        for placed in leaves(result):
            if type(placed) is Placed:
                guard(worker.object_store.entry(placed.id), protected)


def guard(entry: Stored, protected: Sequence[Stored]) -> None:
    """Guard an object if it shares memory with one of ``protected``."""
    memory = set(memory_of(entry.value))
    for parent in protected:
        if parent is not entry and not memory.isdisjoint(memory_of(parent.value)):
            entry.guard = parent.guard or parent


def clear(result: Nested) -> Nested:
    """Set a newly allocated tensor to zero, so that it shows no old memory."""
    end = plain_end(result)
    framework_of(end).clear(end)
    return result


def confine(execution: Execution, compute: Compute) -> Compute:
    """Prevent an operation from reading memory outside its operand, or memory that was not initialized."""
    op, worker = execution.op, execution.worker
    ends = [end for parent in execution.parents if (end := plain_end(parent.value)) is not None]
    if any(framework_of(end).is_partial_view(end) for end in ends):
        raise ValueRefusedError.beyond(op.name, str(worker.id))
    if not (op.inplace and ends):
        return compute
    framework = framework_of(ends[0])
    framework.make_resizable(find_sharing(worker, ends[0]))

    def compute_and_clear() -> Nested:
        with framework.clear_growth(ends[0]):
            return compute()

    return compute_and_clear


def find_sharing(worker: Worker, end: Tensor) -> list[Any]:
    """Return the tensors on a worker that share memory with ``end``, including itself."""
    ends = [found for entry in worker.object_store.entries() if (found := plain_end(entry.value)) is not None]
    memory = framework_of(end).memory_of(end) or frozenset()
    return [found for found in ends if not memory.isdisjoint(framework_of(found).memory_of(found) or ())]
