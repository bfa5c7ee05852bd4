"""Wrapper: the torch tensor that heads a chain."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import torch

from syft_core.exceptions import OperationNotAllowedError, ValueRefusedError, WrapperLeakError
from syft_core.features import Later
from syft_core.hook.argument_plans import NO_PLAN
from syft_core.hook.attributes import FrameworkAttributes, Op, OpTable
from syft_core.hook.chain import end_of
from syft_core.hook.dispatch import OPERATOR_NAMES, WRAPPER, dispatch
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import are_names
from syft_core.tensors.identity import format_chain, format_wrapper
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch import links
from syft_torch.isolation import make_tracing_error, name_instead_of_numpy
from syft_torch.native import TorchTensor
from syft_torch.storage import RemoteStorage

_is_tracing = torch._C._is_tracing
_count_modes = torch._C._len_torch_function_stack
_make = torch.Tensor._make_wrapper_subclass
_remake = torch.Tensor._make_subclass
_META = torch.device("meta")
_NO_DATA = torch.empty((), device=_META)
"""The base of every wrapper around a pointer; reusing it takes half the time of creating one."""
_SET_GRAD = torch.Tensor.grad.__set__


class Wrapper(TorchTensor, torch.Tensor):  # type: ignore[misc]  # torch has no types here
    """A tensor without data; ``child`` is the first layer of its chain.

    Every call on it arrives at ``__torch_function__`` and is dispatched to the chain. Shape, dtype and device are those
    of the data.

    Note [Meta wrappers]
    ~~~~~~~~~~~~~~~~~~~~
    Below the protocol, a wrapper is a *meta* tensor, because it has no storage. So torch refuses
    ``plain.data = wrapper`` and ``plain.grad = wrapper``; otherwise it would accept them and crash at the first read.
    ``wrapper.device`` goes through the protocol and is the device of the data.
    """

    rank: ClassVar[int] = WRAPPER
    is_wrapper = True
    is_followed = True
    """Whether results of a ``torch.autograd.Function``, and tensors computed from them, remember it (``links.py``)."""
    ops: ClassVar[OpTable]
    framework: FrameworkAttributes
    child: Tensor

    @staticmethod
    def __new__(cls: type[Wrapper], child: Tensor) -> Wrapper:
        """Create a tensor with the form of the plain tensor at the end of the chain.

        The form behind a pointer is not used, because asking for it would cost a message.
        """
        if type(child) is PointerTensor or not isinstance(end := end_of(child), torch.Tensor):
            try:
                wrapper: Wrapper = _blanks.pop() if cls is Wrapper else _remake(cls, _NO_DATA)
            except IndexError:
                _blanks.extend([_remake(Wrapper, _NO_DATA) for _ in range(_MANY)])
                wrapper = _remake(Wrapper, _NO_DATA)
        else:
            wrapper = _make(cls, end.shape, dtype=end.dtype, device=_META)
        wrapper.child = child
        return wrapper

    @property
    def grad(self) -> torch.Tensor | None:
        """The gradient, also a chain; the gradient of a pointer is the same object each time."""
        pointer = self.child
        if type(pointer) is not PointerTensor or pointer.whole is not None:
            return dispatch(self.framework.methods["grad"], (self,), {})
        location = pointer._location
        looks = pointer.gone is None and not location.predicts
        if not ((looks and location.peek(pointer._id_at_location, "grad") is not None) or pointer.has_gradient()):
            return None
        known = self.__dict__.get("_syft_grad")
        if known is None or known.child.whole is not pointer:
            known = self._syft_grad = Wrapper(pointer.attr("grad"))
        return known

    @grad.setter
    def grad(self, value: object) -> None:
        pointer = self.child
        known: Any = self.__dict__.get("_syft_grad")
        is_known = known is not None and known is value
        if is_known and known.child.whole is pointer:
            return  # `p.grad += g` assigns the gradient that it has changed.
        del known
        forget_gradient(self)
        if value is None and type(pointer) is PointerTensor:
            clear_gradient(pointer)
        else:
            dispatch(self.ops.by_func[_SET_GRAD], (self, value), {})

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def grad_fn(self) -> Any:
        """The link that created the tensor, if any; other graph nodes are on the worker."""
        link = self.__dict__.get("_syft_link")
        return link if link is not None else dispatch(self.framework.methods["grad_fn"], (self,), {})

    @property
    def is_sparse(self) -> bool:
        """Whether the data is sparse, from the known form if possible: optimizers ask it of every gradient."""
        seen = self.child.look() if type(self.child) is PointerTensor else None
        if isinstance(seen, torch.Tensor):
            return bool(seen.is_sparse)
        if seen is not None and seen.strides is not None:
            return False
        return bool(dispatch(self.framework.methods["is_sparse"], (self,), {}))

    def backward(
        self,
        gradient: Tensor = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Nested = None,
    ) -> None:
        """Run a backward pass on the worker; without options, skip torch's search for a type that handles the call."""
        is_plain = gradient is inputs is retain_graph is None and not create_graph
        if is_plain and not (_count_modes() or _is_tracing() or links.live):
            dispatch(self.framework.methods["backward"], (self,), {})
            return
        super().backward(gradient, retain_graph, create_graph, inputs)

    def new(self, *args: object, **kwargs: object) -> Nested:
        """Create a sparse tensor on the worker, for torch's sparse optimizers, or one of a size; refuse other uses."""
        if len(args) == 3 and isinstance(args[0], torch.Tensor):
            return dispatch(self.framework.creators["sparse_coo_tensor"], args, {})
        if args and not kwargs and self.location is not None and all(type(arg) is int for arg in args):
            return self.new_empty(args)
        return super().new(*args, **kwargs)

    def untyped_storage(self) -> Any:
        """Return the storage, of which only the size is known if it is remote."""
        if type(self.child) is PointerTensor and not self.child._location.records:
            return RemoteStorage(self)
        return super().untyped_storage()

    @classmethod
    def __torch_function__(
        cls, func: Function, types: object, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> Nested:
        """Dispatch a call to the chain."""
        if func is _GET_ITEM and are_names(args[1]):  # A method would make torch treat wrappers as sequences.
            return args[0].select_columns(args[1])
        return call(func, args, dict(kwargs) if kwargs else {})

    @classmethod
    def __torch_dispatch__(
        cls, func: torch._ops.OpOverload, types: object, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> Nested:
        """Refuse: a kernel cannot compute on a wrapper, which has no data. Reading a number needs consent.

        ``torch.as_tensor`` converts with a kernel, below autograd, so only what needs no gradient.
        """
        if func is torch.ops.aten._local_scalar_dense.default:
            return dispatch(cls.framework.methods["item"], args, {})
        if func is torch.ops.aten._to_copy.default and _needs_no_graph(args[0]):
            given = {name: value for name, value in (kwargs or {}).items() if value not in (None, _META)}
            return dispatch(cls.framework.methods["to"], args, given)
        raise WrapperLeakError.at(
            f"torch's kernel {func}",
            "torch.tensor, torch.func, torch.jit and Tensor.set_ need it; call a method of the tensor instead, e.g. "
            "`p.clone()`, or fetch it first: `p = p.get()`",
        )

    def __array_function__(self, func: Function, _types: object, args: Args, kwargs: Kwargs) -> Nested:
        """Refuse a function of numpy on a pointer, and name torch's; other chains are converted as numpy does."""
        if (location := self.location) is None:
            return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]  # what numpy's own arrays call
        use = name_instead_of_numpy(func.__name__, len(args) == 1 and args[0] is self, "p", self.ops)
        raise ValueRefusedError.foreign(f"numpy.{func.__name__}", location.id, use, "p.get().numpy()")

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return format_chain(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format_wrapper(self, spec)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def __dir__(self) -> list[str]:
        return object.__dir__(self)  # type: ignore[return-value]  # torch's own passes the protocol

    def __copy__(self) -> Wrapper:
        return Wrapper(self.child)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        """Copy the object of a pointer on its worker; copy other chains locally, layer by layer."""
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


_blanks: list[Wrapper] = []
"""Wrappers for pointers, still without a child: creating several at once takes less time, because torch's code is then
in the caches of the processor."""
_MANY = 32
_GET_ITEM = torch.Tensor.__getitem__


_DEFINED: dict[Function, Function] = {
    torch.nn.functional.ctc_loss: Later("syft_torch.sequences:ctc_loss"),
    torch.ctc_loss: Later("syft_torch.sequences:ctc_loss_by_number"),
}
"""By the function of torch in whose place they run on remote tensors."""


def call(func: Function, args: Args, kwargs: Kwargs) -> Nested:
    """Call a function of torch on wrappers."""
    if _is_tracing():  # The trace would record the worker's tensors as constants, and print them.
        raise make_tracing_error()
    definition = _DEFINED.get(func)
    if definition is not None and any(getattr(value, "location", None) for value in (*args, *kwargs.values())):
        return definition(*args, **kwargs)
    op = Wrapper.ops.by_func.get(func) or _find_creator(func, args)
    if links.live:
        return links.dispatch_linked(op, args, kwargs)
    return dispatch(op, args, kwargs)


def _needs_no_graph(tensor: Wrapper) -> bool:
    """Return whether a wrapper of a pointer can be converted below autograd."""
    return type(tensor.child) is PointerTensor and not (tensor.requires_grad and torch.is_grad_enabled())


def _find_creator(func: Function, args: Args) -> Op:
    """Return the operation that creates a tensor on the worker of its size; raise if there is none."""
    creator = next((op for op in Wrapper.framework.creators.values() if op.func is func), None)
    if creator is None:
        return _find_replaced(func) or Wrapper.ops.of(func)
    if any(type(arg) is Wrapper and (arg.dim() or arg.is_floating_point()) for arg in args):
        like = f"torch.{creator.attr}_like"
        advice = f"use `{like}(p)` for a tensor like it, or " if hasattr(torch, f"{creator.attr}_like") else ""
        why = f"a size must be a whole number; {advice}use the shape: `p.shape`"
        raise OperationNotAllowedError.refused_by("pointer", creator.name, why)
    return creator


def _find_replaced(func: Function) -> Op | None:
    """Return the operation of torch in whose place a library has put a function, as transformers does.

    Torch's function was called: it passes to the protocol what it finds under its own name.
    """
    name = getattr(func, "__name__", "")
    is_replaced = getattr(torch.nn.init, name, None) is func
    return Wrapper.ops.by_name.get(f"torch.nn.init.{name}") if is_replaced else None


def forget_gradient(tensor: Wrapper) -> None:
    """Forget the gradient of a tensor before it is replaced, so that only a gradient that the program uses is kept."""
    tensor.__dict__.pop("_syft_grad", None)


def clear_gradient(pointers: PointerTensor | list[PointerTensor]) -> None:
    """Clear the gradient of a remote tensor, or of several on one worker."""
    op = Wrapper.ops.by_func[_SET_GRAD]
    PointerTensor.respond(op, NO_PLAN, (pointers, None), {})


def _operator(name: str) -> Function:
    """Return an operator that keeps the errors of layers; torch's own replace every TypeError."""

    def operator(self: Wrapper, *args: object) -> Nested:
        framework = self.framework
        op = framework.methods.get(name) or framework.method(name)
        if links.live:
            return links.dispatch_linked(op, (self, *args), {})
        return dispatch(op, (self, *args), {})

    operator.__name__ = name
    return operator


for _name in OPERATOR_NAMES:
    setattr(Wrapper, _name, _operator(_name))
