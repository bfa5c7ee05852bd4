"""Execution: one operation being executed on a worker, with its operands, sender, status and lineage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from syft_core.exceptions import MixedLayersError, ValueRefusedError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.ranks import framework_types
from syft_core.hook.rules import map_leaves
from syft_core.hook.signatures import Memo, recall, signature_of
from syft_core.messages import Placed, Run
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here, id_here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.private import get_allowed_users, remove_restriction
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.moving.transfer import rebuild, require_elsewhere
from syft_core.workers.party.status import DELEGATED, FOREIGN, LAYERED, MODES, OUT, POLICY, PRIVATE
from syft_core.workers.party.store import NO_LINEAGE, Lineage, Stored, lineage_of
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.permissions import may_leave

COMMAND_ARGUMENT = frozenset({"a command's argument"})
"""The source of a chain that is not stored here, but was sent as an argument of a command."""
NUMBERS = frozenset({int, float, bool, str, type(None)})
_NO_KWARGS: Kwargs = {}


class Operands:
    """Collects the stored objects among the arguments of a command, and their status as its sender sees it."""

    __slots__ = ("alias", "holder", "name", "operands", "parents", "status", "worker")

    def __init__(self, worker: Worker, holder: object) -> None:
        self.worker = worker
        self.holder = holder
        """The id of the sender."""
        self.alias: str | None = None
        """The framework to which all tensors must belong, if there is one."""
        self.name = ""
        """The operation that requires it."""
        self.parents: list[Stored] = []
        """The stored objects, in order."""
        self.operands: list[Tensor] = []
        """The argument for each of them: the object itself, or an attribute of it."""
        self.status = 0

    def resolve(self, args: Sequence[Any]) -> Args:
        """Replace the pointers to the worker in ``args`` by their objects."""
        values = []
        store, holder, here = self.worker.object_store, self.holder, self.worker.id
        for arg in args:
            cls = type(arg)
            if cls is Here or (cls is PointerTensor and arg._location.id == here):
                entry = store.get(arg._id_at_location) or store.entry(arg._id_at_location)
                self.parents.append(entry)
                status = entry.status
                value, attr = entry.value, arg.point_to_attr
                if status & LAYERED:
                    value = remove_restriction(value)
                    status = _describe_unrestricted(value, status)
                self.status |= status if entry.holder == holder else status | FOREIGN
                known = frameworks_of_types.get(type(value))
                if known is None or self.alias != known.ALIAS:
                    self._require_framework(value)
                if attr is not None:
                    value = _alias(remove_restriction(attribute(value, attr)))
                self.operands.append(value)
                values.append(value)
            elif cls in NUMBERS:
                values.append(arg)
            elif cls is list or cls is tuple:
                values.append(cls(self.resolve(arg)))
            else:
                values.append(map_leaves(self._resolve_leaf, arg))
        return tuple(values)

    def add_operands(self, found: Iterable[Stored], operands: Iterable[Tensor]) -> None:
        """Add stored objects, each with the argument that it is or whose attribute it is; leave out numbers."""
        status, holder = self.status, self.holder
        for entry, operand in zip(found, operands, strict=True):
            if type(operand) is not float and type(operand) is not int:
                self.parents.append(entry)
                self.operands.append(operand)
                own = entry.status
                if own & LAYERED:
                    own = _describe_unrestricted(operand, own)
                status |= own if entry.holder == holder else own | FOREIGN
        self.status = status

    def _resolve_leaf(self, leaf: Tensor) -> Nested:
        if id_here(leaf, self.worker.id) is not None:
            return self.resolve((leaf,))[0]
        if getattr(leaf, "child", None) is not None:  # A chain in the message may restrict what is computed from it.
            require_elsewhere(self.worker, leaf)
            self._require_framework(leaf)
            entry = Stored(leaf, None)
            entry.access, entry.sources = get_allowed_users(leaf), COMMAND_ARGUMENT
            entry.refresh_status()
            self.parents.append(entry)
            self.status |= entry.status
            self.operands.append(remove_restriction(leaf))
            return self.operands[-1]
        if is_framework_tensor(type(leaf)):
            self._require_framework(leaf)
        return leaf

    def _require_framework(self, value: Tensor) -> None:
        """Refuse a tensor of another framework: the result could share its memory, which neither would recognize."""
        if self.alias is not None and (found := framework_of(value).ALIAS) != self.alias:
            raise MixedLayersError.frameworks(self.name, self.alias, found)


class Execution(Operands):
    """An operation whose pointers have been replaced by the stored objects they point to."""

    __slots__ = (
        "_ends", "_is_readable", "_written", "args", "count", "found_memo", "framework", "kwargs", "lineage", "modes",
        "op", "peer", "result",
    )  # fmt: skip

    def __init__(self, worker: Worker, framework: FrameworkAttributes, op: Op, peer: Peer) -> None:
        self.worker, self.framework, self.op, self.peer = worker, framework, op, peer
        self.holder, self.alias, self.name = peer.id, framework.ALIAS, op.name
        self.parents, self.operands = [], []
        self.status = worker.status | DELEGATED if peer.behalf else worker.status
        self.args: Args = ()
        """The arguments, with objects in place of pointers."""
        self.kwargs: Kwargs = _NO_KWARGS
        self.modes: str | None = None
        """The modes of the sender; None if they are those of this thread."""
        self.lineage: Lineage = NO_LINEAGE
        """The lineage of the results."""
        self.result = 0
        """The id of the first result."""
        self.count = -1
        """The number of results that the sender has predicted, and with it the effects on forms and gradients."""
        self._written: list[Any] | None = None
        self._ends: list[Tensor] | None = None
        self._is_readable: bool | None = None
        self.found_memo: Memo | None = None
        """The memo, if it has been looked up."""

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
            if not NUMBERS.issuperset(map(type, kwargs.values())):
                kwargs = dict(zip(kwargs, self.resolve(tuple(kwargs.values())), strict=True))
                if kwargs.get("out") is not None:
                    self.status |= OUT
            self.kwargs = kwargs
        self.lineage = lineage_of(self.parents)

    def store(self, value: Tensor, place: int) -> Nested:
        """Store the result at this place among all results, and return what replaces it in the reply."""
        entry = Stored(value, self.holder, self.lineage)
        if self.peer.behalf:
            entry.giver = self.peer
        id = self.result + place
        self.worker.object_store.put(id, entry)
        return Placed(id)

    def find_result(self, placed: Nested) -> Stored:
        """Return the entry of a result that was stored."""
        return self.worker.object_store.entry(placed.id)

    def require_free(self, count: int) -> None:
        """Raise unless that many results can be stored."""
        self.worker.object_store.require_free(range(self.result, self.result + count))

    @property
    def memo(self) -> Memo:
        """What stages know about all calls of this signature; looked up once, before the operation runs."""
        if self.found_memo is None:
            self.found_memo = recall(signature_of(self.op, self.args, self.kwargs))
        return self.found_memo

    @property
    def is_readable(self) -> bool:
        """Whether the sender may have all operands."""
        if self._is_readable is None:
            restricted = self.status & (PRIVATE | POLICY)
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
        """The plain tensors in which these arguments end, without those that end at another worker."""
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


def _describe_unrestricted(value: Tensor, status: int) -> int:
    """Return the status of a chain without its private layers, which may leave a plain tensor."""
    return status & ~LAYERED if type(value) in frameworks_of_types else status


def restore_if_failed(ends: list[Tensor]) -> AbstractContextManager[Any]:
    """Return a context for an operation that may fail after it has resized a tensor: it gets its former size."""
    return framework_of(ends[0]).restore_forms(ends) if ends else nullcontext()


def snapshot_forms(targets: list[Tensor]) -> list[Any]:
    """Return a value that differs after the form of a target has changed."""
    ends = [target if framework_types.get(type(target)) else plain_end(target) for target in targets]
    return [None if end is None else (end.shape, getattr(end, "requires_grad", False)) for end in ends]


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
