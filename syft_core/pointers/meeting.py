"""Where the tensors of a call meet, and the signature that decides the forms of its results.

``pointer_type`` is handed down because the class of pointers itself asks: it cannot be imported here.
"""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import NotCollocatedError
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import is_constant
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import is_flat, leaves, map_leaves

CHANGES_FIRST = frozenset(
    {"__setitem__", "copyto", "place", "putmask", "put", "put_along_axis", "fill_diagonal", "at"}
    | {"data", "grad", "requires_grad"}
)
"""Operations that change their first argument though their names do not say so."""
CHANGES_ALL = frozenset({"_amp_foreach_non_finite_check_and_unscale"})
"""Operations that change more than their first argument."""


def meeting_point(pointer_type: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool, Any]:
    """Return the first pointer of a call, whether single numbers are here, and the signature of the call.

    All tensors of a call must be on one worker; a plain tensor without dimensions is a number, and travels with the
    command. The signature is what decides the forms of the results, or None where one of its parts is not known.
    """
    found: Any = None
    known = True
    signature: list[Any] = [op, *kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        cls = type(arg)
        if cls is pointer_type and arg.gone is None and (arg.whole is None or arg.whole.gone is None):
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
            return _meeting_point_of(pointer_type, op, args, kwargs)
    return found, False, tuple(signature) if known else None


def with_forms(pointer_type: Any, args: Any, kwargs: Any) -> Any:
    """Return the arguments with the known forms in the place of the pointers."""
    return map_leaves(lambda leaf: leaf.known_form if type(leaf) is pointer_type else leaf, (args, kwargs))


def with_copies(op: Op, pointer: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with copies of the numbers among them, which a worker may keep."""
    _require_pointer_target(op, pointer._location, args, kwargs)
    copied = map_leaves(own_copy, (args, kwargs))
    return copied[0], copied[1]


def own_copy(leaf: Any) -> Any:
    """Return a copy of a plain tensor, which a worker may keep, and all else as it is."""
    return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf


def _meeting_point_of(
    pointer_type: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, bool, Any]:
    """Look for pointers everywhere in the arguments."""
    found: Any = None
    plain = large = False
    for arg in leaves((args, kwargs)):
        if type(arg) is pointer_type:
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
    return found, plain, None if op.inplace else _signature(pointer_type, op, args, kwargs)


def _signature(pointer_type: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what decides the forms of the results: the forms of tensors, the types of numbers, all else as it is."""
    parts = [_part_of_signature(pointer_type, arg) for arg in (*args, *kwargs.values())]
    if op.by_fractions:
        parts += [leaf for leaf in leaves((args, kwargs)) if type(leaf) is float]
    return None if _UNKNOWN in parts else (op, *kwargs, *parts)


_UNKNOWN = object()


def _part_of_signature(pointer_type: Any, arg: Any) -> Any:
    cls = type(arg)
    if is_flat(cls):
        return _leaf_of_signature(pointer_type, arg)
    if isinstance(arg, dict):
        return _UNKNOWN
    items = (arg.start, arg.stop, arg.step) if cls is slice else arg
    parts = [_part_of_signature(pointer_type, item) for item in items]
    return _UNKNOWN if _UNKNOWN in parts else (cls, *parts)


def _leaf_of_signature(pointer_type: Any, leaf: Any) -> Any:
    cls = type(leaf)
    if cls is pointer_type:
        return leaf.known_form or _UNKNOWN
    if cls is int or leaf is None:
        return leaf
    if cls is float or cls is complex:
        return cls
    if is_framework_tensor(cls):
        return (cls, leaf.dtype, getattr(leaf, "requires_grad", False))
    return (cls, leaf) if is_constant(leaf) else _UNKNOWN


def _require_pointer_target(op: Op, location: Any, args: Any, kwargs: Any) -> None:
    """Refuse to change a tensor of this process: the change would happen to a copy of it, elsewhere."""
    target = kwargs.get("out")
    if target is None and (op.inplace or op.operation in CHANGES_FIRST):
        target = args[0] if args else next(iter(kwargs.values()))
    if op.operation in CHANGES_ALL:
        target = args
    if any(is_framework_tensor(type(leaf)) for leaf in leaves(target)):
        raise NotCollocatedError.change(op.name, location.id)
