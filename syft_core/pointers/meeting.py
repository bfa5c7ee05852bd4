"""Check that all tensors of a call are on one worker.

Callers pass ``pointer_type`` because importing ``PointerTensor`` here would create an import cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syft_core.exceptions import NotCollocatedError
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import framework_of, frameworks
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves, resolve
from syft_core.location import Location
from syft_core.values import Args, Kwargs, Nested, Tensor

if TYPE_CHECKING:
    from syft_core.pointers.pointer_tensor import PointerTensor


PLAIN = frozenset({int, float, bool, str, type(None)})
"""The types of arguments that are not tensors."""


def copy_plain_tensors(op: Op, pointer: Tensor, args: Nested, kwargs: Nested) -> tuple[Nested, Nested]:
    """Copy plain tensors in the arguments, because a worker may keep them; convert those of other libraries."""
    _require_pointer_target(op, pointer._location, args, kwargs)

    def copy(leaf: Tensor) -> Tensor:
        return pointer.framework.convert(leaf) if _is_foreign(op, leaf) else copy_if_plain(leaf)

    copied = map_leaves(copy, (_expand_mask(op, pointer, args), kwargs))
    return copied[0], copied[1]


def _expand_mask(op: Op, pointer: Tensor, args: Nested) -> Nested:
    """Replace a local mask by the positions it selects, which determine the shape of the result."""
    if op.attr != "__getitem__" or len(args) != 2 or not is_framework_tensor(type(args[1])):
        return args
    mask, known = args[1], pointer.known_form
    positions = pointer.framework.positions_of(mask)
    fits = known is not None and tuple(known.shape[: len(mask.shape)]) == tuple(mask.shape)
    return (args[0], positions) if positions is not None and fits else args


def copy_if_plain(leaf: Tensor) -> Tensor:
    """Return a copy of a plain tensor, and anything else unchanged."""
    return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf


def find_nested_pointer(pointer_type: type[PointerTensor], op: Op, args: Args, kwargs: Kwargs) -> tuple[Tensor, bool]:
    """Return the first pointer of a call, and whether the arguments contain local tensors, arrays or numbers.

    All tensors of a call must be on one worker. Plain tensors are sent with the command only if they are indices or
    have no dimensions; the same applies to arrays and numbers of another library.
    """
    found: Tensor = None
    plain = large = False
    local: Tensor = None
    others: list[Tensor] = []
    for arg in leaves((args, kwargs)):
        if type(arg) in PLAIN:
            continue
        if type(arg) is pointer_type:
            if found is None:
                found = arg
            elif arg._location.id != found._location.id:
                raise NotCollocatedError.between(op.name, found._location.id, arg._location.id)
            if arg.gone is not None or arg.whole is not None:
                arg.require_alive()
            continue
        others.append(arg)
        if not large and ((foreign := _is_foreign(op, arg)) or is_framework_tensor(type(arg))):
            plain = True
            # Only numpy numbers are immutable; numpy arrays without dimensions have a dtype that affects the result.
            large = hasattr(arg, "__setitem__") if foreign else len(arg.shape) > 0
            large = large and not any(arg is index for index in op.facts.indexes(args, kwargs))
            local = arg if large else None
    if others and found is not None and any(isinstance(arg, found.framework.generators) for arg in others):
        raise NotCollocatedError.draw(op.name, found._location.id)
    if large and found is not None and not (found._location.records or _is_taken_along(op, args)):
        _require_pointer_target(op, found._location, args, kwargs)
        raise _refuse_local(op, found, local)
    return found, plain


def _is_taken_along(op: Op, args: Args) -> bool:
    """Return whether a call takes a local tensor to a pointer's worker, from where no gradient could come back."""
    return op.joins and is_framework_tensor(type(args[0])) and not getattr(args[0], "requires_grad", False)


def _is_foreign(op: Op, leaf: Tensor) -> bool:
    if isinstance(leaf, type) or not hasattr(leaf, "__array__"):
        return False
    known = resolve(frameworks, type(leaf))
    return known is None or op.name.partition(".")[0] != known.ALIAS


def _refuse_local(op: Op, pointer: PointerTensor, local: Tensor) -> NotCollocatedError:
    framework, there = pointer.framework, pointer._location.id
    known = resolve(frameworks, type(local))  # An array may belong to a framework that is not hooked.
    if known is not None and known.ALIAS == framework.ALIAS:
        return NotCollocatedError.local(op.name, there, framework.is_part_of_model(local))
    return NotCollocatedError.foreign(op.name, there, type(local).__name__, framework.ALIAS)


def _require_pointer_target(op: Op, location: Location, args: Nested, kwargs: Nested) -> None:
    """Refuse to change a local tensor: the worker would only change a copy."""
    if any(is_framework_tensor(type(target)) for target in op.targets(args, kwargs)):
        raise NotCollocatedError.change(op.name, location.id)
