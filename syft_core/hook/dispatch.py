"""Dispatch a call to a layer, or to the framework itself.

A call goes down the chain until a layer or the framework answers it; the result comes back up and is wrapped the same
way. Each step unwraps one layer type from the arguments (``hook_args``), dispatches the call again, and wraps the
result in that layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError
from syft_core.hook.argument_plans import NO_PLAN, ArgumentPlan
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.caches import remember
from syft_core.hook.hook_args import get_nested_plan, get_plan, is_framework_tensor, on_registry_change, wrap_response
from syft_core.hook.operators import COMPARATORS, INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS, UNARY_OPERATORS
from syft_core.hook.ranks import OPAQUE, TRANSPARENT, WRAPPER
from syft_core.hook.rules import is_flat, leaves, map_leaves, resolve
from syft_core.registry import Registry
from syft_core.values import Args, Function, Kwargs, LayerType, Nested, Tensor

__all__ = ["OPAQUE", "TRANSPARENT", "WRAPPER", "dispatch", "forget_answers", "forward", "framework_of", "frameworks"]

Respond = Callable[[Op, ArgumentPlan, Args, Kwargs], Nested]


def dispatch(op: Op, args: Args, kwargs: Kwargs) -> Nested:
    """Answer a call with the outermost layer in it, or natively when none is left."""
    if kwargs:
        if not args and op.first in kwargs:  # Below, the first tensor is always positional.
            args, kwargs = (kwargs[op.first],), {name: value for name, value in kwargs.items() if name != op.first}
        key = (op, tuple(map(type, args)), *kwargs, *map(type, kwargs.values()))
        route = _routes.get(key)
        answer, plan = route if route is not None else _find_route(key, op, args, kwargs)
        return op.run(*args, **kwargs) if answer is None else answer(op, plan, args, kwargs)
    key = (op, type(args[0]), type(args[1])) if len(args) == 2 else (op, *map(type, args))
    route = _routes.get(key)
    answer, plan = route if route is not None else _find_route(key, op, args, kwargs)
    return op.run(*args) if answer is None else answer(op, plan, args, kwargs)


_routes: dict[tuple[object, ...], tuple[Respond | None, ArgumentPlan]] = {}
"""The handler of a call and the plan for it, by operation and argument types."""


def _find_route(key: tuple[object, ...], op: Op, args: Args, kwargs: Kwargs) -> tuple[Respond | None, ArgumentPlan]:
    if all(is_flat(type(arg)) for arg in (*args, *kwargs.values())):
        plan = get_plan(op.name, args, kwargs)
        route: tuple[Respond | None, ArgumentPlan] = (_answer_of(plan.layer, op), plan)
    else:  # The plan depends on the nesting; for an ambiguous name even on the arguments themselves.
        route = (_look_up_nested, NO_PLAN)
    return remember(_routes, key, route)


def _look_up_nested(op: Op, _plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
    plan = get_nested_plan(op.name, args, kwargs)
    answer = _answer_of(plan.layer, op)
    return op.run(*args, **kwargs) if answer is None else answer(op, plan, args, kwargs)


def forward(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
    """Handle a call for which the layer has no rule: run it on the children, and wrap the result in the layer.

    If the result, or a part of it, *is* an argument, return the caller's own object: in-place operations, ``out=`` and
    ``x.contiguous()`` preserve identity as they do without layers.
    """
    layer = plan.layer
    is_wrapper = layer.rank == WRAPPER
    attributes = _NO_ATTRIBUTES if is_wrapper else attributes_of(op.name, plan, args, kwargs)
    new_args = (args[0].child, args[1].child) if plan.is_pair else plan.args(args)
    new_kwargs = plan.kwargs(kwargs) if plan.kwargs is not None else kwargs
    result = dispatch(op, new_args, new_kwargs)
    if op.reveals:
        return result  # a plain value: a number, a string, an array of another framework
    if args and result is new_args[0]:
        return args[0]
    if kwargs and (alias := _alias_in(result, kwargs, new_kwargs)) is not None:
        return alias
    if is_wrapper and type(result) in types_wrapped_without_plan:
        return layer(result)
    wrapped = rewrap(op.name, result, plan, attributes, (args, kwargs))
    if is_flat(type(result)):
        return wrapped
    return _restore_aliases(wrapped, result, (args, kwargs), (new_args, new_kwargs))


types_wrapped_without_plan: set[type] = set()
"""Result types that are wrapped without a plan, for speed."""
_NO_ATTRIBUTES: Mapping[str, object] = {}


def attributes_of(name: str, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Mapping[str, object]:
    """Return the class attributes for the results of a call; refuse layers of one type with different attributes."""
    if plan.layer.rank == WRAPPER:
        return _NO_ATTRIBUTES
    attributes: Mapping[str, object] = plan.leader(args, kwargs).get_class_attributes()
    if attributes:
        _require_same_attributes(name, plan.layer, attributes, (args, kwargs))
    return attributes


def rewrap(
    name: str, result: Nested, plan: ArgumentPlan, attributes: Mapping[str, object], call_args: Nested
) -> Nested:
    """Wrap every tensor of ``result`` in the layer that was unwrapped."""
    wrapped = wrap_response(result, plan.layer, attributes)
    if plan.layer.records_lineage:
        _record_lineage(name, wrapped, plan.layer, call_args)
    return wrapped


def _alias_in(result: Nested, kwargs: Kwargs, new_kwargs: Kwargs) -> Nested:
    for key, new in new_kwargs.items():
        if result is new:
            return kwargs[key]
        if type(new) is tuple and len(new) == 1 and result is new[0]:
            return kwargs[key][0]
    return None


def _restore_aliases(wrapped: Nested, result: Nested, old_args: Nested, new_args: Nested) -> Nested:
    own = {id(new): old for old, new in zip(leaves(old_args), leaves(new_args), strict=True) if new is not old}
    parts = leaves(result)
    if own.keys().isdisjoint(map(id, parts)):
        return wrapped
    following = iter(parts)
    return map_leaves(lambda leaf: own.get(id(next(following)), leaf), wrapped)


def _require_same_attributes(name: str, layer: LayerType, attributes: Mapping[str, object], call_args: Nested) -> None:
    for leaf in leaves(call_args):
        if type(leaf) is layer and (other := leaf.get_class_attributes()) != attributes:
            differing = [key for key in {*attributes, *other} if attributes.get(key) != other.get(key)]
            raise MixedLayersError.attributes(name, layer.__name__, differing)


def _record_lineage(name: str, wrapped: Nested, layer: LayerType, call_args: Nested) -> None:
    parents = tuple(leaf for leaf in leaves(call_args) if type(leaf) is layer)
    for leaf in leaves(wrapped):
        if type(leaf) is layer:
            leaf.parents, leaf.command = parents, name


_answers: dict[tuple[LayerType, Op], Respond] = {}


def forget_answers() -> None:
    """Clear the caches of handlers, because a tensor type has changed."""
    _answers.clear()
    _routes.clear()


on_registry_change(_routes.clear)


def _answer_of(layer: LayerType, op: Op) -> Respond | None:
    if layer is None:
        return None
    answer = _answers.get((layer, op))
    if answer is None:
        answer = forward
        if layer.rank != WRAPPER:
            answer = _add_listener(layer, op, _rule_answer(layer, op) or layer.respond or forward)
        remember(_answers, (layer, op), answer)
    return answer


def _rule_answer(layer: LayerType, op: Op) -> Respond | None:
    """Find the layer's rule for ``op`` by full name, by attribute name, or by operation."""
    rules: Mapping[str, Respond] = layer.rules
    rule = rules.get(op.name) or rules.get(op.attr)
    if rule is not None:
        return _make_inplace(rule) if op.inplace and layer.numeric else rule
    if op.each is not None and op.each in rules:
        return _refuse_each
    rule = rules.get(op.operation)
    if rule is None:
        return None
    if op.inplace:
        return _make_inplace(rule)
    return _make_reflected(rule) if op.reflected else rule


