"""Unwrap the outermost layer of the arguments of a call, and wrap the response in it.

A *signature plan* unwraps the arguments of one signature: the name of the call and the type of every argument. Plans
are cached. Lists, tuples, dicts and slices among the arguments are traversed on every call, so no plan depends on how
they are nested. A tensor type is registered in ``type_rule`` (is it a tensor?), ``forward_func`` (returns its child)
and ``backward_func`` (wraps a result).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

from syft_core.exceptions import PureFrameworkTensorFoundError, RemoteObjectFoundError, ResponseSignatureError
from syft_core.hook.argument_plans import (
    NO_PLAN,
    ArgumentPlan,
    build_flat_plan,
    build_get_tensor_type,
    build_nested_plan,
    build_unwrap_args_from_function,
    build_unwrap_args_with_rules,
)
from syft_core.hook.caches import remember
from syft_core.hook.folds import (
    FoldSlot,
    Getter,
    eight_fold,
    five_fold,
    four_fold,
    four_layers,
    get_child,
    get_element_at,
    many_fold,
    one,
    one_fold,
    one_layer,
    seven_fold,
    six_fold,
    three_fold,
    three_layers,
    two_fold,
    two_layers,
    typed_identity,
    zero_fold,
)
from syft_core.hook.operators import INPLACE_OPERATORS
from syft_core.hook.ranks import clear_ranks, find_outermost, is_framework_tensor, reject_framework_tensor
from syft_core.hook.responses import (
    build_register_response,
    build_register_response_function,
    build_wrap_reponse_from_function,
    build_wrap_response,
    build_wrap_response_from_function,
    build_wrap_response_with_rules,
    register_tensor,
)
from syft_core.hook.rules import (
    ambiguous_functions,
    ambiguous_methods,
    backward_func,
    base_types,
    build_rule,
    clear_resolved,
    forward_func,
    is_flat,
    leaves,
    signature,
    type_rule,
)
from syft_core.values import Args, Function, Kwargs, Nested, Tensor

__all__ = [
    "ambiguous_functions",
    "ambiguous_methods",
    "backward_func",
    "base_types",
    "build_get_tensor_type",
    "build_register_response",
    "build_register_response_function",
    "build_rule",
    "build_unwrap_args_from_function",
    "build_unwrap_args_with_rules",
    "build_wrap_reponse_from_function",
    "build_wrap_response_from_function",
    "build_wrap_response_with_rules",
    "default_backward_func",
    "default_register_tensor",
    "eight_fold",
    "five_fold",
    "forward_func",
    "four_fold",
    "four_layers",
    "get_child",
    "get_element_at",
    "get_plan",
    "get_tensor_type_functions",
    "hook_method_args_functions",
    "hook_method_response_functions",
    "hook_response",
    "is_framework_tensor",
    "many_fold",
    "one",
    "one_fold",
    "one_layer",
    "register_ambiguous_function",
    "register_ambiguous_method",
    "register_backward_func",
    "register_forward_func",
    "register_response",
    "register_response_functions",
    "register_tensor",
    "register_type_rule",
    "reject_framework_tensor",
    "reject_pointer",
    "seven_fold",
    "six_fold",
    "three_fold",
    "three_layers",
    "two_fold",
    "two_layers",
    "type_rule",
    "typed_identity",
    "unwrap_args_from_function",
    "unwrap_args_from_method",
    "zero_fold",
]

T = TypeVar("T")

# The caches. They are only looked up in this module, so they can be replaced by new dicts at any time.
hook_method_args_functions: dict[object, ArgumentPlan] = {}
hook_method_response_functions: dict[object, Function] = {}
get_tensor_type_functions: dict[object, Getter] = {}
register_response_functions: dict[object, Function] = {}

# --- The registries


def register_type_rule(new_type_rules: Mapping[type, Callable[[Nested], Nested]]) -> None:
    """Register for each type whether it is a tensor: ``one`` or ``zero``."""
    type_rule.update(new_type_rules)
    _clear_caches()


def register_forward_func(new_forward_rules: Mapping[type, FoldSlot]) -> None:
    """Register for each type a function that returns its child."""
    forward_func.update(new_forward_rules)
    _clear_caches()


def register_backward_func(new_backward_rules: Mapping[type, Function]) -> None:
    """Register for each type a function that wraps a result: ``f(result, **class_attributes)``."""
    backward_func.update(new_backward_rules)
    _clear_caches()


def register_ambiguous_method(*method: str) -> None:
    """Register methods whose arguments are nested differently in each call; no plan depends on the nesting."""
    ambiguous_methods.update(method)
    _clear_caches()


def register_ambiguous_function(*function: str) -> None:
    """Register functions whose arguments are nested differently in each call; no plan depends on the nesting."""
    ambiguous_functions.update(function)
    _clear_caches()


def default_backward_func(tensorcls: type) -> Function:
    """Return a function that wraps a result in ``tensorcls(**attributes)``."""

    def wrap(child: Tensor, **attributes: object) -> Tensor:
        layer = tensorcls(**attributes)
        layer.child = child
        return layer

    return wrap


def default_register_tensor(*tensorcls: type) -> None:
    """Register layer types whose child is ``.child``."""
    register_type_rule(dict.fromkeys(tensorcls, one))
    register_forward_func(dict.fromkeys(tensorcls, get_child))
    register_backward_func({cls: default_backward_func(cls) for cls in tensorcls})


def reject_pointer(pointer: Tensor, **_kwargs: object) -> NoReturn:
    """Raise: the ``forward_func`` of pointers, whose object is remote."""
    raise RemoteObjectFoundError(pointer)


def _clear_caches() -> None:
    clear_resolved()
    clear_ranks()
    build_nested_plan.cache_clear()
    for cache in (
        hook_method_args_functions,
        hook_method_response_functions,
        get_tensor_type_functions,
        register_response_functions,
    ):
        cache.clear()
    for action in _change_listeners:
        action()


_change_listeners: list[Callable[[], None]] = []


def on_registry_change(action: Callable[[], None]) -> None:
    """Call ``action`` whenever a registry changes, to clear caches that depend on plans."""
    _change_listeners.append(action)


# --- Unwrapping arguments

# Marks signatures with a container among the arguments: the layer may be in it.
_NESTED = NO_PLAN._replace()


def get_plan(name: str, args: Args, kwargs: Kwargs) -> ArgumentPlan:
    """Return the plan for this call; build it if the signature is new."""
    key: tuple[object, ...] = (name, tuple(map(type, args)))
    if kwargs:
        key = (*key, tuple(kwargs), tuple(map(type, kwargs.values())))
    plan = hook_method_args_functions.get(key)
    if plan is None:
        flat = all(is_flat(type(a)) for a in (*args, *kwargs.values()))
        plan = remember(hook_method_args_functions, key, build_flat_plan(name, args, kwargs) if flat else _NESTED)
    return plan if plan is not _NESTED else get_nested_plan(name, args, kwargs)


def get_nested_plan(name: str, args: Args, kwargs: Kwargs) -> ArgumentPlan:
    """Return the plan for a call that has lists, tuples, dicts or slices among its arguments."""
    found = leaves((args, kwargs) if kwargs else args)
    key = frozenset(map(type, found))
    plan = hook_method_args_functions.get(key)
    if plan is None:
        plan = remember(hook_method_args_functions, key, build_nested_plan(find_outermost(name, found)))
    return plan


def unwrap_args_from_method(attr: str, method_self: Tensor, args: Args, kwargs: Kwargs) -> tuple[Nested, Args, Kwargs]:
    """Return ``(new_self, new_args, new_kwargs)`` with the outermost layer unwrapped."""
    plan = _require_layer(attr, (method_self, *args), kwargs)
    (new_self, *new_args), new_kwargs = plan.unwrap((method_self, *args), kwargs)
    return new_self, tuple(new_args), new_kwargs


def unwrap_args_from_function(
    attr: str, args: Args, kwargs: Kwargs, return_args_type: bool = False
) -> tuple[Nested, ...]:
    """Return ``(new_args, new_kwargs, new_type)`` with the outermost layer unwrapped; optionally its type too."""
    args = tuple(args)
    plan = _require_layer(attr, args, kwargs)
    new_args, new_kwargs = plan.unwrap(args, kwargs)
    new_type = _get_type_getter(attr, (args, tuple(kwargs.values())))((new_args, tuple(new_kwargs.values())))
    return (new_args, new_kwargs, new_type, plan.layer) if return_args_type else (new_args, new_kwargs, new_type)


def _require_layer(attr: str, args: Args, kwargs: Kwargs) -> ArgumentPlan:
    plan = get_plan(attr, args, kwargs)
    if plan.layer is None:
        raise PureFrameworkTensorFoundError.in_call(attr)
    return plan


def _get_type_getter(attr: str, args: Nested) -> Getter:
    key = (attr, signature(args))
    getter = get_tensor_type_functions.get(key)
    if getter is None:
        getter = build_get_tensor_type(build_rule(args))
        remember(get_tensor_type_functions, key, getter)
    return getter


# --- Wrapping responses


def hook_response(
    attr: str,
    response: Nested,
    wrap_type: type,
    wrap_args: Mapping[str, object] | None = None,
    new_self: Tensor = None,
) -> Nested:
    """Wrap every tensor of ``response`` in ``wrap_type(**wrap_args)``; an in-place operator returns ``new_self``."""
    if new_self is not None and attr in INPLACE_OPERATORS:
        return new_self
    return wrap_response(response, wrap_type, wrap_args or {})


def wrap_response(response: Nested, wrap_type: type, attributes: Mapping[str, object]) -> Nested:
    """Wrap every tensor of ``response`` in ``wrap_type(**attributes)``."""
    key = (wrap_type, type(response))
    wrap = hook_method_response_functions.get(key)
    if wrap is None:
        wrap = remember(hook_method_response_functions, key, build_wrap_response(response, wrap_type))
    return wrap(response, **attributes) if attributes else wrap(response)


def register_response(attr: str, response: Nested, response_ids: list[int], owner: object) -> Nested:
    """Store every tensor of ``response`` on ``owner`` under the next of ``response_ids``; return the response."""
    tensors = sum(1 for leaf in leaves(response) if build_rule(leaf))
    if tensors > len(response_ids):
        raise ResponseSignatureError()
    key = (attr, signature(response))
    plan = register_response_functions.get(key)
    if plan is None:
        plan = build_register_response_function(response)
        remember(register_response_functions, key, plan)
    return plan(response, response_ids=response_ids, owner=owner)


# Example entries, as in PySyft.
forward_func.register("my_syft_tensor_type", get_child)
backward_func.register("my_syft_tensor_type", default_backward_func)
