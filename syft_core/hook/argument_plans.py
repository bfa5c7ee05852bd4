"""Signature plans: functions that unwrap the outermost layer from the arguments of one exact signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from syft_core.exceptions import PureFrameworkTensorFoundError
from syft_core.hook.folds import (
    FoldSlot,
    Getter,
    check_type,
    deep_layers,
    fold_exactly,
    get_child,
    get_element_at,
    get_fold,
    one_fold,
    skip_check,
    typed_identity,
)
from syft_core.hook.ranks import find_outermost, find_outermost_type, is_framework_tensor
from syft_core.hook.rules import (
    build_rule,
    forward_func,
    is_container,
    is_flat,
    is_mapped,
    leaves,
    map_leaves,
    rebuild,
    resolve,
)
from syft_core.values import Args, Kwargs, LayerType, Nested, Tensor


class ArgumentPlan(NamedTuple):
    """Unwraps one layer type from the arguments of one signature."""

    layer: LayerType
    """The layer type to unwrap, or None if the call contains no layer."""
    args: Callable[[Args], Args]
    kwargs: Callable[[Kwargs], Kwargs] | None
    leader: Callable[[Args, Kwargs], Tensor]
    """Returns the first instance of ``layer``; results get its attributes."""
    is_pair: bool = False
    """Whether the arguments are two layers to replace by their children, as for an operator."""

    def unwrap(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Return the arguments with layers replaced by their children."""
        return self.args(args), self.kwargs(kwargs) if self.kwargs is not None else kwargs


def _return_args(args: Args) -> Args:
    return args


def _no_leader(_args: Nested, _kwargs: Nested) -> None:
    return None


NO_PLAN = ArgumentPlan(None, _return_args, None, _no_leader)
"""The plan of a call that contains no layer."""


def build_plan(name: str, args: Args, kwargs: Kwargs) -> ArgumentPlan:
    """Build the plan for all calls with the signature of this one."""
    layer = find_outermost_type(name, (args, kwargs))
    if layer is None:
        return NO_PLAN
    # The cache key has the exact type of every slot, so these plans need not look again.
    unwrap_args = _unwrap_slots(args, build_rule(args), layer, check=skip_check)
    unwrap_kwargs: Callable[[Kwargs], Kwargs] | None = None
    if kwargs and _only_unwraps(layer, kwargs.values()):
        unwrap_kwargs = _named_children_in(layer) if layer in map(type, kwargs.values()) else None
    elif kwargs:
        named = {key: _unwrap_slot(value, build_rule(value), layer, check=skip_check) for key, value in kwargs.items()}
        unwrap_kwargs = partial(_apply_to_dict, named)
    is_pair = _only_unwraps(layer, args) and [*map(type, args)] == [layer, layer]
    return ArgumentPlan(layer, unwrap_args, unwrap_kwargs, _build_leader_getter(layer, args), is_pair)


def build_structural_plan(name: str, args: Args, kwargs: Kwargs) -> ArgumentPlan:
    """Build a plan for exactly these arguments, with any nesting; it must not be cached."""
    slots = leaves(args)
    if kwargs:
        slots += leaves(kwargs)
    layer = find_outermost(name, slots)
    if layer is None:
        return NO_PLAN
    unwrap = partial(map_leaves, _unwrap_leaf(layer))
    leader = next(leaf for leaf in slots if type(leaf) is layer)
    return ArgumentPlan(layer, unwrap, unwrap, lambda _args, _kwargs: leader)


def build_unwrap_args_from_function(
    args: Nested, return_tuple: bool = False
) -> tuple[Callable[[Nested], Nested], Getter]:
    """Build a function that unwraps ``args``, and one that returns the type of the first tensor in its result."""
    rule = build_rule(args)
    return build_unwrap_args_with_rules(args, rule, return_tuple), build_get_tensor_type(rule)


def build_unwrap_args_with_rules(args: Nested, rules: Any, return_tuple: bool = False) -> Callable[[Nested], Nested]:
    """Build a function that replaces the layers in arguments like ``args`` by their children.

    The layer lifts plain tensors among the arguments. Without any layer, plain tensors raise
    ``PureFrameworkTensorFoundError``; pointers raise ``RemoteObjectFoundError``.
    """
    layer = find_outermost_type("these arguments", args)
    if len(args) == 1 and not return_tuple:
        slot = _unwrap_slot(args[0], rules[0], layer)
        return partial(fold_exactly, one_fold(return_tuple=False), [slot])
    return _unwrap_slots(args, rules, layer, container=list if isinstance(args, list) else None)


