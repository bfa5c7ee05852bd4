"""Plans: functions that take the outermost layer off the arguments of one exact signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from syft_core.exceptions import PureFrameworkTensorFoundError
from syft_core.hook.folds import (
    Getter,
    Slot,
    checked,
    deep_layers,
    fold_exactly,
    fold_of,
    get_child,
    get_element_at,
    one_fold,
    trusted,
    typed_identity,
)
from syft_core.hook.ranks import is_framework_tensor, outermost_of, outermost_type
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


class Plan(NamedTuple):
    """How to take one layer type off the arguments of one signature."""

    layer: LayerType
    """The type that comes off, or None when nothing in the call has a child."""
    args: Callable[[Args], Args]
    kwargs: Callable[[Kwargs], Kwargs] | None
    leader: Callable[[Args, Kwargs], Tensor]
    """Finds the first instance of ``layer``, whose attributes the result takes over."""

    def unwrap(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Return the arguments with the children in the place of the layers."""
        return self.args(args), self.kwargs(kwargs) if self.kwargs is not None else kwargs


def _same(args: Args) -> Args:
    return args


def _no_leader(_args: Nested, _kwargs: Nested) -> None:
    return None


NO_PLAN = Plan(None, _same, None, _no_leader)
"""The plan of a call in which nothing has a child."""


def build_plan(name: str, args: Args, kwargs: Kwargs) -> Plan:
    """Build the plan for all calls that have the signature of this one."""
    peel = outermost_type(name, (args, kwargs))
    if peel is None:
        return NO_PLAN
    # The cache key has the exact type of every slot, so these plans need not look again.
    unwrap_args = _unwrap_slots(args, build_rule(args), peel, check=trusted)
    unwrap_kwargs: Callable[[Kwargs], Kwargs] | None = None
    if kwargs and _is_simple(peel, kwargs.values()):
        unwrap_kwargs = _named_children_in(peel)
    elif kwargs:
        named = {key: _unwrap_slot(value, build_rule(value), peel, check=trusted) for key, value in kwargs.items()}
        unwrap_kwargs = partial(_apply_to_dict, named)
    return Plan(peel, unwrap_args, unwrap_kwargs, _leader(peel, args))


def build_structural_plan(name: str, args: Args, kwargs: Kwargs) -> Plan:
    """Build a plan for these very arguments, whatever their nesting; it must not be kept."""
    slots = leaves(args)
    if kwargs:
        slots += leaves(kwargs)
    peel = outermost_of(name, slots)
    if peel is None:
        return NO_PLAN
    unwrap = partial(map_leaves, _unwrap_leaf(peel))
    leader = next(leaf for leaf in slots if type(leaf) is peel)
    return Plan(peel, unwrap, unwrap, lambda _args, _kwargs: leader)


def build_unwrap_args_from_function(
    args: Nested, return_tuple: bool = False
) -> tuple[Callable[[Nested], Nested], Getter]:
    """Build the plan for ``args`` and the function that finds the type of the first tensor in its result."""
    rule = build_rule(args)
    return build_unwrap_args_with_rules(args, rule, return_tuple), build_get_tensor_type(rule)


def build_unwrap_args_with_rules(args: Nested, rules: Any, return_tuple: bool = False) -> Callable[[Nested], Nested]:
    """Build a function that replaces the layers in ``args`` by their children and leaves all else.

    Plain tensors beside a layer are lifted by it; with no layer at all they raise ``PureFrameworkTensorFoundError``,
    and a pointer raises ``RemoteObjectFoundError``.
    """
    peel = outermost_type("these arguments", args)
    if len(args) == 1 and not return_tuple:
        slot = _unwrap_slot(args[0], rules[0], peel)
        return partial(fold_exactly, one_fold(return_tuple=False), [slot])
    return _unwrap_slots(args, rules, peel, container=list if isinstance(args, list) else None)


def build_get_tensor_type(rules: object, layer: list[int] | None = None) -> Getter:
    """Build a function that returns the type of the first tensor, found depth first where ``rules`` has a 1.

    >>> build_get_tensor_type((0, [1, (0, 0)], 0))((7, [2.5, ("a", "b")], 8))
    <class 'float'>
    """
    path = _path_to_tensor(rules)
    if path is None:
        raise PureFrameworkTensorFoundError.in_call("these arguments")
    path = [*(layer or []), *path]
    element_at = get_element_at.get(len(path), deep_layers)(*path)
    return lambda args: type(element_at(args))


