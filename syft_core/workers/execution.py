"""Execution: one operation being executed on a worker, with everything that decides what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import dispatch
from syft_core.hook.ranks import framework_types
from syft_core.messages import Run
from syft_core.peer import Peer
from syft_core.workers.permissions import may_leave
from syft_core.workers.store import Lineage, Stored
from syft_core.workers.worker import Worker


@dataclass(eq=False)
class Execution:
    """An operation with the stored objects that its message names in the place of pointers to them."""

    worker: Worker
    op: Op
    message: Run
    peer: Peer
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    parents: list[Stored]
    """The objects that the operation is about, in the order in which they stand."""
    operands: list[Any]
    """What stands for each of them among the arguments: the object itself, or an attribute of it."""
    lineage: Lineage
    """Who may have what is computed, and what it is computed from."""
    foreign: bool = True
    """Whether one of the objects may be somebody else's than the sender's."""

    @property
    def framework(self) -> FrameworkAttributes:
        """The framework that runs the operation."""
        return self.worker.attributes_of(self.message.framework)

    @cached_property
    def is_readable(self) -> bool:
        """Whether the sender may have every object that the operation is about."""
        return may_leave(self.worker, self.parents, self.peer)

    def may_read(self, stored: Stored) -> bool:
        """Return whether the sender may have an object."""
        return may_leave(self.worker, [stored], self.peer)

    @cached_property
    def written(self) -> list[Any]:
        """The arguments that the operation may change."""
        return self.op.targets(self.args, self.kwargs)

    def targets(self) -> list[Stored]:
        """Return the objects that the operation may change."""
        targets = self.written
        pairs = zip(self.parents, self.operands, strict=True)
        return [parent for parent, operand in pairs if any(operand is target for target in targets)]

    def on(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Execution:
        """Return the same operation on other arguments."""
        return replace(self, args=args, kwargs=kwargs)

    def compute(self) -> Any:
        """Run the operation under the settings of the caller; note whether its target has another form then."""
        kwargs, message = self.kwargs, self.message
        targets = self.written
        forms = marks(targets) if targets else None
        try:
            if message.modes is None:
                return dispatch(self.op, self.args, kwargs)
            with self.framework.apply_modes(message.modes, self.args, kwargs):
                return dispatch(self.op, self.args, kwargs)
        finally:  # What fails may have changed a form before.
            if targets and forms != marks(targets):
                self.worker.note_form_change(message, self.peer)


def marks(targets: list[Any]) -> list[Any]:
    """Return something that differs when an operation has changed the form of one of its targets."""
    ends = [target if framework_types.get(type(target)) else plain_end(target) for target in targets]
    return [None if end is None else (end.shape, getattr(end, "requires_grad", False)) for end in ends]
