"""Wrapper: the array that a numpy user holds when there is a chain."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from syft_core.exceptions import WrapperLeakError
from syft_core.hook.attributes import FrameworkAttributes, Op, OpTable
from syft_core.hook.dispatch import WRAPPER, dispatch
from syft_core.tensors.identity import format_chain
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_numpy.native import NumpyTensor


class Wrapper(NumpyTensor):
    """Behaves like an array: numpy's functions, ufuncs, operators, methods and attributes go down the chain.

    It is not an ``ndarray``, which would have to hold data; ``numpy.asarray`` of it is refused, so that nothing leaves
    a chain unnoticed.
    """

    rank: ClassVar[int] = WRAPPER
    is_wrapper = True
    ops: ClassVar[OpTable]
    """The op table of the hook that is on; set when numpy is hooked."""
    framework: FrameworkAttributes
    """What that hook knows of numpy."""

    def __init__(self, child: Tensor) -> None:
        self.child = child

    @classmethod
    def know(cls, attributes: FrameworkAttributes) -> None:
        """Take over the op table, and the attributes of an array, which can be read but not set."""
        cls.ops, cls.framework = attributes.ops, attributes
        for name, op in attributes.methods.items():
            if op.spelling == "getter":
                setattr(cls, name, property(partial(_get, op), partial(_refuse_to_set, name)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Nested:
        """Send a ufunc, or one of its methods, down the chain."""
        return array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Function, types: object, args: Args, kwargs: Kwargs) -> Nested:
        """Send a function down the chain."""
        return dispatch(self.ops.of(func), args, kwargs)

    @classmethod
    def __torch_function__(cls, *_call: object, **_options: object) -> Any:
        """Leave a function of torch to the torch wrapper in the same call, which refuses to mix frameworks."""
        return NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the data, if it is here and no layer is on it: it was fetched, or never left."""
        child = self.child
        if not isinstance(child, np.ndarray):
            raise WrapperLeakError.at(
                "numpy.asarray",
                "fetch what is on a worker with `.get()`, or call the function on the wrapper itself",
            )
        return np.array(child, dtype) if copy else child if dtype is None else child.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return format_chain(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Wrapper:
        return Wrapper(copy.deepcopy(self.child, memo))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise WrapperLeakError.at("pickle", "save the array under its layers instead")


def _get(op: Op, wrapper: Wrapper) -> Any:
    return dispatch(op, (wrapper,), {})


def _refuse_to_set(name: str, _wrapper: Wrapper, _value: object) -> NoReturn:
    raise AttributeError(
        f"cannot set {name!r} of a wrapper: it belongs to the data; make a new array, e.g. `x.reshape(n)`"
    )


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Args, kwargs: Kwargs) -> Nested:
    """Find the operation that numpy's ufunc protocol names, and send it down the chain."""
    func = ufunc if method == "__call__" else getattr(ufunc, method)
    return dispatch(Wrapper.ops.of(func), inputs, kwargs)
