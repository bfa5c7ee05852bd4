"""Track what an operation changes in place: targets, running statistics, and everything that shares their memory.

Changed objects inherit the restrictions and the lineage of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.exceptions import SyftError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.values import Nested, Tensor
from syft_core.workers.execution import Execution
from syft_core.workers.memory import Compute, find_sharing, is_seen_elsewhere, memory_of
from syft_core.workers.store import Lineage, Stored, lineage_of
from syft_core.workers.worker import Worker


def run_and_track(execution: Execution, compute: Compute) -> Nested:
    """Run an operation; every object that it changes inherits the lineage of all operands."""
    worker, parents, lineage = execution.worker, execution.parents, execution.lineage
    alike = worker.custom_policy is None and all(parent.access is lineage[0] for parent in parents)
    if any(target.access != lineage[0] for target in execution.targets()):
        _invalidate_graphs(execution)
    before = [] if alike else [_version(parent.value) for parent in parents]
    started = True
    try:
        return compute()
    except SyftError:
        started = False
        raise
    finally:  # A failing operation may have changed something first.
        if started:
            note_changes(execution, lineage)
        for parent, version in zip(parents, before, strict=not alike):
            if version is None or _version(parent.value) != version:
                end = plain_end(parent.value)
                change(worker, [parent], lineage, end is not None and is_seen_elsewhere(worker, [parent], [end]))


def _invalidate_graphs(execution: Execution) -> None:
    """Make backward passes fail that need the values of the targets before these become private.

    The lineage of their results is that of the old values. Not every operation lets the framework notice its writes.
    """
    for end in [end for target in execution.written if (end := plain_end(target)) is not None]:
        for sharing in (end, *find_sharing(execution.worker, end)):
            framework_of(sharing).note_write(sharing)


def note_changes(execution: Execution, lineage: Lineage) -> None:
    """Set the lineage of the operation's targets."""
    worker, targets = execution.worker, execution.targets()
    # If the only operand is the target, what shares its memory already has its lineage.
    writes = len(execution.parents) > 1 and not execution.op.alters_autograd
    change(worker, targets, lineage, writes and is_seen_elsewhere(worker, targets, execution.ends))


def run_and_mark_failed(execution: Execution, lineage: Lineage, compute: Compute) -> Nested:
    """Run the substitute for a failed operation; mark all changed objects and all targets as failed."""
    worker, parents = execution.worker, execution.parents
    before = [_version(parent.value) for parent in parents]
    result = compute()
    changed = [parent for parent, old in zip(parents, before, strict=True) if _version(parent.value) != old]
    failed = [*changed, *execution.targets()]
    change(worker, failed, lineage)
    propagate(worker, failed)
    return result


def change(worker: Worker, targets: Sequence[Stored], lineage: Lineage, is_seen: bool = False) -> None:
    """Set the lineage of objects after a write.

    If other objects may see the write (``is_seen``), or the objects become private, also set the lineage of everything
    that shares memory with them.
    """
    access, sources = lineage
    store = worker.object_store
    is_seen = is_seen or worker.custom_policy is not None
    for target in targets:
        is_seen = is_seen or target.access != access
        target.access, target.sources, target.touched = access, sources, True
        if access is not None or store.listener is not None:
            store.note(target, written=True)
    if is_seen:
        propagate(worker, targets)


def propagate(worker: Worker, changed: Sequence[Stored]) -> None:
    """Pass the lineage of changed objects, which is the same for all, on to everything that shares their memory."""
    memory = {key for entry in changed for key in memory_of(entry.value)}
    for entry in worker.object_store.entries() if memory else ():
        if not memory.isdisjoint(memory_of(entry.value)) and entry not in changed:
            entry.access, entry.sources = lineage_of([entry, changed[0]])
            entry.touched = True
            worker.object_store.note(entry)


def _version(value: object) -> int | None:
    """Return how often a tensor was changed, or None if that is not counted."""
    end = plain_end(value)
    return 0 if end is None else change_count(end)


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
