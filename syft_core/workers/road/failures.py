"""Handle failed operations without revealing values the caller may not see.

``torch.bernoulli(x - t)`` fails unless every value is between 0 and 1. A caller who sees that and chooses ``t`` can
find ``x`` by bisection. So callers who may not have the values get zeros of the inferred form, connected to autograd
like the real result. A ``FailedSource`` is added to the lineage of the zeros and of everything computed from them.

Whether an operation failed is a value, too. An object that leaves by a decision of the owner (a request, a rule, a
custom policy) leaves unchanged, zeros or not, recorded and counted like any other value. Only users who may have
everything that the zeros were computed from get the error instead.
"""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from syft_core.exceptions import DomainError, OperationFailedError, SyftError, ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.values import Nested, Tensor
from syft_core.workers.moving.transfer import rebuild
from syft_core.workers.party.status import ADDITIONS, FAILED
from syft_core.workers.party.store import FailedSource, Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.changes import run_and_mark_failed
from syft_core.workers.road.execution import Execution, restore_if_failed, snapshot_forms
from syft_core.workers.seeing.disclosure import DryRun, rehearse


def answer_failure(execution: Execution, error: Exception) -> Nested:
    """Return the substitute for a failed result, with its lineage, or raise the error if the sender may see it.

    Call it from the ``except`` block of ``error``.
    """
    op, worker = execution.op, execution.worker
    if is_safe_to_raise(error):
        raise  # noqa: PLE0704  # re-raises `error`
    if op.differentiates:  # Passes that can fail because of values were refused.
        if (about_graph := execution.framework.explain_backward(error)) is not None:
            _raise_without_context(about_graph)
        _raise_without_context(ValueRefusedError.failed(op.name, str(worker.id), type(error).__name__))
    try:
        rehearsal = rehearse(execution)
    except Exception as about_forms:  # noqa: BLE001  # no error of these depends on values
        _raise_without_context(about_forms)
    access, sources, inherited = execution.lineage
    execution.lineage = access, sources | {FailedSource(op.name, type(error).__name__)}, inherited | FAILED
    return run_and_mark_failed(execution, partial(_answer_zeros, execution, rehearsal))


def is_safe_to_raise(error: Exception) -> bool:
    """Return whether an error reveals no value: ours do not, except for a value outside a domain."""
    return isinstance(error, SyftError) and not isinstance(error, DomainError)


def _raise_without_context(error: Exception) -> NoReturn:
    """Raise an error without the one being handled, whose text may quote values."""
    try:
        raise error
    finally:
        error.__cause__ = error.__context__ = None


def _answer_zeros(execution: Execution, rehearsal: DryRun) -> Nested:
    framework, call = execution.framework, (execution.args, execution.kwargs)
    pairs = list(zip(leaves((rehearsal.args, rehearsal.kwargs)), leaves(call), strict=True))
    operands = [(plain_end(shadow), end) for shadow, leaf in pairs if (end := plain_end(leaf)) is not None]
    written = [
        (plain_end(leaf), plain_end(shadow))
        for shadow, leaf in pairs
        if plain_end(leaf) is not None and any(leaf is target for target in execution.written)
    ]
    arguments = {id(shadow): leaf for shadow, leaf in pairs}
    made = [leaf for leaf in leaves(rehearsal.result) if plain_end(leaf) is not None and id(leaf) not in arguments]
    modes = execution.modes or framework.modes() or ""
    with framework.apply_modes(modes, *call):
        zeros = framework.stand_ins([plain_end(leaf) for leaf in made], operands)
        forms = snapshot_forms(execution.written)
        with restore_if_failed([target for target, _ in written]):
            for target, after in written:
                framework.overwrite(target, *framework.stand_ins([after], operands))
    if forms != snapshot_forms(execution.written):  # It failed before it changed the form, which is not disclosed.
        execution.worker.note_form_change(execution.count, execution.peer)
    ends = iter(zeros)

    def replace(leaf: Tensor) -> Nested:
        if id(leaf) in arguments:
            return arguments[id(leaf)]
        if plain_end(leaf) is None:
            return leaf
        end = next(ends)
        return end if is_framework_tensor(type(leaf)) else rebuild(leaf, lambda _end: end)

    return map_leaves(replace, rehearsal.result)


def require_success(entry: Stored, id: int | str, worker: Worker) -> None:
    """Raise if an operation failed while computing an object that the caller may have without an approval.

    A custom policy, or the stage of a feature, may release an object but withhold its operands: then the failure is a
    value.
    """
    if entry.status & FAILED and not entry.status & ADDITIONS and worker.custom_policy is None:
        raise OperationFailedError.on_the_way_to(id, worker.id, map(str, entry.failures))
