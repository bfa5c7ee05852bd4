"""PointerTensor: the layer that turns operations into commands for the worker where the data is."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import NotCollocatedError, ValueRefusedError
from syft_core.hook import hook_args
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import framework_of, plain_below
from syft_core.hook.forms import Form, Forms, fact_of_form, form, is_constant, remember_result, results_known
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
    _known: Form | None = None
    """The form of the object, true while no object of its worker has changed its form since it was ``_seen``."""
    _seen: int = -1
    _gradient: Any = None
    """The form of the gradient of the object, or what else the worker said of it; None when there is no gradient."""
    _gradient_seen: int = -1

    def __init__(self, location: Any = None, id_at_location: Any = None, framework: Any = None, **options: Any) -> None:
        ObjectPointer.__init__(self, location, id_at_location, **options)
        self.framework = framework

    def sibling(self, **changes: Any) -> Any:
        """Return a pointer like this one but for ``changes``."""
        return super().sibling(**{"framework": self.framework, **changes})

    def attr(self, name: str) -> PointerTensor:
        """Return a pointer to an attribute of the object."""
        self.require_alive()
        attribute = _pointer_beside(self, self._id_at_location, None)
        attribute.point_to_attr, attribute.garbage_collect_data = name, False
        attribute.whole = self if self.whole is None else self.whole
        return attribute

    def has_child(self) -> bool:
        """Say no: the chain ends here, and goes on elsewhere."""
        return False

    @classmethod
    def respond(cls, op: Op, _plan: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Send an operation to where its arguments are, and return pointers to its results."""
        pointer, plain, signature = _meeting_point(op, args, kwargs)
        framework = pointer.framework
        special = _special.get(op)
        if special is None:
            special = _special[op] = _is_special(op, framework)
        if special and (answer := _answer_here(op, pointer, signature, args, kwargs)) is not _UNKNOWN:
            return answer
        sent, sent_kwargs = (args, kwargs) if not plain else _with_copies(op, pointer, args, kwargs)
        message = Run(framework.ALIAS, op.name, sent, sent_kwargs, new_id())
        reply = pointer._location.ask(message, pointer._syft_owner)
        if (special or kwargs) and (changed := _changed_by(op, pointer, args, kwargs)) is not None:
            return changed
        forms: Any = ()
        if signature is not None and (state := framework.state()) is not None:
            forms = results_known.get((signature, state))
            if forms is None:
                forms = remember_result((signature, state), framework.infer(op, *_with_forms(args, kwargs)))
        if type(reply) is Placed:
            return _pointer_beside(pointer, reply.id, forms[0] if forms else None)
        return reply if is_flat(type(reply)) else _pointers_for(reply, pointer, forms)

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

    @property
    def known_form(self) -> Form | None:
        """The form of the object, if it is known here; asking for it sends no message."""
        whole: Any = self.whole
        if whole is None:
            return self._known if self._seen == self._location.forms_changed else None
        if self.point_to_attr == "data":
            known = whole.known_form
            return None if known is None else form(known.shape, known.strides, known.dtype, known.device)
        if whole._gradient_seen != whole._location.gradients_changed:
            return None
        return whole._gradient if type(whole._gradient) is Form else None

    def _form(self, name: str) -> Any:
        known = self.known_form
        return self._ask_form().get(name) if known is None else getattr(known, name)

    def _ask_form(self) -> Any:
        self.require_alive()
        told = self._location.ask(Describe(self._id_at_location, self.point_to_attr), self._syft_owner)
        if told is not None and self.whole is None:
            self._know(_form_told(told))
        return told

    def _know(self, form: Form | None) -> None:
        self._known, self._seen = form, self._location.forms_changed

    def know_copy_of(self, value: Any) -> None:
        """Remember the forms of what the object is a copy of, and of its gradient."""
        plain = plain_below(value)
        if plain is not None:
            self._know(self.framework.form_of_copy(plain))
            gradient = plain.grad if getattr(plain, "is_leaf", False) else None
            self._gradient = None if gradient is None else self.framework.form_of_copy(gradient) or True
            self._gradient_seen = self._location.gradients_changed

    def is_none(self) -> bool:
        """Say whether the attribute pointed to is None."""
        return self._ask_form() is None

    def has_gradient(self) -> bool:
        """Say whether the object has a gradient; ask only when that may have changed."""
        location = self._location
        self.require_alive()
        if self._gradient_seen != location.gradients_changed:
            told = location.ask(Describe(self._id_at_location, "grad"), self._syft_owner)
            self._gradient = None if told is None else _form_told(told) or told
            self._gradient_seen = location.gradients_changed
        return self._gradient is not None