def build_get_tensor_type(rules: object, layer: list[int] | None = None) -> Getter:
    """Build a function that returns the type of the first tensor: the first 1 in ``rules``, depth first.

    >>> build_get_tensor_type((0, [1, (0, 0)], 0))((7, [2.5, ("a", "b")], 8))
    <class 'float'>
    """
    path = _find_tensor(rules)
    if path is None:
        raise PureFrameworkTensorFoundError.in_call("these arguments")
    path = [*(layer or []), *path]
    element_at = get_element_at.get(len(path), deep_layers)(*path)
    return lambda args: type(element_at(args))


def _only_unwraps(layer: type, args: Iterable[object]) -> bool:
    """Return whether unwrapping ``args`` only replaces each ``layer`` in them by its child."""
    lifts = hasattr(layer, "lift")
    return resolve(forward_func, layer) is get_child and all(
        is_flat(type(arg)) and not (lifts and is_framework_tensor(type(arg))) for arg in args
    )


@functools.cache
def _build_get_children(layer: LayerType) -> Callable[[Args], Args]:
    return lambda args: tuple([arg.child if type(arg) is layer else arg for arg in args])


@functools.cache
def _named_children_in(layer: LayerType) -> Callable[[Kwargs], Kwargs]:
    return lambda kwargs: {name: arg.child if type(arg) is layer else arg for name, arg in kwargs.items()}


def _build_leader_getter(layer: type, args: Args) -> Callable[[Args, Kwargs], Tensor]:
    path = _find_type(layer, args)
    if path is not None:
        element_at = get_element_at.get(len(path), deep_layers)(*path)
        if element_at(args) is _find_leader(layer, args, {}):
            return lambda args, _kwargs: element_at(args)
    return partial(_find_leader, layer)


def _find_type(layer: type, args: Nested) -> list[int] | None:
    """Return the indices of the first ``layer`` that is not inside a dict or a slice."""
    for index, arg in enumerate(args):
        if type(arg) is layer:
            return [index]
        if is_container(type(arg)) and (path := _find_type(layer, arg)) is not None:
            return [index, *path]
    return None


def _find_leader(layer: type, args: Nested, kwargs: Nested) -> Tensor:
    return next(leaf for leaf in leaves((args, kwargs)) if type(leaf) is layer)


def _unwrap_leaf(layer: type) -> FoldSlot:
    """Return a function that unwraps ``layer`` from the value of a slot."""
    forward = resolve(forward_func, layer)
    lift = getattr(layer, "lift", None)

    def unwrap(x: object) -> Nested:
        if type(x) is layer:
            return forward(x)
        return lift(x) if lift is not None and is_framework_tensor(type(x)) else x

    return unwrap


def _unwrap_inside(x: object, layer: type | None = None) -> Nested:
    """Unwrap the tensors in a dict or a slice."""
    layer = layer or find_outermost_type(type(x).__name__, x)
    return x if layer is None else map_leaves(_unwrap_leaf(layer), x)


def _unwrap_slot(
    arg: object, rule: object, layer: type | None, check: Callable[[type, FoldSlot], FoldSlot] = check_type
) -> FoldSlot:
    """Return the function that unwraps one slot."""
    cls = type(arg)
    if isinstance(rule, list | tuple):
        container = cls if cls is list else partial(rebuild, cls)
        return check(cls, _unwrap_slots(arg, rule, layer, container=container, check=check))
    if not rule:
        return typed_identity(arg)
    if is_mapped(cls):
        return check(cls, partial(_unwrap_inside, layer=layer))
    if cls is layer or layer is None:
        forward = resolve(forward_func, cls)
        if forward is None:
            raise forward_func.missing_error(cls)
        return check(cls, forward)
    if is_framework_tensor(cls) and hasattr(layer, "lift"):
        return check(cls, layer.lift)
    return typed_identity(arg)


def _unwrap_slots(
    args: Nested,
    rules: Any,
    layer: type | None,
    container: Callable[[Nested], Nested] | None = None,
    check: Callable[[type, FoldSlot], FoldSlot] = check_type,
) -> Callable[[Nested], Nested]:
    if check is skip_check and layer is not None and _only_unwraps(layer, args):
        plan: Callable[[Nested], Nested] = _build_get_children(layer)
    else:
        slots = [_unwrap_slot(a, rule, layer, check) for a, rule in zip(args, rules, strict=True)]
        fold = get_fold(len(slots))
        plan = partial(fold, slots) if check is skip_check else partial(fold_exactly, fold, slots)
    return plan if container is None else lambda items: container(plan(items))


def _apply_to_dict(slots: dict[str, FoldSlot], kwargs: Kwargs) -> dict[str, object]:
    return {key: slots[key](value) for key, value in kwargs.items()}


def _find_tensor(rules: Any) -> list[int] | None:
    for index, rule in enumerate(rules):
        if isinstance(rule, list | tuple):
            path = _find_tensor(rule)
            if path is not None:
                return [index, *path]
        elif rule:
            return [index]
    return None


forward_func.update({dict: _unwrap_inside, slice: _unwrap_inside})
