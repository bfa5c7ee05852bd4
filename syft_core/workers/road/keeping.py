"""The stage that stores the tensors of a result; everything else in a result must be a fact about form."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from syft_core.exceptions import ValueRefusedError, WorkerError
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, form, is_constant
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.ranks import framework_types
from syft_core.hook.rules import build_rule, is_flat, leaves, map_leaves
from syft_core.messages import MAX_RESULTS, Placed
from syft_core.peer import Id, Peer
from syft_core.tensors.private import remove_restriction
from syft_core.values import Nested, Tensor
from syft_core.workers.party.status import OTHERS, OUT
from syft_core.workers.party.store import Lineage, Stored
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.memory import guard, is_new
from syft_core.workers.seeing.permissions import may_change


def keep(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation, store the tensors of its result, and return the reply to the sender."""
    result = proceed(execution)
    is_tensor = framework_types.get(type(result)) and not (execution.op.inplace or execution.status & OUT)
    if is_tensor and (not execution.status & OTHERS or is_new(result, execution)):
        return execution.store(result, 0)
    return keep_result(execution, result)


def keep_result(execution: Execution, result: Nested) -> Nested:
    """Store the tensors of a result, and return it with what ``store`` returned for each.

    Anything else must be a fact about form. No result of an operation leaves the worker except through here.
    """
    op, worker, peer = execution.op, execution.worker, execution.peer
    protected: Sequence[Stored] = ()
    if execution.status & OTHERS:
        protected = [parent for parent in execution.parents if not may_change(worker, parent, peer)]
    if protected and op.alters_autograd:
        for target in execution.targets():
            guard(target, protected)
    if result is None or op.inplace or execution.status & OUT:
        return None
    parts = [result] if is_flat(type(result)) else leaves(result)
    tensors = [part for part in parts if build_rule(part)]
    if len(tensors) < len(parts):
        _require_facts(execution, [part for part in parts if not build_rule(part)])
    if len(tensors) > MAX_RESULTS:
        raise WorkerError(
            f"cannot keep {len(tensors)} results of {op.name!r}: the limit is {MAX_RESULTS}; make fewer parts"
        )
    execution.require_free(len(tensors))
    places = itertools.count()

    def store(part: Tensor) -> Nested:
        if not build_rule(part):
            return part
        stored = execution.store(part, next(places))
        if protected:
            guard(execution.find_result(stored), protected)
        return stored

    return map_leaves(store, result)


def _require_facts(execution: Execution, parts: list[Any]) -> None:
    """Refuse results that may be values; the op table lists operations whose booleans depend on values."""
    op = execution.op
    if not (op.states_fact or execution.is_readable):
        parts = [part for part in parts if part is not None and part is not NotImplemented]
        if parts:
            raise ValueRefusedError.of(op.name, str(execution.worker.id))
    if not all(map(is_constant, parts)):
        raise ValueRefusedError.of(op.name, str(execution.worker.id))


def keep_tensor(worker: Worker, value: object, id: int, holder: Peer, lineage: Lineage) -> Placed:
    """Store one tensor, and return its placeholder for the reply."""
    entry = Stored(value, holder.id, lineage)
    if holder.behalf:
        entry.giver = holder
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
    plain = plain_below(remove_restriction(value))
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
