"""Execution: one operation being executed on a worker, with its operands, sender and lineage."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.hook.ranks import framework_types
from syft_core.messages import Run
from syft_core.peer import Peer
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.permissions import may_leave
from syft_core.workers.store import Lineage, Stored
from syft_core.workers.worker import Worker


@dataclass(frozen=True, eq=False)
class Execution:
    """An operation whose pointers have been replaced by the stored objects they point to."""

    worker: Worker
    op: Op
    message: Run
    peer: Peer
    args: Args
    kwargs: Kwargs
    parents: list[Stored]
    """The stored objects among the arguments, in order."""
    operands: list[Tensor]
    """The argument for each of them: the object itself, or an attribute of it."""
    lineage: Lineage
    """Who may have the results, and what they are computed from."""
    involves_others: bool = True
    """Whether an object may belong to someone other than the sender."""
    is_plain: bool = False
    """Whether all operands are plain tensors that nothing restricts."""

    @property
    def framework(self) -> FrameworkAttributes:
        """The framework that runs the operation."""
        return self.worker.attributes_of(self.message.framework)

    @cached_property
    def is_readable(self) -> bool:
        """Whether the sender may have all operands."""
        return self.is_plain or may_leave(self.worker, self.parents, self.peer)

    def may_read(self, stored: Stored) -> bool:
        """Return whether the sender may have an object."""
        return may_leave(self.worker, [stored], self.peer)

    @cached_property
    def written(self) -> list[Any]:
        """The arguments that the operation may change."""
        return self.op.targets(self.args, self.kwargs)

    @cached_property
    def ends(self) -> list[Tensor]:
        """The plain tensors in which these arguments end, without those that end at another worker."""
        ends = [target for target in self.written if framework_types.get(type(target))]
        if len(ends) < len(self.written):
            ends = [end for target in self.written if (end := plain_end(target)) is not None]
        return ends

    def targets(self) -> list[Stored]:
        """Return the stored objects that the operation may change."""
        targets = set(map(id, self.written))
        pairs = zip(self.parents, self.operands, strict=True)
        return [parent for parent, operand in pairs if id(operand) in targets]

    def on(self, args: Args, kwargs: Kwargs) -> Execution:
        """Return the same operation on other arguments."""
        return replace(self, args=args, kwargs=kwargs, is_plain=False)

    def compute(self) -> Nested:
        """Run the operation under the caller's modes; record changes of form in its targets."""
        kwargs, message = self.kwargs, self.message
        targets = self.written if self.worker.sessions else []  # Only clients in other processes remember forms.
        forms = snapshot_forms(targets) if targets else None
        try:
            with restore_if_failed(self.ends) if self.written else nullcontext():
                if message.modes is not None:
                    with self.framework.apply_modes(message.modes, self.args, kwargs):
                        return dispatch(self.op, self.args, kwargs)
                return self.op.run(*self.args, **kwargs) if self.is_plain else dispatch(self.op, self.args, kwargs)
        finally:  # A failing operation may have changed a form first.
            if targets and forms != snapshot_forms(targets):
                self.worker.note_form_change(message, self.peer)


def restore_if_failed(ends: list[Tensor]) -> AbstractContextManager[Any]:
    """Return a context for an operation that may fail after it has resized a tensor: it gets its former size."""
    return framework_of(ends[0]).restore_forms(ends) if ends else nullcontext()


def snapshot_forms(targets: list[Tensor]) -> list[Any]:
    """Return a value that differs after the form of a target has changed."""
    ends = [target if framework_types.get(type(target)) else plain_end(target) for target in targets]
    return [None if end is None else (end.shape, getattr(end, "requires_grad", False)) for end in ends]
