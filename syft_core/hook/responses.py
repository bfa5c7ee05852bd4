"""Build functions that wrap the tensors of a response in a layer, or store them on a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from syft_core.exceptions import ResponseSignatureError
from syft_core.hook.folds import FoldSlot, check_type, fold_exactly, fold_into, one_fold, typed_identity
from syft_core.hook.rules import backward_func, build_rule, is_mapped, map_leaves, rebuild, resolve
from syft_core.values import Function, Kwargs, Nested, Tensor

# --- Wrapping


def build_wrap_response(
    response: Nested, wrap_type: type, check: Callable[[type, FoldSlot], FoldSlot] = check_type
) -> FoldSlot:
    """Build a function that wraps the tensors of responses like ``response`` in ``wrap_type(**attributes)``."""
    return _build_slot(response, build_rule(response), partial(_get_backward_func, wrap_type), check)


def build_wrap_response_from_function(
    response: Nested, wrap_type: type, wrap_args: Mapping[str, object]
) -> Callable[[Nested], Nested]:
    """Build a function that wraps responses like ``response``: ``f(pointer)`` is ``(Wrapper)>Pointer``."""
    return partial(build_wrap_response(response, wrap_type), **wrap_args)


build_wrap_reponse_from_function = build_wrap_response_from_function
"""The spelling in PySyft 0.2.0 to 0.2.4."""


def build_wrap_response_with_rules(
    response: Nested,
    rules: object,
    wrap_type: type,
    wrap_args: Mapping[str, object],
    return_tuple: bool = False,
    return_list: bool = False,
) -> Callable[[Nested], Nested]:
    """Build a function that wraps the tensors, marked in ``rules``, of sequences like ``response``.

    One element is returned by itself unless ``return_tuple`` or ``return_list`` is set; a list stays a list.
    """
    slots = _build_slots(response, rules, partial(_get_backward_func, wrap_type))
    as_list = return_list or isinstance(response, list)
    return _sequence_plan(slots, as_list, return_tuple, dict(wrap_args))


def _get_backward_func(wrap_type: type) -> FoldSlot:
    found: FoldSlot | None = resolve(backward_func, wrap_type)
    if found is None:
        raise backward_func.missing_error(wrap_type)
    return found


# --- Registration on a worker


def build_register_response_function(response: Nested) -> Function:
    """Build a function that stores the tensors of responses like ``response``."""
    return _build_slot(response, build_rule(response), _get_register)


def build_register_response(response: Nested, rules: object, return_tuple: bool = False) -> Function:
    """Build a function that stores the tensors, marked in ``rules``, of sequences like ``response``."""
    slots = _build_slots(response, rules, _get_register)
    return _sequence_plan(slots, isinstance(response, list), return_tuple, {})


def _get_register() -> FoldSlot:
    return register_tensor


class ResultStore(Protocol):
    """A worker, as far as it stores results."""

    def register_obj(self, obj: Tensor, obj_id: int | str | None = None) -> object:
        """Store a tensor, under an id if one is given."""


def register_tensor(tensor: Tensor, owner: ResultStore, response_ids: list[int] | None = None) -> Tensor:
    """Store ``tensor`` on ``owner``, under the next of ``response_ids`` if given, and return it."""
    if response_ids is None:
        owner.register_obj(tensor)
        return tensor
    if not response_ids:
        raise ResponseSignatureError()
    owner.register_obj(tensor, obj_id=response_ids.pop(0))
    return tensor


# --- Shared helpers


def _build_slot(
    response: Nested,
    rule: object,
    action: Callable[[], FoldSlot],
    check: Callable[[type, FoldSlot], FoldSlot] = check_type,
) -> FoldSlot:
    """Build a function that applies ``action()`` to every tensor of responses like ``response``.

    ``action`` is called only if there is a tensor, since it may raise.
    """
    cls = type(response)
    if isinstance(rule, list | tuple):
        return check(cls, partial(fold_into, partial(rebuild, cls), _build_slots(response, rule, action)))
    if not rule:
        return typed_identity(response)
    return check(cls, partial(_apply_inside, action) if is_mapped(cls) else action())


def _build_slots(response: Nested, rules: Nested, action: Callable[[], FoldSlot]) -> list[FoldSlot]:
    return [_build_slot(item, rule, action) for item, rule in zip(response, rules, strict=True)]


def _apply_inside(action: Callable[[], FoldSlot], obj: object, **kwargs: object) -> Nested:
    """Apply ``action()`` to the tensors in a dict or a slice."""
    return map_leaves(lambda leaf: _build_slot(leaf, build_rule(leaf), action)(leaf, **kwargs), obj)


def _sequence_plan(slots: list[FoldSlot], as_list: bool, return_tuple: bool, kwargs: Kwargs) -> Function:
    if len(slots) == 1 and not return_tuple and not as_list:
        return partial(fold_exactly, one_fold(return_tuple=False), slots, **kwargs)
    return partial(fold_into, list if as_list else tuple, slots, **kwargs)
