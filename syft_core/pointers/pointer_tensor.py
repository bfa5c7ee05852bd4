"""PointerTensor: the layer that turns operations into commands for the worker where the data is."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import NotCollocatedError, ValueRefusedError
from syft_core.hook import hook_args
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, leaves, map_leaves
from syft_core.messages import Describe, Forward, Placed, Run
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.tensors.abstract import AbstractTensor


class PointerTensor(ObjectPointer, AbstractTensor):
    """Stands for a tensor on another worker: what is done with it happens there.

    Shape, dtype and the like are answered without fetching anything; values are refused unless they are fetched with
    ``get``, which the worker decides and records.
    """

    framework: FrameworkAttributes

    def __init__(self, location: Any = None, id_at_location: Any = None, framework: Any = None, **options: Any) -> None:
        ObjectPointer.__init__(self, location, id_at_location, **options)
        self.framework = framework

    def sibling(self, **changes: Any) -> Any:
        """Return a pointer like this one but for ``changes``."""
        return super().sibling(**{"framework": self.framework, **changes})

    def has_child(self) -> bool:
        """Say no: the chain ends here, and goes on elsewhere."""
        return False

    @classmethod
    def respond(cls, op: Op, _plan: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Send an operation to where its arguments are, and return pointers to its results."""
        pointer = _meeting_point(op, args, kwargs)
        location = pointer._location
        if op.reveals:
            raise ValueRefusedError.of(op.name, location.id)
        if op.local:
            raise ValueRefusedError.only_local(op.name, location.id)
        if op.spelling == "getter" and op.attr in ATTRIBUTES:
            return _attribute(pointer, op.attr)
        reply = location.ask(Run(pointer.framework.ALIAS, op.name, args, kwargs, new_id()), pointer.owner)
        if op.inplace:
            return args[0]
        return pointers_for(reply, pointer)

    # --- where it is

    def move(self, destination: Any, requires_grad: bool = False) -> Any:
        """Send the object from worker to worker, without passing here; return a pointer to where it is now."""
        self.require_alive()
        destination = self.owner.get_worker(destination)
        if destination is self._location:
            return self
        if destination is self.owner:
            return self.get()
        moved = self._forward(destination, keep=False, requires_grad=requires_grad)
        self.gone = f"it was moved to {destination.id!r}"
        return moved

    def copy(self) -> PointerTensor:
        """Return a pointer to a copy of the object, on the same worker."""
        return self._forward(self._location, keep=True)

    def clone(self) -> Any:
        """Return a second pointer to the same object."""
        return self.lease()

    def _forward(self, destination: Any, keep: bool, requires_grad: bool = False) -> PointerTensor:
        self.require_alive()
        id = new_id()
        message = Forward(self._id_at_location, self.point_to_attr, destination, id, keep, requires_grad)
        self._location.ask(message, self.owner)
        return type(self)(destination, id, framework=self.framework, owner=self._syft_owner)

    # --- what form it has

    @property
    def shape(self) -> Any:
        """The shape of the object."""
        return self._form("shape")

    @property
    def dtype(self) -> Any:
        """The dtype of the object."""
        return self._form("dtype")

    @property
    def device(self) -> Any:
        """The device of the object, on its worker."""
        return self._form("device")

    def _form(self, name: str) -> Any:
        self.require_alive()
        return self._location.ask(Describe(self._id_at_location, self.point_to_attr), self.owner)[name]

    def is_none(self) -> bool:
        """Say whether the attribute pointed to is None."""
        return self._location.ask(Describe(self._id_at_location, self.point_to_attr), self.owner) is None


# Attributes that are tensors of their own on the worker: pointed to, with ids that stay the same.
ATTRIBUTES = frozenset({"grad", "data"})


def _attribute(pointer: PointerTensor, name: str) -> Any:
    attribute = pointer.attr(name)
    return None if attribute.is_none() else attribute


def _meeting_point(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PointerTensor:
    """Return the first pointer of a call, all of whose tensors must be on one worker."""
    flat = not kwargs
    for arg in args:
        flat = flat and is_flat(type(arg))
    found: PointerTensor | None = None
    plain = False
    for arg in args if flat else leaves((args, kwargs)):
        if type(arg) is PointerTensor:
            if found is None:
                found = arg
            elif arg._location is not found._location:
                raise NotCollocatedError.between(op.name, found._location.id, arg._location.id)
            if arg.gone is not None:
                arg.require_alive()
        elif not plain and is_framework_tensor(type(arg)):
            plain = len(arg.shape) > 0
    if plain and found is not None:
        raise NotCollocatedError.local(op.name, found._location.id)
    return found  # type: ignore[return-value]  # the plan has found a pointer before


def pointers_for(reply: Any, pointer: PointerTensor) -> Any:
    """Turn a reply into the result of a call: pointers where tensors stayed behind, the rest as it is."""
    if type(reply) is Placed:
        return _pointer_beside(pointer, reply.id)
    if is_flat(type(reply)):
        return reply
    return map_leaves(lambda leaf: pointers_for(leaf, pointer), reply)


def _pointer_beside(pointer: PointerTensor, id: int) -> PointerTensor:
    """Return a pointer to another object of the same worker, without the generality of the constructor."""
    new = PointerTensor.__new__(PointerTensor)
    new._location = pointer._location
    new._id_at_location = id
    new.framework = pointer.framework
    new._syft_owner = pointer._syft_owner
    return new


hook_args.register_type_rule({PointerTensor: hook_args.one})
hook_args.register_forward_func({PointerTensor: hook_args.pointer_found})
hook_args.register_backward_func({PointerTensor: lambda pointer, **_attributes: pointer})
