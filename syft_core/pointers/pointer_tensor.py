"""PointerTensor: the layer that turns operations into commands for the worker where the data is."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import NotCollocatedError, ValueRefusedError
from syft_core.hook import hook_args
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, leaves, map_leaves
from syft_core.messages import Describe, Forward, GetBack, Placed, Run, SendOn
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.revealing import reveal
from syft_core.tensors.abstract import AbstractTensor

ATTRIBUTES = frozenset({"grad", "data"})
"""Attributes that are tensors of their own on the worker: pointed to, with ids that stay the same."""
CHANGES_FIRST = frozenset(
    {"__setitem__", "copyto", "place", "putmask", "put", "put_along_axis", "fill_diagonal", "at"}
    | {"data", "grad", "requires_grad"}
)
"""Operations that change their first argument though their names do not say so."""
CHANGES_ALL = frozenset({"_amp_foreach_non_finite_check_and_unscale"})
"""Operations that change more than their first argument."""


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
        pointer, plain = _meeting_point(op, args, kwargs)
        location = pointer._location
        if op.reveals:
            return reveal(op, pointer, args, kwargs)
        if op.local:
            return _answer_beside(op, pointer)
        if op.spelling == "getter" and op.attr in ATTRIBUTES:
            return _attribute(pointer, op.attr)
        sent, sent_kwargs = (args, kwargs) if not plain else _with_copies(op, location, args, kwargs)
        reply = location.ask(Run(pointer.framework.ALIAS, op.name, sent, sent_kwargs, new_id()), pointer.owner)
        if op.inplace:
            return args[0]
        if kwargs and (out := kwargs.get("out")) is not None:
            return out[0] if type(out) is tuple and len(out) == 1 else out
        return pointers_for(reply, pointer)

    # --- where it is

    def move(self, destination: Any, requires_grad: bool = False) -> Any:
        """Send the object from worker to worker, without passing here; return a pointer to where it is now.

        With ``requires_grad`` the object also stays where it was, and the gradient that it gets at the destination
        comes back to it: a backward pass crosses the two workers.
        """
        self.require_alive()
        destination = self.owner.get_worker(destination)
        if destination is self._location:
            return self
        if destination is self.owner:
            return self.get()
        moved = self._forward(destination, keep=self.point_to_attr is not None, requires_grad=requires_grad)
        if self.point_to_attr is None:
            self.gone = f"it was moved to {destination.id!r}"
        return moved

    def copy(self) -> PointerTensor:
        """Return a pointer to a copy of the object, on the same worker."""
        return self._forward(self._location, keep=True)

    def clone(self) -> Any:
        """Return a second pointer to the same object."""
        return self.lease()

    def remote_send(self, destination: Any) -> PointerTensor:
        """Let the worker send the object on to another; what it holds then, and this points to, is a pointer."""
        self._require_whole("remote_send")
        self._location.ask(SendOn(self._id_at_location, self.owner.get_worker(destination)), self.owner)
        return self

    def remote_get(self) -> PointerTensor:
        """Let the worker fetch what the pointer that it holds points to; this points to the data then."""
        self._require_whole("remote_get")
        self._location.ask(GetBack(self._id_at_location), self.owner)
        return self

    mid_get = remote_get

    def _require_whole(self, verb: str) -> None:
        self.require_alive()
        if self.point_to_attr is not None:
            raise ValueRefusedError.only_local(f"{verb} of {self.point_to_attr!r}", str(self._location.id))

    def _forward(self, destination: Any, keep: bool, requires_grad: bool = False) -> PointerTensor:
        self.require_alive()
        id = new_id()
        message = Forward(self._id_at_location, self.point_to_attr, destination, id, keep, requires_grad)
        self._location.ask(message, self.owner)
        tags = None if keep else self._syft_tags
        return type(self)(destination, id, framework=self.framework, owner=self._syft_owner, tags=tags)

    def __copy__(self) -> PointerTensor:
        return self.lease()  # type: ignore[no-any-return]  # a sibling

    def __deepcopy__(self, memo: Any) -> PointerTensor:
        return self.copy()

    # --- what form it has

    @property
    def shape(self) -> Any:
        """The shape of the object."""
        return self._form("shape")

    def get_shape(self) -> Any:
        """Return the shape of the object."""
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
        self.require_alive()
        return self._location.ask(Describe(self._id_at_location, self.point_to_attr), self.owner) is None


def _attribute(pointer: PointerTensor, name: str) -> Any:
    if pointer.point_to_attr is not None:  # p.grad.data is p.grad; its own gradient is nothing that can be named.
        return pointer if name == "data" else None
    attribute = pointer.attr(name)
    return None if attribute.is_none() else attribute


def _answer_beside(op: Op, pointer: PointerTensor) -> Any:
    """Answer what wants to be beside the data: a deep copy is made there, a leaf has no history; refuse the rest."""
    if op.attr == "__deepcopy__":
        return pointer.copy()
    if op.attr == "grad_fn" and pointer._form("is_leaf"):
        return None
    raise ValueRefusedError.only_local(op.name, pointer._location.id)


def _meeting_point(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[PointerTensor, bool]:
    """Return the first pointer of a call, all of whose tensors must be on one worker, and if single numbers are here.

    A plain tensor without dimensions is a number, and travels with the command.
    """
    if kwargs:
        return _meeting_point_of(op, args, kwargs)
    found: Any = None
    for arg in args:
        cls = type(arg)
        if cls is PointerTensor and arg.gone is None and arg.whole is None:
            if found is None:
                found = arg
            elif arg._location is not found._location:
                raise NotCollocatedError.between(op.name, found._location.id, arg._location.id)
        elif cls not in _PLAIN:
            return _meeting_point_of(op, args, kwargs)
    return found, False


_PLAIN = frozenset({int, float, bool, str, type(None)})


def _meeting_point_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[PointerTensor, bool]:
    """Look for pointers everywhere in the arguments."""
    found: PointerTensor | None = None
    plain = large = False
    for arg in leaves((args, kwargs)):
        if type(arg) is PointerTensor:
            if found is None:
                found = arg
            elif arg._location is not found._location:
                raise NotCollocatedError.between(op.name, found._location.id, arg._location.id)
            if arg.gone is not None or arg.whole is not None:
                arg.require_alive()
        elif not large and is_framework_tensor(type(arg)):
            plain = True
            large = len(arg.shape) > 0
    if large and found is not None:
        _require_pointer_target(op, found._location, args, kwargs)
        raise NotCollocatedError.local(op.name, found._location.id)
    return found, plain  # type: ignore[return-value]  # the plan has found a pointer before


def _with_copies(op: Op, location: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with copies of the numbers among them, which a worker may keep."""
    _require_pointer_target(op, location, args, kwargs)
    copied = map_leaves(_copy_of_number, (args, kwargs))
    return copied[0], copied[1]


def _copy_of_number(leaf: Any) -> Any:
    return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf


def _require_pointer_target(op: Op, location: Any, args: Any, kwargs: Any) -> None:
    """Refuse to change a tensor of this process: the change would happen to a copy of it, elsewhere."""
    target = kwargs.get("out")
    if target is None and (op.inplace or op.operation in CHANGES_FIRST):
        target = args[0] if args else next(iter(kwargs.values()))
    if op.operation in CHANGES_ALL:
        target = args
    if any(is_framework_tensor(type(leaf)) for leaf in leaves(target)):
        raise NotCollocatedError.change(op.name, location.id)


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
