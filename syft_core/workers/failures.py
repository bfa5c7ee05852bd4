"""What an operation that fails is answered to one who may not know why: nothing that values decide.

``torch.bernoulli(x - t)`` fails unless every value lies between 0 and 1: whoever sees that, and may choose ``t``, reads
``x`` by trying. So an operation that failed on values which the sender may not have is run again on *stand-ins*,
tensors of the same form with values that everybody knows. If it works with one of them, its failure was about values:
the sender gets what the stand-ins give, as if nothing had happened, and a ``Failure`` enters the lineage of that and of
everything computed from it, so that who may have the values is told when fetching them. If it works with none, it was
about form, and the error of the stand-ins, which knows no value, is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from syft_core.exceptions import DomainError, OperationFailedError, SyftError, ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import map_leaves
from syft_core.workers.changes import run_marking
from syft_core.workers.disclosure import readable_by, unread
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
    if op.differentiates:
        # What fails in it for its values is not run, see `FrameworkAttributes.needs_values`: this is about the graph.
        _raise_alone(ValueRefusedError.failed(op.name, str(worker.id), type(error).__name__))
    rehearsal = _Rehearsal(execution)
    number, result = rehearsal.find()
    access, sources = execution.lineage
    lineage = access, sources | {Failure(op.name, type(error).__name__)}
    if rehearsal.targets:
        result = run_marking(execution, lineage, partial(rehearsal.change_targets, number))
    return result, lineage


def _is_told(error: Exception) -> bool:
    """Say whether an error is one of ours, which knows no value; that a value leaves a domain is one of those."""
    return isinstance(error, SyftError) and not isinstance(error, DomainError)


def _raise_alone(error: Exception) -> NoReturn:
    """Raise an error without the one that is being handled, whose text may quote values."""
    try:
        raise error
    finally:
        error.__cause__ = error.__context__ = None


class _Rehearsal:
    """One call, to be run on stand-ins for everything that its sender may not have."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.framework = execution.framework
        self.readable = readable_by(execution)
        self.targets = execution.op.targets(execution.args, execution.kwargs)

    def find(self) -> tuple[int, Any]:
        """Return the number of the first stand-ins with which the call works, and its result; or raise their error."""
        errors: list[Exception] = []
        for number in range(self.framework.stand_ins):
            error, result = self._attempt(partial(self._replaced, number))
            if error is None:
                return number, result
            errors.append(error)
        if errors:
            _raise_alone(errors[0])
        _raise_alone(ValueRefusedError.undecided(self.execution.op.name, str(self.execution.worker.id)))

    def change_targets(self, number: int) -> Any:
        """Change what the call was to change, with stand-ins for the rest: form and history become the same."""
        replace = partial(self._replaced_beside, number)
        error, result = self._attempt(replace)
        if error is None:
            return result
        for target in self.targets:  # What it holds itself makes the call fail.
            if (end := plain_end(target)) is not None:
                framework_of(end).set_stand_in(end, number)
        error, result = self._attempt(replace)
        if error is not None:
            _raise_alone(error)
        return result

    def _attempt(self, replace: Callable[[Any], Any]) -> tuple[Exception | None, Any]:
        """Run the call; return why the framework could not, or None and the result."""
        execution = self.execution.on(*map_leaves(replace, (self.execution.args, self.execution.kwargs)))
        try:
            with unread(execution, self.readable):
                return None, execution.compute()
        except Exception as error:  # noqa: BLE001  # as in the call that is rehearsed
            if _is_told(error):
                _raise_alone(error)
            return error, None

    def _replaced_beside(self, number: int, leaf: Any) -> Any:
        return leaf if any(leaf is target for target in self.targets) else self._replaced(number, leaf)

    def _replaced(self, number: int, leaf: Any) -> Any:
        """Return a leaf with a stand-in at its end; as it is when the sender may have it, but never a target."""
        end = plain_end(leaf)
        if end is None:
            return leaf
        framework = framework_of(end)
        if framework.memory_of(end) not in self.readable:
            twin = framework.stand_in(end, number)
        elif any(leaf is target for target in self.targets):
            twin = framework.copy(end)
        else:
            return leaf
        return twin if is_framework_tensor(type(leaf)) else rebuilt(leaf, lambda _end: twin)


def require_success(entry: Stored, id: int | str, worker: Worker) -> None:
    """Raise, to one who may have an object, if an operation failed on the way to it."""
    if failures := entry.failures:
        raise OperationFailedError.on_the_way_to(id, worker.id, map(str, failures))
