"""Forms: everything known about a tensor without its values, and about a result without computing it.

If the framework can infer the forms of results without data, they are inferred once per signature and cached. A client
then knows the forms of results without asking the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from syft_core.hook.caches import remember
from syft_core.values import Nested

T = TypeVar("T")


class Form:
    """Shape, strides, dtype, device and autograd flags of a tensor; equal forms are the same object."""

    __slots__ = ("device", "dtype", "is_leaf", "requires_grad", "shape", "strides")

    def __init__(self, shape: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool, is_leaf: bool) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.requires_grad = requires_grad
        self.is_leaf = is_leaf

    def __repr__(self) -> str:
        return f"Form({list(self.shape)}, {self.dtype}, {self.device})"


known_forms: dict[object, Form] = {}
"""All forms, by type of the shape and properties."""


def form(
    shape: Any, strides: Any, dtype: Any, device: Any = None, requires_grad: bool = False, is_leaf: bool = True
) -> Form:
    """Return the form with these properties."""
    key = (type(shape), shape, strides, dtype, device, requires_grad, is_leaf)
    return known_forms.get(key) or remember(known_forms, key, Form(*key[1:]))


class Inferred(NamedTuple):
    """The backend's inference about a call, from the forms of its operands."""

    result: Nested
    after: Sequence[Form]
    """The forms of the operands after the call."""
    dense: bool = True
    """Whether the result's gradients are dense."""
    shared: tuple[int, ...] = ()
    """The positions of operands that a result is, or shares memory with; their autograd state may be shared, too."""


predictions: dict[object, Any] = {}
"""Predicted results of calls, by signature; False if they depend on values."""
_facts: dict[object, Any] = {}


def remember_prediction(key: object, prediction: T) -> T:
    """Cache the prediction for a call, and return it."""
    remember(predictions, key, prediction)
    return prediction


def fact_of_form(key: object, read: Callable[[], object]) -> Any:
    """Return the cached fact for an operation and a form; call ``read`` on first use."""
    found = _facts.get(key)
    return remember(_facts, key, read()) if found is None else found


_CONSTANT_TYPES = frozenset({int, bool, str, type, type(None), type(Ellipsis), type(NotImplemented)})
_CONSTANT_NAMES = frozenset({"dtype", "Size", "device", "layout", "memory_format", "qscheme"})
_known_types: dict[type, bool] = {}


def is_constant(part: object) -> bool:
    """Return whether a part of a call or a result is of a type that describes forms: int, bool, str, a dtype.

    Floats, bytes and other objects are not constants; a framework's own constants are: ``torch.dtype``,
    ``torch.Size``, ``numpy.dtype``.
    """
    cls = type(part)
    if cls in _CONSTANT_TYPES:
        return True
    known = _known_types.get(cls)
    if known is None:
        known = _known_types[cls] = any(base.__name__ in _CONSTANT_NAMES for base in cls.__mro__)
    return known