def _refuse_each(op: Op, plan: ArgumentPlan, _args: Args, _kwargs: Kwargs) -> NoReturn:
    """Refuse an operation on lists that would bypass the layer's rule for single tensors."""
    raise OperationNotAllowedError.refused_by(
        plan.layer.__name__,
        op.name,
        f"it has a rule for {op.each!r}, which this operation on lists would bypass; "
        f"call {op.each!r} on each tensor, or pass `foreach=False` to the optimizer",
    )


def _make_inplace(rule: Respond) -> Respond:
    """Turn a rule into one for the in-place operation, which returns the same tensor object."""

    def answer(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        target = args[0]
        if type(target) is not plan.layer:
            raise OperationNotAllowedError.refused_by(
                plan.layer.__name__,
                op.name,
                "a plain tensor cannot be changed in place into a chain; write `x = x + y` instead",
            )
        target.assign(rule(op, plan, args, kwargs).child)
        return target

    return answer


def _make_reflected(rule: Respond) -> Respond:

    def answer(op: Op, _plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        swapped = (args[1], args[0], *args[2:])
        return rule(op, get_plan(op.name, swapped, kwargs), swapped, kwargs)

    return answer


def _add_listener(layer: LayerType, op: Op, answer: Respond) -> Respond:
    listener = {"function": layer.on_function_call, "method": layer.on_method_call}.get(op.spelling)
    if listener is None:
        return answer

    def announce(op: Op, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        listener((op.name, None, args, kwargs))
        return answer(op, plan, args, kwargs)

    return announce


frameworks: Registry[type, FrameworkAttributes] = Registry(
    "frameworks", advice="load the backend of its framework, e.g. `sy.NumpyHook(numpy)`"
)
"""The framework of each type of plain tensor."""


def framework_of(tensor: Tensor) -> FrameworkAttributes:
    """Return the framework of the tensor at the end of a chain."""
    plain = frameworks_of_types.get(type(tensor))
    if plain is not None:
        return plain
    own = getattr(tensor, "framework", None)
    while own is None and (child := getattr(tensor, "child", None)) is not None:
        tensor = child
        own = getattr(tensor, "framework", None)
    found: FrameworkAttributes | None = own or resolve(frameworks, type(tensor))
    if found is None:
        raise frameworks.missing_error(type(tensor))
    if own is None and is_framework_tensor(type(tensor)):
        frameworks_of_types[type(tensor)] = found
    return found


def is_form_only(tensor: Tensor) -> bool:
    """Return whether a plain tensor has a form and no data."""
    has_no_data = framework_of(tensor).is_form_only
    return has_no_data is not None and has_no_data(tensor)


frameworks_of_types: dict[type, FrameworkAttributes] = {}
"""A cache of the frameworks of plain tensor types."""
on_registry_change(frameworks_of_types.clear)


# --- methods


class Forwarding:
    """Forwards methods, attributes and operators of the framework at the chain's end down the chain."""

    child: Tensor = None
    framework: Any = None
    """The framework, if it is known without following the chain."""
    __len__: Function
    __getitem__: Function

    def __init__(self, child: Tensor) -> None:
        self.child = child

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self.child is None and self.framework is None:
            raise no_child_error(self, name)
        op = framework_of(self).methods.get(name)
        if op is None:
            raise AttributeError(f"cannot read {name!r}: neither {type(self).__name__} nor its framework has it")
        if op.spelling == "getter":
            return dispatch(op, (self,), {})
        return lambda *args, **kwargs: dispatch(op, (self, *args), kwargs)

    def __dir__(self) -> list[str]:
        names = set(super().__dir__())
        ends = self.child is not None or self.framework is not None
        return sorted(names | set(framework_of(self).methods) if ends else names)

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[i] for i in range(len(self))])

    def __hash__(self) -> int:
        return object.__hash__(self)


def no_child_error(layer: Tensor, name: str) -> AttributeError:
    """Return the error for using a layer that has no child yet."""
    return AttributeError(
        f"cannot read {name!r} of a {type(layer).__name__}: it has no child; put it on a tensor with `.on(x)`"
    )


def send_down(name: str) -> Function:
    """Return a method that sends ``name`` down the chain; Python looks special methods up on the class."""

    def method(self: Forwarding, *args: object) -> Nested:
        framework = self.framework or framework_of(self)
        op = framework.methods.get(name)
        if op is None and name in INPLACE_OPERATORS:
            return NotImplemented  # Tensors cannot change, so Python computes `x = x + y` instead.
        return dispatch(op or framework.method(name), (self, *args), {})

    method.__name__ = name
    return method


OPERATOR_NAMES = (*OPERATORS, *COMPARATORS, *UNARY_OPERATORS, *INPLACE_OPERATORS, *REFLECTED_OPERATORS)
_CONTAINER = ("__len__", "__getitem__", "__setitem__", "__contains__")
_CONVERSIONS = ("__bool__", "__float__", "__int__", "__index__", "__complex__")
for _name in (*OPERATOR_NAMES, *_CONTAINER, *_CONVERSIONS):
    setattr(Forwarding, _name, send_down(_name))
