"""Wrapper: the torch tensor that a user holds when there is a chain."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import torch

from syft_core.exceptions import WrapperLeakError
from syft_core.hook.attributes import FrameworkAttributes, Op, OpTable
from syft_core.hook.dispatch import WRAPPER, dispatch
from syft_core.hook.plans import NO_PLAN
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.forwarding import OPERATOR_NAMES
from syft_core.tensors.identity import format_chain
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch import links
from syft_torch.isolation import tracing_refused
from syft_torch.native import TorchTensor

_is_tracing = torch._C._is_tracing
_make = torch.Tensor._make_wrapper_subclass
_remake = torch.Tensor._make_subclass
_META = torch.device("meta")
_NO_DATA = torch.empty((), device=_META)
"""What every wrapper around a pointer is made of: that takes half the time of making one from nothing."""
_SET_GRAD = torch.Tensor.grad.__set__
_NUMBER_FORMATS = frozenset("bcdeEfFgGnoxX%")


class Wrapper(TorchTensor, torch.Tensor):  # type: ignore[misc]  # torch's types are Any here
    """A tensor without data of its own: ``child`` is the first layer of a chain.

    Every call on it arrives at ``__torch_function__`` and goes down the chain. Shape, dtype and device are those of
    what the chain stands for.

    Note [Meta heads]
    ~~~~~~~~~~~~~~~~~
    Below the protocol, torch believes the wrapper to be on the *meta* device, which is the truth: it has no storage.
    That makes torch refuse ``plain.data = wrapper`` and ``plain.grad = wrapper``, which it would otherwise accept, only
    to crash at the first read. ``wrapper.device`` passes the protocol and is the device of the data.
    """

    rank: ClassVar[int] = WRAPPER
    is_wrapper = True
    is_followed = True
    """Results of a ``torch.autograd.Function`` and what is computed from them remember it; see ``links.py``."""
    ops: ClassVar[OpTable]
    """The op table of the hook that is on; set when torch is hooked."""
    framework: FrameworkAttributes
    """What that hook knows of torch."""
    child: Tensor

    @staticmethod
    def __new__(cls: type[Wrapper], child: Tensor) -> Wrapper:
        """Make a tensor with the form of what the chain under ``child`` ends in.

        What a pointer points to has a form too, but asking for it here would cost a message.
        """
        end = child
        while type(end) is not PointerTensor and (below := getattr(end, "child", None)) is not None:
            end = below
        if isinstance(end, torch.Tensor):
            wrapper: Wrapper = _make(cls, end.shape, dtype=end.dtype, device=_META)
        else:
            wrapper = _remake(cls, _NO_DATA)
        wrapper.child = child
        return wrapper

    @property
    def grad(self) -> torch.Tensor | None:
        """The gradient, a chain like this one; while there is one behind a pointer, it is the same object each time."""
        pointer = self.child
        if type(pointer) is not PointerTensor or pointer.whole is not None:
            return dispatch(self.framework.methods["grad"], (self,), {})
        location = pointer._location
        looks = pointer.gone is None and not location.predicts
        if not (location.has_gradient(pointer._id_at_location, "grad") if looks else pointer.has_gradient()):
            return None
        known = self.__dict__.get("_syft_grad")
        if known is None or known.child.whole is not pointer:
            known = self._syft_grad = Wrapper(pointer.attr("grad"))
        return known

    @grad.setter
    def grad(self, value: object) -> None:
        pointer = self.child
        if value is None and type(pointer) is PointerTensor:
            take_gradient(pointer)
        else:
            dispatch(self.ops.by_func[_SET_GRAD], (self, value), {})

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def grad_fn(self) -> Any:
        """What stands here for the node of the graph: the link that made the tensor; other nodes are elsewhere."""
        link = self.__dict__.get("_syft_link")
        return link if link is not None else dispatch(self.framework.methods["grad_fn"], (self,), {})

    @property
    def is_sparse(self) -> bool:
        """Whether the data is sparse; optimizers ask that of every gradient, and the form that is known answers."""
        pointer = self.child
        seen = pointer.look() if type(pointer) is PointerTensor else None
        if isinstance(seen, torch.Tensor):
            return bool(seen.is_sparse)
        if seen is not None and seen.strides is not None:
            return False
        return bool(dispatch(self.framework.methods["is_sparse"], (self,), {}))

    def new(self, *args: Any, **kwargs: Any) -> Any:
        """Make a sparse tensor where the data is, as torch's sparse optimizers do with this; all else is off."""
        if len(args) == 3 and isinstance(args[0], torch.Tensor):
            return dispatch(self.framework.creators["sparse_coo_tensor"], args, {})
        return super().new(*args, **kwargs)

    @classmethod
    def __torch_function__(
        cls, func: Function, types: object, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> Nested:
        """Send a call down the chain."""
        if _is_tracing():  # The trace would take tensors of the worker for constants, and print them.
            raise tracing_refused()
        op = cls.ops.by_func.get(func)
        if op is None:
            op = cls.ops.of(func)
        return _answer(op, args, dict(kwargs) if kwargs else {})

    @classmethod
    def __torch_dispatch__(
        cls, func: torch._ops.OpOverload, types: object, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> NoReturn:
        """Refuse: a wrapper must never reach a kernel, because there is nothing to compute with."""
        raise WrapperLeakError.at(
            f"torch's kernel {func}",
            "torch.tensor, torch.func, torch.jit and Tensor.set_ need it; call a method of the tensor instead, e.g. "
            "`p.clone()`, or fetch it first: `p = p.get()`",
        )

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return format_chain(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec[-1:] in _NUMBER_FORMATS else str(self), spec)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def __dir__(self) -> list[str]:
        return object.__dir__(self)  # type: ignore[return-value]  # torch's own passes the protocol

    def __copy__(self) -> Wrapper:
        return Wrapper(self.child)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        """Copy what a pointer points to where it is; other chains are copied here, layer by layer."""
        if not isinstance(self.child, PointerTensor):
            return super().__deepcopy__(memo)
        twin = Wrapper(self.child.copy())
        own = {name: kept for name, kept in self.__dict__.items() if name != "child" and not name.startswith("_syft_")}
        twin.__dict__.update(copy.deepcopy(own, memo))
        return twin

    __hash__ = torch.Tensor.__hash__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        if self.location is not None:
            raise WrapperLeakError.saving(self.location.id)
        raise WrapperLeakError.at("pickle", "save the tensor under its layers instead, e.g. `x.child.child`")


def take_gradient(pointers: PointerTensor | list[PointerTensor]) -> None:
    """Take the gradient away from a tensor elsewhere, or from several on one worker."""
    PointerTensor.respond(Wrapper.ops.by_func[_SET_GRAD], NO_PLAN, (pointers, None), {})


def _answer(op: Op, args: Args, kwargs: Kwargs) -> Nested:
    """Send a call down the chain, and let links follow it while there are any."""
    return links.answer(op, args, kwargs) if links.live else dispatch(op, args, kwargs)


def _operator(name: str) -> Function:
    """Return an operator of Python's that keeps what a layer says; torch's own turn a TypeError into another."""

    def operator(self: Wrapper, *args: Any) -> Nested:
        framework = self.framework
        return _answer(framework.methods.get(name) or framework.method(name), (self, *args), {})

    operator.__name__ = name
    return operator


for _name in OPERATOR_NAMES:
    setattr(Wrapper, _name, _operator(_name))
