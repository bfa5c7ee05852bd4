"""Call a function of the owner on stored objects, in stages.

authorize   refuse functions and objects that the sender may not use
keep        store the tensors of the result; other values leave if the sender may read all that they depend on
conceal     an error does not disclose private values
run         call the function
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.messages import Call
from syft_core.peer import Peer, acting_for
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.values import Nested, Tensor
from syft_core.workers.moving.departure import Leaving, leave, record_failure
from syft_core.workers.moving.transfer import hand_over, is_tensor
from syft_core.workers.party.derivations import Derivation, make_call_action
from syft_core.workers.party.status import FORM_ONLY, RESTRICTED
from syft_core.workers.party.store import Stored, lineage_of, restrictions_of, share_memory
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.derivation import derivation_of
from syft_core.workers.road.failures import is_safe_to_raise
from syft_core.workers.road.keeping import keep_tensor
from syft_core.workers.road.memory import guard_results, require_data
from syft_core.workers.road.procedure import execute, register_stages
from syft_core.workers.road.task import Task
from syft_core.workers.seeing.ledger import Departure
from syft_core.workers.seeing.permissions import may_leave, require_permission, require_right_to_use


class FunctionCall(Task):
    """The task of calling a function that the owner has stored; the function is the first of its parents."""

    __slots__ = ("args", "kwargs", "message")

    def __init__(self, worker: Worker, message: Call, sender: Peer) -> None:
        entry = worker.object_store.entry(message.id)
        if not isinstance(entry.value, ObjectWrapper):
            raise ValueRefusedError.only_local("call", str(worker.id), f"object {message.id!r} is not a function")
        super().__init__(worker, sender, "call", [entry])
        self.message, self.name = message, f"a call of {message.id!r}"
        self.args = self.resolve(message.args)
        self.kwargs = dict(zip(message.kwargs, self.resolve(tuple(message.kwargs.values())), strict=True))


def call(worker: Worker, message: Call, sender: Peer) -> Nested:
    """Call a callable stored by the worker's owner, on stored objects.

    Tensors in the result stay here. Other values leave if the caller may read everything they were computed from.
    """
    return execute(FunctionCall(worker, message, sender))


def _authorize(proceed: Stage, task: FunctionCall) -> Nested:
    entry, *operands = task.parents
    require_permission(task.worker, "call", entry, task.peer, entry.value)
    require_right_to_use(task.worker, operands, task.peer)
    return proceed(task)


def _keep(proceed: Stage, task: FunctionCall) -> Nested:
    derivation = _derive(task) if task.status & RESTRICTED else None
    result = proceed(task)
    worker, sender, parents, message = task.worker, task.peer, task.parents, task.message
    if any(leaf is not None and not build_rule(leaf) for leaf in leaves(result)):
        _let_values_leave(task, result)
    kept = sum(1 for leaf in leaves(result) if build_rule(leaf))
    worker.object_store.require_free(range(message.result, message.result + kept))
    lineage, ids = lineage_of(parents), itertools.count(message.result)
    places = itertools.count()

    def keep_leaf(leaf: Tensor) -> Nested:
        if not build_rule(leaf):
            return leaf
        kept = hand_over(leaf, worker) if _is_foreign(leaf, task.operands) else leaf
        placed = keep_tensor(worker, kept, next(ids), sender, lineage)
        if derivation is not None:
            worker.object_store.entry(placed.id).derivation = derivation.part(next(places))
        return replace(placed, framework=framework_of(leaf).ALIAS)

    reply = map_leaves(keep_leaf, result)
    guard_results(worker, sender, parents, reply)
    return reply


def _derive(task: FunctionCall) -> Derivation:
    """Return how the result of a call is computed."""
    operands = tuple(map(derivation_of, task.parents[1:]))
    return Derivation(make_call_action(task.message.id, task.args, task.kwargs), operands)


def _is_foreign(result: Tensor, operands: Sequence[Tensor]) -> bool:
    """Return whether a result may share memory with an operand in a way that its framework does not recognise.

    No framework recognises the memory of another one: `torch.from_numpy` shares that of an array.
    """
    framework = framework_of(result)
    if any(is_tensor(each) and framework_of(each) is not framework for each in operands):
        return True
    end = plain_end(result)
    is_known = any(share_memory(result, each) for each in operands if is_tensor(each))
    return end is not None and framework.is_borrowed(end) and not is_known


def _let_values_leave(task: FunctionCall, result: Any) -> None:
    """Let the values in a result leave with the answer; no rule covers them, as they were not stored or reviewed."""
    values = [leaf for leaf in leaves(result) if not build_rule(leaf)]
    whole = Stored(values[0] if len(values) == 1 else values, task.holder, lineage_of(task.parents))
    whole.id = task.message.id
    leaving = Leaving(
        task.worker,
        "read",
        task.message,
        task.peer,
        [Departure(parent, result) for parent in task.parents],
        reason="result of a call",
        shown=[Departure(whole, None)],
        asks_rules=False,
        error=ValueRefusedError.of(task.name, str(task.worker.id)),
    )
    leave(leaving)


def _conceal(proceed: Stage, task: FunctionCall) -> Nested:
    """Replace an error about objects that the sender may not have: its text and its type may depend on their values.

    The failure itself depends on them, too, but cannot be hidden: the ledger records it.
    """
    try:
        return proceed(task)
    except Exception as error:
        if is_safe_to_raise(error) or may_leave(task.worker, task.parents, task.peer):
            raise
        record_failure(task.worker, task.parents[0], task.peer, "a call that failed")
        raise ValueRefusedError.failed(task.name, str(task.worker.id), "an error") from None


def _run(task: FunctionCall) -> Nested:
    args, kwargs = _protect(task)
    with acting_for(task.peer.chain):
        return task.parents[0].value.obj(*args, **kwargs)


def _protect(task: FunctionCall) -> Nested:
    """Return the arguments, with copies of those that are less restricted than all of them together.

    The function may write into any argument or gradient, without declaring it.
    """
    worker, peer, operands = task.worker, task.peer, list(zip(task.parents, task.operands, strict=True))[1:]
    restrictions = restrictions_of(lineage_of(task.parents[1:]))
    is_kept = worker.custom_policy is not None and not may_leave(worker, task.parents[1:], peer)
    copies = {
        id(operand): hand_over(operand, worker)
        for parent, operand in operands
        if parent.restrictions != restrictions or (is_kept and may_leave(worker, [parent], peer))
    }
    call = task.args, task.kwargs
    return map_leaves(lambda leaf: copies.get(id(leaf), leaf), call) if copies else call


def _list_stages(_op: None, status: int, _framework: None) -> list[Stage | None]:
    data = require_data if status & FORM_ONLY else None
    return [_authorize, data, _keep, _conceal if status & RESTRICTED else None, _run]


register_stages("call", _list_stages)
