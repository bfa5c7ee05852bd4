"""Decorators that override operations for a layer type.

``overloaded.method`` and ``overloaded.function`` unwrap the arguments, call the decorated function and wrap its result.
``overloaded.module`` groups functions under the path of a framework module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any

from syft_core.exceptions import PureFrameworkTensorFoundError
from syft_core.hook.argument_plans import ArgumentPlan
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import Respond, attributes_of, rewrap
from syft_core.hook.hook_args import get_plan, is_framework_tensor
from syft_core.hook.operators import COMPARATORS, OPERATORS, UNARY_OPERATORS
from syft_core.hook.rules import leaves, map_leaves
from syft_core.values import Args, Function, Kwargs, Nested, Tensor


class Module:
    """A namespace that represents a framework module."""


class _Overloaded:
    def __init__(self, function: Function) -> None:
        update_wrapper(self, function)
        self.name: str = function.__name__
        self.function = function
        self.owner: type = object

    def answer(self, _op: Op | None, plan: ArgumentPlan, args: Args, kwargs: Kwargs) -> Nested:
        """Unwrap, call, wrap; a numeric layer encodes plain operands first."""
        encodes = plan.layer.numeric and value_places(self.function) is None
        if encodes and any(is_framework_tensor(type(leaf)) for leaf in leaves((args, kwargs))):
            args, kwargs = encode_plain(plan.leader(args, kwargs), args, kwargs)
            plan = get_plan(self.name, args, kwargs)
        attributes = attributes_of(self.name, plan, args, kwargs)
        new_args, new_kwargs = plan.unwrap(args, kwargs)
        result = self.call(plan.leader(args, kwargs), new_args, new_kwargs)
        return rewrap(self.name, result, plan, attributes, (args, kwargs))

    def call(self, layer: Tensor, args: Args, kwargs: Kwargs) -> Nested:
        """Call the decorated function."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Nested:
        plan = get_plan(self.name, args, kwargs)
        if plan.layer is None:
            raise PureFrameworkTensorFoundError.in_call(self.name)
        if issubclass(plan.layer, self.owner):
            return self.answer(None, plan, args, kwargs)
        # The call contains an outer layer, such as a wrapper: unwrap it first.
        attributes = attributes_of(self.name, plan, args, kwargs)
        new_args, new_kwargs = plan.unwrap(args, kwargs)
        return rewrap(self.name, self(*new_args, **new_kwargs), plan, attributes, (args, kwargs))


def encode_plain(layer: Tensor, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Encode the plain tensors among the arguments like ``layer``."""

    def encode(leaf: Tensor) -> Tensor:
        return layer.copy_onto(layer.encode(leaf)) if is_framework_tensor(type(leaf)) else leaf

    return map_leaves(encode, args), map_leaves(encode, kwargs)


def with_indices(function: Function, *values: int) -> Function:
    """Mark a rule of a numeric layer whose plain operands are indices: only those at ``values`` are encoded."""
    function.value_places = values  # type: ignore[attr-defined]  # read by ``value_places``
    return function


def value_places(function: Function | None) -> tuple[int, ...] | None:
    """Return which arguments of a ``with_indices`` function are values; None for any other function."""
    return getattr(function, "value_places", None)


class OverloadedFunction(_Overloaded):
    """A function ``f(*children)``."""

    def call(self, layer: Tensor, args: Args, kwargs: Kwargs) -> Nested:
        """Call ``f(*children)``."""
        return self.function(*args, **kwargs)


class OverloadedMethod(_Overloaded):
    """A method ``f(self, child_of_self, *children)``."""

    def call(self, layer: Tensor, args: Args, kwargs: Kwargs) -> Nested:
        """Call ``f(layer, *children)``."""
        return self.function(layer, *args, **kwargs)

    def __get__(self, instance: object, owner: type) -> Function:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)


class Overloaded:
    """The three decorators, under their short and their long names."""

    @staticmethod
    def overload_method(attr: Function) -> OverloadedMethod:
        """Make ``attr(self, _self, *args)`` the rule for the operation of the same name, however it is called."""
        return OverloadedMethod(attr)

    @staticmethod
    def overload_function(attr: Function) -> OverloadedFunction:
        """Make ``attr(*args)`` the rule for the function of the same name."""
        return OverloadedFunction(attr)

    @staticmethod
    def overload_module(attr: Callable[[Module], object]) -> Module:
        """Return a module that ``attr`` has filled with functions and submodules."""
        module = Module()
        attr(module)
        return module

    method = overload_method
    function = overload_function
    module = overload_module


overloaded = Overloaded()


def iter_rules(cls: type) -> Iterator[tuple[str, Respond]]:
    """Yield the rules defined in the body of ``cls``: the operation or full function name, and the handler."""
    for name, attribute in vars(cls).items():
        if isinstance(attribute, staticmethod):
            attribute = attribute.__func__
        if isinstance(attribute, OverloadedMethod):
            attribute.owner = cls
            yield _operation_name(name), attribute.answer
        elif isinstance(attribute, Module):
            yield from _iter_module_rules(cls, name, attribute)


def _operation_name(name: str) -> str:
    for table in (OPERATORS, COMPARATORS, UNARY_OPERATORS):
        if name in table:
            return table[name]
    return name


def _iter_module_rules(cls: type, path: str, module: Module) -> Iterator[tuple[str, Respond]]:
    for name, attribute in vars(module).items():
        if isinstance(attribute, Module):
            yield from _iter_module_rules(cls, f"{path}.{name}", attribute)
        elif isinstance(attribute, OverloadedFunction):
            attribute.owner = cls
            yield f"{path}.{name}", attribute.answer
        elif callable(attribute):
            yield f"{path}.{name}", _with_layers(attribute)


def _with_layers(function: Function) -> Respond:
    """Return a rule for an undecorated function, which receives the layers themselves."""
    return lambda _op, _plan, args, kwargs: function(*args, **kwargs)
