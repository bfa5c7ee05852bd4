"""The handler of ``Run``: run an operation of the op table on stored objects."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError, ValueRefusedError, WorkerError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_below, plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.hook.forms import Form, form, is_constant
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.ranks import framework_types
from syft_core.hook.rules import build_rule, is_flat, leaves, map_leaves
from syft_core.messages import MAX_RESULTS, Placed, Run
from syft_core.peer import Id, Peer
from syft_core.pointers.object_pointer import Here, id_here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.private import get_allowed_users, remove_restriction
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.changes import note_changes, run_and_track
from syft_core.workers.disclosure import compute_undisclosed, infer_forms, require_undisclosed
from syft_core.workers.execution import Execution
from syft_core.workers.failures import answer_failure
from syft_core.workers.gradients import run_backward
from syft_core.workers.memory import clear, confine, guard, guard_results
from syft_core.workers.permissions import (
    may_change,
    may_leave,
    require_right_to_change,
    require_right_to_use,
    unless_private,
)
from syft_core.workers.requests import Elsewhere, Process
from syft_core.workers.store import Lineage, Stored, lineage_of
from syft_core.workers.transfer import ends_elsewhere, rebuild, require_elsewhere
from syft_core.workers.worker import Worker

COMMAND_ARGUMENT = frozenset({"a command's argument"})
"""The source of a chain that is not stored here, but was sent as an argument of a command."""


def run(worker: Worker, message: Run, sender: Peer) -> Nested:
    """Run an operation on stored objects, and store the tensors of its result.

    Torch modes of a caller in the same process must not see the worker's tensors.
    """
    framework = worker.attributes_of(message.framework)
    if (isolated := framework.isolate()) is not None:
        with isolated:
            return run(worker, message, sender)
    op = framework.ops.by_name.get(message.op) or framework.command(message.op)
    if op.is_special:
        require_command(worker, op, framework)
    if message.modes is not None and message.modes == framework.modes():
        message.modes = None
    parents: list[Stored] = []
    operands: list[Tensor] = []
    args, kwargs = resolve(worker, message.args, parents, operands, message), message.kwargs or {}
    if kwargs and not NUMBERS.issuperset(map(type, kwargs.values())):
        kwargs = dict(zip(kwargs, resolve(worker, tuple(kwargs.values()), parents, operands, message), strict=True))
    worker.stats.operations += 1
    if op.tier != "reviewed" or worker.guard is not None or worker.custom_policy is not None:
        _require_right_to_run(worker, message, op, args, kwargs, sender, parents)
    lineage = lineage_of(parents)
    plain = worker.custom_policy is None and lineage[0] is None
    involves_others, peer = bool(sender.behalf), sender.id
    for parent in parents:
        plain = plain and parent.is_plain
        involves_others = involves_others or parent.holder != peer or parent.published or parent.guard is not None
    only_computes = plain and op.only_computes and message.modes is None
    if only_computes and not ((op.writes or "out" in kwargs) and op.targets(args, kwargs)):  # the fast path
        result = op.run(*args, **kwargs)
        if not involves_others and framework_types.get(type(result)):
            return keep(worker, result, message.result, sender, lineage)
        reply = keep_results(worker, op.name, result, message.result, sender, lineage)
        if involves_others:
            guard_results(worker, sender, parents, reply)
        return reply
    execution = Execution(worker, op, message, sender, args, kwargs, parents, operands, lineage, involves_others, plain)
    require_writable(execution)
    return _change(execution) if only_computes else _run_execution(execution)


def _run_execution(execution: Execution) -> Nested:
    """Run an operation that may be private or change something, here or on the worker of its pointers."""
    for parent in execution.parents:
        if not parent.is_plain and ends_elsewhere(parent.value):
            return _run_elsewhere(execution)
    return _run_here(execution)


def require_writable(execution: Execution) -> None:
    """Raise unless the sender may change all targets; ``run_backward`` checks gradients."""
    op, sender = execution.op, execution.peer
    is_own = not execution.involves_others and execution.worker.custom_policy is None
    if is_own or op.accumulates:
        return
    alters = op.retains or op.alters_autograd
    changed = [*execution.targets(), *(execution.parents[:1] if alters else ())]
    for parent, operand in zip(execution.parents, execution.operands, strict=True):
        if any(parent is entry for entry in changed):
            require_right_to_change(execution.worker, parent, sender, operand)


def _change(execution: Execution) -> Nested:
    """Run an operation without private operands that changes some of its arguments."""
    try:
        result = execution.compute()
    finally:  # A failing operation may have changed something first.
        note_changes(execution, execution.lineage)
    return _keep(execution, result, execution.lineage)


def _require_right_to_run(
    worker: Worker, message: Run, op: Op, args: Args, kwargs: Kwargs, sender: Peer, parents: list[Stored]
) -> None:
    require_right_to_use(worker, parents, sender)
    if worker.guard is not None:
        worker.guard.check(message, op, args, kwargs, sender)
    if op.tier != "reviewed":
        _require_trust(worker, op, sender, parents)


def _require_trust(worker: Worker, op: Op, sender: Peer, parents: list[Stored]) -> None:
    """Refuse an unreviewed operation unless the sender may have all operands and all private objects on the worker."""
    store = worker.object_store
    if not may_leave(worker, parents, sender):
        raise ValueRefusedError.unreviewed(op.name, str(worker.id))
    private = [entry for entry in store.entries() if entry.access is not None] if store.has_private else []
    if any(unless_private("read", entry, party, entry.value) for entry in private for party in sender.chain):
        raise ValueRefusedError.unreviewed(op.name, str(worker.id))


def require_command(worker: Worker, op: Op, framework: FrameworkAttributes) -> None:
    """Raise if an operation may not run on a worker."""
    if op.reveals:
        raise ValueRefusedError.of(op.name, str(worker.id))
    if op.local or (op.spelling == "getter" and op.attr == framework.gradient):
        raise ValueRefusedError.only_local(op.name, str(worker.id))
    if op.tier == "off":
        raise OperationNotAllowedError.off(op.name)


def _run_here(execution: Execution) -> Nested:
    """Run an operation whose operands are all here; return its answer, or a process that needs other parties."""
    lineage = execution.lineage
    try:
        result = run_tracked(execution)
    except Exception as error:  # noqa: BLE001  # the sender may not be allowed to see it
        result, lineage = answer_failure(execution, error)
    if hasattr(result, "throw"):
        return _keep_later(execution, result)
    return _keep(execution, result, lineage)


def _keep_later(execution: Execution, process: Process) -> Process:
    result = yield from process
    return _keep(execution, result, execution.lineage)


def _run_elsewhere(execution: Execution) -> Process:
    """Run an operation on stored pointers: their worker runs it, and pointers to the results are stored here."""
    if not execution.is_readable:
        require_undisclosed(execution)
    outcome = yield Elsewhere(partial(_try_compute, execution))
    if isinstance(outcome, Exception):
        if execution.is_readable:
            raise outcome
        raise ValueRefusedError.undecided(execution.op.name, str(execution.worker.id)) from None
    note_changes(execution, execution.lineage)
    return _keep(execution, outcome, execution.lineage)


def _try_compute(execution: Execution) -> Nested:
    try:
        return execution.compute()
    except Exception as error:  # noqa: BLE001  # the caller decides what to disclose
        return error


def _keep(execution: Execution, result: Nested, lineage: Lineage) -> Nested:
    """Store the results of an operation, and return the reply to the sender."""
    op, kwargs, message = execution.op, execution.kwargs, execution.message
    worker, peer, parents = execution.worker, execution.peer, execution.parents
    if execution.involves_others and op.alters_autograd:
        for target in execution.targets():
            guard(target, [parent for parent in parents if not may_change(worker, parent, peer)])
    if result is None or op.inplace or (kwargs and kwargs.get("out") is not None):
        return None
    if not (op.states_fact or execution.is_readable) and any(_is_plain_value(leaf) for leaf in leaves(result)):
        raise ValueRefusedError.of(op.name, str(execution.worker.id))
    reply = keep_results(worker, op.name, result, message.result, peer, lineage)
    if execution.involves_others:
        guard_results(worker, peer, parents, reply)
    return reply


def _is_plain_value(leaf: Tensor) -> bool:
    """Return whether a part of a result is a value other than a tensor or None."""
    return leaf is not None and leaf is not NotImplemented and not build_rule(leaf)


def run_tracked(execution: Execution) -> Nested:
    """Run an operation, and update the restrictions and the lineage of everything it changes."""
    op, compute = execution.op, execution.compute
    if op.clears_gradient(execution.args):
        result = compute()
        _note_autograd(execution)
        return result
    if not execution.is_readable:
        require_undisclosed(execution)
        compute = partial(compute_undisclosed, execution, infer_forms(execution))
    if op.uninitialized:
        return clear(compute())
    if op.accumulates:
        return run_backward(execution, compute)
    if op.reads_beyond:
        compute = confine(execution, compute)
    result = run_and_track(execution, compute)
    if op.alters_autograd or op.retains:
        _note_autograd(execution)
    return result


def _note_autograd(execution: Execution) -> None:
    """Record that the autograd state of objects has changed, or that an attribute was set."""
    worker, message = execution.worker, execution.message
    for parent in execution.parents:
        worker.object_store.note(parent)
    if execution.op.spelling == "setter":
        worker.note_gradient_change(message, execution.peer)
        if execution.op.operation != execution.framework.gradient:
            worker.note_form_change(message, execution.peer)


# --- operands


def _require_framework(message: Run | None, value: Tensor) -> None:
    """Refuse a tensor of another framework: the result could share its memory, which neither would recognize."""
    if message is not None and (found := framework_of(value).ALIAS) != message.framework:
        raise MixedLayersError.frameworks(message.op, message.framework, found)


def resolve(
    worker: Worker, args: Sequence[Any], parents: list[Stored], operands: list[Tensor], message: Run | None = None
) -> tuple[Any, ...]:
    """Replace pointers to this worker by their objects; append those to ``parents``, and the values to ``operands``.

    The tensors must belong to the framework of ``message``.
    """
    values = []
    store = worker.object_store
    alias = None if message is None else message.framework
    for arg in args:
        cls = type(arg)
        if cls is Here or (cls is PointerTensor and arg._location.id == worker.id):
            entry = store.get(arg._id_at_location) or store.entry(arg._id_at_location)
            parents.append(entry)
            value, attr = entry.value, arg.point_to_attr
            known = frameworks_of_types.get(type(value))
            if known is None or alias != known.ALIAS:
                _require_framework(message, value)
            if attr is not None:
                value = attribute(value, attr)
            if not entry.is_plain:
                value = remove_restriction(value)
            if attr is not None:
                value = _alias(value)
            operands.append(value)
            values.append(value)
        elif cls in NUMBERS:
            values.append(arg)
        elif cls is list or cls is tuple:
            values.append(cls(resolve(worker, arg, parents, operands, message)))
        else:
            values.append(map_leaves(partial(_resolve_leaf, worker, parents, operands, message), arg))
    return tuple(values)


NUMBERS = frozenset({int, float, bool, str, type(None)})


def _resolve_leaf(
    worker: Worker, parents: list[Stored], operands: list[Tensor], message: Run | None, leaf: Tensor
) -> Nested:
    if (id := id_here(leaf, worker.id)) is not None:
        entry = worker.object_store.entry(id)
        _require_framework(message, entry.value)
        parents.append(entry)
        value = remove_restriction(attribute(entry.value, leaf.point_to_attr))
        operands.append(value if leaf.point_to_attr is None else _alias(value))
        return operands[-1]
    if getattr(leaf, "child", None) is not None:  # A chain in the message may restrict what is computed from it.
        require_elsewhere(worker, leaf)
        _require_framework(message, leaf)
        parents.append(entry := Stored(leaf, None))
        operands.append(remove_restriction(leaf))
        entry.access, entry.sources = get_allowed_users(leaf), COMMAND_ARGUMENT
        return operands[-1]
    if is_framework_tensor(type(leaf)):
        _require_framework(message, leaf)
    return leaf


def attribute(value: object, name: str | None) -> Tensor:
    """Return ``value``, or its gradient, the only attribute that pointers may refer to."""
    if name is None:
        return value
    framework = framework_of(value)
    if name != framework.gradient:
        raise ValueRefusedError.only_local(f"reading {name!r}", "the worker")
    return framework.method(name).run(value) if is_framework_tensor(type(value)) else getattr(value, name, None)


def _alias(value: Tensor) -> Tensor:
    """Return another tensor with the memory and the history of an attribute.

    A gradient must not become an object itself: that could be made to need gradients, which nobody tracks after it was
    removed.
    """
    if is_framework_tensor(type(value)):
        return framework_of(value).alias(value)
    return value if plain_end(value) is None else rebuild(value, _alias)


# --- results


def keep_results(worker: Worker, op: str, result: Nested, first: int, holder: Peer, lineage: Lineage) -> Nested:
    """Store the tensors of ``result`` under the ids from ``first`` on; return it with placeholders for them.

    Anything else must be a fact about form. No result of an operation leaves the worker except through here.
    """
    cls = type(result)
    if is_framework_tensor(cls):
        return keep(worker, result, first, holder, lineage)
    if result is None:
        return None
    if is_flat(cls):
        if build_rule(result):
            return keep(worker, result, first, holder, lineage)
        _require_facts(worker, op, (result,))
        return result
    parts = leaves(result)
    kept = [leaf for leaf in parts if build_rule(leaf)]
    if len(kept) > MAX_RESULTS:
        raise WorkerError(f"cannot keep {len(kept)} results of {op!r}: the limit is {MAX_RESULTS}; make fewer parts")
    _require_facts(worker, op, [leaf for leaf in parts if not build_rule(leaf)])
    worker.object_store.require_free(range(first, first + len(kept)))
    ids = itertools.count(first)
    return map_leaves(lambda leaf: keep(worker, leaf, next(ids), holder, lineage) if build_rule(leaf) else leaf, result)


def keep(worker: Worker, value: object, id: int, holder: Peer, lineage: Lineage) -> Placed:
    """Store one tensor, and return its placeholder for the reply."""
    entry = Stored(value, holder.id)
    if holder.behalf:
        entry.giver = holder
    entry.access, entry.sources = lineage
    worker.object_store.put(id, entry)
    return Placed(id)


def set_owner(worker: Worker, value: Any, id: Id) -> None:
    """Set the id and the owner of a value, if its type has them."""
    if hasattr(type(value), "_syft_id"):
        is_plain = framework_types.get(type(value)) or is_framework_tensor(type(value))
        value._syft_id, value._syft_owner = id, worker.id if is_plain else worker


def form_of(value: object) -> Form | None:
    """Return the form of an object, without strides if the form does not describe it completely."""
    if value is None:
        return None
    plain = plain_below(value)
    known = None if plain is None else framework_of(plain).form_of(plain)
    if known is not None:
        return known
    dtype, device = (
        (None, None) if plain is not None else (getattr(value, "dtype", None), getattr(value, "device", None))
    )
    place = bool(getattr(value, "requires_grad", False)), bool(getattr(value, "is_leaf", True))
    try:
        shape = getattr(value, "shape", None)
    except RuntimeError:  # A nested tensor has no shape.
        shape = None
    return form(shape, None, dtype, device, *place)


def describe_placed(worker: Worker, result: Nested) -> Nested:
    """Add forms to the placeholders in a result, for clients in other processes."""
    if type(result) is Placed:
        return replace(result, form=form_of(worker.object_store.entry(result.id).value))
    return result if is_flat(type(result)) else map_leaves(partial(describe_placed, worker), result)


def _require_facts(worker: Worker, op: str, parts: Any) -> None:
    """Refuse results that may be values; the op table lists the operations whose booleans depend on values."""
    if not all(map(is_constant, parts)):
        raise ValueRefusedError.of(op, str(worker.id))
