"""Take the outermost layer off the arguments of a call, and put it back on the response.

A *plan* is a function built once per exact signature (name, nesting, arity, type of every slot) out of the folds; a
call whose signature has a plan runs it, any other call builds one. Names registered as *ambiguous* take arguments of
ever new nesting (``x[i, 2:, mask]``) and are mapped structurally each time instead. A tensor type takes part by
entries in three registries: ``type_rule`` (is it a tensor?), ``forward_func`` (how to get its child) and
``backward_func`` (how to put the layer on a result).

Note [Ranks]
~~~~~~~~~~~~
One call may meet several layer types. The type of the highest ``rank`` comes off first: the wrapper that a user holds
(2), then layers that only watch (1), then layers that change what a value means (0). Two different types of rank 0
are refused: neither may look into the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from syft_core.exceptions import (
    MixedLayersError,
    PlanMismatchError,
    PureFrameworkTensorFoundError,
    RemoteObjectFoundError,
    ResponseSignatureError,
)
from syft_core.hook.attributes import INPLACE_OPERATORS
from syft_core.hook.folds import (
    Getter,
    Slot,
    deep_layers,
    eight_fold,
    five_fold,
    fold_of,
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
from syft_core.hook.rules import (
    ambiguous_functions,
    ambiguous_methods,
    backward_func,
    base_types,
    build_rule,
    forget_nearest,
    forward_func,
    is_container,
    is_flat,
    is_mapped,
    leaves,
    map_leaves,
    rebuild,
    resolve,
    signature,
    type_rule,
)

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
    "framework_tensor",
    "get_child",
    "get_element_at",
    "get_tensor_type_functions",
    "hook_method_args_functions",
    "hook_method_response_functions",
    "hook_response",
    "is_framework_tensor",
    "many_fold",
    "one",
    "one_fold",
    "one_layer",
    "plan_for",
    "pointer_found",
    "register_ambiguous_function",
    "register_ambiguous_method",
    "register_backward_func",
    "register_forward_func",
    "register_response",
    "register_response_functions",
    "register_tensor",
    "register_type_rule",
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

PLAN_LIMIT = 8192
"""How many plans a cache holds before it starts anew; a program has a few hundred signatures."""

# The caches. Assigning a new dict to any of them at any time is safe: they are only ever looked up here.
hook_method_args_functions: dict[Any, Plan] = {}
hook_method_response_functions: dict[Any, Callable[..., Any]] = {}
get_tensor_type_functions: dict[Any, Getter] = {}
register_response_functions: dict[Any, Callable[..., Any]] = {}

# --- The registries


def register_type_rule(new_type_rules: Mapping[type, Callable[[Any], Any]]) -> None:
    """Say for each type whether a slot that holds it is a tensor (``one``) or not."""
    type_rule.update(new_type_rules)
    _forget()


def register_forward_func(new_forward_rules: Mapping[type, Slot]) -> None:
    """Say for each type how to get its child."""
    forward_func.update(new_forward_rules)
    _forget()


def register_backward_func(new_backward_rules: Mapping[type, Callable[..., Any]]) -> None:
    """Say for each type how to put it on a result: ``f(result, **class_attributes)``."""
    backward_func.update(new_backward_rules)
    _forget()


def register_ambiguous_method(*method: str) -> None:
    """Name methods whose arguments are mapped structurally each time."""
    ambiguous_methods.update(method)
    _forget()


def register_ambiguous_function(*function: str) -> None:
    """Name functions whose arguments are mapped structurally each time."""
    ambiguous_functions.update(function)
    _forget()


def default_backward_func(tensorcls: type) -> Callable[..., Any]:
    """Return the function that puts a ``tensorcls`` with the given attributes on a result."""

    def put_on(child: Any, **attributes: Any) -> Any:
        layer = tensorcls(**attributes)
        layer.child = child
        return layer

    return put_on


def default_register_tensor(*tensorcls: type) -> None:
    """Make tensor types chainable: a slot that holds one is a tensor, its child is ``.child``."""
    register_type_rule(dict.fromkeys(tensorcls, one))
    register_forward_func(dict.fromkeys(tensorcls, get_child))
    register_backward_func({cls: default_backward_func(cls) for cls in tensorcls})


def framework_tensor(tensor: Any, **_kwargs: Any) -> Any:
    """Stand as ``forward_func`` of a framework's own tensors, which end a chain: they have no child."""
    raise PureFrameworkTensorFoundError.in_call(type(tensor).__name__)


