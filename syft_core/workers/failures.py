"""What an operation that fails is answered to one who may not know why: nothing that values decide.

``torch.bernoulli(x - t)`` fails unless every value lies between 0 and 1: whoever sees that, and may choose ``t``, reads
``x`` by trying. So who may not have the values gets zeros of the form that was foreseen, with the place in autograd
that the result would have had, as if nothing had happened. A ``Failure`` enters the lineage of that and of everything
computed from it: whoever may have the values is told when fetching them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

from syft_core.exceptions import DomainError, OperationFailedError, SyftError, ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.workers.changes import run_marking
from syft_core.workers.disclosure import Rehearsal, rehearse
from syft_core.workers.execution import Execution
from syft_core.workers.store import Failure, Lineage, Stored
from syft_core.workers.transfer import rebuilt
from syft_core.workers.worker import Worker


def answer_failure(execution: Execution, error: Exception) -> tuple[Any, Lineage]:
    """Return what an operation that failed is answered, and the lineage of that; raise what the sender may know.

    To be called while ``error`` is handled.
    """
    op, worker = execution.op, execution.worker
    if _is_told(error) or execution.is_readable:
        raise  # noqa: PLE0704  # the error that is handled
    if op.differentiates:  # What fails in it for its values does not run: this is about the graph.
        _raise_alone(ValueRefusedError.failed(op.name, str(worker.id), type(error).__name__))
    try:
        rehearsal = rehearse(execution)
    except Exception as about_forms:  # noqa: BLE001  # of whatever kind, it has seen no values
        _raise_alone(about_forms)
    access, sources = execution.lineage
    lineage = access, sources | {Failure(op.name, type(error).__name__)}
    return run_marking(execution, lineage, partial(_answer_zeros, execution, rehearsal)), lineage


def _is_told(error: Exception) -> bool:
    """Return whether an error is one of ours, which knows no value; that a value leaves a domain is not told."""
    return isinstance(error, SyftError) and not isinstance(error, DomainError)


def _raise_alone(error: Exception) -> NoReturn:
    """Raise an error without the one that is being handled, whose text may quote values."""
    try:
        raise error
    finally:
        error.__cause__ = error.__context__ = None


def _answer_zeros(execution: Execution, rehearsal: Rehearsal) -> Any:
    """Return zeros for the tensors of a result, and set what the call was to change to zeros."""
    framework, call = execution.framework, (execution.args, execution.kwargs)
    pairs = list(zip(leaves((rehearsal.args, rehearsal.kwargs)), leaves(call), strict=True))
    operands = [end for _, leaf in pairs if (end := plain_end(leaf)) is not None]
    written = [
        (plain_end(leaf), _form(shadow))
        for shadow, leaf in pairs
        if plain_end(leaf) is not None and any(leaf is target for target in execution.written)
    ]
    own = {id(shadow): leaf for shadow, leaf in pairs}
    made = [leaf for leaf in leaves(rehearsal.result) if plain_end(leaf) is not None and id(leaf) not in own]
    modes = execution.message.modes or framework.modes() or ""
    with framework.apply_modes(modes, *call):
        zeros = framework.zeros([_form(leaf) for leaf in made], operands)
        for target, after in written:
            framework.overwrite(target, *framework.zeros([after], operands))
    ends = iter(zeros)

    def replace(leaf: Any) -> Any:
        if id(leaf) in own:
            return own[id(leaf)]
        if plain_end(leaf) is None:
            return leaf
        end = next(ends)
        return end if is_framework_tensor(type(leaf)) else rebuilt(leaf, lambda _end: end)

    return map_leaves(replace, rehearsal.result)


def _form(shadow: Any) -> Form:
    end = plain_end(shadow)
    return framework_of(end).form_of(end)  # type: ignore[return-value]  # of what was made from tensors with forms


def require_success(entry: Stored, id: int | str, worker: Worker) -> None:
    """Raise, to one who may have an object, if an operation failed on the way to it."""
    if failures := entry.failures:
        raise OperationFailedError.on_the_way_to(id, worker.id, map(str, failures))
