"""Execution: one operation being executed on a worker, with its operands, sender, status and lineage."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.ranks import framework_types
from syft_core.hook.signatures import Memo, recall, signature_of
from syft_core.messages import Placed, Run
from syft_core.peer import Peer
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.party.derivations import Derivation
from syft_core.workers.party.status import DELEGATED, MODES, OUT, RESTRICTED
from syft_core.workers.party.store import NO_LINEAGE, Lineage, Stored, lineage_of
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.task import SCALARS, Task
from syft_core.workers.seeing.permissions import may_leave

_NO_KWARGS: Kwargs = {}


class Execution(Task):
    """A task that runs an operation, with its pointers replaced by the stored objects they refer to."""

    __slots__ = (
        "_ends", "_is_readable", "_written", "args", "count", "derivation", "found_memo", "kwargs", "lineage",
        "modes", "result",
    )  # fmt: skip

    framework: FrameworkAttributes
    op: Op

    def __init__(self, worker: Worker, framework: FrameworkAttributes, op: Op, peer: Peer) -> None:
        self.worker, self.framework, self.op, self.peer = worker, framework, op, peer
        self.kind = "run" if op.process is None else "train"
        self.holder, self.alias, self.name = peer.id, framework.ALIAS, op.name
        self.parents, self.operands, self.is_in_order = [], [], True
        self.status = worker.status | DELEGATED if peer.behalf else worker.status
        self.args: Args = ()
        self.kwargs: Kwargs = _NO_KWARGS
        self.modes: str | None = None
        """The modes of the sender; None if they are those of this thread."""
        self.lineage: Lineage = NO_LINEAGE
        self.derivation: Derivation | None = None
        """How the first result is computed, if something restricts an operand."""
        self.result = 0
        self.count = -1
        """The sender's predicted number of results; a prediction includes the effects on forms and gradients."""
        self._written: list[Any] | None = None
        self._ends: list[Tensor] | None = None
        self._is_readable: bool | None = None
        self.found_memo: Memo | None = None

    def read(self, message: Run) -> None:
        """Find the objects among the arguments of a command."""
        self.result, self.count = message.result, message.count
        if message.modes is not None:
            self.modes = message.modes
            if message.modes != self.framework.modes():
                self.status |= MODES
        self.args = self.resolve(message.args)
        if message.kwargs:
            kwargs = message.kwargs
            if not SCALARS.issuperset(map(type, kwargs.values())):
                kwargs = dict(zip(kwargs, self.resolve(tuple(kwargs.values())), strict=True))
                if kwargs.get("out") is not None:
                    self.status |= OUT
            self.kwargs = kwargs
        self.lineage = lineage_of(self.parents)

    def store(self, value: Tensor, place: int) -> Nested:
        """Store a result at this position, and return its replacement in the reply."""
        entry = Stored(value, self.holder, self.lineage)
        if self.peer.behalf:
            entry.giver = self.peer
        if self.derivation is not None:
            entry.derivation = self.derivation.part(place) if place else self.derivation
        id = self.result + place
        self.worker.object_store.put(id, entry)
        return Placed(id)

    def find_result(self, placed: Nested) -> Stored:
        """Return the entry of a result that was stored."""
        return self.worker.object_store.entry(placed.id)

    def require_free(self, count: int) -> None:
        """Raise unless ``count`` results can be stored."""
        self.worker.object_store.require_free(range(self.result, self.result + count))

    @property
    def memo(self) -> Memo:
        """Known facts about all calls of this signature; looked up once, before the operation runs."""
        if self.found_memo is None:
            self.found_memo = recall(signature_of(self.op, self.args, self.kwargs))
        return self.found_memo

    @property
    def is_readable(self) -> bool:
        """Whether the sender may have all operands."""
        if self._is_readable is None:
            restricted = self.status & RESTRICTED
            self._is_readable = not restricted or may_leave(self.worker, self.parents, self.peer)
        return self._is_readable

    def may_read(self, stored: Stored) -> bool:
        """Return whether the sender may have an object."""
        return may_leave(self.worker, [stored], self.peer)

    @property
    def written(self) -> list[Any]:
        """The arguments that the operation may change."""
        if self._written is None:
            may_write = self.op.spare < len(self.args) or self.kwargs
            self._written = self.op.targets(self.args, self.kwargs) if may_write else []
        return self._written

    @property
    def ends(self) -> list[Tensor]:
        """The plain tensors at the ends of these arguments, except those on other workers."""
        if self._ends is None:
            self._ends = [target for target in self.written if framework_types.get(type(target))]
            if len(self._ends) < len(self.written):
                self._ends = [end for target in self.written if (end := plain_end(target)) is not None]
        return self._ends

    def targets(self) -> list[Stored]:
        """Return the stored objects that the operation may change."""
        targets = set(map(id, self.written))
        pairs = zip(self.parents, self.operands, strict=True)
        return [parent for parent, operand in pairs if id(operand) in targets]


def restore_if_failed(ends: list[Tensor]) -> AbstractContextManager[Any]:
    """Return a context for an operation that may fail after resizing a tensor, to restore its size."""
    return framework_of(ends[0]).restore_forms(ends) if ends else nullcontext()


def snapshot_forms(targets: list[Tensor]) -> list[Any]:
    """Return a value that differs after the form of a target has changed."""
    ends = [target if framework_types.get(type(target)) else plain_end(target) for target in targets]
    return [None if end is None else (end.shape, getattr(end, "requires_grad", False)) for end in ends]