_special: dict[Op, bool] = {}


def _is_special(op: Op, framework: FrameworkAttributes) -> bool:
    """Say whether an operation is anything but a command whose results stay where they are."""
    is_about_form = op.attr in framework.facts_of_form
    return op.reveals or op.local or op.inplace or is_about_form or op.spelling in ("getter", "setter")


def _answer_here(op: Op, pointer: PointerTensor, signature: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer, or refuse, what needs no command; return ``_UNKNOWN`` for the rest."""
    if op.reveals:
        return reveal(op, pointer, args, kwargs)
    if op.local:
        return _answer_beside(op, pointer)
    if op.spelling == "getter" and op.attr in ATTRIBUTES:
        return _attribute(pointer, op.attr)
    if op.attr in pointer.framework.facts_of_form and op.spelling != "setter" and not kwargs:
        return _fact(op, pointer, signature, args)
    return _UNKNOWN


def _fact(op: Op, pointer: PointerTensor, signature: Any, args: tuple[Any, ...]) -> Any:
    """Answer what a form tells; ask for the form if it is not known, and remember it."""
    if signature is None:
        told = pointer._ask_form()
        form = _form_told(told) if told else None
        if form is None:
            return told[op.attr] if told and op.attr in told else _UNKNOWN
        signature = (op, form, *args[1:])
    return fact_of_form(signature, lambda: pointer.framework.read_off(op, signature[1], args[1:]))


def _changed_by(op: Op, pointer: PointerTensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what an operation has changed in place of results, or None where it has results."""
    if op.inplace:
        return args[0]
    if op.spelling == "setter" and op.attr == "grad" and pointer.whole is None:
        # That it was taken away is known; what was put there must be asked for.
        pointer._gradient = None
        pointer._gradient_seen = pointer._location.gradients_changed if args[1] is None else -1
    out = kwargs.get("out")
    return out[0] if type(out) is tuple and len(out) == 1 else out


def _form_told(told: dict[str, Any]) -> Form | None:
    """Return the form that a worker has described, if that says all that matters."""
    return form(**told) if told["strides"] is not None else None


def _attribute(pointer: PointerTensor, name: str) -> Any:
    if pointer.point_to_attr is not None:  # p.grad.data is p.grad; its own gradient is nothing that can be named.
        return pointer if name == "data" else None
    if name == "grad" and not pointer.has_gradient():
        return None
    return pointer.attr(name)


def _answer_beside(op: Op, pointer: PointerTensor) -> Any:
    """Answer what wants to be beside the data: a deep copy is made there, a leaf has no history; refuse the rest."""
    if op.attr == "__deepcopy__":
        return pointer.copy()
    if op.attr == "grad_fn" and pointer._form("is_leaf"):
        return None
    raise ValueRefusedError.only_local(op.name, pointer._location.id)


def _meeting_point(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[PointerTensor, bool, Any]:
    """Return the first pointer of a call, whether single numbers are here, and the signature of the call.

    All tensors of a call must be on one worker; a plain tensor without dimensions is a number, and travels with the
    command. The signature is what decides the forms of the results, or None where one of its parts is not known.
    """
    found: Any = None
    known = True
    signature: list[Any] = [op, *kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        cls = type(arg)
        if cls is PointerTensor and arg.gone is None and (arg.whole is None or arg.whole.gone is None):
            if found is None:
                found = arg
                epoch = arg._location.forms_changed
            elif arg._location is not found._location:
                raise NotCollocatedError.between(op.name, found._location.id, arg._location.id)
            form = arg._known if arg._seen == epoch else None
            if form is None and (arg.whole is None or (form := arg.known_form) is None):
                known = False
            signature.append(form)
        elif cls is int or arg is None:
            signature.append(arg)
        elif cls is float and not op.by_fractions:
            signature.append(float)
        elif cls is bool or cls is str:
            signature.append((cls, arg))
        else:
            return _meeting_point_of(op, args, kwargs)
    return found, False, tuple(signature) if known else None


def _meeting_point_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[PointerTensor, bool, Any]:
    """Look for pointers everywhere in the arguments."""
    found: Any = None
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
    return found, plain, None if op.inplace else _signature(op, args, kwargs)


def _signature(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what decides the forms of the results: the forms of tensors, the types of numbers, all else as it is."""
    parts = [_part_of_signature(arg) for arg in (*args, *kwargs.values())]
    if op.by_fractions:
        parts += [leaf for leaf in leaves((args, kwargs)) if type(leaf) is float]
    return None if _UNKNOWN in parts else (op, *kwargs, *parts)


_UNKNOWN = object()


def _part_of_signature(arg: Any) -> Any:
    cls = type(arg)
    if is_flat(cls):
        return _leaf_of_signature(arg, cls)
    if isinstance(arg, dict):
        return _UNKNOWN
    items = (arg.start, arg.stop, arg.step) if cls is slice else arg
    parts = [_part_of_signature(item) for item in items]
    return _UNKNOWN if _UNKNOWN in parts else (cls, *parts)


def _leaf_of_signature(leaf: Any, cls: type) -> Any:
    if cls is PointerTensor:
        return leaf.known_form or _UNKNOWN
    if cls is int or leaf is None:
        return leaf
    if cls is float or cls is complex:
        return cls
    if is_framework_tensor(cls):
        return (cls, leaf.dtype, getattr(leaf, "requires_grad", False))
    return (cls, leaf) if is_constant(leaf) else _UNKNOWN


def _with_forms(args: Any, kwargs: Any) -> Any:
    return map_leaves(lambda leaf: leaf.known_form if type(leaf) is PointerTensor else leaf, (args, kwargs))


def _with_copies(op: Op, pointer: PointerTensor, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with copies of the numbers among them, which a worker may keep."""
    _require_pointer_target(op, pointer._location, args, kwargs)
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


def _pointers_for(reply: Any, pointer: PointerTensor, forms: Forms) -> Any:
    """Turn a reply into the result of a call: pointers where tensors stayed behind, the rest as it is."""
    following = iter(forms)
    return map_leaves(
        lambda leaf: _pointer_beside(pointer, leaf.id, next(following, None)) if type(leaf) is Placed else leaf, reply
    )


def _pointer_beside(pointer: PointerTensor, id: int, form: Form | None) -> PointerTensor:
    """Return a pointer to another object of the same worker."""
    new = pointer_at(pointer._location, id, pointer.framework, pointer._syft_owner)
    if form is not None:
        new._known, new._seen = form, new._location.forms_changed
    return new


def pointer_at(location: Any, id: int | str, framework: FrameworkAttributes, owner: Any) -> PointerTensor:
    """Return a pointer to an object, without the generality of the constructor."""
    new = PointerTensor.__new__(PointerTensor)
    new._location = location
    new._id_at_location = id
    new.framework = framework
    new._syft_owner = owner
    return new


hook_args.register_type_rule({PointerTensor: hook_args.one})
hook_args.register_forward_func({PointerTensor: hook_args.pointer_found})
hook_args.register_backward_func({PointerTensor: lambda pointer, **_attributes: pointer})
