"""The peers: the least code that puts a value of one's own in the place of a tensor, written for one purpose by hand.

They unwrap, run and wrap, and do nothing else: no allow-list, no checks, no second layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class FlatTensor(torch.Tensor):
    """For functions of tensors that return one tensor."""

    @staticmethod
    def __new__(cls: Any, child: torch.Tensor) -> Any:
        wrapper = torch.Tensor._make_wrapper_subclass(cls, child.shape, dtype=child.dtype, device=child.device)
        wrapper.child = child
        return wrapper

    def __init__(self, child: torch.Tensor) -> None:
        """Everything is done in ``__new__``."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = [a.child if type(a) is FlatTensor else a for a in args]
        return FlatTensor(func(*args, **(kwargs or {})))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(func)


class NestedTensor(FlatTensor):
    """For lists among the arguments, and for results that are not tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*[_unwrap(a) for a in args], **(kwargs or {}))
        return NestedTensor(result) if isinstance(result, torch.Tensor) else result


def _unwrap(argument: Any) -> Any:
    if type(argument) is NestedTensor:
        return argument.child
    return [_unwrap(a) for a in argument] if type(argument) is list else argument


class FlatArray:
    """For ufuncs that return one array."""

    def __init__(self, child: Any) -> None:
        self.child = child

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        inputs = [i.child if type(i) is FlatArray else i for i in inputs]
        return FlatArray(getattr(ufunc, method)(*inputs, **kwargs))
