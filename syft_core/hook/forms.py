"""Forms: what can be known of a tensor without its values, and of a result without computing it.

A form is worked out once per signature, where the framework can do that without data, and remembered: an operation on
tensors of known forms gives tensors of known forms, and nobody has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from syft_core.values import Nested

T = TypeVar("T")

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


_forms: dict[object, Form] = {}


def form(
    shape: Any, strides: Any, dtype: Any, device: Any = None, requires_grad: bool = False, is_leaf: bool = True
) -> Form:
    """Return the one form with these properties."""
    key = (type(shape), shape, strides, dtype, device, requires_grad, is_leaf)
    found = _forms.get(key)
    if found is None:
        if len(_forms) >= LIMIT:
            _forms.clear()
        found = _forms[key] = Form(*key[1:])
    return found


Inferred = tuple[Nested, "Sequence[Form]", bool]
"""What a call gives, with forms for tensors, the forms that its operands have afterwards, and whether the gradients
that go back through it are of the common kind."""

predictions: dict[object, Any] = {}
"""What calls will do, by signature; False where that depends on values."""
_facts: dict[object, Any] = {}


def remember_prediction(key: object, prediction: T) -> T:
    """Remember what a call will do, and return it."""
    if len(predictions) >= LIMIT:
        predictions.clear()
    predictions[key] = prediction
    return prediction


def fact_of_form(key: object, read: Callable[[], object]) -> Any:
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


def is_constant(part: object) -> bool:
    """Return whether a part of a call or of an answer can only be about the form of tensors, or says yes or no.

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
