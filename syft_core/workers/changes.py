"""What an operation changes besides making results: targets, running statistics, whatever shares their memory.

Restrictions and lineage follow the data there too.
"""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import SyftError
from syft_core.hook.attributes import words
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.rules import leaves
from syft_core.pointers.meeting import CHANGES_FIRST
from syft_core.pointers.object_pointer import id_here
from syft_core.workers.execution import Execution
from syft_core.workers.memory import Compute, memory_of
from syft_core.workers.permissions import unless_private
from syft_core.workers.store import Lineage, Stored, lineage_of
from syft_core.workers.worker import Worker

CHANGES_UNCOUNTED = words(
    "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm instance_norm batch_norm_update_stats "
    "batch_norm_gather_stats batch_norm_gather_stats_with_counts fused_moving_avg_obs_fake_quant"
)
"""Operations that change running statistics among their arguments, which torch does not count as a change."""
CHANGES_SOME = CHANGES_UNCOUNTED | words("embedding embedding_bag")
"""Operations that may change one of their arguments on the way: running statistics, renormed weights."""
CHANGES_SEVERAL = words("_amp_update_scale")
"""Operations in place that change more than their first argument."""


def run_noting(execution: Execution, compute: Compute) -> Any:
    """Run an operation, and find out which of its arguments it changes."""
    worker, op, message, parents = execution.worker, execution.op, execution.message, execution.parents
    access, _ = lineage = execution.lineage
    alike = worker.policy is unless_private and all(parent.access is access for parent in parents)
    if alike and op.operation not in CHANGES_SOME:
        result = compute()
        if op.operation in CHANGES_FIRST:
            note_changes(execution, lineage)
        return result
    before = [_version(parent.value) for parent in parents]
    uncounted = parents[1:] if op.operation in CHANGES_UNCOUNTED else ()
    copies = [(parent, _copy_of_statistics(parent.value)) for parent in uncounted]
    training = any(leaf is True for leaf in leaves((message.args, message.kwargs)))
    results: list[Any] = []
    started = True
    try:
        result = compute()
        results += [end for leaf in leaves(result) if (end := plain_end(leaf)) is not None]
    except SyftError:
        started = False
        raise
    finally:  # What fails may have changed something before.
        for parent, version in zip(parents, before, strict=True):
            if version is None or _version(parent.value) != version or _is_uncounted_target(parent, results):
                change(worker, parent, lineage)
        for parent, copy in copies:
            # Statistics may change to what they were: to tell that apart would tell what they are.
            if copy is not None and (training or not (copy == plain_end(parent.value)).all()):
                change(worker, parent, lineage)
        changes = op.inplace or op.operation in CHANGES_FIRST or execution.kwargs.get("out") is not None
        if started and changes:
            note_changes(execution, lineage)
    return result


def note_changes(execution: Execution, lineage: Lineage) -> None:
    """Let what an operation changed take over the lineage of all its operands."""
    for target in _targets(execution):
        change(execution.worker, target, lineage)


def run_marking(execution: Execution, lineage: Lineage, compute: Compute) -> Any:
    """Run an operation in the place of one that failed, and let all that it changes, or was to change, show it."""
    worker, op, parents = execution.worker, execution.op, execution.parents
    before = [_version(parent.value) for parent in parents]
    result = compute()
    changed = [parent for parent, old in zip(parents, before, strict=True) if _version(parent.value) != old]
    if op.inplace or op.operation in CHANGES_FIRST or execution.kwargs.get("out") is not None:
        changed += _targets(execution)
    for entry in changed:
        change(worker, entry, lineage)
        _spread(worker, entry)
    return result


def _targets(execution: Execution) -> list[Stored]:
    """Return the objects that an operation changes."""
    worker, op, message, parents = execution.worker, execution.op, execution.message, execution.parents
    if execution.kwargs.get("out") is not None:
        given = [id_here(leaf, worker.id) for leaf in leaves((message.kwargs or {})["out"])]
        return [worker.object_store.entry(id) for id in given if id is not None]
    if message.args and id_here(message.args[0], worker.id) is not None and op.operation not in CHANGES_SEVERAL:
        return parents[:1]
    return parents  # Among others lists of tensors, of which an optimizer's step changes several.


def change(worker: Worker, target: Stored, lineage: Lineage) -> None:
    """Let an object, and what shares its memory, take over the lineage of what was written into it."""
    access, sources = lineage
    before, target.access, target.sources = target.access, access, sources
    target.touched = True
    if access != before or worker.policy is not unless_private:
        _spread(worker, target)


def _spread(worker: Worker, changed: Stored) -> None:
    """Let everything that shares memory with an object that was changed be as private."""
    memory = set(memory_of(changed.value))
    for entry in worker.object_store.entries():
        if entry is not changed and not memory.isdisjoint(memory_of(entry.value)):
            entry.access, entry.sources = lineage_of([entry, changed])
            entry.touched = True


def _version(value: Any) -> int | None:
    """Return how often a tensor was changed, or None where that is not counted though it may have been."""
    end = plain_end(value)
    return 0 if end is None else change_count(end)


def change_count(end: Any) -> int | None:
    """Return how often a plain tensor was changed.

    Tensors of inference mode do not count; numpy does not either, but changes nothing without saying so.
    """
    try:
        return end._version  # type: ignore[no-any-return]  # torch's own count
    except RuntimeError:
        return None
    except AttributeError:
        return 0


def _is_uncounted_target(parent: Stored, results: list[Any]) -> bool:
    """Return whether an operation returned an argument itself: so numpy treats an ``out`` given by position."""
    end = plain_end(parent.value)
    return not hasattr(end, "_version") and any(end is result for result in results)


def _copy_of_statistics(value: Any) -> Any:
    end = plain_end(value)
    return None if end is None or getattr(end, "requires_grad", False) else framework_of(end).copy(end)