def _is_simple(peel: type, args: Iterable[object]) -> bool:
    """Say whether nothing is to be done with ``args`` but to take the child of each ``peel`` that stands there."""
    lifts = hasattr(peel, "lift")
    return resolve(forward_func, peel) is get_child and all(
        is_flat(type(arg)) and not (lifts and is_framework_tensor(type(arg))) for arg in args
    )


@functools.cache
def _children_in(peel: LayerType) -> Callable[[Args], Args]:
    return lambda args: tuple([arg.child if type(arg) is peel else arg for arg in args])


@functools.cache
def _named_children_in(peel: LayerType) -> Callable[[Kwargs], Kwargs]:
    return lambda kwargs: {name: arg.child if type(arg) is peel else arg for name, arg in kwargs.items()}


def _leader(peel: type, args: Args) -> Callable[[Args, Kwargs], Tensor]:
    path = _path_to_type(peel, args)
    if path is not None:
        element_at = get_element_at.get(len(path), deep_layers)(*path)
        if element_at(args) is _find_leader(peel, args, {}):
            return lambda args, _kwargs: element_at(args)
    return partial(_find_leader, peel)


def _path_to_type(peel: type, args: Nested) -> list[int] | None:
    """Return the indices of the first ``peel`` that indices can reach: not inside a dict or a slice."""
    for index, arg in enumerate(args):
        if type(arg) is peel:
            return [index]
        if is_container(type(arg)) and (path := _path_to_type(peel, arg)) is not None:
            return [index, *path]
    return None


def _find_leader(peel: type, args: Nested, kwargs: Nested) -> Tensor:
    return next(leaf for leaf in leaves((args, kwargs)) if type(leaf) is peel)


def _unwrap_leaf(peel: type) -> Slot:
    """Return the function that takes ``peel`` off whatever stands in a slot."""
    forward = resolve(forward_func, peel)
    lift = getattr(peel, "lift", None)

    def unwrap(x: object) -> Nested:
        if type(x) is peel:
            return forward(x)
        return lift(x) if lift is not None and is_framework_tensor(type(x)) else x

    return unwrap


def _unwrap_inside(x: object, peel: type | None = None) -> Nested:
    """Unwrap the tensors inside a dict or a slice."""
    peel = peel or outermost_type(type(x).__name__, x)
    return x if peel is None else map_leaves(_unwrap_leaf(peel), x)


def _unwrap_slot(arg: object, rule: object, peel: type | None, check: Callable[[type, Slot], Slot] = checked) -> Slot:
    """Return the function for one slot of a plan."""
    cls = type(arg)
    if isinstance(rule, list | tuple):
        container = cls if cls is list else partial(rebuild, cls)
        return check(cls, _unwrap_slots(arg, rule, peel, container=container, check=check))
    if not rule:
        return typed_identity(arg)
    if is_mapped(cls):
        return check(cls, partial(_unwrap_inside, peel=peel))
    if cls is peel or peel is None:
        forward = resolve(forward_func, cls)
        if forward is None:
            raise forward_func.lacks(cls)
        return check(cls, forward)
    if is_framework_tensor(cls) and hasattr(peel, "lift"):
        return check(cls, peel.lift)
    return typed_identity(arg)


def _unwrap_slots(
    args: Nested,
    rules: Any,
    peel: type | None,
    container: Callable[[Nested], Nested] | None = None,
    check: Callable[[type, Slot], Slot] = checked,
) -> Callable[[Nested], Nested]:
    if check is trusted and peel is not None and _is_simple(peel, args):
        plan: Callable[[Nested], Nested] = _children_in(peel)
    else:
        slots = [_unwrap_slot(a, rule, peel, check) for a, rule in zip(args, rules, strict=True)]
        fold = fold_of(len(slots))
        plan = partial(fold, slots) if check is trusted else partial(fold_exactly, fold, slots)
    return plan if container is None else lambda items: container(plan(items))


def _apply_to_dict(slots: dict[str, Slot], kwargs: Kwargs) -> dict[str, object]:
    return {key: slots[key](value) for key, value in kwargs.items()}


def _path_to_tensor(rules: Any) -> list[int] | None:
    for index, rule in enumerate(rules):
        if isinstance(rule, list | tuple):
            path = _path_to_tensor(rule)
            if path is not None:
                return [index, *path]
        elif rule:
            return [index]
    return None


forward_func.update({dict: _unwrap_inside, slice: _unwrap_inside})
