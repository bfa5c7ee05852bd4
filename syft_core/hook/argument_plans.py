"""Signature plans: how the outermost layer is unwrapped from the arguments of a call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from syft_core.exceptions import PlanMismatchError, PureFrameworkTensorFoundError
from syft_core.hook.folds import FoldSlot, Getter, deep_layers, get_child
from syft_core.hook.ranks import find_outermost_type, is_framework_tensor
from syft_core.hook.rules import build_rule, forward_func, leaves, map_leaves, map_marked, resolve, signature
from syft_core.values import Args, Function, Kwargs, LayerType, Nested, Tensor


class ArgumentPlan(NamedTuple):
    """Unwraps one layer type from the arguments of one signature."""

    layer: LayerType
    """The layer type to unwrap, or None if the call contains no layer."""
    args: Callable[[Args], Args]
    kwargs: Callable[[Kwargs], Kwargs] | None
    leader: Callable[[Args, Kwargs], Tensor]
    """Returns the first instance of ``layer``; results get its attributes."""
    is_pair: bool = False
    """Whether the arguments are two layers to replace by their children, as for a binary operator."""

    def unwrap(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Return the arguments with layers replaced by their children."""
        return self.args(args), self.kwargs(kwargs) if self.kwargs is not None else kwargs


def _return_args(args: Args) -> Args:
    return args


def _no_leader(_args: Nested, _kwargs: Nested) -> None:
    return None


NO_PLAN = ArgumentPlan(None, _return_args, None, _no_leader)
"""The plan of a call that contains no layer."""


def build_flat_plan(name: str, args: Args, kwargs: Kwargs) -> ArgumentPlan:
    """Build the plan for calls whose arguments have these types, none of which is a container."""
    layer = find_outermost_type(name, (args, kwargs))
    if layer is None:
        return NO_PLAN
    plan = build_nested_plan(layer)
    if _only_unwraps(layer, (*args, *kwargs.values())):
        in_kwargs = layer in map(type, kwargs.values())
        plan = plan._replace(args=_get_children(layer), kwargs=_get_named_children(layer) if in_kwargs else None)
        plan = plan._replace(is_pair=[*map(type, args)] == [layer, layer])
    first = next((index for index, arg in enumerate(args) if type(arg) is layer), None)
    return plan if first is None else plan._replace(leader=lambda args, _kwargs: args[first])


@functools.cache
def build_nested_plan(layer: LayerType) -> ArgumentPlan:
    """Build the plan that unwraps a layer type from arguments of any nesting."""
    if layer is None:
        return NO_PLAN
    unwrap = partial(map_leaves, unwrap_leaf(layer))
    return ArgumentPlan(layer, unwrap, unwrap, partial(_find_leader, layer))


def unwrap_leaf(layer: LayerType) -> FoldSlot:
    """Return a function that unwraps a value of type ``layer``, and lifts a plain tensor if the layer supports that."""
    forward: Function = resolve(forward_func, layer)
    lift = getattr(layer, "lift", None)
    if lift is None and forward is get_child:
        return lambda x: x.child if type(x) is layer else x
    if lift is None:
        return lambda x: forward(x) if type(x) is layer else x
    return lambda x: forward(x) if type(x) is layer else lift(x) if is_framework_tensor(type(x)) else x


def _only_unwraps(layer: type, args: Iterable[object]) -> bool:
    """Return whether unwrapping ``args`` only replaces each ``layer`` in them by its child."""
    lifts = hasattr(layer, "lift") and any(is_framework_tensor(type(arg)) for arg in args)
    return resolve(forward_func, layer) is get_child and not lifts


@functools.cache
def _get_children(layer: LayerType) -> Callable[[Args], Args]:
    return lambda args: tuple([arg.child if type(arg) is layer else arg for arg in args])


@functools.cache
def _get_named_children(layer: LayerType) -> Callable[[Kwargs], Kwargs]:
    return lambda kwargs: {name: arg.child if type(arg) is layer else arg for name, arg in kwargs.items()}


def _find_leader(layer: type, args: Nested, kwargs: Nested) -> Tensor:
    for leaf in leaves((args, kwargs) if kwargs else args):
        if type(leaf) is layer:
            return leaf
    raise PureFrameworkTensorFoundError.in_call("these arguments")


# --- The published interface: functions for arguments of one signature


def build_unwrap_args_from_function(
    args: Nested, return_tuple: bool = False
) -> tuple[Callable[[Nested], Nested], Getter]:
    """Build a function that unwraps ``args``, and one that returns the type of the first tensor in its result."""
    rule = build_rule(args)
    return build_unwrap_args_with_rules(args, rule, return_tuple), build_get_tensor_type(rule)


def build_unwrap_args_with_rules(args: Nested, rules: Nested, return_tuple: bool = False) -> Callable[[Nested], Nested]:
    """Build a function that replaces the layers in arguments like ``args`` by their children.

    The layer lifts plain tensors among the arguments. Without any layer, plain tensors raise
    ``PureFrameworkTensorFoundError``; pointers raise ``RemoteObjectFoundError``.
    """
    layer = find_outermost_type("these arguments", args)
    map_marked(lambda tensor: _require_forward(type(tensor)), args, rules)
    unwrap = unwrap_leaf(layer) if layer is not None else lambda tensor: _require_forward(type(tensor))(tensor)
    return for_signature(args, lambda items: map_marked(unwrap, items, rules), return_tuple or len(args) != 1)


def for_signature(example: Nested, function: Function, whole: bool) -> Function:
    """Return ``function`` for arguments with the signature of ``example``; unless ``whole``, return its one result."""
    expected = signature(example)

    def plan(items: Nested, **kwargs: object) -> Nested:
        found = signature(items)
        if found != expected:
            raise _mismatch(expected, found)
        result = function(items, **kwargs)
        return result if whole else result[0]

    return plan


def _mismatch(expected: Nested, found: Nested) -> PlanMismatchError:
    if type(expected) is not tuple or type(found) is not tuple:
        return PlanMismatchError.slot(_name(expected), _name(found))
    if len(expected) != len(found):
        return PlanMismatchError.arity(len(expected), len(found))
    return next(_mismatch(one, other) for one, other in zip(expected, found, strict=True) if one != other)


def _name(part: Nested) -> str:
    return _name(part[0]) if type(part) is tuple and part else getattr(part, "__name__", repr(part))


def _require_forward(cls: type) -> Function:
    found: Function | None = resolve(forward_func, cls)
    if found is None:
        raise forward_func.missing_error(cls)
    return found


def build_get_tensor_type(rules: object, layer: list[int] | None = None) -> Getter:
    """Build a function that returns the type of the first tensor: the first 1 in ``rules``, depth first.

    >>> build_get_tensor_type((0, [1, (0, 0)], 0))((7, [2.5, ("a", "b")], 8))
    <class 'float'>
    """
    path = _find_tensor(rules)
    if path is None:
        raise PureFrameworkTensorFoundError.in_call("these arguments")
    element_at = deep_layers(*(layer or []), *path)
    return lambda args: type(element_at(args))


def _find_tensor(rules: Nested) -> list[int] | None:
    for index, rule in enumerate(rules):
        inside = _find_tensor(rule) if isinstance(rule, list | tuple) else [] if rule else None
        if inside is not None:
            return [index, *inside]
    return None
