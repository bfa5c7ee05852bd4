"""PointerTensor: the layer that turns operations into commands for the worker of the data."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from syft_core.exceptions import (
    ColumnError,
    IdNotUniqueError,
    ObjectNotFoundError,
    OperationNotAllowedError,
    ValueRefusedError,
)
from syft_core.hook import hook_args
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import types_wrapped_without_plan
from syft_core.hook.forms import Form, fact_of_form
from syft_core.hook.rules import is_flat, map_leaves
from syft_core.location import Location, Party, WorkerLike
from syft_core.messages import AskSchema, Forward, GetBack, Lease, Placed, Run, SendOn
from syft_core.peer import Id
from syft_core.pointers import prediction
from syft_core.pointers.meeting import PLAIN, copy_plain_tensors, find_nested_pointer
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.revealing import reveal
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.schema import Schema
from syft_core.values import Args, Kwargs, Nested, Tensor

P = TypeVar("P", bound="PointerTensor")


class PointerTensor(ObjectPointer, AbstractTensor):
    """Points to a tensor on another worker; operations on the pointer run there.

    Shape, dtype and the like are available without fetching. Values are available only through ``get``, which the
    worker's policy decides and its ledger records.
    """

    framework: FrameworkAttributes
    _known: Form | None = None
    """The form of the object, valid while ``_seen`` equals the form epoch of the location."""
    _seen: int = -1
    _gradient: Form | bool = False
    """The form of the object's gradient: True if unknown, False without a gradient."""
    _gradient_seen: int = -1
    _history: tuple[object, ...] | None = None
    """The history of a tensor inside a graph; see ``pointers/prediction.py``."""
    _origin: tuple[object, ...] | None = None
    """For a copy that sends its gradient back, the history of the original."""
    is_operand: bool = False
    """Whether this is the result of a call that returned its operand, a leaf, as ``w.float()`` returns ``w``.

    Its history is then that of the operand.
    """
    _aliases: list[weakref.ref[PointerTensor]] | None = None
    """The pointers to tensors that share memory, including this one; all have the same list. A change in the autograd
    state of one may affect the others."""
    whole: PointerTensor | None = None
    _moving: tuple[Id, int] | None = None
    """The destination and the new id of an interrupted move, which may have been executed."""
    _schema: Schema | None = None
    """The worker's schema of the object, as far as it was requested."""
    _sent_with: Sequence[weakref.ref[PointerTensor]] = ()
    """Pointers to the tensors of the same module that were sent together."""

    def __init__(
        self,
        location: WorkerLike | None = None,
        id_at_location: Id = 0,
        framework: Any = None,
        **options: Any,
    ) -> None:
        ObjectPointer.__init__(self, location, id_at_location, **options)
        self.framework = framework

    def sibling(self: P, **changes: object) -> P:
        """Return a pointer like this one, except for ``changes``."""
        return super().sibling(**{"framework": self.framework, **changes})

    def attr(self, name: str) -> PointerTensor:
        """Return a pointer to an attribute of the object."""
        if self.gone is not None or self.whole is not None:
            self.require_alive()
        location = self._location
        attribute = pointer_at(location, self._id_at_location, self.framework, self._syft_owner)
        attribute.point_to_attr, attribute.garbage_collect_data = name, False
        attribute.whole = self.whole or self
        if name == self.framework.gradient:
            key = location.identify(self._id_at_location)
            known: PointerTensor | None = location.gradients.get(key)
            if known is not None and known.whole is self:
                return known
            if known is not None:  # It was reached through another pointer to the same object.
                _keep(location, [known])
            location.gradients[key] = attribute
            if self.is_operand:  # The gradient can be replaced through the operand.
                _keep(location, [attribute])
        return attribute

    def take_over(self, other: PointerTensor) -> None:
        """Refer to the object of another pointer, and take over its lease, instead of referring to a gradient."""
        del self.whole, self.point_to_attr, self.garbage_collect_data
        vars(self).update(vars(other))
        other.gone = "another pointer has its lease"
        if self._aliases is not None:
            self._aliases.append(weakref.ref(self))

    def has_child(self) -> bool:
        """Return False: a pointer is the last local layer of a chain."""
        return False

    @classmethod
    def respond(cls, op: Op, _plan: object, args: Args, kwargs: Kwargs) -> Nested:
        """Send an operation to the worker of its arguments, and return pointers to its results.

        All tensors of a call must be on one worker.
        """
        pointer: Any = None
        plain = False
        for arg in (*args, *kwargs.values()) if kwargs else args:
            is_whole = type(arg) is cls and arg.gone is None and arg.whole is None
            if is_whole and (pointer is None or arg._location is pointer._location):
                pointer = arg if pointer is None else pointer
            elif type(arg) not in PLAIN:
                pointer, plain = find_nested_pointer(cls, op, args, kwargs)
                break
        framework, location = pointer.framework, pointer._location
        if (op.is_special or op.attr in framework.facts_of_form) and (
            answer := _answer_here(op, pointer, args, kwargs)
        ) is not _ASK_WORKER:
            return answer
        sent, sent_kwargs = (args, kwargs) if not plain else copy_plain_tensors(op, pointer, args, kwargs)
        message = Run(framework.ALIAS, op.name, sent, sent_kwargs or None, new_id())
        if location.predicts:
            result, plain, shared = prediction.run(cls, op, pointer, message, sent, sent_kwargs)
            if result is None:
                return _return_changed(op, pointer, args, kwargs)
            history = None if plain else prediction.UNCERTAIN
            made = _point_to(result, message.result, pointer, history, (args, kwargs))
            if shared:
                prediction.link_aliases(cls, made, shared, args, kwargs)
            return made
        result = location.ask(message)
        if type(result) is Placed:
            return pointer_at(location, result.id, framework, pointer._syft_owner)
        return _return_changed(op, pointer, args, kwargs) if result is None else _point_to_parts(result, pointer)

    # --- moving and copying

    def move(self, destination: Any, requires_grad: bool = False) -> Tensor:
        """Send the object directly to another worker, and return a pointer to it there.

        With ``requires_grad`` the original stays and receives the gradient of the moved copy: a backward pass crosses
        both workers.
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
        """Make the worker send the object to another one; this pointer then refers to a pointer to it."""
        self._require_whole("remote_send")
        place, id = self.owner.location_of(destination), new_id()
        self._location.introduce(place, (id,))
        self._location.ask(SendOn(self._id_at_location, place.id, id))
        return self

    def remote_get(self) -> PointerTensor:
        """Undo ``remote_send``: make the worker fetch the object that its pointer points to."""
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
        place, id = self._moving or (None, 0)
        is_retry = place == destination.id and not (keep or requires_grad)
        id = id if is_retry else new_id()
        message = Forward(self._id_at_location, self.point_to_attr, destination.id, id, keep, requires_grad)
        if destination is not self._location:
            self._location.introduce(destination, (id,))
            if requires_grad:
                destination.introduce(self._location, (self._id_at_location,))
        # The next command may go to the other worker, and only waiting guarantees the order.
        send = self._location.tell if destination is self._location else self._location.ask
        try:
            send(message)
        except (ObjectNotFoundError, IdNotUniqueError):  # The interrupted call moved it.
            if not is_retry:
                raise
        except (ConnectionError, KeyboardInterrupt):
            self._moving = None if keep or requires_grad else (destination.id, id)
            raise
        tags = None if keep else self._syft_tags
        new = type(self)(destination, id, framework=self.framework, owner=self._syft_owner, tags=tags)
        if requires_grad and self._location.predicts:
            new._origin = prediction.history_of(PointerTensor, (self,), {})
        return new

    def __copy__(self) -> PointerTensor:
        return self.lease()

    def __deepcopy__(self, memo: object) -> PointerTensor:
        return self.copy()

    # --- form

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
        """The device of the object on its worker."""
        return self._form("device")

    @property
    def known_form(self) -> Form | None:
        """The complete form of the object, if it is known without a message."""
        location, whole = self._location, self.whole
        if not location.predicts:
            return self._look()
        if whole is None:
            return self._known if self._seen == location.form_epoch else None
        known = whole._gradient if whole._gradient_seen == location.gradient_epoch else None
        return known if type(known) is Form else None

    @property
    def is_plain(self) -> bool:
        """Whether the object is known to be a plain tensor, not a chain."""
        location = self._location
        return (self.known_form if location.predicts else location.peek(self._id_at_location)) is not None

    def look(self) -> Any:
        """Return the object or its form; both have its shape, dtype and device."""
        if self._location.predicts:
            return self.known_form or self._ask_form()
        plain = self._location.peek(self._id_at_location, self.point_to_attr) if self.gone is None else None
        return self._ask_form() if plain is None else plain

    def _look(self) -> Form | None:
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
        """Ask for the form; remember it if it is complete, that is, if it has strides."""
        self.require_alive()
        (found,) = self._location.describe((self._id_at_location,), self.point_to_attr)
        if found is not None and found.strides is not None:
            if self.whole is None:
                self.remember_form(found)
            elif self.point_to_attr == self.framework.gradient:
                self.whole.remember_gradient(found)
        return found

    @property
    def schema(self) -> Schema:
        """The schema of the object; it has no columns unless the object is a table with names."""
        if self._schema is None:
            self.require_alive()
            whole = self.point_to_attr is None
            self._schema = self._location.ask(AskSchema(self._id_at_location)) if whole else Schema()
        return self._schema

    @property
    def mock(self) -> PointerTensor:
        """A pointer to the mock of the object."""
        id = self.schema.mock
        if id is None:
            raise ColumnError.no_mock(f"object {self._id_at_location!r} of worker {self._location.id!r}")
        self._location.note_alias(id)
        self._location.tell(Lease((id,)))
        return self.sibling(id_at_location=id, tags=None, description=None)

    def remember_form(self, form: Form | None) -> None:
        """Remember the form of the object."""
        self._known, self._seen = form, self._location.form_epoch

    def remember_gradient(self, form: Form | None, exists: bool = True) -> None:
        """Remember the form of the gradient, or that there is none."""
        self._gradient = (form or True) if exists else False
        self._gradient_seen = self._location.gradient_epoch

    def join_aliases(self, other: PointerTensor) -> None:
        """Remember that another pointer's object shares memory with this one's."""
        group = self._aliases = self._aliases or [weakref.ref(self)]
        if other._aliases is group:
            return
        group += other._aliases or [weakref.ref(other)]
        for member in [ref() for ref in other._aliases or ()]:
            if member is not None:
                member._aliases = group
        other._aliases = group
        if len(group) >= _MANY and not len(group) & (len(group) - 1):  # Check at 16, 32, 64 …
            group[:] = [ref for ref in group if ref() is not None]

    def forget_aliases(self) -> None:
        """Forget the forms and gradients of other tensors that share memory with the object."""
        for alias in [ref() for ref in self._aliases or ()]:
            if alias is not None and alias is not self:
                alias._seen = alias._gradient_seen = -1

    def remember_forms_of(self, value: object) -> None:
        """Remember the forms of ``value``, the original of the object, and of its gradient."""
        plain = plain_below(value) if self._location.predicts else None
        if plain is not None:
            self.remember_form(self.framework.form_of_copy(plain))
            gradient = plain.grad if getattr(plain, "is_leaf", False) else None
            self.remember_gradient(
                None if gradient is None else self.framework.form_of_copy(gradient), gradient is not None
            )

    @property
    def is_aliased(self) -> bool:
        """Whether the client may have other pointers to the same object."""
        return self.is_operand or self._id_at_location in self._location.aliased

    def is_none(self) -> bool:
        """Return whether the attribute pointed to is None."""
        return self._ask_form() is None

    def has_gradient(self) -> bool:
        """Return whether the object has a gradient; ask the worker only if the answer may have changed."""
        location = self._location
        if self.gone is not None:
            self.require_alive()
        if not location.predicts:
            return location.has_gradient(self._id_at_location, self.framework.gradient)
        if self._gradient_seen != location.gradient_epoch or self.is_operand:
            self._ask_gradients()
        return self._gradient is not False

    def _ask_gradients(self) -> None:
        found = [ref() for ref in self._sent_with]
        others = [other for other in found if other is not None and other is not self and other.gone is None]
        group = [self, *[other for other in others if other._location is self._location]]
        try:
            forms = self._location.describe([other._id_at_location for other in group], self.framework.gradient)
        except ObjectNotFoundError as error:  # Another tensor of the module may be gone.
            if error.id == self._id_at_location:
                raise
            group = [self]
            forms = self._location.describe([self._id_at_location], self.framework.gradient)
        for other, form in zip(group, forms, strict=True):
            other.remember_gradient(form if form is not None and form.strides is not None else None, form is not None)


_ASK_WORKER = object()
_MANY = 16


def _answer_here(op: Op, pointer: PointerTensor, args: Args, kwargs: Kwargs) -> Nested:
    """Answer or refuse an operation that needs no command; return ``_ASK_WORKER`` for all others."""
    if op.reveals:
        return reveal(op, pointer, args, kwargs)
    if op.local:
        return _answer_local_op(op, pointer, args)
    if op.tier == "off":
        use = f"use `{op.instead}`" if op.instead else "compute it before the call, and pass the result as an argument"
        _refuse_in_plan(op, pointer, "which workers do not run", use)
        raise OperationNotAllowedError.off(op.name, op.instead)
    if op.spelling == "getter" and op.attr == pointer.framework.gradient:
        return _gradient(pointer)
    if op.accumulates:
        _keep_replaced_by_backward(op, pointer, args, kwargs)
        return _ASK_WORKER
    if op.spelling == "setter" and op.attr == pointer.framework.gradient:
        keep_gradients(pointer._location, args[0] if type(args[0]) is list else (args[0],))
    is_about_it = not kwargs and args[0] is pointer  # Not a list of pointers.
    if is_about_it and op.attr in pointer.framework.facts_of_form and op.spelling != "setter":
        return _fact(op, pointer, args)
    return _ASK_WORKER


def _fact(op: Op, pointer: PointerTensor, args: Args) -> Any:
    if any(type(arg) is not arg.__class__ for arg in args[1:]):
        return _ASK_WORKER  # A plan traces this number, and a framework cannot read it.
    plain = pointer._location.peek(pointer._id_at_location, pointer.point_to_attr)
    if plain is not None:
        return pointer._location.note_fact(op, pointer, args, {}, op.run(plain, *args[1:]))
    form = (pointer.known_form if pointer._location.predicts else None) or pointer._ask_form()
    if form is None:
        return _ASK_WORKER
    if form.strides is None:
        known = getattr(form, op.attr, None)
        return _ASK_WORKER if known is None else known
    if len(args) == 1 and hasattr(form, op.attr):
        return getattr(form, op.attr)
    return fact_of_form((op, form, *args[1:]), lambda: pointer.framework.answer_from_form(op, form, args[1:]))


def _return_changed(op: Op, pointer: PointerTensor, args: Args, kwargs: Kwargs) -> Nested:
    if op.inplace:
        return args[0]
    if op.spelling == "setter" and op.attr == pointer.framework.gradient and pointer._location.predicts:
        target, given = args
        for each in target if type(target) is list else (target,):
            if each.whole is None:
                each.forget_aliases()
                if each.is_aliased:
                    pointer._location.forget_gradients()
                each.remember_gradient(None if given is None else given.known_form, given is not None)
    out = kwargs.get("out")
    return out[0] if type(out) is tuple and len(out) == 1 else out


def keep_gradients(location: Location, targets: Sequence[PointerTensor] | None = None) -> None:
    """Keep gradients that have pointers before those of ``targets``, or any, are replaced.

    Locally, ``g = p.grad`` is a tensor of its own, which ``p.grad = None`` does not change.
    """
    held = location.gradients
    if held:
        location.push()  # Buffered commands have pointers, too, which the program may have dropped.
    if not held:
        return
    if targets is None:
        found = list(held.values())
    else:
        found = [held.get(location.identify(target._id_at_location)) for target in targets]
        if location.predicts and any(target.is_aliased or target._aliases for target in targets):
            found += [each for each in list(held.values()) if any(_may_be_one(each.whole, other) for other in targets)]
    _keep(location, [gradient for gradient in dict.fromkeys(found) if gradient is not None])


def _keep_replaced_by_backward(op: Op, pointer: PointerTensor, args: Args, kwargs: Kwargs) -> None:
    """Keep the gradients that a backward pass may replace instead of adding to them in place.

    A pass that creates a graph replaces all gradients, others replace sparse ones, which have no complete form.
    """
    location = pointer._location
    if location.gradients:
        adds_in_place = pointer.framework.parse_backward(op, args, kwargs)[2]
        held = list(location.gradients.values())
        _keep(location, [each for each in held if not adds_in_place or each.known_form is None])


def _may_be_one(one: PointerTensor | None, other: PointerTensor) -> bool:
    """Return whether two pointers may refer to one object, as far as their ids show."""
    return one is not None and (other.is_aliased or (one._aliases is not None and one._aliases is other._aliases))


def _keep(location: Location, gradients: list[PointerTensor]) -> None:
    """Make the worker store gradients as objects, and redirect their pointers to these.

    Skip gradients whose tensors are gone from the worker: the command that replaces others must not fail.
    """
    stored = []
    for gradient in gradients:
        whole = gradient.whole
        if whole is None or whole.gone is not None:
            continue
        with _forgetting_if_gone(location, gradient):
            if whole.has_gradient():
                autograd: Any = gradient.framework.autograd
                op = gradient.framework.method(autograd.identity)
                stored.append((gradient, PointerTensor.respond(op, None, (gradient,), {})))
    if stored:
        location.push()  # Buffered commands refer to the gradients.
    for gradient, whole in stored:
        gradient.take_over(whole)


@contextmanager
def _forgetting_if_gone(location: Location, gradient: PointerTensor) -> Iterator[None]:
    """Forget a gradient whose tensor is gone from its worker, instead of raising an error."""
    try:
        yield
    except ObjectNotFoundError as error:
        if gradient.whole is None or error.id != gradient.whole._id_at_location:
            raise
        for key in [key for key, known in location.gradients.items() if known is gradient]:
            del location.gradients[key]


def _gradient(pointer: PointerTensor) -> Tensor:
    has_gradient = pointer.whole is None and pointer.has_gradient()  # p.grad.grad cannot be pointed to.
    return pointer.attr(pointer.framework.gradient) if has_gradient else None


def _answer_local_op(op: Op, pointer: PointerTensor, args: Args) -> Nested:
    """Answer ``__deepcopy__`` and the history of a leaf; refuse operations that need the data itself."""
    if op.attr == "__deepcopy__":
        return pointer.copy()
    autograd = pointer.framework.autograd
    if autograd is not None and op.attr == autograd.history and pointer._form("is_leaf"):
        return None
    if op.spelling in ("getter", "setter"):
        why = "it is an object of the process that holds the data"
    elif any(callable(arg) and not isinstance(arg, type | PointerTensor) for arg in args):
        use = "write it as operations; to change a gradient, write an autograd function with a `backward`"
        _refuse_in_plan(op, pointer, "to which it gives a function, and workers do not run functions of others", use)
        why = "it takes a function, and a worker does not run functions of others"
    else:
        why = "it works on memory of the process that holds the data"
    raise ValueRefusedError.only_local(op.name, str(pointer._location.id), why)


def _refuse_in_plan(op: Op, pointer: PointerTensor, why: str, use: str) -> None:
    """Refuse an operation in a function that is recorded as a plan, where nothing can be fetched."""
    if pointer._location.records:
        recorder: Any = pointer._location
        recorder.refuse(f"calls {op.attr!r}, {why}", use)


def _point_to(
    result: Nested, first: int, pointer: PointerTensor, history: tuple[object, ...] | None, given: Any
) -> Nested:
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
            elif form.requires_grad and not given[1].get("requires_grad"):
                new.is_operand, new._history = True, prediction.history_of_operand(PointerTensor, form, *given)
            elif type(leaf) is Form:  # A result that was not predicted may be an operand.
                new.remember_gradient(None, exists=False)
        return new

    return point(result) if is_flat(type(result)) else map_leaves(point, result)


def _point_to_parts(result: Nested, pointer: PointerTensor) -> Nested:
    return result if is_flat(type(result)) else map_leaves(lambda leaf: pointer_for(leaf, pointer), result)


def pointer_for(leaf: Tensor, pointer: PointerTensor) -> Tensor:
    """Return a pointer for a placeholder in the result of a command; return anything else unchanged."""
    if type(leaf) is not Placed:
        return leaf
    return pointer_at(pointer._location, leaf.id, pointer.framework, pointer._syft_owner)


def pointer_at(location: Location, id: Id, framework: FrameworkAttributes, owner: Party) -> PointerTensor:
    """Return a pointer to an object; faster than the constructor."""
    new = PointerTensor.__new__(PointerTensor)
    new._location = location
    new._id_at_location = id
    new.framework = framework
    new._syft_owner = owner
    new.gone = new.whole = None  # Every command reads these; instance attributes are found faster.
    return new


types_wrapped_without_plan.add(PointerTensor)
hook_args.register_type_rule({PointerTensor: hook_args.one})
hook_args.register_forward_func({PointerTensor: hook_args.reject_pointer})
hook_args.register_backward_func({PointerTensor: lambda pointer, **_attributes: pointer})
