"""The shortcut of operations on plain objects of a worker in this process that need no check and leave no record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import frameworks_of_types
from syft_core.hook.facts import WRITES_FIRST
from syft_core.hook.hook_args import wrap_response
from syft_core.hook.rules import map_leaves
from syft_core.peer import behalf
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at, pointer_for
from syft_core.values import Args, Function, Kwargs, LayerType, Nested, Tensor
from syft_core.workers.changes import propagate
from syft_core.workers.gradients import accumulate
from syft_core.workers.local import LocalLocation
from syft_core.workers.memory import is_seen_elsewhere
from syft_core.workers.requests import drive
from syft_core.workers.running import NUMBERS, keep_results
from syft_core.workers.store import Sources, Stored, join_sources
from syft_core.workers.trace import traces

if TYPE_CHECKING:
    from syft_core.workers.base import BaseWorker

UNANSWERED = object()


def compute(wrapper: LayerType, op: Op, args: Args, kwargs: Kwargs, run: Function | None = None) -> Nested:
    """Run an operation on pointers, or return ``UNANSWERED`` if that takes more than a shortcut.

    It replaces ``dispatch``, ``PointerTensor.respond`` and the handler of ``Run`` where these would only look up the
    operands, run the operation and store the result: each condition excludes something else that they do.

    If ``run`` is given, it is called instead of the operation. It must write to the same operands, and read nothing but
    the operands and their gradients.
    """
    first: Any = args[0] if args else None
    if type(first) is list and first:
        first = first[0]
    pointer = first.child if type(first) is wrapper else first
    if type(pointer) is not PointerTensor or type(location := pointer._location) is not LocalLocation:
        return UNANSWERED
    worker = location.worker
    if not _is_simple(op, pointer.framework, worker, args, kwargs):
        return UNANSWERED
    parents: dict[int, Stored] = {}
    with worker.lock:
        if worker.dropped:
            worker.object_store.release(worker.dropped)
        operands = _look_up(args, wrapper, pointer.framework, location, parents)
        if operands is None:
            return UNANSWERED
        if not op.is_plain:
            result = _change_gradients(op, operands, kwargs, list(parents.values()), location)
        else:
            targets = _find_targets(op, operands, kwargs) if op.writes else ()
            if targets and (not op.inplace or worker.sessions or worker.object_store.listener is not None):
                return UNANSWERED
            worker.stats.messages += 1
            worker.stats.operations += 1
            sources = join_sources(parents.values())
            try:
                result = (run or op.run)(*operands, **kwargs)
            finally:  # A failing operation may have changed something first.
                if targets:
                    written = _note_written(targets, parents, sources)
                    # If the target is all that was read, what shares its memory already has its lineage.
                    if (run or len(parents) > 1) and is_seen_elsewhere(worker, written, targets):
                        propagate(worker, written)
            return args[0] if op.inplace else _keep(wrapper, op, pointer, location, result, sources)
    return drive(worker.step(result, location.client.peer)) if type(result) is GeneratorType else result


def _is_simple(op: Op, framework: FrameworkAttributes, worker: BaseWorker, args: Args, kwargs: Kwargs) -> bool:
    """Return whether nothing but its operands can make a command need more than a shortcut."""
    return (
        (op.is_plain or op.accumulates or op.clears_gradient(args))
        and not (worker.is_attended or traces or behalf.get())
        and not (kwargs and not NUMBERS.issuperset(map(type, kwargs.values())))
        and framework.is_attached
        and framework.ops.by_name.get(op.name) is op
        and op.attr not in framework.facts_of_form
        and framework.isolate() is None
    )


def _find_targets(op: Op, operands: list[Tensor], kwargs: Kwargs) -> list[Tensor]:
    """Return the operands that a call may change, as a flat list."""
    if op.inplace and op.writes is WRITES_FIRST and not op.writes_if:  # None of the options is a tensor.
        return operands[0] if type(operands[0]) is list else operands[:1]
    return op.targets(operands, kwargs)


def _note_written(targets: list[Tensor], parents: dict[int, Stored], sources: Sources) -> list[Stored]:
    """Set the lineage of the objects that were written to, and return them."""
    written: list[Stored] = []
    for target in targets:
        if (entry := parents.get(id(target))) is not None:
            entry.sources, entry.touched = sources, True
            written.append(entry)
    return written


def _change_gradients(
    op: Op, operands: list[Tensor], kwargs: Kwargs, parents: list[Stored], location: LocalLocation
) -> Nested:
    """Run a backward pass, or clear the gradients of objects; there is no result to store."""
    worker = location.worker
    if op.tier != "reviewed" or worker.sessions or worker.object_store.listener is not None:
        return UNANSWERED
    if location.gradients:  # Gradients that the program refers to may have to be kept.
        return UNANSWERED
    worker.stats.messages += 1
    worker.stats.operations += 1
    if op.accumulates:
        run = partial(op.run, *operands, **kwargs)
        return accumulate(worker, location.client.peer, parents, (None, join_sources(parents)), run)
    op.run(*operands, **kwargs)
    return None


def _keep(
    wrapper: LayerType, op: Op, pointer: PointerTensor, location: LocalLocation, result: object, sources: Sources
) -> Nested:
    """Store the tensors of a result, and return it with wrapped pointers to them."""
    first, client, framework = new_id(), location.client, pointer.framework
    if frameworks_of_types.get(type(result)) is not framework:
        reply = keep_results(location.worker, op.name, result, first, client.peer, (None, sources))
        return wrap_response(op.name, map_leaves(lambda leaf: pointer_for(leaf, pointer), reply), wrapper, {})
    entry = Stored(result, client.id)
    entry.sources = sources
    location.worker.object_store.put(first, entry)
    return wrapper(pointer_at(location, first, framework, pointer._syft_owner))


def _look_up(
    args: Sequence[Any],
    wrapper: LayerType,
    framework: FrameworkAttributes,
    location: LocalLocation,
    parents: dict[int, Stored],
) -> list[Tensor] | None:
    """Return the operands, or None if one is not a number or a plain object of the sender, at ``location``.

    Add the objects to ``parents``, by the Python ids of the operands. Gradients are replaced by aliases, because an
    operation may keep its operands, and the object to which a gradient belongs must not share it.
    """
    operands: list[Tensor] = []
    get, holder = location.worker.object_store.get, location.client.id
    for arg in args:
        cls = type(arg)
        if cls is wrapper or cls is PointerTensor:
            pointer = arg.child if cls is wrapper else arg
            if type(pointer) is not PointerTensor or pointer._location is not location or pointer.gone is not None:
                return None
            entry = get(pointer._id_at_location)
            if (
                entry is None
                or entry.holder != holder
                or entry.access is not None
                or entry.published
                or entry.guard is not None
                or frameworks_of_types.get(type(entry.value)) is not framework
            ):
                return None
            value, whole = entry.value, pointer.whole
            if whole is not None:
                is_gradient = pointer.point_to_attr == framework.gradient and whole.gone is None
                value = value.grad if is_gradient else None
                if value is None:
                    return None
                value = framework.alias(value)
            if parents.setdefault(id(value), entry) is not entry:  # It is stored under several ids.
                return None
            operands.append(value)
        elif cls in NUMBERS:
            operands.append(arg)
        else:
            inner = _look_up(arg, wrapper, framework, location, parents) if cls is list else None
            if inner is None:
                return None
            operands.append(inner)
    return operands
