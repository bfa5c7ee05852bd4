"""Forms: what can be known of a tensor without its values, and of a result without computing it.

A form is worked out once per signature, where the framework can do that without data, and remembered: an operation on
tensors of known forms gives tensors of known forms, and nobody has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LIMIT = 8192
"""How many forms and signatures are remembered before the cache starts anew."""


class Form:
    """Shape, strides, dtype, device and place in autograd of a tensor; equal forms are one object."""

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


_forms: dict[Any, Form] = {}


def form(
    shape: Any, strides: Any, dtype: Any, device: Any = None, requires_grad: bool = False, is_leaf: bool = True
) -> Form:
    """Return the one form with these properties."""
    key = (shape, strides, dtype, device, requires_grad, is_leaf)
    found = _forms.get(key)
    if found is None:
        if len(_forms) >= LIMIT:
            _forms.clear()
        found = _forms[key] = Form(*key)
    return found


Forms = tuple["Form | None", ...]
"""The forms of the tensors in a result, in the order in which they stand; None for one that is not known."""

results_known: dict[Any, Forms] = {}
"""The forms of results by the signature of the call; empty where they depend on values."""
_facts: dict[Any, Any] = {}


def remember_result(key: Any, forms: Forms) -> Forms:
    """Remember the forms of a result, and return them."""
    if len(results_known) >= LIMIT:
        results_known.clear()
    results_known[key] = forms
    return forms


def fact_of_form(key: Any, read: Callable[[], Any]) -> Any:
    """Return what a form tells, by operation and form; read it off when it is asked for the first time."""
    found = _facts.get(key)
    if found is None:
        if len(_facts) >= LIMIT:
            _facts.clear()
        found = _facts[key] = read()
    return found


_CONSTANT_TYPES = frozenset({int, bool, str, type, type(None), type(Ellipsis), type(NotImplemented)})
_CONSTANT_NAMES = frozenset({"dtype", "Size", "device", "layout", "memory_format", "qscheme"})
_known_types: dict[type, bool] = {}


def is_constant(part: Any) -> bool:
    """Say whether a part of a call or of an answer can only be about the form of tensors, or says yes or no.

    Numbers with a fraction, bytes and objects of the process are none; the constants of a framework are:
    ``torch.dtype``, ``torch.Size``, ``numpy.dtype``.
    """
    cls = type(part)
    if cls in _CONSTANT_TYPES:
        return True
    known = _known_types.get(cls)
    if known is None:
        known = _known_types[cls] = any(base.__name__ in _CONSTANT_NAMES for base in cls.__mro__)
    return known
