"""Track what an operation changes in place: targets, running statistics, and everything that shares their memory.

Changed objects inherit the restrictions and the lineage of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.exceptions import SyftError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.values import Nested
from syft_core.workers.party.derivations import Derivation
from syft_core.workers.party.status import RESTRICTED
from syft_core.workers.party.store import UNRESTRICTED, Lineage, Stored, lineage_of, restrictions_of
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.derivation import note_write
from syft_core.workers.road.execution import Execution, restore_if_failed, snapshot_forms
from syft_core.workers.road.memory import Compute, change_count, is_seen_elsewhere


def track(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation; every object that it changes inherits the lineage of all operands."""
    if execution.op.clears_gradient(execution.args):
        result = proceed(execution)
        _note_autograd(execution)
        return result
    worker, parents, lineage = execution.worker, execution.parents, execution.lineage
    restrictions = restrictions_of(lineage)
    alike = not execution.status & RESTRICTED or (
        worker.custom_policy is None and all(parent.restrictions == restrictions for parent in parents)
    )
    if execution.status & RESTRICTED and _may_reach_others(execution):
        _invalidate_graphs(execution)
    if execution.op.alters_autograd:
        worker.object_store.index_memory()
    before = [] if alike else [_version(parent.value) for parent in parents]
    started = True
    try:
        result = _run_and_compare(proceed, execution) if execution.written else proceed(execution)
    except SyftError:
        started = False
        raise
    finally:  # A failing operation may have changed something first.
        if started and execution.written:
            note_changes(execution, lineage)
        for parent, version in zip(parents, before, strict=not alike):
            if version is None or _version(parent.value) != version:
                end = plain_end(parent.value)
                is_seen = end is not None and is_seen_elsewhere(worker, [parent], [end])
                is_target = any(parent is target for target in execution.targets())
                change(worker, [parent], lineage, parent.derivation if is_target else execution.derivation, is_seen)
    if execution.op.alters_autograd or execution.op.retains:
        _note_autograd(execution)
    return result


def _run_and_compare(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation that writes; if a form changes, notify clients in other processes, which cache forms."""
    worker, written = execution.worker, execution.written
    forms = snapshot_forms(written) if worker.sessions else None
    try:
        with restore_if_failed(execution.ends):
            return proceed(execution)
    finally:  # A failing operation may have changed a form first.
        if forms is not None and forms != snapshot_forms(written):
            worker.note_form_change(execution.count, execution.peer)


def _note_autograd(execution: Execution) -> None:
    worker, store = execution.worker, execution.worker.object_store
    store.note_move(*execution.parents)
    for parent in execution.parents:
        store.note(parent)
        if execution.op.retains:
            store.note_retained(plain_end(parent.value))
    if execution.op.spelling == "setter":
        worker.note_gradient_change(execution.count, execution.peer)
        if execution.op.operation != execution.framework.gradient:
            worker.note_form_change(execution.count, execution.peer)


def _may_reach_others(execution: Execution) -> bool:
    """Return whether values may be written into memory of objects with other restrictions, or memory be replaced.

    An object may be the same tensor as another one with fewer restrictions.
    """
    op, restrictions = execution.op, restrictions_of(execution.lineage)
    if len(execution.parents) < 2 or not execution.written:
        return False
    if op.alters_autograd:
        return op.operation != execution.framework.gradient
    found = [[target, *execution.worker.object_store.find_sharing(target.value)] for target in execution.targets()]
    return any(entry.restrictions != restrictions for entries in found for entry in entries)


def _invalidate_graphs(execution: Execution) -> None:
    """Make backward passes fail that need the old values of the targets, before these become restricted.

    The lineage of their results is that of the old values, and the framework does not notice all writes.
    """
    for end in [end for target in execution.written if (end := plain_end(target)) is not None]:
        for sharing in (end, *[plain_end(entry.value) for entry in execution.worker.object_store.find_sharing(end)]):
            framework_of(sharing).note_write(sharing)


def note_changes(execution: Execution, lineage: Lineage) -> None:
    """Set the lineage of the operation's targets."""
    worker, targets = execution.worker, execution.targets()
    # If the only operand is the target, what shares its memory already has its lineage, but not its derivation.
    is_joint = len(execution.parents) > 1 or worker.object_store.has_derivations
    is_seen = is_joint and is_seen_elsewhere(worker, targets, execution.ends)
    change(worker, targets, lineage, execution.derivation, is_seen)


def run_and_mark_failed(execution: Execution, compute: Compute) -> Nested:
    """Run the substitute for a failed operation; mark all changed objects and all targets as failed."""
    worker, parents, lineage = execution.worker, execution.parents, execution.lineage
    before = [_version(parent.value) for parent in parents]
    result = compute()
    changed = [parent for parent, old in zip(parents, before, strict=True) if _version(parent.value) != old]
    failed = [*changed, *execution.targets()]
    change(worker, failed, lineage, execution.derivation)
    propagate(worker, failed, execution.derivation)
    return result


def change(
    worker: Worker,
    targets: Sequence[Stored],
    lineage: Lineage,
    derivation: Derivation | None = None,
    is_seen: bool = False,
) -> None:
    """Set the lineage of objects after a write, and the derivation of what was written.

    If other objects may see the write (``is_seen``), or restrictions change, also set the lineage of everything that
    shares memory with them.
    """
    restrictions = restrictions_of(lineage)
    store = worker.object_store
    is_seen = is_seen or worker.custom_policy is not None
    store.note_move(*targets)
    for place, target in enumerate(targets):
        is_seen = is_seen or target.restrictions != restrictions
        target.lineage, target.touched = lineage, True
        if derivation is None:
            note_write(target, None)
        else:
            target.derivation = derivation.part(place)
        if restrictions != UNRESTRICTED or store.listener is not None:
            store.note(target, written=True)
    if is_seen:
        propagate(worker, targets, derivation)


def propagate(worker: Worker, changed: Sequence[Stored], derivation: Derivation | None) -> None:
    """Pass the common lineage of changed objects on to everything that shares their memory."""
    store = worker.object_store
    found = {id(entry): entry for target in changed for entry in store.find_sharing(target.value)}
    for entry in found.values():
        if not any(entry is other for other in changed):
            entry.lineage, entry.touched = lineage_of([entry, changed[0]]), True
            note_write(entry, derivation)
            store.note(entry)


def _version(value: object) -> int | None:
    end = plain_end(value)
    return 0 if end is None else change_count(end)
