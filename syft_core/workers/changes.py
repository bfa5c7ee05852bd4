"""What an operation changes besides making results: targets, running statistics, whatever shares their memory.

Restrictions and lineage follow the data there too.
"""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import SyftError
from syft_core.hook.chain import plain_end
from syft_core.workers.execution import Execution
from syft_core.workers.memory import Compute, memory_of
from syft_core.workers.store import Lineage, Stored, lineage_of
from syft_core.workers.worker import Worker


def run_noting(execution: Execution, compute: Compute) -> Any:
    """Run an operation, and let what it changes take over the lineage of all its operands."""
    worker, parents, lineage = execution.worker, execution.parents, execution.lineage
    alike = worker.own_policy is None and all(parent.access is lineage[0] for parent in parents)
    before = [] if alike else [_version(parent.value) for parent in parents]
    started = True
    try:
        return compute()
    except SyftError:
        started = False
        raise
    finally:  # What fails may have changed something before.
        if started:
            note_changes(execution, lineage)
        for parent, version in zip(parents, before, strict=not alike):
            if version is None or _version(parent.value) != version:
                change(worker, parent, lineage)


def note_changes(execution: Execution, lineage: Lineage) -> None:
    """Let what an operation changed take over the lineage of all its operands."""
    for target in execution.targets():
        change(execution.worker, target, lineage)


def run_marking(execution: Execution, lineage: Lineage, compute: Compute) -> Any:
    """Run an operation in the place of one that failed, and let all that it changes, or was to change, show it."""
    worker, parents = execution.worker, execution.parents
    before = [_version(parent.value) for parent in parents]
    result = compute()
    changed = [parent for parent, old in zip(parents, before, strict=True) if _version(parent.value) != old]
    for entry in [*changed, *execution.targets()]:
        change(worker, entry, lineage)
        _spread(worker, entry)
    return result


def change(worker: Worker, target: Stored, lineage: Lineage) -> None:
    """Let an object, and what shares its memory, take over the lineage of what was written into it."""
    access, sources = lineage
    before, target.access, target.sources = target.access, access, sources
    target.touched = True
    if access != before or worker.own_policy is not None:
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
