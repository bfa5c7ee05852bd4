"""NumericWrapper: the wrapper of chains with a layer that encodes values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import torch

from syft_core.exceptions import OperationNotAllowedError, WrapperLeakError
from syft_core.features import Later
from syft_core.hook.dispatch import WRAPPER, dispatch, framework_of
from syft_core.hook.operators import COMPARATORS, INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS
from syft_core.hook.rules import leaves
from syft_core.tensors.identity import format_chain, format_wrapper
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Args, Function, Nested, Tensor
from syft_torch.aten import ATEN, AtenOp
from syft_torch.isolation import name_instead_of_numpy
from syft_torch.native import TorchTensor

_make = torch.Tensor._make_wrapper_subclass
_META = torch.device("meta")
_DEVICE = torch.ops.prim.device.default
_DATA = torch.Tensor.data


class NumericWrapper(TorchTensor, torch.Tensor):  # type: ignore[misc]  # torch has no types here
    """A tensor with the form of the values that its chain encodes.

    Calls arrive at ``__torch_dispatch__``, below torch's own autograd and optimizers. Each kernel is dispatched to the
    chain like any other operation.

    Note [Device of a numeric wrapper]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    ``device`` is the device of the encoding, because autograd creates tensors there; torch asks this class for it,
    which costs about 10 µs per kernel. For the dispatcher the wrapper is a meta tensor, so that torch refuses
    ``plain.data = wrapper``. With a wrapper on a real device, torch would accept that and crash at the next read.
    """

    rank: ClassVar[int] = WRAPPER
    numeric: ClassVar[bool] = True
    is_wrapper = True
    child: Tensor
    _syft_device: torch.device
    """The device of the encoding."""
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type[NumericWrapper], child: Tensor) -> NumericWrapper:
        """Create a tensor with the form of the outermost numeric layer."""
        layer = child
        while not isinstance(layer, NumericTensor):
            layer = layer.child
        form = layer.form
        wrapper: NumericWrapper = _make(
            cls, form.shape, strides=form.strides, dtype=form.dtype, device=_META, dispatch_device=True
        )
        wrapper.child = child
        wrapper._syft_device = form.device
        return wrapper

    @classmethod
    def __torch_dispatch__(
        cls, func: torch._ops.OpOverload, types: object, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> Nested:
        """Dispatch a kernel to the chain."""
        if func is _DEVICE:
            return args[0]._syft_device
        if kwargs and type(kwargs.get("out")) is NumericWrapper:
            options: dict[str, Any] = dict(kwargs)
            return options.pop("out").copy_(func.overloadpacket(*args, **options))
        op = ATEN.of(func)
        if op.is_composite:
            return func.decompose(*args, **kwargs or {})
        if op.reshaping is not None:
            args[0].child = op.reshaping(*args, **kwargs or {}).child
            with torch._C._DisableTorchDispatch():  # Only the form of the wrapper changes.
                return func(*args, **kwargs or {})
        if op.decomposition is not None and not _has_rule(op, args):
            result = op.decomposition(*args, **kwargs or {})
            if result is not NotImplemented:
                return args[0].copy_(result) if op.inplace else result
        return dispatch(op, args, dict(kwargs) if kwargs else {})

    @property
    def data(self) -> torch.Tensor:
        """A tensor with the same encoding, outside of autograd."""
        return self.detach()

    @data.setter
    def data(self, value: object) -> None:
        if type(value) is not NumericWrapper:
            raise OperationNotAllowedError.refused_by(
                "NumericWrapper",
                "data",
                "a plain tensor is not encoded; write `x.copy_(value)` under `torch.no_grad()`",
            )
        _DATA.__set__(self, value)
        self.child, self._syft_device = value.child, value._syft_device

    def _refuse_memory(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Refuse access to memory, which the wrapper does not have."""
        if hasattr(self.child, "float_precision") or hasattr(self.child, "locations"):
            raise _REVEALS()
        raise WrapperLeakError.at("a function that reads memory (pickle, storage, DLPack)", "decode the tensor first")

    def __array_function__(self, func: Function, _types: object, args: Args, kwargs: Mapping[str, object]) -> NoReturn:
        """Refuse a function of numpy, and name torch's."""
        use = name_instead_of_numpy(func.__name__, len(args) == 1 and args[0] is self, "x", framework_of(self).ops)
        why = f"it is a tensor of torch; {use}fetch it first: `x = x.get().float_precision().numpy()`"
        raise OperationNotAllowedError.refused_by(type(self.child).__name__, f"numpy.{func.__name__}", why)

    __array_ufunc__ = None
    """Operators of numpy arrays leave the answer to the operators of this class."""

    def __invert__(self) -> Nested:
        """Return 1 where a number is 0; torch's own operator refuses real numbers."""
        return self.logical_not() if self.is_floating_point() else torch.bitwise_not(self)

    __reduce_ex__ = __dlpack__ = __dlpack_device__ = untyped_storage = _refuse_memory
    numpy = tolist = __array__ = _refuse_memory

    def _divide_by_self(self, other: float) -> Nested:
        """Divide a number by this tensor; torch's own operator multiplies the reciprocal, and its error."""
        if isinstance(other, int | float) and other == 1:
            return self.reciprocal()
        return torch.true_divide(torch.as_tensor(other), self)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return format_chain(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format_wrapper(self, spec)

    def __copy__(self) -> torch.Tensor:
        """Return a leaf on the same chain, as torch does."""
        return NumericWrapper(self.child).requires_grad_(self.requires_grad)


_REVEALS = Later("syft_mpc.errors:PrecisionError.reveals")


def _has_rule(op: AtenOp, args: Args) -> bool:
    layer: object = next((leaf for leaf in leaves(args) if isinstance(leaf, NumericWrapper)), None)
    while layer is not None and not isinstance(layer, NumericTensor):
        layer = getattr(layer, "child", None)
    return layer is not None and not {op.name, op.attr, op.operation}.isdisjoint(type(layer).rules)


def wrap_numeric(child: Tensor, **_attributes: object) -> torch.Tensor:
    """Wrap ``child`` in a numeric wrapper; return a plain tensor, which a rule may produce, unchanged."""
    return child if isinstance(child, torch.Tensor) else NumericWrapper(child)


def _operator(name: str, method: str) -> Function:
    """Return an operator that keeps our errors; torch's own replace every TypeError by "unsupported operand"."""
    native = getattr(torch.Tensor, name)
    function = inspect.unwrap(native)
    if function is native:  # Not written in Python, and therefore not a reflected operator, whose order matters.
        function = getattr(torch.Tensor, method)

    @functools.wraps(native)
    def operator(self: NumericWrapper, other: object) -> Nested:
        if hasattr(other, "__array_interface__") and not isinstance(other, torch.Tensor):
            other = torch.as_tensor(other)  # An array of numpy.
        return (function if isinstance(other, torch.Tensor | int | float | complex) else native)(self, other)

    return operator


_OPTIONS: dict[str, tuple[str, ...]] = {
    "sigmoid": ("method",),
    "tanh": ("method",),
    "reciprocal": ("method", "nr_iters"),
    "exp": ("iterations",),
    "log": ("iterations", "exp_iterations"),
    "inverse": ("iterations",),
}
"""Options that PySyft 0.2 takes by position or by name. Numbers of iterations have no effect: no method needs them."""


def _with_methods(name: str, names: tuple[str, ...]) -> Function:
    """Return a method with the option to choose how a function of shared numbers is approximated."""
    native = getattr(torch.Tensor, name)

    @functools.wraps(native)
    def call(self: NumericWrapper, *args: object, **kwargs: object) -> Nested:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if len(args) > len(names) or not given.keys() <= set(names):
            return native(self, *args, **kwargs)  # It refuses them.
        method = given.get("method")
        if method is None:
            return native(self)
        if self.requires_grad and torch.is_grad_enabled():
            what = f"{name}(method={method!r})"
            raise OperationNotAllowedError.refused_by("NumericWrapper", what, "it has no gradient; leave out `method`")
        return dispatch(ATEN.look_up(f"aten.{name}.default"), (self,), {"method": method})

    return call


def _with_one_hot(name: str) -> Function:
    """Return a method with the option to return 1 at the place that it finds, and 0 elsewhere."""
    native = getattr(torch.Tensor, name)

    @functools.wraps(native)
    def call(self: NumericWrapper, *args: object, one_hot: bool = False, **kwargs: object) -> Nested:
        if not one_hot:
            return native(self, *args, **kwargs)
        return dispatch(ATEN.look_up(f"aten.{name}.default"), (self, *args), {**kwargs, "one_hot": True})

    return call


for _name, _names in _OPTIONS.items():
    setattr(NumericWrapper, _name, _with_methods(_name, _names))
for _name in ("argmax", "argmin"):
    setattr(NumericWrapper, _name, _with_one_hot(_name))
for _name, _method in {**OPERATORS, **COMPARATORS, **REFLECTED_OPERATORS}.items():
    setattr(NumericWrapper, _name, _operator(_name, _method))
NumericWrapper.__rtruediv__ = NumericWrapper.__rdiv__ = NumericWrapper._divide_by_self
for _name, _method in INPLACE_OPERATORS.items():
    if hasattr(torch.Tensor, _name):
        setattr(NumericWrapper, _name, _operator(_name, f"{_method}_"))
