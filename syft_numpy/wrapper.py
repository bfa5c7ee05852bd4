"""Wrapper: stands in for an array at the head of a chain."""

from __future__ import annotations

import copy
from collections.abc import Collection
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from syft_core.exceptions import ValueRefusedError, WrapperLeakError
from syft_core.hook.attributes import FrameworkAttributes, Op, OpTable
from syft_core.hook.dispatch import WRAPPER, Forwarding, dispatch, send_down
from syft_core.pointers.travel import are_names
from syft_core.tensors.identity import format_chain, format_wrapper, keep_words
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_numpy.native import NumpyTensor, SyftArray


class Wrapper(NumpyTensor, Forwarding):
    """Behaves like an array: numpy's functions, ufuncs, operators, methods and attributes go down the chain.

    It is not an ``ndarray``, which would have to hold data. ``numpy.asarray`` refuses it, because that would take data
    out of the chain implicitly.
    """

    rank: ClassVar[int] = WRAPPER
    is_wrapper = True
    ops: ClassVar[OpTable]
    framework: FrameworkAttributes

    @classmethod
    def attach(cls, attributes: FrameworkAttributes) -> None:
        """Use this op table, and define the attributes of an array as read-only properties."""
        cls.ops, cls.framework = attributes.ops, attributes
        for name, op in attributes.methods.items():
            if op.spelling == "getter":
                setattr(cls, name, property(partial(_get, op), partial(_refuse_to_set, name)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Nested:
        """Send a ufunc, or one of its methods, down the chain; also of a layer without a wrapper."""
        func = ufunc if method == "__call__" else getattr(ufunc, method)
        return dispatch(Wrapper.ops.of(func), inputs, kwargs)

    def __array_function__(self, func: Function, types: object, args: Args, kwargs: Kwargs) -> Nested:
        """Send a function down the chain; also of a layer without a wrapper."""
        return dispatch(Wrapper.ops.of(func), args, kwargs)

    @classmethod
    def __torch_function__(cls, func: Function, types: Collection[type], args: Args = (), kwargs: object = None) -> Any:
        """Refuse a function of torch; leave the call to a torch wrapper among its arguments, which does so too."""
        pointer = next((arg for arg in args if type(arg) is cls and arg.location is not None), None)
        if pointer is None or not {*types} <= {cls}:
            return NotImplemented
        name = f"numpy.{func.__name__}"
        same = f"`{name}(p)`" if len(args) == 1 else f"{name} with the same arguments"
        use = f"use {same}, or " if name in cls.ops else ""
        raise ValueRefusedError.foreign(f"torch.{func.__name__}", pointer.location.id, use, "torch.from_numpy(p.get())")

    def __array__(self, *_args: object, **_options: object) -> NoReturn:
        """Refuse to convert a chain to an array."""
        raise WrapperLeakError.at("numpy.asarray", "fetch it with `.get()` first")

    def __getitem__(self, index: Any) -> Any:
        """Return a part, or columns by name, unless the array has fields, which have names too."""
        if are_names(index) and getattr(self.dtype, "names", None) is None:
            return self.select_columns(index)
        return _forward_getitem(self, index)

    def copy(self, *args: object) -> Tensor:
        """Return a chain with a copy of the data and a new id; a copy on a worker has no tags."""
        made = _forward_copy(self, *args)
        return made if self.location is not None else keep_words(self, made)

    __divmod__ = send_down("__divmod__")
    __rdivmod__ = send_down("__rdivmod__")

    def __repr__(self) -> str:
        return format_chain(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format_wrapper(self, spec)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Wrapper:
        return Wrapper(copy.deepcopy(self.child, memo))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise WrapperLeakError.at("pickle", "fetch it with `.get()` first")


_forward_copy, _forward_getitem = send_down("copy"), send_down("__getitem__")


def wrap(child: Tensor, **_attributes: object) -> Wrapper | SyftArray:
    """Return the user's view of ``child``: an array if the data is here and has no layers, else a wrapper."""
    return child.view(SyftArray) if isinstance(child, np.ndarray) else Wrapper(child)


def _get(op: Op, wrapper: Wrapper) -> Any:
    return dispatch(op, (wrapper,), {})


def _refuse_to_set(name: str, _wrapper: Wrapper, _value: object) -> NoReturn:
    raise AttributeError(
        f"cannot set {name!r} of a wrapper: it belongs to the data; make a new array, e.g. `x.reshape(n)`"
    )