def pointer_found(pointer: Any, **_kwargs: Any) -> Any:
    """Stand as ``forward_func`` of a pointer, whose object lives elsewhere."""
    raise RemoteObjectFoundError(pointer)


def _forget() -> None:
    """Drop everything that was concluded from the registries."""
    forget_nearest()
    _ranks.clear()
    _is_ambiguous.cache_clear()
    _framework_types.clear()
    for cache in (
        hook_method_args_functions,
        hook_method_response_functions,
        get_tensor_type_functions,
        register_response_functions,
    ):
        cache.clear()
    for action in _when_forgetting:
        action()


_when_forgetting: list[Callable[[], None]] = []


def when_forgetting(action: Callable[[], None]) -> None:
    """Call ``action`` whenever a registry has grown, for caches elsewhere that rest on plans."""
    _when_forgetting.append(action)


# --- Plans: from a layer to its child


class Plan(NamedTuple):
    """How to take one layer type off the arguments of one signature."""

    layer: Any
    """The type that comes off, or None when nothing in the call has a child."""
    args: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    kwargs: Callable[[dict[str, Any]], dict[str, Any]] | None
    leader: Callable[[tuple[Any, ...], dict[str, Any]], Any]
    """Finds the first instance of ``layer``, whose attributes the result takes over."""

    def unwrap(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with the children in the place of the layers."""
        return self.args(args), self.kwargs(kwargs) if self.kwargs is not None else kwargs


def _same(args: Any) -> Any:
    return args


def _no_leader(_args: Any, _kwargs: Any) -> None:
    return None


NO_PLAN = Plan(None, _same, None, _no_leader)
"""The plan of a call in which nothing has a child."""
# Stands in the cache under a flat key whose arguments are nested: the full signature decides.
_NESTED = Plan(None, _same, None, _no_leader)


def plan_for(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    """Return the plan for this call, building it when the signature is new."""
    key: Any = (name, tuple(map(type, args)))
    if kwargs:
        key = (*key, tuple(kwargs), tuple(map(type, kwargs.values())))
    plan = hook_method_args_functions.get(key)
    if plan is None:
        return _first_plan(name, key, args, kwargs)
    return plan if plan is not _NESTED else nested_plan_for(name, args, kwargs)


def _first_plan(name: str, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    types = [type(a) for a in (*args, *kwargs.values())]
    if not all(is_flat(cls) for cls in types):
        _remember(hook_method_args_functions, key, _NESTED)
        return nested_plan_for(name, args, kwargs)
    plan = _build_plan(name, args, kwargs)
    _remember(hook_method_args_functions, key, plan)
    return plan


def nested_plan_for(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    """Return the plan for a call that is known to have lists, tuples, dicts or slices among its arguments."""
    if _is_ambiguous(name):
        return _structural_plan(name, args, kwargs)
    key = (name, signature(args), signature(kwargs) if kwargs else None)
    plan = hook_method_args_functions.get(key)
    if plan is None:
        plan = _build_plan(name, args, kwargs)
        _remember(hook_method_args_functions, key, plan)
    return plan


@functools.cache
def _is_ambiguous(name: str) -> bool:
    return name in ambiguous_functions or name.rsplit(".", 1)[-1] in ambiguous_methods


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    if len(cache) >= PLAN_LIMIT:
        cache.clear()
    cache[key] = value


def _build_plan(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    peel = outermost_type(name, (args, kwargs))
    if peel is None:
        return NO_PLAN
    # The cache key has the exact type of every slot, so these plans need not look again.
    if _is_simple(peel, args):
        unwrap_args = _children_in(peel)
    else:
        unwrap_args = _unwrap_slots(args, build_rule(args), peel, check=_trusted)
    unwrap_kwargs = None
    if kwargs:
        named = {key: _unwrap_slot(value, build_rule(value), peel, check=_trusted) for key, value in kwargs.items()}
        unwrap_kwargs = partial(_apply_to_dict, named)
    return Plan(peel, unwrap_args, unwrap_kwargs, _leader(peel, args))


def _is_simple(peel: type, args: tuple[Any, ...]) -> bool:
    """Say whether nothing is to be done with ``args`` but to take the child of each ``peel`` that stands there."""
    lifts = hasattr(peel, "lift")
    return resolve(forward_func, peel) is get_child and all(
        is_flat(type(arg)) and not (lifts and is_framework_tensor(type(arg))) for arg in args
    )


@functools.cache
def _children_in(peel: Any) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return lambda args: tuple([arg.child if type(arg) is peel else arg for arg in args])


def _structural_plan(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    slots = leaves(args)
    if kwargs:
        slots += leaves(kwargs)
    peel = _outermost_of(name, slots)
    if peel is None:
        return NO_PLAN
    unwrap = partial(map_leaves, _unwrap_leaf(peel))
    leader = next(leaf for leaf in slots if type(leaf) is peel)
    return Plan(peel, unwrap, unwrap, lambda _args, _kwargs: leader)


def _leader(peel: type, args: tuple[Any, ...]) -> Callable[[Any, Any], Any]:
    path = _path_to_type(peel, args)
    if path is not None:
        element_at = get_element_at.get(len(path), deep_layers)(*path)
        if element_at(args) is _find_leader(peel, args, {}):
            return lambda args, _kwargs: element_at(args)
    return partial(_find_leader, peel)


def _path_to_type(peel: type, args: Any) -> list[int] | None:
    """Return the indices of the first ``peel`` that indices can reach: not inside a dict or a slice."""
    for index, arg in enumerate(args):
        if type(arg) is peel:
            return [index]
        if is_container(type(arg)) and (path := _path_to_type(peel, arg)) is not None:
            return [index, *path]
    return None


def _find_leader(peel: type, args: Any, kwargs: Any) -> Any:
    return next(leaf for leaf in leaves((args, kwargs)) if type(leaf) is peel)


def outermost_type(name: str, obj: Any) -> Any:
    """Return the type of the layer in ``obj`` that comes off first, or None; see Note [Ranks]."""
    return _outermost_of(name, leaves(obj))


def _outermost_of(name: str, slots: list[Any]) -> Any:
    outermost: Any = None
    highest = -1
    for cls in dict.fromkeys(map(type, slots)):
        rank = _rank(cls)
        if rank > highest:
            outermost, highest = cls, rank
        elif rank == highest == 0:
            raise MixedLayersError.between(name, outermost.__name__, cls.__name__)
    return outermost


_ranks: dict[type, int] = {}


def _rank(cls: type) -> int:
    """Return the rank of a layer type, and -1 for what is no layer."""
    rank = _ranks.get(cls)
    if rank is None:
        rank = _ranks[cls] = getattr(cls, "rank", 0) if _is_layer(cls) else -1
    return rank


def _is_layer(cls: type) -> bool:
    forward = resolve(forward_func, cls)
    return forward is not None and forward is not framework_tensor and forward is not _unwrap_inside


_framework_types: dict[type, bool] = {}


def is_framework_tensor(cls: type) -> bool:
    """Say whether instances of ``cls`` are plain tensors of a framework, which end a chain."""
    known = _framework_types.get(cls)
    if known is None:
        known = _framework_types[cls] = resolve(forward_func, cls) is framework_tensor
    return known


def _unwrap_leaf(peel: type) -> Slot:
    """Return the function that takes ``peel`` off whatever stands in a slot."""
    forward = resolve(forward_func, peel)
    lift = getattr(peel, "lift", None)

    def unwrap(x: Any) -> Any:
        if type(x) is peel:
            return forward(x)
        return lift(x) if lift is not None and is_framework_tensor(type(x)) else x

    return unwrap


def _unwrap_inside(x: Any, peel: type | None = None) -> Any:
    """Unwrap the tensors inside a dict or a slice."""
    peel = peel or outermost_type(type(x).__name__, x)
    return x if peel is None else map_leaves(_unwrap_leaf(peel), x)


def _checked(expected: type, f: Slot) -> Slot:
    """Let ``f`` see nothing but instances of exactly ``expected``."""

    def slot(x: Any, **kwargs: Any) -> Any:
        if type(x) is expected:
            return f(x, **kwargs)
        raise PlanMismatchError.slot(expected.__name__, type(x).__name__)

    return slot


def _trusted(_expected: type, f: Slot) -> Slot:
    """Take ``f`` as it is, where something else guarantees the type."""
    return f


def _unwrap_slot(arg: Any, rule: Any, peel: type | None, check: Callable[[type, Slot], Slot] = _checked) -> Slot:
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
    args: Any,
    rules: Any,
    peel: type | None,
    container: Callable[[Any], Any] | None = None,
    check: Callable[[type, Slot], Slot] = _checked,
) -> Callable[[Any], Any]:
    slots = [_unwrap_slot(a, rule, peel, check) for a, rule in zip(args, rules, strict=True)]
    fold = fold_of(len(slots))
    plan = partial(fold, slots) if check is _trusted else partial(_fold_exactly, fold, slots)
    return plan if container is None else lambda items: container(plan(items))


def _fold_exactly(fold: Callable[..., Any], slots: list[Slot], args: Any, **kwargs: Any) -> Any:
    if len(args) != len(slots):
        raise PlanMismatchError.arity(len(slots), len(args))
    return fold(slots, args, **kwargs)


def _apply_to_dict(slots: dict[str, Slot], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: slots[key](value) for key, value in kwargs.items()}


# --- The published interface to plans


def unwrap_args_from_method(
    attr: str, method_self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return ``(new_self, new_args, new_kwargs)`` with the outermost layer taken off."""
    plan = _require_layer(attr, (method_self, *args), kwargs)
    (new_self, *new_args), new_kwargs = plan.unwrap((method_self, *args), kwargs)
    return new_self, tuple(new_args), new_kwargs


def unwrap_args_from_function(
    attr: str, args: tuple[Any, ...], kwargs: dict[str, Any], return_args_type: bool = False
) -> tuple[Any, ...]:
    """Return ``(new_args, new_kwargs, new_type)``, and the type before, with the outermost layer taken off."""
    args = tuple(args)
    plan = _require_layer(attr, args, kwargs)
    new_args, new_kwargs = plan.unwrap(args, kwargs)
    new_type = _type_getter(attr, (args, tuple(kwargs.values())))((new_args, tuple(new_kwargs.values())))
    return (new_args, new_kwargs, new_type, plan.layer) if return_args_type else (new_args, new_kwargs, new_type)


def _require_layer(attr: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    plan = plan_for(attr, args, kwargs)
    if plan.layer is None:
        raise PureFrameworkTensorFoundError.in_call(attr)
    return plan


def _type_getter(attr: str, args: Any) -> Getter:
    key = (attr, signature(args))
    getter = get_tensor_type_functions.get(key)
    if getter is None:
        getter = build_get_tensor_type(build_rule(args))
        _remember(get_tensor_type_functions, key, getter)
    return getter


def build_unwrap_args_from_function(args: Any, return_tuple: bool = False) -> tuple[Callable[[Any], Any], Getter]:
    """Build the plan for ``args`` and the function that finds the type of the first tensor in its result."""
    rule = build_rule(args)
    return build_unwrap_args_with_rules(args, rule, return_tuple), build_get_tensor_type(rule)


def build_unwrap_args_with_rules(args: Any, rules: Any, return_tuple: bool = False) -> Callable[[Any], Any]:
    """Build a function that replaces the layers in ``args`` by their children and leaves all else.

    Plain tensors beside a layer are lifted by it; with no layer at all they raise ``PureFrameworkTensorFoundError``,
    and a pointer raises ``RemoteObjectFoundError``.
    """
    peel = outermost_type("these arguments", args)
    if len(args) == 1 and not return_tuple:
        slot = _unwrap_slot(args[0], rules[0], peel)
        return partial(_fold_exactly, one_fold(return_tuple=False), [slot])
    return _unwrap_slots(args, rules, peel, container=list if isinstance(args, list) else None)


def build_get_tensor_type(rules: Any, layer: list[int] | None = None) -> Getter:
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


def _path_to_tensor(rules: Any) -> list[int] | None:
    for index, rule in enumerate(rules):
        if isinstance(rule, list | tuple):
            path = _path_to_tensor(rule)
            if path is not None:
                return [index, *path]
        elif rule:
            return [index]
    return None


# --- Responses: from a child back to its layer


def hook_response(
    attr: str,
    response: Any,
    wrap_type: type,
    wrap_args: Mapping[str, Any] | None = None,
    new_self: Any = None,
) -> Any:
    """Put ``wrap_type(**wrap_args)`` on every tensor of ``response``; an in-place operator returns ``new_self``."""
    if new_self is not None and attr in INPLACE_OPERATORS:
        return new_self
    return wrap_response(attr, response, wrap_type, wrap_args or {})


def wrap_response(name: str, response: Any, wrap_type: type, attributes: Mapping[str, Any]) -> Any:
    """Put ``wrap_type(**attributes)`` on every tensor of ``response``."""
    cls = type(response)
    plan = hook_method_response_functions.get((name, wrap_type, cls))
    if plan is None:
        key: Any = (name, wrap_type, cls)
        if not is_flat(cls):
            key = (name, wrap_type, signature(response))
            plan = hook_method_response_functions.get(key)
        if plan is None:
            plan = _wrap_slot(response, build_rule(response), wrap_type, check=_trusted)
            _remember(hook_method_response_functions, key, plan)
    return plan(response, **attributes) if attributes else plan(response)


def _wrap_slot(response: Any, rule: Any, wrap_type: type, check: Callable[[type, Slot], Slot] = _checked) -> Slot:
    cls = type(response)
    if isinstance(rule, list | tuple):
        slots = [_wrap_slot(item, r, wrap_type) for item, r in zip(response, rule, strict=True)]
        return check(cls, partial(_fold_into, partial(rebuild, cls), slots))
    if not rule:
        return typed_identity(response)
    if is_mapped(cls):
        return check(cls, partial(_wrap_inside, wrap_type))
    put_on = resolve(backward_func, wrap_type)
    if put_on is None:
        raise backward_func.lacks(wrap_type)
    return check(cls, put_on)


def _fold_into(container: Callable[[Any], Any], slots: list[Slot], items: Any, **kwargs: Any) -> Any:
    return container(_fold_exactly(fold_of(len(slots)), slots, items, **kwargs))


def _wrap_inside(wrap_type: type, obj: Any, **attributes: Any) -> Any:
    return map_leaves(lambda leaf: _wrap_slot(leaf, build_rule(leaf), wrap_type)(leaf, **attributes), obj)


def build_wrap_response_from_function(
    response: Any, wrap_type: type, wrap_args: Mapping[str, Any]
) -> Callable[[Any], Any]:
    """Build the function that wraps responses like ``response``: ``f(pointer)`` is ``(Wrapper)>Pointer``."""
    return partial(_wrap_slot(response, build_rule(response), wrap_type), **wrap_args)


build_wrap_reponse_from_function = build_wrap_response_from_function
"""The spelling of 0.2.0 to 0.2.4."""


def build_wrap_response_with_rules(
    response: Any,
    rules: Any,
    wrap_type: type,
    wrap_args: Mapping[str, Any],
    return_tuple: bool = False,
    return_list: bool = False,
) -> Callable[[Any], Any]:
    """Build the function that wraps the tensors of sequences like ``response``, as ``rules`` say.

    One element gives the element itself unless a tuple or a list is asked for; a list stays a list.
    """
    slots = [_wrap_slot(item, rule, wrap_type) for item, rule in zip(response, rules, strict=True)]
    as_list = return_list or isinstance(response, list)
    return _sequence_plan(slots, as_list, return_tuple, dict(wrap_args))


def _sequence_plan(slots: list[Slot], as_list: bool, return_tuple: bool, kwargs: dict[str, Any]) -> Callable[..., Any]:
    if len(slots) == 1 and not return_tuple and not as_list:
        return partial(_fold_exactly, one_fold(return_tuple=False), slots, **kwargs)
    return partial(_fold_into, list if as_list else tuple, slots, **kwargs)


# --- Registration: a worker stores the tensors of a response


def register_response(attr: str, response: Any, response_ids: list[int], owner: Any) -> Any:
    """Store every tensor of ``response`` on ``owner`` under the next of ``response_ids``; return the same structure."""
    tensors = sum(1 for leaf in leaves(response) if build_rule(leaf))
    if tensors > len(response_ids):
        raise ResponseSignatureError()
    key = (attr, signature(response))
    plan = register_response_functions.get(key)
    if plan is None:
        plan = build_register_response_function(response)
        _remember(register_response_functions, key, plan)
    return plan(response, response_ids=response_ids, owner=owner)


def build_register_response_function(response: Any) -> Callable[..., Any]:
    """Build the function that stores the tensors of responses like ``response``."""
    return _register_slot(response, build_rule(response))


def build_register_response(response: Any, rules: Any, return_tuple: bool = False) -> Callable[..., Any]:
    """Build the function that stores the tensors of sequences like ``response``, as ``rules`` say."""
    slots = [_register_slot(item, rule) for item, rule in zip(response, rules, strict=True)]
    return _sequence_plan(slots, isinstance(response, list), return_tuple, {})


def _register_slot(response: Any, rule: Any) -> Slot:
    cls = type(response)
    if isinstance(rule, list | tuple):
        slots = [_register_slot(item, r) for item, r in zip(response, rule, strict=True)]
        return _checked(cls, partial(_fold_into, partial(rebuild, cls), slots))
    if not rule:
        return typed_identity(response)
    if is_mapped(cls):
        return _checked(cls, _register_inside)
    return _checked(cls, register_tensor)


def _register_inside(obj: Any, **kwargs: Any) -> Any:
    return map_leaves(lambda leaf: _register_slot(leaf, build_rule(leaf))(leaf, **kwargs), obj)


def register_tensor(tensor: Any, owner: Any, response_ids: list[int] | None = None) -> Any:
    """Store ``tensor`` on ``owner``, under the next of ``response_ids`` when ids are given; return the tensor."""
    if response_ids is None:
        owner.register_obj(tensor)
        return tensor
    if not response_ids:
        raise ResponseSignatureError()
    owner.register_obj(tensor, obj_id=response_ids.pop(0))
    return tensor


# --- What the core itself knows

forward_func.update({dict: _unwrap_inside, slice: _unwrap_inside})
# An entry for readers: what a tensor type of their own registers.
forward_func.register("my_syft_tensor_type", get_child)
backward_func.register("my_syft_tensor_type", default_backward_func)
