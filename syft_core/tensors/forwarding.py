"""Forwarding: give an object the methods, attributes and operators of its framework's tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syft_core.hook.attributes import COMPARATORS, INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS, UNARY_OPERATORS
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.values import Function, Nested, Tensor


class Forwarding:
    """Methods, attributes and operators of the framework in which the chain ends, sent down the chain."""

    child: Tensor = None
    framework: Any = None
    """The framework, if it is known without following the chain to its end."""
    __len__: Function
    __getitem__: Function

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


def forward(name: str) -> Function:
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
    setattr(Forwarding, _name, forward(_name))
