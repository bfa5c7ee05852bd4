"""PointerTensor: the layer that turns operations into commands for the worker where the data is."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, TypeVar

from syft_core.exceptions import ObjectNotFoundError, OperationNotAllowedError, ValueRefusedError
from syft_core.hook import hook_args
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import wrapped_directly
from syft_core.hook.forms import Form, fact_of_form
from syft_core.hook.rules import is_flat, map_leaves
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import Forward, GetBack, Placed, Run, SendOn
from syft_core.peer import Id
from syft_core.pointers import prediction
from syft_core.pointers.meeting import meeting_point, with_copies
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.revealing import reveal
from syft_core.tensors.abstract import AbstractTensor
from syft_core.values import Args, Kwargs, Nested, Tensor

P = TypeVar("P", bound="PointerTensor")


class PointerTensor(ObjectPointer, AbstractTensor):
    """Stands for a tensor on another worker: what is done with it happens there.

    Shape, dtype and the like are answered without fetching anything; values are refused unless they are fetched with
    ``get``, which the worker decides and records.
    """

    framework: FrameworkAttributes
    _known: Form | None = None
    """The form of the object, true while the form epoch of the location is the one in which it was ``_seen``."""
    _seen: int = -1
    _gradient: Form | bool = False
    """The form of the gradient of the object; True when there is one of unknown form, False when there is none."""
    _gradient_seen: int = -1
    _history: tuple[object, ...] | None = None
    """What the object was computed from, if it is inside a graph; see ``pointers/prediction.py``."""
    _origin: tuple[object, ...] | None = None
    """For a copy that gives its gradient back, the history of what it was copied from."""
    whole: PointerTensor | None = None
    _together: Sequence[weakref.ref[PointerTensor]] = ()
    """The pointers to tensors that were sent with this one, as parts of a module."""

    def __init__(
        self,
        location: WorkerLike | None = None,
        id_at_location: Id = 0,
        framework: Any = None,
        **options: Any,
    ) -> None:
        ObjectPointer.__init__(self, location, id_at_location, **options)
        self.framework = framework

    def sibling(self: P, **changes: Any) -> P:
        """Return a pointer like this one but for ``changes``."""
        return super().sibling(**{"framework": self.framework, **changes})

    def attr(self, name: str) -> PointerTensor:
        """Return a pointer to an attribute of the object."""
        if self.gone is not None or self.whole is not None:
            self.require_alive()
        attribute = pointer_at(self._location, self._id_at_location, self.framework, self._syft_owner)
        attribute.point_to_attr, attribute.garbage_collect_data = name, False
        attribute.whole = self.whole or self
        return attribute

    def has_child(self) -> bool:
        """Say no: the chain ends here, and goes on elsewhere."""
        return False

    @classmethod
    def respond(cls, op: Op, _plan: object, args: Args, kwargs: Kwargs) -> Nested:
        """Send an operation to where its arguments are, and return pointers to its results."""
        pointer, plain = meeting_point(cls, op, args, kwargs)
        framework, location = pointer.framework, pointer._location
        special = _special.get(op)
        if special is None:
            special = _special[op] = _is_special(op, framework)
        if special and (answer := _answer_here(op, pointer, args, kwargs)) is not _ELSEWHERE:
            return answer
        sent, sent_kwargs = (args, kwargs) if not plain else with_copies(op, pointer, args, kwargs)
        message = Run(framework.ALIAS, op.name, sent, sent_kwargs or None, new_id())
        if location.predicts:
            result, plain = prediction.run(cls, op, pointer, message, args, kwargs)
            if result is None:
                return _changed_by(op, pointer, args, kwargs)
            return _predicted(result, message.result, pointer, None if plain else prediction.UNCERTAIN, (args, kwargs))
        result = location.ask(message)
        if type(result) is Placed:
            return pointer_at(location, result.id, framework, pointer._syft_owner)
        if result is None:
            return _changed_by(op, pointer, args, kwargs)
        return result if is_flat(type(result)) else map_leaves(lambda leaf: _pointer_for(leaf, pointer), result)

    # --- where it is

    def move(self, destination: Any, requires_grad: bool = False) -> Tensor:
        """Send the object from worker to worker, without passing here; return a pointer to where it is now.

        With ``requires_grad`` the object also stays where it was, and the gradient that it gets at the destination
        comes back to it: a backward pass crosses the two workers.
        """
        self.require_alive()
        destination = self.owner.location_of(destination)
        if destination.id == self._location.id:
            return self
        if destination.id == self.owner.id:
            return self.get()
        moved = self._forward(destination, keep=self.point_to_attr is not None, requires_grad=requires_grad)
        if self.point_to_attr is None:
            self.gone = f"it was moved to {destination.id!r}"
        return moved

    def copy(self) -> PointerTensor:
        """Return a pointer to a copy of the object, on the same worker."""
        return self._forward(self._location, keep=True)

    def clone(self) -> Tensor:
        """Return a second pointer to the same object."""
        return self.lease()

    def remote_send(self, destination: object) -> PointerTensor:
        """Let the worker send the object on to another; what it holds then, and this points to, is a pointer."""
        self._require_whole("remote_send")
        self._location.ask(SendOn(self._id_at_location, self.owner.location_of(destination).id))
        return self

    def remote_get(self) -> PointerTensor:
        """Let the worker fetch what the pointer that it holds points to; this points to the data then."""
        self._require_whole("remote_get")
        self._location.ask(GetBack(self._id_at_location))
        return self

    mid_get = remote_get

    def _require_whole(self, verb: str) -> None:
        self.require_alive()
        if self.point_to_attr is not None:
            raise ValueRefusedError.only_local(
                verb, str(self._location.id), f"{self.point_to_attr!r} belongs to a tensor and cannot leave without it"
            )

    def _forward(self, destination: Location, keep: bool, requires_grad: bool = False) -> PointerTensor:
        self.require_alive()
        id = new_id()
        message = Forward(self._id_at_location, self.point_to_attr, destination.id, id, keep, requires_grad)
        # Between two workers nothing but waiting keeps the order: the next command may go to the other one.
        send = self._location.tell if destination is self._location else self._location.ask
        send(message)
        tags = None if keep else self._syft_tags
        new = type(self)(destination, id, framework=self.framework, owner=self._syft_owner, tags=tags)
        if requires_grad and self._location.predicts:
            new._origin = prediction.history_of(PointerTensor, (self,), {})
        return new

    def __copy__(self) -> PointerTensor:
        return self.lease()

    def __deepcopy__(self, memo: object) -> PointerTensor:
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

    @property
    def known_form(self) -> Form | None:
        """The form of the object, if it says all that matters and nobody has to be asked for it."""
        location, whole = self._location, self.whole
        if not location.predicts:
            return self._look()
        if whole is None:
            return self._known if self._seen == location.form_epoch else None
        if self.point_to_attr != self._gradient_name:
            return prediction.data_form(whole.known_form)
        known = whole._gradient if whole._gradient_seen == location.gradient_epoch else None
        return known if type(known) is Form else None

    @property
    def is_plain(self) -> bool:
        """Whether the object is known to be a plain tensor: not a chain, and not elsewhere again."""
        location = self._location
        return (self.known_form if location.predicts else location.peek(self._id_at_location)) is not None

    def look(self) -> Any:
        """Return something with the shape, dtype and device of the object: the object itself, or its form."""
        plain = self._location.peek(self._id_at_location, self.point_to_attr)
        if plain is not None and self.gone is None:
            return plain
        return (self.known_form if self._location.predicts else None) or self._ask_form()

    def _look(self) -> Form | None:
        """Return the form of an object in this process, if it says all that matters."""
        if (plain := self._location.peek(self._id_at_location, self.point_to_attr)) is not None:
            return self.framework.form_of(plain)
        try:
            (found,) = self._location.describe((self._id_at_location,), self.point_to_attr)
        except ObjectNotFoundError:
            return None
        return found if found is not None and found.strides is not None else None

    def _form(self, name: str) -> Any:
        return getattr(self.look(), name, None)

    def _ask_form(self) -> Form | None:
        """Ask for the form, and remember it; without strides, it does not say all that matters."""
        self.require_alive()
        (found,) = self._location.describe((self._id_at_location,), self.point_to_attr)
        if found is not None and found.strides is not None:
            if self.whole is None:
                self.know(found)
            elif self.point_to_attr == self._gradient_name:
                self.whole.know_gradient(found)
        return found

    def know(self, form: Form | None) -> None:
        """Remember the form of the object."""
        self._known, self._seen = form, self._location.form_epoch

    def know_gradient(self, form: Form | None, exists: bool = True) -> None:
        """Remember that the object has a gradient, and of which form; or that it has none."""
        self._gradient = (form or True) if exists else False
        self._gradient_seen = self._location.gradient_epoch

    def know_copy_of(self, value: object) -> None:
        """Remember the forms of what the object is a copy of, and of its gradient."""
        plain = plain_below(value) if self._location.predicts else None
        if plain is not None:
            self.know(self.framework.form_of_copy(plain))
            gradient = plain.grad if getattr(plain, "is_leaf", False) else None
            self.know_gradient(
                None if gradient is None else self.framework.form_of_copy(gradient), gradient is not None
            )

    @property
    def _gradient_name(self) -> str:
        """The attribute of the object that holds its gradient."""
        autograd = self.framework.autograd
        return "" if autograd is None else autograd.gradient

    @property
    def is_aliased(self) -> bool:
        """Whether there may be other pointers here to the same object."""
        return self._id_at_location in self._location.aliased

    def is_none(self) -> bool:
        """Return whether the attribute pointed to is None."""
        return self._ask_form() is None

    def has_gradient(self) -> bool:
        """Return whether the object has a gradient; ask only when that may have changed."""
        location = self._location
        if self.gone is not None:
            self.require_alive()
        if not location.predicts:
            return location.has_gradient(self._id_at_location, self._gradient_name)
        if self._gradient_seen != location.gradient_epoch:
            self._ask_gradients()
        return self._gradient is not False

    def _ask_gradients(self) -> None:
        """Ask for the gradients of all that travel together, in one message."""
        found = [ref() for ref in self._together]
        others = [mate for mate in found if mate is not None and mate is not self and mate.gone is None]
        mates = [self, *[mate for mate in others if mate._location is self._location]]
        forms = self._location.describe([mate._id_at_location for mate in mates], self._gradient_name)
        for mate, form in zip(mates, forms, strict=True):
            mate.know_gradient(form if form is not None and form.strides is not None else None, form is not None)


_special: dict[Op, bool] = {}
_ELSEWHERE = object()


def _is_special(op: Op, framework: FrameworkAttributes) -> bool:
    """Return whether an operation is anything but a command whose results stay where they are."""
    is_about_form = op.attr in framework.facts_of_form
    return (
        op.tier == "off" or op.reveals or op.local or op.inplace or is_about_form or op.spelling in ("getter", "setter")
    )


def _answer_here(op: Op, pointer: PointerTensor, args: Args, kwargs: Kwargs) -> Nested:
    """Answer, or refuse, what needs no command; return ``_ELSEWHERE`` for what the worker must answer."""
    if op.reveals:
        return reveal(op, pointer, args, kwargs)
    if op.local:
        return _answer_beside(op, pointer, args)
    if op.tier == "off":
        raise OperationNotAllowedError.off(op.name)
    if op.spelling == "getter" and op.attr in pointer.framework.tensor_attributes:
        return _attribute(pointer, op.attr)
    is_about_it = not kwargs and args[0] is pointer  # and not about a list of pointers
    if is_about_it and op.attr in pointer.framework.facts_of_form and op.spelling != "setter":
        return _fact(op, pointer, args)
    return _ELSEWHERE


def _fact(op: Op, pointer: PointerTensor, args: Args) -> Any:
    """Answer what a form tells; ask for the form if it is not known, and remember it."""
    plain = pointer._location.peek(pointer._id_at_location, pointer.point_to_attr)
    if plain is not None:
        return op.run(plain, *args[1:])
    form = (pointer.known_form if pointer._location.predicts else None) or pointer._ask_form()
    if form is None:
        return _ELSEWHERE
    if form.strides is None:
        known = getattr(form, op.attr, None)
        return _ELSEWHERE if known is None else known
    if len(args) == 1 and hasattr(form, op.attr):
        return getattr(form, op.attr)
    return fact_of_form((op, form, *args[1:]), lambda: pointer.framework.read_off(op, form, args[1:]))


def _changed_by(op: Op, pointer: PointerTensor, args: Args, kwargs: Kwargs) -> Nested:
    """Return what an operation without results has changed, if that is what it returns."""
    if op.inplace:
        return args[0]
    if op.spelling == "setter" and op.attr == pointer._gradient_name and pointer._location.predicts:
        target, given = args
        for each in target if type(target) is list else (target,):
            if each.whole is None:
                if each.is_aliased:
                    pointer._location.forget_gradients()
                each.know_gradient(None if given is None else given.known_form, given is not None)
    out = kwargs.get("out")
    return out[0] if type(out) is tuple and len(out) == 1 else out


def _attribute(pointer: PointerTensor, name: str) -> Tensor:
    if pointer.point_to_attr is not None:  # p.grad.data is p.grad; its own gradient is nothing that can be named.
        return pointer if name != pointer._gradient_name else None
    if name == pointer._gradient_name and not pointer.has_gradient():
        return None
    return pointer.attr(name)


def _answer_beside(op: Op, pointer: PointerTensor, args: Args) -> Nested:
    """Answer what wants to be beside the data: a deep copy is made there, a leaf has no history; refuse the rest."""
    if op.attr == "__deepcopy__":
        return pointer.copy()
    autograd = pointer.framework.autograd
    if autograd is not None and op.attr == autograd.history and pointer._form("is_leaf"):
        return None
    if op.spelling in ("getter", "setter"):
        why = "it is an object of the process that holds the data"
    elif any(map(callable, args[1:])):
        why = "it takes a function, and a worker does not run functions of others"
    else:
        why = "it works on memory of the process that holds the data"
    raise ValueRefusedError.only_local(op.name, str(pointer._location.id), why)


def _predicted(
    result: Nested, first: int, pointer: PointerTensor, history: tuple[object, ...] | None, given: Any
) -> Nested:
    """Turn what a call gives into pointers: forms where the result was worked out, placeholders where it was told."""
    following = first

    def point(leaf: Tensor) -> Nested:
        nonlocal history, following
        if type(leaf) is Placed:
            id, form = leaf.id, leaf.form
        elif type(leaf) is Form:
            id, form = following, leaf
            following += 1
        else:
            return leaf
        new = pointer_at(pointer._location, id, pointer.framework, pointer._syft_owner)
        if type(form) is Form and form.strides is not None:
            new._known, new._seen = form, new._location.form_epoch
            if form.requires_grad and not form.is_leaf:
                if history is None:
                    history = prediction.history_of(PointerTensor, *given)
                new._history = history
            elif form.is_leaf:
                new.know_gradient(None, exists=False)
        return new

    return point(result) if is_flat(type(result)) else map_leaves(point, result)


def _pointer_for(leaf: Tensor, pointer: PointerTensor) -> Tensor:
    if type(leaf) is not Placed:
        return leaf
    return pointer_at(pointer._location, leaf.id, pointer.framework, pointer._syft_owner)


def pointer_at(location: Location, id: Id, framework: FrameworkAttributes, owner: Party) -> PointerTensor:
    """Return a pointer to an object, without the generality of the constructor."""
    new = PointerTensor.__new__(PointerTensor)
    new._location = location
    new._id_at_location = id
    new.framework = framework
    new._syft_owner = owner
    return new


wrapped_directly.add(PointerTensor)
hook_args.register_type_rule({PointerTensor: hook_args.one})
hook_args.register_forward_func({PointerTensor: hook_args.reject_pointer})
hook_args.register_backward_func({PointerTensor: lambda pointer, **_attributes: pointer})
