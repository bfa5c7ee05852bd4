"""Task: a message's request to a worker, with the stored objects it uses, on its way through the stages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from syft_core.exceptions import MixedLayersError, ValueRefusedError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of, frameworks_of_types, is_form_only
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import map_leaves
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import Here, id_here
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.private import get_allowed_users, remove_restriction
from syft_core.values import Args, Function, Nested, Tensor
from syft_core.workers.moving.transfer import rebuild, require_elsewhere
from syft_core.workers.party.status import DELEGATED, FOREIGN, FORM_ONLY, LAYERED
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker

Kind: TypeAlias = Literal["run", "train", "call", "protocol", "leave"]
"""Run an operation; a loop of the worker's own; a function of its owner; its part of a protocol; let objects leave."""
COMMAND_ARGUMENT = frozenset({"a command's argument"})
"""The source of a chain that is not stored here, but was sent as an argument of a command."""
SCALARS = frozenset({int, float, bool, str, type(None)})


class Task:
    """A message's request to a worker: the sender, the stored objects, and their joined status.

    Its kind, its operation if it has one, and its status determine its stages; see ``procedure.py``.
    """

    __slots__ = (
        "alias",
        "framework",
        "function",
        "holder",
        "is_in_order",
        "kind",
        "name",
        "op",
        "operands",
        "parents",
        "peer",
        "status",
        "worker",
    )

    def __init__(
        self, worker: Worker, peer: Peer, kind: Kind, parents: Iterable[Stored] = (), function: Function | None = None
    ) -> None:
        self.worker, self.peer, self.kind, self.function = worker, peer, kind, function
        """``function`` takes the task, and does the work once all stages have permitted it."""
        self.op: Op | None = None
        self.framework: FrameworkAttributes | None = None
        self.holder = peer.id
        self.alias: str | None = None
        """The framework to which all tensors must belong, if any."""
        self.name = ""
        """The operation that requires it."""
        self.parents: list[Stored] = []
        self.is_in_order = True
        """Whether the parents are the tensors of the arguments in order, and none stands for an attribute."""
        self.operands: list[Tensor] = []
        """The argument for each parent: the object itself, or an attribute of it."""
        self.status = worker.status | DELEGATED if peer.behalf else worker.status
        found = list(parents)
        self.add_operands(found, [entry.value for entry in found])

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
                    self.is_in_order = False
                self.operands.append(value)
                values.append(value)
            elif cls in SCALARS:
                values.append(arg)
            elif cls is list or cls is tuple:
                values.append(cls(self.resolve(arg)))
            else:
                values.append(map_leaves(self._resolve_leaf, arg))
        return tuple(values)

    def add_operands(self, found: Iterable[Stored], operands: Iterable[Tensor]) -> None:
        """Add stored objects, each with the argument that it is or whose attribute it is; skip numbers."""
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
        if getattr(leaf, "child", None) is not None:  # A chain in the message may restrict its results.
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
            if is_form_only(leaf):
                self.status |= FORM_ONLY
        return leaf

    def _require_framework(self, value: Tensor) -> None:
        """Refuse a tensor of another framework: neither framework would recognise shared memory."""
        if self.alias is not None and (found := framework_of(value).ALIAS) != self.alias:
            raise MixedLayersError.frameworks(self.name, self.alias, found)


def _describe_unrestricted(value: Tensor, status: int) -> int:
    """Return the status of a chain without its private layers, which may leave a plain tensor."""
    return status & ~LAYERED if type(value) in frameworks_of_types else status


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

    A gradient must not become an object itself: that could be made to require gradients, which nobody tracks after its
    removal.
    """
    if is_framework_tensor(type(value)):
        return framework_of(value).alias(value)
    return value if plain_end(value) is None else rebuild(value, _alias)
