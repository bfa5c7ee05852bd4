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
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.messages import Run
from syft_core.pictures import end_of
from syft_core.pointers.meeting import CHANGES_FIRST
from syft_core.tensors.private import restricted
from syft_core.workers.changes import CHANGES_SOME, readable_by, run_marking, unread
from syft_core.workers.permissions import may_leave
from syft_core.workers.store import Failure, Lineage, Stored, lineage_of
from syft_core.workers.transfer import rebuilt

Compute = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def answer_failure(
    worker: Any,
    op: Op,
    message: Run,
    sender: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parents: list[Stored],
    error: Exception,
    compute: Compute,
) -> tuple[Any, Lineage]:
    """Return what an operation that failed is answered, and the lineage of that; raise what the sender may know.

    To be called while ``error`` is handled.
    """
    if _is_told(error) or may_leave(worker, parents, sender):
        raise  # noqa: PLE0704  # the error that is handled
    if op.operation in _OF_GRAPH and op.spelling in ("function", "method"):
        # What fails in it for its values is not run, see `FrameworkAttributes.needs_values`: this is about the graph.
        _raise_alone(ValueRefusedError.failed(op.name, str(worker.id), type(error).__name__))
    rehearsal = _Rehearsal(worker, op, message, sender, args, kwargs, parents, compute)
    number, result = rehearsal.find()
    access, sources = lineage_of(parents)
    lineage = access, sources | {Failure(op.name, type(error).__name__)}
    if rehearsal.targets:
        change = partial(rehearsal.change_targets, number)
        result = run_marking(worker, op, message, parents, lineage, change)
    return result, lineage


_OF_GRAPH = frozenset({"backward", "grad"})


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

    def __init__(
        self,
        worker: Any,
        op: Op,
        message: Run,
        sender: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parents: list[Stored],
        compute: Compute,
    ) -> None:
        self.worker, self.op, self.message, self.compute = worker, op, message, compute
        self.args, self.kwargs = args, kwargs
        self.framework = worker.attributes_of(message.framework)
        self.readable = readable_by(worker, message, sender, parents)
        self.targets = _targets(op, args, kwargs)

    def find(self) -> tuple[int, Any]:
        """Return the number of the first stand-ins with which the call works, and its result; or raise their error."""
        errors: list[Exception] = []
        for number in range(self.framework.stand_ins):
            error, result = self._attempt(partial(self._replaced, number))
            if error is None:
                return number, result
            errors.append(error)
        _raise_alone(errors[0] if errors else ValueRefusedError.undecided(self.op.name, str(self.worker.id)))

    def change_targets(self, number: int) -> Any:
        """Change what the call was to change, with stand-ins for the rest: form and history become the same."""
        replace = partial(self._replaced_beside, number)
        error, result = self._attempt(replace)
        if error is None:
            return result
        for target in self.targets:  # What it holds itself makes the call fail.
            if (end := _end(target)) is not None:
                framework_of(end).set_stand_in(end, number)
        error, result = self._attempt(replace)
        if error is not None:
            _raise_alone(error)
        return result

    def _attempt(self, replace: Callable[[Any], Any]) -> tuple[Exception | None, Any]:
        """Run the call; return why the framework could not, or None and the result."""
        args, kwargs = map_leaves(replace, (self.args, self.kwargs))
        try:
            with unread(self.worker, self.op, self.message, args, kwargs, self.readable):
                return None, self.compute(args, kwargs)
        except Exception as error:  # noqa: BLE001  # as in the call that is rehearsed
            if _is_told(error):
                _raise_alone(error)
            return error, None

    def _replaced_beside(self, number: int, leaf: Any) -> Any:
        return leaf if any(leaf is target for target in self.targets) else self._replaced(number, leaf)

    def _replaced(self, number: int, leaf: Any) -> Any:
        """Return a leaf with a stand-in at its end; as it is when the sender may have it, but never a target."""
        end = _end(leaf)
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


def _targets(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the tensors that a call changes, or may change."""
    if kwargs.get("out") is not None:
        return leaves(kwargs["out"])
    if op.inplace or op.operation in CHANGES_FIRST:
        return leaves(args[:1])
    return [leaf for leaf in leaves(args[1:]) if "float" in _dtype(leaf)] if op.operation in CHANGES_SOME else []


def _dtype(leaf: Any) -> str:
    return str(getattr(leaf, "dtype", ""))


def _end(leaf: Any) -> Any:
    """Return the plain tensor that a leaf is or ends in, or None."""
    end = end_of(leaf)
    return end if is_framework_tensor(type(end)) else None


def fetched_blindly(pointer: Any) -> Any:
    """Fetch an object for somebody who may not know what became of it: zeros that are for nobody if it failed."""
    try:
        return pointer.get()
    except OperationFailedError:
        zeros = pointer.framework.creators["zeros"].run(pointer.shape, dtype=pointer.dtype)
        if pointer._form("requires_grad"):
            zeros.requires_grad_()
        return restricted(zeros, frozenset())


def require_success(entry: Stored, id: int | str, worker: Any) -> None:
    """Raise, to one who may have an object, if an operation failed on the way to it."""
    if failures := entry.failures:
        raise OperationFailedError.on_the_way_to(id, worker.id, map(str, failures))
